"""The bike application: its parts, and what is said of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import bike
from experiments.parts import bike_tables
from experiments.parts.bike_claims import IMPORTANCE, Claim, _largest_fall, _nearest_cut, _slope, claim_rows
from experiments.parts.bike_unit import SUBGROUPS, application, authors_split, name_of, split_rows
from experiments.store import Store
from experiments.units import Size, Unit, seed_of

CELLS = {"splits", "authors", "dependence", "closed_form"}


@cache
def quick_rows() -> dict[str, tuple[str, list[dict[str, object]]]]:
    units = bike.units(Size(quick=True))
    return {unit.key: (unit.cell, bike.run(unit, seed_of("bike", unit.key))) for unit in units}


@pytest.fixture
def results(tmp_path: Path) -> pd.DataFrame:
    """A quick run of every cell, as it is read back."""
    store = Store(tmp_path / "store")
    for key, (cell, rows) in quick_rows().items():
        store.write(key, [{"cell": cell, **row} for row in rows])
    return store.read()


def test_units_go_by_repetition_so_that_an_interrupted_run_has_all_cells() -> None:
    keys = [unit.key for unit in bike.units(Size(reps=2))]
    assert keys[:4] == ["closed_form", "splits/r0001", "authors/r0001", "dependence/r0001"]
    assert len(set(keys)) == len(keys) == 7
    assert {unit.cell for unit in bike.units(Size(cells=("auth*",)))} == {"authors"}


def test_the_split_of_the_authors_has_511_and_220_days() -> None:
    train, test = authors_split()
    assert (len(train.X), len(test.X)) == (511, 220)
    assert not set(train.X.index) & set(test.X.index)


def test_trees_on_the_split_of_the_authors_split_as_published() -> None:
    groups = sg.find_subgroups(authors_split()[0].X, features=["temp", "season"])
    rows = pd.DataFrame(split_rows(groups))
    assert [name_of(rule) for rule in groups["temp"].rules] == list(SUBGROUPS)
    assert rows.loc[rows["feature"] == "temp", "level"].tolist() == ["SUMMER", "WINTER", ""]
    assert _nearest_cut(rows.assign(part="split"), "temp", "hum", 0.0) == 70.75


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("season in {SUMMER} and hum > 70.75", "humid summer"),
        ("season in {SUMMER} and hum <= 70.75", "dry summer"),
        ("season in {SPRING, FALL}", "spring and fall"),
        ("season in {WINTER}", "winter"),
        ("season in {SPRING, FALL} and hum > 70", "other"),
        ("all rows", "other"),
    ],
)
def test_subgroups_have_the_names_of_the_paper(rule: str, name: str) -> None:
    assert name_of(rule) == name


def test_a_unit_depends_on_its_seed_and_on_nothing_else() -> None:
    train, test = authors_split()
    one, two = (application(train, test, 5, trees=3, repeats=2, max_depth=2) for _ in range(2))
    pd.testing.assert_frame_equal(pd.DataFrame(one), pd.DataFrame(two))


def test_every_table_has_its_rows(results: pd.DataFrame) -> None:
    tables = bike.tables(results)
    assert set(results["cell"]) == CELLS
    assert tables["dependence"]["feature"].tolist() == list(sg.datasets.bike().X.columns)
    assert tables["dependence"][["published", "ours"]].notna().all(axis=None)
    assert tables["importance"].groupby(["cell", "depth"]).size().tolist() == [9] * 6
    compared = tables["importance"].query("cell == 'authors'")
    assert compared["authors"].notna().all()
    assert tables["subgroups"].query("cell == 'authors'")["subgroup"].tolist() == list(SUBGROUPS)
    assert tables["curves"]["ours"].notna().all()


def test_tables_and_pictures_of_cells_that_were_not_run_are_left_out(results: pd.DataFrame, tmp_path: Path) -> None:
    only = results[results["cell"] == "authors"].reset_index(drop=True)
    tables = bike.tables(only)
    assert set(tables) == {"importance", "subgroups", "curves", "errors", "run"}
    assert bike.report(tables).startswith("## ")
    assert bike.figures(only, tmp_path) == []


def test_every_picture_is_drawn_from_stored_rows(results: pd.DataFrame, tmp_path: Path) -> None:
    names = [path.name for path in bike.figures(results, tmp_path)]
    assert names == [f"bike_{name}.png" for name in ("dependence", "importance", "depth", "temperature", "season")]
    assert all((tmp_path / name).stat().st_size > 5000 for name in names)


def test_the_report_is_the_same_from_tables_that_were_written_and_read(results: pd.DataFrame, tmp_path: Path) -> None:
    tables = bike.tables(results)
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    assert bike.report({name: pd.read_csv(tmp_path / f"{name}.csv") for name in tables}) == bike.report(tables)


def test_importance_of_a_formula_is_that_of_the_authors_functions() -> None:
    # 45 comparisons of independent draws at three standard errors: all hold at this seed.
    unit = Unit("closed_form", "closed_form", {"trees": 1, "repeats": 12, "max_depth": 5})
    rows = pd.DataFrame(bike.run(unit, 1)).assign(cell="closed_form")
    table = bike_tables.closed_form(rows)
    assert len(table) == 45
    assert table["z"].abs().max() < 3


def test_a_split_without_the_subgroup_is_left_out_of_its_claim() -> None:
    results = pd.DataFrame(
        [
            {"key": key, "part": part, "depth": 0.0, "feature": "temp", "group": group, "mean": mean}
            for key, part, group, mean in [
                ("a", "importance", None, 100.0),
                ("a", "subgroup", "winter", 50.0),
                ("b", "importance", None, 100.0),
                ("b", "subgroup", "other", 10.0),
            ]
        ]
    )
    winter = next(each for each in IMPORTANCE if each.text.startswith("winter"))
    (row,) = claim_rows(results, (winter,))
    assert (row["value"], row["n"]) == (0.5, 1)
    nowhere = Claim("nothing", lambda rows: np.nan, "above", 0.0)
    assert claim_rows(results, (nowhere,)) == []


def curve(values: list[float], part: str, group: str = "") -> pd.DataFrame:
    x = np.linspace(0, 30, len(values))
    table = pd.DataFrame({"x": x, "value": values, "part": part, "feature": "temp", "group": group})
    return table.assign(in_whiskers=1)


def test_the_largest_fall_is_a_share_of_the_range_and_counts_up_to_25_degrees() -> None:
    # Points at 0, 10, 20, 30: 4 after 6 is a fall of 2 within a range of 10; what comes at 30 degrees does not count.
    assert _largest_fall(curve([0.0, 6.0, 4.0, -4.0], "PDP"), "PDP") == pytest.approx(0.2)
    assert _largest_fall(curve([0.0, 1.0, 2.0, 0.0], "PDP"), "PDP") == 0.0


def test_the_slope_is_in_bikes_a_degree_between_whiskers() -> None:
    table = curve([0.0, 20.0, 40.0, 1000.0], "cs-PDP", "winter")
    table.loc[3, "in_whiskers"] = 0
    assert _slope(table, "winter") == pytest.approx(2.0)
    assert np.isnan(_slope(table, "dry summer"))


def test_the_distance_to_the_authors_counts_both_forests_and_their_shuffles() -> None:
    table = pd.DataFrame({"ours": [100.0], "sd": [3.0], "std_error": [0.0], "authors": [109.0]})
    assert bike_tables._in_errors(table.assign(authors_q05=109.0, authors_q95=109.0)).tolist() == [3.0]
    wide = bike_tables._in_errors(table.assign(authors_q05=59.0, authors_q95=159.0))
    assert 0 < wide.iloc[0] < 3
