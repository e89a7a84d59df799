"""The motivating figures: what their captions say is computed, stored, judged and drawn."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import figures
from experiments.parts.extrapolation import _share_far
from experiments.parts.rows import Check, claim, judged
from experiments.parts.sections import holding, markdown, number, plain, with_error
from experiments.store import Store
from experiments.units import Size, Unit, seed_of

NAMES = ["fig1", "fig2", "fig4", "fig5", "mplot", "boxplot"]
SAMPLES = 12


@cache
def rows_of(name: str) -> list[dict[str, object]]:
    unit = Unit(name, name, {"samples": SAMPLES})
    return [{"cell": name, **row} for row in figures.run(unit, seed_of("figures", name))]


@pytest.fixture
def results(tmp_path: Path) -> pd.DataFrame:
    """The rows of all figures, as they are read back."""
    store = Store(tmp_path / "store")
    for name in NAMES:
        store.write(name, rows_of(name))
    return store.read()


def test_each_figure_is_one_unit() -> None:
    assert [unit.key for unit in figures.units(Size())] == NAMES
    assert [unit.key for unit in figures.units(Size(cells=("fig*",)))] == ["fig1", "fig2", "fig4", "fig5"]
    assert {unit.params["samples"] for unit in figures.units(Size(reps=7))} == {7}


def test_the_same_seed_gives_the_same_rows() -> None:
    unit = Unit("fig4", "fig4", {"samples": 2})
    one, two, other = (pd.DataFrame(figures.run(unit, seed)) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_caption_says_holds(name: str) -> None:
    # "Near" is within three standard errors over 12 samples: each fails by chance once in 80 seeds, and this is one.
    claims = judged(pd.DataFrame(rows_of(name)), ["cell"])
    assert len(claims) >= 3
    assert claims.loc[~claims["holds"], "claim"].tolist() == []


def test_tables_have_the_claims_in_the_order_of_the_paper(results: pd.DataFrame) -> None:
    tables = figures.tables(results)
    assert list(dict.fromkeys(tables["claims"]["figure"])) == NAMES
    assert tables["run"]["units"].tolist() == [6]


def test_the_share_outside_the_ellipse_is_that_of_a_simulation() -> None:
    # 400,000 rows: the standard error of a share of 0.35 is sqrt(0.35 * 0.65 / 400,000) = 0.00075; three of them.
    x, y = np.random.default_rng(1).normal(size=(2, 400_000))
    far = (x**2 - 1.8 * x * y + y**2) / 0.19 > -2 * np.log(0.01)
    assert _share_far(0.9, -2 * np.log(0.01)) == pytest.approx(far.mean(), abs=0.0023)


def test_a_picture_of_each_figure_is_drawn_from_stored_rows(results: pd.DataFrame, tmp_path: Path) -> None:
    drawn = figures.figures(results, tmp_path)
    assert [path.name for path in drawn] == [f"figures_{name}.png" for name in NAMES]
    assert all(path.stat().st_size > 5000 for path in drawn)
    (tmp_path / "again").mkdir()
    again = figures.figures(results[results["cell"] == "mplot"], tmp_path / "again")
    assert [path.read_bytes() for path in again] == [drawn[4].read_bytes()]


def test_the_report_is_the_same_from_tables_that_were_written_and_read(results: pd.DataFrame, tmp_path: Path) -> None:
    tables = figures.tables(results)
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    read = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in tables}
    assert figures.report(read) == figures.report(tables)


def test_the_report_says_which_claim_does_not_hold(results: pd.DataFrame) -> None:
    tables = figures.tables(results)
    assert "30 of 30 hold." in figures.report(tables)
    tables["claims"].loc[0, "holds"] = False
    text = figures.report(tables)
    assert f"29 of 30 hold. Not so: {tables['claims']['claim'][0]}." in text
    assert "**no**" in text


@pytest.mark.parametrize(
    ("check", "bound", "holds"),
    [
        ("near", 2.9, True),  # mean 2, standard error 1 / sqrt(3) = 0.577: up to 3.73
        ("near", 3.8, False),
        ("draw", 5.4, True),  # standard deviation 1: up to 2 + 3 * sqrt(1 + 1 / 3) = 5.46
        ("draw", 5.5, False),
        ("above", 1.9, True),
        ("above", 2.0, False),
        ("below", 2.1, True),
        ("below", 2.0, False),
    ],
)
def test_a_claim_holds_if_its_number_stands_as_said(check: Check, bound: float, holds: bool) -> None:
    table = judged(pd.DataFrame([claim("it", [1.0, 2.0, 3.0], check, bound)]), [])
    assert table["holds"].tolist() == [holds]
    assert table["ours"].tolist() == [2.0]
    assert table["std_error"].tolist() == pytest.approx([1 / np.sqrt(3)])


def test_an_exact_number_is_near_its_closed_form_only() -> None:
    rows = [claim("a", -0.1 + 1e-16, "near", -0.1), claim("b", -0.1001, "near", -0.1)]
    assert judged(pd.DataFrame(rows), [])["holds"].tolist() == [True, False]


def test_a_number_that_could_not_be_computed_does_not_hold() -> None:
    table = judged(pd.DataFrame([claim("it", [np.nan, 1.0], check, 0.0) for check in ("near", "above")]), [])
    assert not table["holds"].any()
    assert holding(table).startswith("0 of 2 hold.")


def test_numbers_are_written_to_the_second_digit_of_their_error() -> None:
    assert with_error(0.72181, 0.00183) == "0.7218 ± 0.0018"
    assert with_error(361.84, 15.2) == "362 ± 15"
    assert with_error(0.5, 0.0) == "0.500"
    assert with_error(np.nan, 1.0) == ""
    assert with_error(-0.0001, 0.12) == "0.00 ± 0.12"


def test_numbers_are_written_with_three_digits_or_as_they_are_known() -> None:
    assert [number(value) for value in (0.0, 1234.5, 0.035237, -0.1)] == ["0", "1234", "0.0352", "-0.100"]
    assert [plain(value) for value in (70.75, 0.13, 4500.0, 0.3523699, np.nan)] == [
        "70.75",
        "0.13",
        "4500",
        "0.352",
        "",
    ]


def test_columns_of_numbers_are_set_to_the_right() -> None:
    assert markdown(("a", "b"), [("x", "1.0 ± 0.1"), ("y", "")]).split("\n")[1] == "| --- | ---: |"
