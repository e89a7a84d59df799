"""`subgrove explain` on public data sets: regression and classification, levels and missing values.

There is no warning, except that the days of one of them are in the order of time.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import subgrove as sg
from benchmarks.command import LIMIT, SETS, explained
from experiments.data import folder, manifest

from .commands import run

pytestmark = pytest.mark.skipif(folder() is None, reason="the data sets are not beside the repository")


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_data_set_is_explained_within_a_minute(name: str) -> None:
    """Processor time on one core, which does not depend on other load of the machine."""
    done = explained(name)
    assert done.processor < LIMIT
    assert done.rows <= 10_000
    warned = [line for line in done.notes.splitlines() if "arning" in line]
    assert len(warned) == (name == "wind")
    assert all("The rows are in the order of year" in line for line in warned)


@pytest.mark.compiled
def test_real_file_with_levels_and_missing_values_is_explained(tmp_path: Path) -> None:
    place = folder()
    assert place is not None
    entry = manifest().set_index("name").loc["eucalyptus"]
    table = pd.read_parquet(place / entry["file"])
    table.to_csv(tmp_path / "eucalyptus.csv", index=False)
    words = [
        "explain",
        "eucalyptus.csv",
        "-t",
        entry["target"],
        "--n-repeats",
        2,
        "-f",
        "Sp,DBH",
        "--json",
        "out.json",
        "--debug",
    ]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "arning" not in done.stderr
    summary = sg.Report.load(tmp_path / "out.json").summary
    kinds = {column.name: column.kind for column in summary.data.columns}
    assert {name for name, kind in kinds.items() if kind == "nominal"} == {
        "Abbrev",
        "Locality",
        "Map_Ref",
        "Latitude",
        "Sp",
    }
    assert set(summary.model.classes) == {"average", "best", "good", "low", "none"}
