"""The command: steps, flags, and that any part of an experiment gives the numbers of the whole."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import data, depth
from experiments.__main__ import _table_folder, main, summaries
from experiments.store import Store
from experiments.units import Size, Unit


def run(out: Path, *arguments: str) -> int:
    return main([*arguments, "--out", str(out)])


def test_the_help_lists_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    for name, line in summaries().items():
        assert name in shown
        assert line[:40] in shown
    assert {"ground_truth", "depth"} <= set(summaries())


def test_an_unknown_experiment_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["telepathy"])
    assert "ground_truth" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--reps", "--jobs"])
def test_counts_must_be_positive(flag: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["depth", flag, "0"])


def test_cells_that_do_not_exist_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "depth", "run", "--quick", "--cells", "cubic-*") == 1
    assert "--cells cubic-* names no cell" in capsys.readouterr().out


def test_a_table_of_nothing_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "depth", "table") == 1
    assert "python -m experiments depth run" in capsys.readouterr().out


def test_one_cell_alone_gives_its_rows_of_the_whole(tmp_path: Path) -> None:
    assert run(tmp_path / "all", "depth", "run", "--quick") == 0
    assert run(tmp_path / "one", "depth", "run", "--quick", "--cells", "linear-*", "--reps", "2") == 0
    whole, part = (Store(tmp_path / name / "depth-quick").read() for name in ("all", "one"))
    same = whole[whole["key"].isin(part["key"])].reset_index(drop=True)
    assert part["key"].nunique() == 2
    pd.testing.assert_frame_equal(same, part, check_exact=True)


def test_two_jobs_give_the_numbers_of_one(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        assert run(tmp_path / jobs, "depth", "run", "--quick", "--reps", "1", "--jobs", jobs) == 0
    one, two = (Store(tmp_path / jobs / "depth-quick").read() for jobs in ("1", "2"))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_all_steps_write_tables_figures_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "depth", "--quick", "--results", str(tmp_path / "kept")) == 0
    assert (tmp_path / "tables" / "depth_by_depth.csv").is_file()
    assert (tmp_path / "figures-part" / "depth_importance.png").stat().st_size > 10_000
    assert not (tmp_path / "kept").exists()  # quick numbers mean nothing
    assert "## Depth of the trees" in capsys.readouterr().out


def test_tables_of_the_whole_go_to_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path, "depth", "run", "--reps", "1", "--cells", "linear-300-10") == 0
    results = ["--results", str(tmp_path / "kept")]
    assert run(tmp_path, "depth", "table", "--cells", "linear-300-10", *results) == 0
    assert not (tmp_path / "kept").exists()
    assert run(tmp_path, "depth", "table", *results) == 0
    assert (tmp_path / "kept" / "depth_by_depth.csv").is_file()
    (ran,) = pd.read_csv(tmp_path / "kept" / "depth_run.csv").to_dict("records")
    assert (ran["units"], ran["cells"]) == (1, 1)
    assert ran["python"].startswith("3.")


def test_fresh_forgets_what_was_there(tmp_path: Path) -> None:
    store = Store(tmp_path / "depth-quick")
    store.write("stale/r0", [{"x": 1}])
    assert run(tmp_path, "depth", "run", "--quick", "--reps", "1", "--fresh") == 0
    assert "stale/r0" not in store.done()


def test_a_run_without_its_data_is_reported_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def units(size: Size) -> list[Unit]:
        raise FileNotFoundError("cc18/6.parquet is not there. Name the folder with --data.")

    monkeypatch.setattr(depth, "units", units)
    assert run(tmp_path, "depth", "run") == 1
    assert "depth: cc18/6.parquet is not there. Name the folder with --data." in capsys.readouterr().err


def test_missing_data_are_reported_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(data.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    monkeypatch.delenv(data.FETCH_VARIABLE, raising=False)
    assert data.folder() is None
    calls: list[Any] = [lambda: data.cc18(-1), data.manifest]
    for call in calls:
        with pytest.raises(FileNotFoundError, match=r"--data or SUBGROVE_DATA.*--fetch"):
            call()
    with pytest.raises(ValueError, match="unknown data set 'tea'; there are wine"):
        data.regression("tea")


def test_data_are_read_with_the_target_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]})
    (tmp_path / "cc18").mkdir()
    frame.to_parquet(tmp_path / "cc18" / "999999.parquet")
    monkeypatch.setenv(data.FOLDER_VARIABLE, str(tmp_path))
    read = data.cc18(999999)
    pd.testing.assert_frame_equal(read, frame)
    read["x"] = 0.0  # what a reader does to it stays with the reader
    pd.testing.assert_frame_equal(data.cc18(999999), frame)


def test_a_table_of_more_units_does_not_give_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "results"
    kept.mkdir()
    known = kept / "figures_run.csv"
    known.write_text("units\n99\n")
    size = Size(None, (), False, None)
    options = argparse.Namespace(out=tmp_path, results=kept)
    few = pd.DataFrame({"key": ["a", "b"]})
    assert _table_folder("figures", few, options, size) == tmp_path / "tables"
    assert "99 units" in capsys.readouterr().out
    known.write_text("units\n2\n")
    assert _table_folder("figures", few, options, size) == kept
