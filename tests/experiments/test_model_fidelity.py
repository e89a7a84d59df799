"""The model-fidelity experiment: units, what they give, tables and sentences made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import data, model_fidelity
from experiments.model_fidelity_report import loss_table, section
from experiments.model_fidelity_tables import FLAT, METHODS, best, medians, published
from experiments.models import MODELS, fitted_model, optimal_weights
from experiments.units import Size, Unit, seed_of


def computed(unit: Unit) -> pd.DataFrame:
    rows = model_fidelity.run(unit, seed_of("model_fidelity", unit.key))
    return pd.DataFrame(rows).assign(key=unit.key, cell=unit.cell)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(data.FOLDER_VARIABLE, str(tmp_path_factory.mktemp("data") / "nowhere"))
        units = model_fidelity.units(Size(reps=2, quick=True))
        return pd.concat([computed(unit) for unit in units], ignore_index=True)


def test_every_data_set_and_model_has_five_repetitions_the_first_ones_first() -> None:
    units = model_fidelity.units(Size())
    assert len(units) == 6 * 3 * 5
    assert [unit.params["repetition"] for unit in units] == sorted(unit.params["repetition"] for unit in units)
    assert len({unit.cell for unit in units[:18]}) == 18


def test_quick_units_need_no_folder_of_data_sets(without_data: None) -> None:
    assert {unit.params["data"] for unit in model_fidelity.units(Size(quick=True))} == {"diabetes"}


def test_a_unit_has_each_feature_method_and_comparison_once(results: pd.DataFrame) -> None:
    one = results[results["key"] == "diabetes-forest/r00"]
    curves = one[one["method"] != FLAT]
    assert len(curves) == 2 * len(METHODS) * 2
    assert not curves.duplicated(["feature", "method", "against"]).any()
    assert set(curves["feature"]) == {"age", "sex"}
    assert set(one[one["method"] == FLAT]["against"]) == {"prediction", "target"}


def test_a_unit_gives_the_same_again(without_data: None) -> None:
    unit = model_fidelity.units(Size(quick=True))[0]
    pd.testing.assert_frame_equal(computed(unit), computed(unit))


def test_flat_line_against_the_prediction_is_its_variance(without_data: None) -> None:
    X, y, _ = model_fidelity._read("diabetes")
    model = fitted_model("linear", X, y, 0)
    (first, second) = model_fidelity._flat(model, X, y)
    assert first["loss"] == pytest.approx(np.var(model.predict(X)))
    assert second["loss"] == pytest.approx(np.var(y))  # a linear model has the mean of y as its mean


def made_up(losses: dict[str, list[float]], **head: Any) -> pd.DataFrame:
    """Losses of three features in each repetition, whose median is what is given."""
    rows = [
        {**head, "method": method, "repetition": r, "feature": f"f{k}", "loss": loss * factor, "subgroups": 1}
        for method, values in losses.items()
        for r, loss in enumerate(values)
        for k, factor in enumerate((0.5, 1.0, 5.0))
    ]
    return pd.DataFrame(rows)


FOREST = {"data": "wine", "model": "forest", "against": "target"}
SAME = {method: [0.75, 0.77] for method in METHODS}


def test_medians_over_features_are_averaged_over_repetitions() -> None:
    (line,) = medians(made_up({"pdp": [0.7, 0.8]}, **FOREST)).to_dict("records")
    assert line["estimate"] == pytest.approx(0.75)
    assert line["std_error"] == pytest.approx(0.05)
    assert (line["published"], line["deviation"]) == (0.75, 0.0)


def test_deviation_counts_from_what_would_be_rounded_to_the_published_number() -> None:
    table = medians(made_up({"pdp": [0.754], "ale": [0.855], "cs_cart_1": [0.625]}, **FOREST)).set_index("method")
    assert table.loc["pdp", "deviation"] == 0
    assert table.loc["ale", "deviation"] == pytest.approx(0.1 / 0.75)
    assert table.loc["cs_cart_1", "deviation"] == pytest.approx(-0.1 / 0.73)


@pytest.mark.parametrize("head", [{"model": "linear"}, {"against": "prediction"}])
def test_only_forests_against_the_target_have_published_numbers(head: dict[str, str]) -> None:
    assert medians(made_up({"pdp": [0.7]}, **(FOREST | head)))["published"].isna().all()


def test_published_numbers_are_those_of_the_paper() -> None:
    assert published()["pdp", "wind"] == 44.84
    assert published()["cs_cart_2", "satellite"] == 3.05
    assert len(published()) == 36


@pytest.mark.parametrize(
    ("deep", "verdict"),
    [
        ([0.70, 0.71], "best"),
        ([0.75, 0.77], "tied"),  # the same
        ([0.72, 0.78], "tied"),  # better by 0.01 with a standard error of 0.02
        ([0.74, 0.80], "tied"),  # worse by 0.01 with a standard error of 0.02
        ([0.80, 0.82], "beaten"),
    ],
)
def test_verdict_on_depth_2_is_paired_by_repetition(deep: list[float], verdict: str) -> None:
    losses = SAME | {"cs_trtr_2": deep, "cs_cart_2": [0.9, 0.9]}
    (line,) = best(made_up(losses, **FOREST)).to_dict("records")
    assert (line["verdict"], line["depth_2"]) == (verdict, "cs_trtr_2")


def test_the_report_counts_what_agrees_and_names_what_does_not() -> None:
    losses = SAME | {"cs_cart_2": [0.9, 0.9], FLAT: [0.8, 0.8]}
    both = pd.concat([made_up(losses, **FOREST), made_up(losses, **(FOREST | {"against": "prediction"}))])
    text = section({"medians": medians(both), "best": best(both)})
    assert "5 of 6 are within 10% of the published number" in text
    assert "- wine, cs-PDP CART 2: 0.9" in text
    assert "| PDP | 0.760 ± 0.010 (0.75) |" in text


def test_tables_and_figures_of_quick_units_can_be_made(results: pd.DataFrame, tmp_path: Path) -> None:
    tables = model_fidelity.tables(results)
    assert set(tables) == {"medians", "best", "features"}
    text = model_fidelity.report(tables)
    assert text.startswith("## Model fidelity")
    assert "nan" not in text
    paths = model_fidelity.figures(results, tmp_path)
    assert [path.name for path in paths] == ["model_fidelity_target.png", "model_fidelity_prediction.png"]
    assert all(path.stat().st_size > 10_000 for path in paths)


def test_the_report_can_be_made_from_tables_read_back(results: pd.DataFrame, tmp_path: Path) -> None:
    tables = model_fidelity.tables(results)
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    again = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in tables}
    assert model_fidelity.report(again) == model_fidelity.report(tables)


def test_a_table_of_losses_leaves_out_what_is_not_there() -> None:
    lines = loss_table(medians(made_up({"pdp": [0.7]}, **FOREST))).splitlines()
    assert lines[2] == "| PDP | 0.700 (0.75) |"
    assert lines[3] == "| ALE |  |"


def test_weights_of_neighbours_sum_to_one_and_fall() -> None:
    for d in (1, 3, 36):
        weights = optimal_weights(7, d)
        assert weights.sum() == pytest.approx(1)
        assert (np.diff(weights) < 0).all()
        assert (weights > 0).all()


def test_nearest_neighbours_are_weighted_by_rank_on_standardised_columns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) * [1, 100, 0.01], rng.normal(size=60)
    scaled = (X - X.mean(0)) / X.std(0)
    row = rng.normal(size=3)
    near = np.argsort(((scaled - row) ** 2).sum(1))[:7]
    found = fitted_model("knn", X, y, 0).predict((row * X.std(0) + X.mean(0))[None])
    assert found == pytest.approx(optimal_weights(7, 3) @ y[near])


def test_an_unknown_model_is_reported() -> None:
    with pytest.raises(ValueError, match="forest, linear, knn"):
        fitted_model("svm", np.zeros((5, 2)), np.zeros(5), 0)
    assert len(MODELS) == 3
