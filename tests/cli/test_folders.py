"""`subgrove explain` on folders of Parquet files: the report is based on a sample, and says so."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import subgrove as sg
from subgrove._cli.reading import read_table_file

from .commands import error_message, invoke
from .conftest import options, rows

QUICK = ("-t", "price", "--drop", "sold", "-f", "a", "--n-repeats", 2)


@pytest.fixture
def chunks(folder: Path) -> Path:
    """Three Parquet files of 100 rows."""
    Path("chunks").mkdir()
    for number in range(3):
        frame = rows(100, seed=number).assign(new=lambda table: table["a"] > 0, file=str(number))
        frame.to_parquet(Path("chunks") / f"{number}.parquet")
    return Path("chunks")


def test_folder_is_explained_on_a_sample_and_the_report_says_so(chunks: Path) -> None:
    result = invoke("explain", chunks, *QUICK, "--sample-size", 120, "--json", "out.json")
    assert result.exit_code == 0, result.output
    sentence = "Based on a random sample of 120 of the 300 rows of chunks (random state 1)."
    assert sentence in result.stderr
    summary = sg.Report.load("out.json").summary
    assert summary.data.n_train + summary.data.n_test == 120
    assert sentence in Path("report.html").read_text(encoding="utf-8")


def test_all_rows_are_read_up_to_the_sample_size(chunks: Path) -> None:
    table = read_table_file(options(chunks))
    whole = pd.concat([pd.read_parquet(file) for file in sorted(chunks.iterdir())])
    assert table.sampling == ""
    assert sorted(table.frame["price"]) == sorted(whole["price"])
    assert {column.name: column.kind for column in table.columns} == {
        "a": "numeric",
        "b": "numeric",
        "kind": "nominal",
        "price": "numeric",
        "sold": "nominal",
        "new": "nominal",
        "file": "numeric",
    }


def test_pattern_selects_files(chunks: Path) -> None:
    table = read_table_file(options(chunks / "[01].parquet"))
    assert (len(table.frame), set(table.frame["file"])) == (200, {0, 1})


def test_sample_depends_on_the_random_state_only(chunks: Path) -> None:
    samples = [
        read_table_file(options(chunks, sample_size=50, random_state=seed)).frame["price"].tolist()
        for seed in (1, 1, 2)
    ]
    assert samples[0] == samples[1] != samples[2]


def test_unknown_target_of_a_folder_is_rejected_with_a_suggestion(chunks: Path) -> None:
    error_message(invoke("explain", chunks, "-t", "prize"), "no column 'prize'", "Did you mean 'price'?")


def test_pattern_without_files_is_rejected(chunks: Path) -> None:
    error_message(invoke("explain", chunks / "x*.parquet", "-t", "price"), "x*.parquet")
