"""Importance by the depth of the tree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import depth
from experiments.depth_reading import _median_error, by_depth
from experiments.units import Size, Unit, reject_twins
from subgrove import trees

UNIT = Unit("linear-300-10/r0000", "linear-300-10", {"scenario": "linear", "n": 300, "p": 10, "rep": 0})


def test_units_are_all_cells_repetition_by_repetition() -> None:
    units = depth.units(Size(reps=3))
    reject_twins(units)
    assert len({unit.cell for unit in units[:16]}) == 16
    assert len(units) == 8 * 3 + 8 * 1


def test_a_unit_is_ten_depths_of_both_trees_and_the_same_again() -> None:
    rows = depth.run(UNIT, seed=1)
    assert rows == depth.run(UNIT, seed=1)
    assert [(row["tree"], row["depth"]) for row in rows] == [(t, d) for t in ("cart", "trtr") for d in range(1, 11)]
    leaves = pd.DataFrame(rows).groupby("tree")["leaves"].apply(list)
    for found in leaves:
        assert found == sorted(found)
        assert found[0] == 2


@pytest.mark.parametrize("kind", ["cart", "trtr"])
def test_the_deepest_tree_cut_back_is_the_tree_grown_to_that_depth(kind: str) -> None:
    X = sg.simulate.scenario("multilinear").sample(1000, random_state=1).X

    def grown(most: int) -> sg.Partition:
        grower = (
            trees.CartTree(max_depth=most, min_samples_leaf=30, cp=0.0)
            if kind == "cart"
            else trees.TransformationTree(max_depth=most, min_samples_leaf=30, alpha=1.0)
        )
        return sg.Partition(("x1",), grower.fit(X.drop(columns="x1"), X["x1"]))

    deepest = grown(10)
    for most in (1, 3, 5):
        assert deepest.at_depth(most).rules == grown(most).rules


def results() -> pd.DataFrame:
    unit = [
        depth.run(Unit(f"linear-300-10/r{rep}", "linear-300-10", {**UNIT.params, "rep": rep}), rep) for rep in (1, 2)
    ]
    return pd.DataFrame([row for rows in unit for row in rows])


def test_published_medians_stand_beside_depths_one_to_five() -> None:
    table = by_depth(results())
    known = table.dropna(subset=["published_median"])
    assert sorted(known["depth"]) == sorted([1, 2, 3, 4, 5] * 2)
    first = table[(table["tree"] == "trtr") & (table["depth"] == 1)].iloc[0]
    assert first["published_median"] == pytest.approx(5.9908902974)
    assert first["truth"] == 4.0
    assert first["reps"] == 2


def test_the_error_of_a_median_is_that_of_theory() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(400, 100))
    found = np.mean([_median_error(one) for one in samples])
    # Of 100 normal values the median has standard deviation 1.2533 / 10, a little less; the mean of 400 estimates of
    # it is known to about 1 %.
    assert found == pytest.approx(np.median(samples, axis=1).std(), rel=0.15)
    assert np.isnan(_median_error(np.array([1.0])))
    assert _median_error(np.array([1.0, 2.0, 3.0])) > 0


def test_the_report_counts_what_the_table_says(tmp_path: Path) -> None:
    found = results()
    tables = depth.tables(found)
    text = depth.report(tables)
    near = int((tables["by_depth"]["z_median"].abs() <= 3).sum())
    assert f"{near} of 10 medians are within 3 standard errors" in text
    assert "Repetitions: 2 with n = 300." in text
    (path,) = depth.figures(found, tmp_path)
    assert path.stat().st_size > 10_000
