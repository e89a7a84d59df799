"""Calibrated test rows on the rows of the ground-truth simulation."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments import ground_truth_calibrated as calibrated
from experiments.__main__ import main
from experiments.ground_truth_samplers import one_unit
from experiments.store import Store
from experiments.units import Size, reject_twins


def test_units_are_all_cells_of_both_settings() -> None:
    units = calibrated.units(Size())
    reject_twins(units)
    counts = pd.Series([unit.cell for unit in units]).value_counts()
    assert len(counts) == 24 + 16
    assert {counts[cell] for cell in counts.index if "-300-" in cell} == {200}
    assert {counts[cell] for cell in counts.index if "-3000-" in cell} == {100}
    assert {unit.cell for unit in calibrated.units(Size(quick=True))} == {"I-linear-300-10", "II-linear-300-10"}


def test_rows_hold_the_same_call_with_calibration_and_without() -> None:
    rows = pd.DataFrame(calibrated.run(one_unit(Size(), "I", "independent", 300, 10, 1), seed=9))
    assert set(zip(rows["method"], rows["m"], strict=True)) == {
        (method, m) for method in ("true", "auto", "auto_alike") for m in (1, 20)
    }
    assert rows["truth"].nunique() == 1
    wide = rows.pivot_table(index="m", columns="method", values="estimate")
    assert (wide["auto"] != wide["auto_alike"]).any()
    again = pd.DataFrame(calibrated.run(one_unit(Size(), "I", "independent", 300, 10, 1), seed=1))
    pd.testing.assert_frame_equal(rows, again)  # the rows are those of ground_truth, whatever the seed


def results(calibrated_error: float) -> pd.DataFrame:
    errors = {"true": 1.0, "auto_alike": 2.0, "auto": calibrated_error}
    place = {"setting": "I", "scenario": "linear", "n": 300, "p": 10, "truth": 4.0}
    return pd.DataFrame(
        [
            place | {"rep": rep, "method": name, "m": m, "estimate": 4 + sign * error, "by": rep % 2}
            for name, error in errors.items()
            for rep, sign in enumerate((-1, 1, 1, -1))
            for m in (1, 20)
        ]
    )


@pytest.mark.parametrize(
    ("error", "times", "said"),
    [
        (1.0, "0.25", "Smaller than with rows alike in 1 of 1 cells; larger by more than two standard errors in none."),
        (4.0, "4.00", "in 0 of 1 cells; larger by more than two standard errors in 1 (linear 300 x 10)."),
    ],
)
def test_the_section_states_the_error_as_a_multiple_of_the_one_without(error: float, times: str, said: str) -> None:
    text = calibrated.report(calibrated.tables(results(error)))
    assert f"| linear | 300 | 10 | 4 | 4.00 | {error**2:.3g}" in text
    assert times in text
    assert said in text
    assert "| 50 % |" in text
    assert "Estimates move by more than two standard errors in 0 of 1 cells." in text
    assert "### Setting I, 20 redraws" in text
    best = (
        "Below the best published method in 1 of 1 cells."
        if error == 1
        else "in 0 of 1 cells; not in linear 300 x 10 ("
    )
    assert best in text


def test_packages_are_put_beside_the_default_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = {"peers": {"true": 1.0, "knockpy_sdp": 2.0}, "ground_truth_auto": {"auto": 3.0}}
    stored["ground_truth_calibrated"] = {"auto": 1.5, "auto_alike": 9.0}
    for name, errors in stored.items():
        for rep, sign in enumerate((-1, 1)):
            place = {"setting": "I", "scenario": "linear", "n": 300, "p": 10, "rep": rep, "truth": 4.0}
            lines = [place | {"method": one, "m": 20, "estimate": 4 + sign * error} for one, error in errors.items()]
            cell = {"cell": "I-linear-300-10"}
            Store(tmp_path / name).write(f"I-linear-300-10/r{rep:04d}", [cell | line for line in lines])
    folders = ["--out", str(tmp_path), "--results", str(tmp_path)]
    assert main(["peers", "table", "--sampler", "auto", "--cells", "I-linear-*", *folders]) == 0
    assert "| 4.00 (4.00) | 2.25 (2.25) | 81.0 (81.0) | 1.00 |" in capsys.readouterr().out
