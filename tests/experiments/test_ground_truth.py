"""The ground-truth simulation: its units, its estimates, and what is read from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import ground_truth
from experiments.beside_published import agreement, published, summed_up, truths
from experiments.conditional_forest import conditional_rise, grown
from experiments.ground_truth_methods import METHODS, redrawn, rises
from experiments.units import Size, Unit, reject_twins

EXACT = {name: sg.simulate.scenario(name).importance for name in sg.simulate.PAPER}


def results(estimates: list[float], true: list[float], method: str = "cs_cart", m: int = 1) -> pd.DataFrame:
    """Repetitions of the cell I-linear-300-10."""
    rows = [
        {"setting": "I", "scenario": "linear", "n": 300, "p": 10, "rep": rep, "method": method, "m": m}
        | {"estimate": estimate, "truth": one, "subgroups": None}
        for rep, (estimate, one) in enumerate(zip(estimates, true, strict=True))
    ]
    return pd.DataFrame(rows)


def quick_unit(setting: str) -> Unit:
    return next(unit for unit in ground_truth.units(Size(quick=True)) if unit.cell == f"{setting}-linear-300-10")


def test_there_are_sixteen_cells_in_each_setting_and_the_repetitions_that_are_reported() -> None:
    units = ground_truth.units(Size())
    reject_twins(units)
    counts = pd.Series([unit.cell for unit in units]).value_counts()
    assert len(counts) == 32
    for cell, count in counts.items():
        setting, _, n, _ = str(cell).split("-")
        assert count == {"I300": 300, "I3000": 100, "II300": 100, "II3000": 30}[setting + n]


def test_reps_count_small_cells_and_a_third_of_them_large_ones() -> None:
    counts = pd.Series([unit.cell for unit in ground_truth.units(Size(reps=10))]).value_counts()
    assert {counts[cell] for cell in counts.index if "-300-" in cell} == {10}
    assert {counts[cell] for cell in counts.index if "-3000-" in cell} == {4}


def test_an_interrupted_run_has_all_cells() -> None:
    units = ground_truth.units(Size(reps=5))
    assert len({unit.cell for unit in units[:32]}) == 32


@pytest.mark.compiled
@pytest.mark.parametrize(("setting", "extra"), [("I", set()), ("II", {"cvirf"})])
def test_a_unit_gives_every_method_once_and_again_the_same(setting: str, extra: set[str]) -> None:
    unit = quick_unit(setting)
    rows = ground_truth.run(unit, seed=5)
    assert rows == ground_truth.run(unit, seed=5)
    assert rows != ground_truth.run(unit, seed=6)
    found = {(row["method"], row["m"]) for row in rows}
    assert len(found) == len(rows)
    assert found == {(name, m) for name in (*METHODS, "true") for m in (1, 20)} | {(name, 1) for name in extra}
    assert len({row["truth"] for row in rows}) == 1
    assert {row["method"] for row in rows if row["subgroups"] is not None} == {"cs_cart", "cs_trtr"}


def test_a_rise_is_the_mean_rise_of_the_squared_error() -> None:
    test, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0])
    rise = rises(lambda x: x.sum(axis=1), test, y, np.array([[3.0, 1.0], [1.0, 3.0]]))
    np.testing.assert_allclose(rise, [((16 - 4) + (16 - 36)) / 2, 0.0])


def test_subgroups_redraw_by_one_permutation_without_fixed_points() -> None:
    data = sg.simulate.scenario("linear").sample(300, random_state=1)
    train, test = data.X.iloc[:200], data.X.iloc[200:]
    for method in ("cs_cart", "cs_trtr", "marg"):
        drawn = redrawn(METHODS[method](1, 20), train, test, 3, seed=2).columns
        for column in drawn:
            assert sorted(column) == sorted(test["x1"])
            assert (column != test["x1"].to_numpy()).all()


def test_the_true_sampler_is_unbiased() -> None:
    one = sg.simulate.scenario("nonlinear")
    estimates = []
    for seed in range(60):
        data = one.sample(300, random_state=seed)
        drawn = redrawn(one.sampler, data.X, data.X, 1, seed)
        estimates.append(rises(one.model, data.X.to_numpy(), np.asarray(data.y, dtype=np.float64), drawn.columns)[0])
    # Four standard errors of the mean of 60 estimates.
    assert abs(np.mean(estimates) - one.importance) < 4 * np.std(estimates, ddof=1) / np.sqrt(60)


@pytest.mark.compiled
def test_trees_of_the_forest_predict_out_of_bag_rows() -> None:
    data = sg.simulate.scenario("linear").sample(200, random_state=3)
    x, y = data.X.to_numpy(), np.asarray(data.y, dtype=np.float64)
    forest = grown(x, y, 40, seed=1)
    share = np.mean([len(rows) for rows in forest.unseen]) / 200
    # A row is missed by a bootstrap sample with probability (1 - 1/n)^n; 40 trees of 200 rows: sd below 0.005.
    assert abs(share - (1 - 1 / 200) ** 200) < 0.02
    together = np.mean([tree.predict(x)[:, 0] for tree in forest.trees], axis=0)
    np.testing.assert_allclose(together, forest.predict(x), rtol=1e-10)
    assert conditional_rise(forest, x, y, seed=1) > 0


@pytest.mark.compiled
def test_a_forest_that_cannot_see_the_feature_gives_it_no_importance() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    x[:, 0] = 1.0
    assert conditional_rise(grown(x, x[:, 1], 20, seed=1), x, x[:, 1], seed=1) == 0.0


def test_the_mean_squared_error_is_about_the_mean_truth_and_its_error_knows_that() -> None:
    estimate, true = [5.0, 7.0, 6.0, 3.0], [4.0, 4.5, 3.5, 4.0]
    (row,) = summed_up(results(estimate, true)).to_dict("records")
    assert row["truth"] == 4.0
    assert row["mean"] == 5.25
    assert row["mse"] == pytest.approx((1 + 9 + 4 + 1) / 4)
    parts = [1 - 2.5 * 0.0, 9 - 2.5 * 0.5, 4 + 2.5 * 0.5, 1.0]
    assert row["mse_se"] == pytest.approx(np.std(parts, ddof=1) / 2)
    assert row["mean_se"] == pytest.approx(np.std(estimate, ddof=1) / 2)


def test_published_numbers_stand_beside_ours_with_their_distance() -> None:
    (row,) = summed_up(results([5.0, 7.0, 6.0, 3.0], [4.0] * 4)).to_dict("records")
    cell = published("ground_truth_summary").query("setting == 'I' and scenario == 'linear' and n == 300 and p == 10")
    theirs = cell[cell["method"] == "cs_cart"].to_dict("records")[0]
    assert row["published_mse"] == theirs["mse"]
    assert row["z_mse"] == pytest.approx((row["mse"] - theirs["mse"]) / np.hypot(row["mse_se"], theirs["mse_se"]))
    error = np.hypot(row["mean_se"], theirs["sd"] / np.sqrt(1000))
    assert row["z_mean"] == pytest.approx((row["mean"] - theirs["mean"]) / error)


def test_the_pooled_distance_is_that_of_two_samples_of_one_distribution() -> None:
    ours, theirs = np.array([5.0, 7.0, 6.0, 3.0]), published("ground_truth_summary")
    (row,) = summed_up(results(ours.tolist(), [4.0] * 4)).to_dict("records")
    cell = theirs.query("setting == 'I' and scenario == 'linear' and n == 300 and p == 10 and method == 'cs_cart'")
    mse, error = cell["mse"].item(), cell["mse_se"].item()
    spread = (3 * ((ours - 4) ** 2).var(ddof=1) + 999 * 1000 * error**2) / 1002
    expected = (((ours - 4) ** 2).mean() - mse) / np.sqrt(spread * (1 / 4 + 1 / 1000))
    assert row["z_pooled"] == pytest.approx(expected)


def test_more_redraws_are_not_compared_with_what_was_published_of_one() -> None:
    (row,) = summed_up(results([5.0, 7.0], [4.0, 4.0], m=20)).to_dict("records")
    assert np.isnan(row["z_mse"])
    assert np.isnan(row["published_mse"])


def test_every_published_cell_has_its_place_in_ours() -> None:
    cells = {unit.cell for unit in ground_truth.units(Size(reps=1))}
    theirs = published("ground_truth_summary")
    names = theirs["setting"] + "-" + theirs["scenario"] + "-" + theirs["n"].astype(str) + "-" + theirs["p"].astype(str)
    assert set(names) == cells
    assert set(theirs["method"]) == {*METHODS, "cvirf"}


def test_truths_are_compared_with_the_published_one_and_the_closed_form() -> None:
    (row,) = truths(results([1.0, 2.0, 3.0], [4.1, 3.9, 4.3]), EXACT).to_dict("records")
    assert row["exact"] == 4.0
    assert row["truth"] == pytest.approx(4.1)
    assert row["z_exact"] == pytest.approx(0.1 / (0.2 / np.sqrt(3)))


def test_agreement_counts_cells_within_three_standard_errors() -> None:
    cells = pd.DataFrame(
        {"setting": "I", "method": "imp", "z_mse": [0.1, -2.9, 3.1, np.nan], "z_mean": [4.0, 0.0, -1.0, 1.0]}
        | {"z_pooled": [0.1, -2.0, 2.0, np.nan]}
    )
    (row,) = agreement(cells).to_dict("records")
    assert (row["cells"], row["mse_within"], row["pooled_within"], row["mean_within"]) == (3, 2, 3, 2)
    assert row["mse_largest_z"] == 3.1


def some_results() -> pd.DataFrame:
    units = [
        unit for unit in ground_truth.units(Size(quick=True)) if unit.params["scenario"] in ("linear", "nonlinear")
    ]
    rows: list[dict[str, Any]] = []
    for unit in units:
        rows += ground_truth.run(unit, seed=len(rows))
    return pd.DataFrame(rows)


@pytest.mark.compiled
def test_tables_report_and_figures_are_made_of_whatever_cells_there_are(tmp_path: Path) -> None:
    found = some_results()
    tables = ground_truth.tables(found)
    assert list(tables) == ["cells", "truths", "agreement"]
    text = ground_truth.report(tables)
    counts = tables["agreement"].groupby("setting").sum(numeric_only=True)
    for setting in ("I", "II"):
        one = counts.loc[setting]
        assert f"{one['mse_within']:.0f} of {one['cells']:.0f} mean squared errors" in text
    assert "| linear | 300 | 10 |" in text
    paths = ground_truth.figures(found, tmp_path)
    assert [path.name for path in paths] == ["ground_truth_I.png", "ground_truth_II.png"]
    assert all(path.stat().st_size > 10_000 for path in paths)


def test_one_repetition_has_no_standard_error_and_is_reported_all_the_same() -> None:
    tables = ground_truth.tables(results([5.0], [4.0]))
    assert np.isnan(tables["cells"]["mse_se"]).all()
    assert "Repetitions: 1 with n = 300." in ground_truth.report(tables)


def test_what_models_differ_by_is_separated_from_the_noise_of_rows() -> None:
    rng = np.random.default_rng(3)
    model = 4 + 2 * rng.standard_normal(2000)
    estimate, true = (model + size * rng.standard_normal(2000) for size in (3.0, 5.0))
    (row,) = summed_up(results(estimate.tolist(), true.tolist())).to_dict("records")
    # Var of a product of such normals is 4^2 + 13 * 29: the standard error of 2000 of them is 0.44.
    assert row["between_models_se"] == pytest.approx(0.44, rel=0.1)
    assert abs(row["between_models"] - 4.0) < 3 * 0.44
