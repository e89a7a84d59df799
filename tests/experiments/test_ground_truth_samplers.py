"""Samplers of the package on the rows of the ground-truth simulation, beside the true one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import ground_truth, ground_truth_samplers
from experiments.beside_true import beside_true, choices, mse_ratio
from experiments.ground_truth_methods import redrawn
from experiments.ground_truth_rows import drawn_repetition
from experiments.running import THREADS_VARIABLE
from experiments.units import Size, Unit, reject_twins, seed_of

SIZE = Size(samplers=("subgroups",))
QUICK = Size(samplers=("subgroups",), quick=True)


def quick_unit(cell: str, size: Size = QUICK) -> Unit:
    return next(unit for unit in ground_truth_samplers.units(size) if unit.cell == cell)


def test_cells_are_the_papers_and_those_of_two_scenarios_more() -> None:
    units = ground_truth_samplers.units(SIZE)
    reject_twins(units)
    counts = pd.Series([unit.cell for unit in units]).value_counts()
    paper = {unit.cell for unit in ground_truth.units(Size(reps=1))}
    further = {f"I-{name}-{n}-{p}" for name in ("interaction", "mixed") for n in (300, 3000) for p in (10, 90)}
    assert set(counts.index) == paper | further
    for cell, count in counts.items():
        assert count == {"300": 200, "3000": 100}[str(cell).split("-")[2]]


def test_our_own_forest_is_a_run_of_setting_ii_alone() -> None:
    units = ground_truth_samplers.units(Size(samplers=("subgroups",), forest="own"))
    assert {unit.cell for unit in units} == {one.cell for one in ground_truth_samplers.units(SIZE) if "II" in one.cell}
    assert {unit.params["forest"] for unit in units} == {"own"}
    assert {unit.params["forest"] for unit in ground_truth_samplers.units(SIZE)} == {"sklearn"}


def test_reps_count_small_cells_and_the_first_of_each_comes_before_the_second_of_any() -> None:
    units = ground_truth_samplers.units(Size(reps=7, samplers=("subgroups",)))
    counts = pd.Series([unit.cell for unit in units]).value_counts()
    assert {counts[cell] for cell in counts.index if "-300-" in cell} == {7}
    assert {counts[cell] for cell in counts.index if "-3000-" in cell} == {3}
    assert len({unit.cell for unit in units[:40]}) == 40


@pytest.mark.parametrize("names", [(), ("telepathy",)])
def test_names_that_are_no_samplers_are_rejected(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="--sampler takes names out of auto, cart, "):
        ground_truth_samplers.units(Size(samplers=names))


@pytest.mark.compiled
@pytest.mark.parametrize(("setting", "forest"), [("I", "sklearn"), ("II", "own")])
def test_rows_truth_and_true_estimates_are_those_that_the_papers_methods_had(setting: str, forest: str) -> None:
    cell = f"{setting}-linear-300-10"
    unit = quick_unit(cell, replace(QUICK, forest=forest))
    ours = ground_truth_samplers.run(unit, seed=99)  # the seed of the unit in ground_truth counts, not this
    theirs = next(one for one in ground_truth.units(Size(quick=True)) if one.cell == cell)
    assert unit.key == theirs.key
    rows = ground_truth.run(theirs, seed_of("ground_truth", theirs.key))
    true = {row["m"]: (row["estimate"], row["truth"]) for row in rows if row["method"] == "true"}
    assert {row["m"]: (row["estimate"], row["truth"]) for row in ours if row["method"] == "true"} == true
    assert [(row["method"], row["m"]) for row in ours] == [
        ("subgroups", 1),
        ("subgroups", 20),
        ("true", 1),
        ("true", 20),
    ]


def test_another_seed_has_other_rows() -> None:
    fresh = quick_unit("I-linear-300-10", Size(samplers=("marginal",), quick=True, seed=7))
    assert fresh.key == "I-linear-300-10/s7-r0000"
    old = quick_unit("I-linear-300-10", Size(samplers=("marginal",), quick=True))
    first, second = (ground_truth_samplers.run(unit, 0)[0] for unit in (fresh, old))
    assert first["truth"] != second["truth"]
    assert ground_truth_samplers.run(fresh, 0)[0] == first


def test_rises_of_a_table_with_labels_are_those_of_its_numbers() -> None:
    unit = quick_unit("I-mixed-300-10")
    one = drawn_repetition(unit.params, 3)
    drawn = redrawn(one.scenario.sampler, one.train, one.test, 2, 1).columns
    before = (one.scenario.model(one.test) - one.y) ** 2
    after = [(one.scenario.model(one.test.assign(x1=column)) - one.y) ** 2 for column in drawn]
    np.testing.assert_allclose(one.rises(drawn), [(part - before).mean() for part in after], rtol=1e-12)
    assert one.truth == sg.simulate.scenario("mixed").true_importance(n=1000, random_state=_third_seed(3))


def _third_seed(seed: int) -> int:
    return int(np.random.default_rng(seed).integers(2**62, size=6)[2])


@pytest.mark.compiled
def test_the_forest_may_be_that_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "1")
    options = {"setting": "II", "scenario": "linear", "n": 300, "p": 10, "trees": 60}
    ours = [drawn_repetition(options, seed) for seed in range(8)]
    theirs = [drawn_repetition(options | {"forest": "sklearn"}, seed) for seed in range(8)]
    for one, other in zip(ours, theirs, strict=True):
        pd.testing.assert_frame_equal(one.test, other.test)
        assert other.forest is None
        x = one.test.to_numpy()
        # Two forests of the same rows with leaves that differ a little in size.
        assert np.corrcoef(one.predict(x), other.predict(x))[0, 1] > 0.95
    monkeypatch.setenv(THREADS_VARIABLE, "2")
    again = drawn_repetition(options | {"forest": "sklearn"}, 0)
    assert again.truth == theirs[0].truth
    # Leaves of five or more make a smoother forest, which uses x1 less, but in the same way.
    ratio = np.mean([one.truth for one in theirs]) / np.mean([one.truth for one in ours])
    assert 0.5 < ratio < 1.2


def lines(estimates: dict[str, list[float]], truth: list[float], m: int = 20, **cell: Any) -> pd.DataFrame:
    """Repetitions of a cell, by method."""
    place = {"setting": "I", "scenario": "linear", "n": 300, "p": 10} | cell
    rows = [
        place | {"rep": rep, "method": method, "m": m, "estimate": value, "truth": truth[rep], "chosen": ""}
        for method, values in estimates.items()
        for rep, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_the_ratio_is_of_repetitions_that_both_have() -> None:
    own = pd.DataFrame({"estimate": [5.0, 7.0, 100.0], "truth": [4.0, 4.0, 4.0]}, index=[0, 1, 9])
    true = pd.DataFrame({"estimate": [4.5, 5.0], "truth": [4.0, 4.0]}, index=[0, 1])
    ratio, error = mse_ratio(own, true)
    assert ratio == pytest.approx((1 + 9) / (0.25 + 1))
    parts = np.array([1 - ratio * 0.25, 9 - ratio * 1.0]) / 0.625
    assert error == pytest.approx(parts.std(ddof=1) / np.sqrt(2))


def test_the_standard_error_of_a_ratio_is_how_it_varies() -> None:
    rng = np.random.default_rng(1)

    def drawn() -> tuple[float, float]:
        truth = 4 + 0.5 * rng.standard_normal(200)
        shared = rng.standard_normal(200)
        own = pd.DataFrame({"estimate": 4.6 + shared + 0.5 * rng.standard_normal(200), "truth": truth})
        return mse_ratio(own, pd.DataFrame({"estimate": 4 + shared, "truth": truth}))

    found = np.array([drawn() for _ in range(400)])
    # A standard deviation of 400 draws has a relative standard error of 1 / sqrt(800) = 3.5 %, more for heavier tails:
    # four of five per cent. Without the pairing, what is pages would be half as large again.
    assert found[:, 0].std(ddof=1) == pytest.approx(found[:, 1].mean(), rel=0.2)


def test_cells_say_how_far_the_true_sampler_and_what_was_published_are(tmp_path: Path) -> None:
    results = lines({"auto": [5.0, 3.0, 4.5], "true": [4.5, 3.5, 4.5]}, [4.0] * 3)
    cells = beside_true(results, tmp_path).set_index("method")
    assert cells.loc["auto", "ratio_true"] == pytest.approx(2.25 / 0.75)
    assert cells.loc["true", "ratio_true"] == 1.0
    assert cells.loc["true", "ratio_true_se"] == pytest.approx(0.0, abs=1e-12)
    assert cells.loc["auto", "best_published_method"] == "ko"
    assert cells.loc["auto", "best_published"] == pytest.approx(2.03, abs=0.01)
    assert cells.loc["auto", "below_published"] is True
    assert "best_repeated" not in cells
    above = beside_true(lines({"auto": [9.0, 8.0], "true": [4.5, 3.5]}, [4.0] * 2), tmp_path).set_index("method")
    assert above.loc["auto", "below_published"] is False


def test_our_own_run_of_the_papers_methods_stands_beside_with_as_many_redraws(tmp_path: Path) -> None:
    place = "setting,scenario,n,p,method,m,mse,mse_se\n"
    text = [
        f"I,linear,300,10,{name},{m},{mse},0.1" for name, m, mse in [("imp", 20, 2), ("ko", 20, 1.5), ("true", 20, 0.1)]
    ]
    (tmp_path / "ground_truth_cells.csv").write_text(place + "\n".join([*text, "I,linear,300,10,imp,1,0.3,0.1"]) + "\n")
    cells = beside_true(lines({"auto": [5.0, 3.0], "true": [4.5, 3.5]}, [4.0] * 2), tmp_path)
    assert set(cells["best_repeated"]) == {1.5}
    assert set(cells["best_repeated_method"]) == {"ko"}


def test_scenarios_past_the_paper_have_nothing_published() -> None:
    cells = beside_true(lines({"auto": [5.0, 3.0], "true": [4.5, 3.5]}, [4.0] * 2, scenario="mixed"))
    assert cells["best_published"].isna().all()
    assert cells["below_published"].isna().all()


def test_choices_are_shares_of_repetitions() -> None:
    results = lines({"auto": [1.0] * 4, "true": [1.0] * 4}, [1.0] * 4)
    results.loc[results["method"] == "auto", "chosen"] = ["shifted", "shifted", "marginal", "shifted"]
    results = pd.concat([results, results.assign(m=1)])
    shares = choices(results).set_index("candidate")["share"].to_dict()
    assert shares == {"shifted": 0.75, "marginal": 0.25}
    cells = ground_truth_samplers.tables(results)["cells"]
    assert set(cells.loc[cells["method"] == "auto", "chosen"]) == {"shifted 0.75; marginal 0.25"}
    assert set(cells.loc[cells["method"] == "true", "chosen"]) == {""}
    assert choices(results.drop(columns="chosen")).empty


def test_what_a_sampler_chose_is_stored() -> None:
    class Chooses:
        def fit(self, X: Any, features: Any) -> Any:
            fitted = sg.samplers.Marginal().fit(X, features)
            choice = SimpleNamespace(selected="marginal")
            return SimpleNamespace(sample=fitted.sample, choices={"x1": choice})

    X = sg.simulate.scenario("linear").sample(30, random_state=1).X
    drawn = redrawn(Chooses(), X, X, 2, 1)
    assert (drawn.chosen, drawn.subgroups) == ("marginal", None)
    assert redrawn(sg.samplers.SubgroupSampler(), X, X, 2, 1).chosen is None


def test_the_report_counts_cells_and_names_those_that_miss() -> None:
    near = lines({"auto": [5.0, 3.1, 4.4], "true": [4.9, 3.2, 4.4]}, [4.0] * 3)
    far = lines({"auto": [9.0, 8.0, 7.0], "true": [4.5, 3.5, 4.2]}, [4.0] * 3, n=3000)
    further = lines({"auto": [9.0, 8.0, 7.0], "true": [4.5, 3.5, 4.2]}, [4.0] * 3, scenario="interaction")
    results = pd.concat([near, far, further])
    results.loc[results["method"] == "auto", "chosen"] = "shifted"
    text = ground_truth_samplers.report(ground_truth_samplers.tables(results))
    assert "Below the best published method in 1 of 2 cells, the true sampler in 2." in text
    assert (
        "- linear 3000 x 10: 16.7 ± 4.6 against 0.264 (imputation), 3.5 standard errors of the difference above; the "
        "true sampler has 0.180, which is below it\n" in text
    )
    assert "At most 1.25 times the true sampler's error in 1 of 2, at most 2 times in 1 (above in linear 3000" in text
    assert "at most 1.5 times the true sampler's error in 0 of 1 cells (above in interaction 300 x 10 (" in text
    assert "| linear | 300 | 10 | shifted 100 % (0.657) |" in text
    assert "Repetitions: 3 with n = 300, 3 with n = 3000." in text


def test_tables_and_figures_are_made_of_whatever_cells_there_are(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for cell in ("I-linear-300-10", "I-mixed-300-10", "II-linear-300-10"):
        rows += ground_truth_samplers.run(quick_unit(cell), 0)
    found = ground_truth_samplers.tables(pd.DataFrame(rows))
    assert list(found) == ["cells", "choices"]
    assert found["cells"]["scenario"].drop_duplicates().tolist() == ["linear", "mixed"]
    (path,) = ground_truth_samplers.figures(pd.DataFrame(rows), tmp_path)
    assert path.name == "beyond_subgroups.png"
    assert path.stat().st_size > 10_000


@pytest.mark.compiled
def test_our_own_forest_has_a_section_and_a_picture_apart(tmp_path: Path) -> None:
    pages = {}
    for forest in ("sklearn", "own"):
        rows = pd.DataFrame(ground_truth_samplers.run(quick_unit("II-linear-300-10", replace(QUICK, forest=forest)), 0))
        found = ground_truth_samplers.tables(rows)
        assert set(found["cells"]["forest"]) == {forest}
        assert found["cells"]["best_repeated"].notna().all() == (forest == "own")
        (picture,) = ground_truth_samplers.figures(rows, tmp_path)
        pages[forest] = ground_truth_samplers.report(found)
        assert f"images/beyond/{picture.name}" in pages[forest]
    assert "## Close to the true sampler in every cell?" in pages["sklearn"]
    assert "setting II (scikit-learn's forest), 20 redraws" in pages["sklearn"]
    assert "| with as many redraws |" not in pages["sklearn"]
    assert "## The same for the forest of the paper's methods" in pages["own"]
    assert "setting II (a forest by R's rule), 20 redraws" in pages["own"]
    assert "| with as many redraws |" in pages["own"]
    assert len(list(tmp_path.glob("*.png"))) == 2


def test_where_a_cell_of_setting_ii_is_lost_it_is_said_what_no_sampler_can_help() -> None:
    lost = lines({"auto": [7.0, 8.0, 9.0], "true": [4.5, 3.5, 4.2]}, [3.0, 4.0, 5.0], setting="II")
    text = ground_truth_samplers.report(ground_truth_samplers.tables(lost))
    assert "; 1.00 ± 0.33 of ours is what forests differ by\n" in text
    assert "Each repetition has a forest of its own" in text
    assert "CVIRF evaluates the training rows" in text
    by_others = ground_truth_samplers.report(ground_truth_samplers.tables(lost.assign(scenario="nonlinear")))
    assert "CVIRF evaluates the training rows" not in by_others


def test_errors_by_choice_sum_to_the_total_and_the_choice_that_makes_a_cell_far_is_named() -> None:
    results = lines({"auto": [4.5, 3.0, 4.5, 14.0], "true": [4.5, 3.5, 4.2, 4.0]}, [4.0] * 4)
    results.loc[results["method"] == "auto", "chosen"] = ["shifted", "gaussian", "shifted", "marginal"]
    found = ground_truth_samplers.tables(results)
    errors = found["choices"].set_index("candidate")["mse"].to_dict()
    assert errors == pytest.approx({"shifted": 0.25, "gaussian": 1.0, "marginal": 100.0})
    own = found["cells"].set_index("method").loc["auto"]
    assert (found["choices"]["share"] * found["choices"]["mse"]).sum() == pytest.approx(own["mse"])
    text = ground_truth_samplers.report(found)
    assert "| linear | 300 | 10 | shifted 50 % (0.250), gaussian 25 % (1.00), marginal 25 % (100) |" in text
    assert (
        "repetitions with `marginal`, 25 % of all, have 99 % of it; in the others it is 0.500. It is selected" in text
    )
