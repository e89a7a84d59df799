"""Files that are no table, or none that can be explained: a clear message, exit code 2, and nothing written."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from subgrove._cli import csv_records as records
from subgrove._cli import encoding, parquet, reading

from .run import invoke, refused

ROWS = "\n".join(f"{i % 7},{(i * 31) % 11},{(i % 7) * 2 + (i * 13) % 5}" for i in range(80))


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test makes its file before it runs the command; whatever else is there afterwards was written."""
    monkeypatch.chdir(tmp_path)
    yield
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("data", "folder")] == []


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """A file in a folder of its own."""

    def made(content: str | bytes, name: str = "data.csv") -> Path:
        (tmp_path / "data").mkdir(exist_ok=True)
        path = tmp_path / "data" / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return made


def explain(path: Path, *more: Any) -> Any:
    return invoke("explain", path, "--target", "y", *more)


Make = Callable[..., Path]


def test_an_empty_file(make: Make) -> None:
    refused(explain(make("")), "is empty")


def test_blank_lines_only(make: Make) -> None:
    refused(explain(make("\n\n\n")), "nothing but empty lines")


def test_a_header_without_rows(make: Make) -> None:
    refused(explain(make("a,b,y\n")), "no rows")


def test_one_column(make: Make) -> None:
    refused(explain(make("y\n1\n2\n3\n")), "one column", "--delimiter")


def test_a_delimiter_that_is_none_of_the_common_ones(make: Make) -> None:
    refused(explain(make("a^b^y\n" + ROWS.replace(",", "^"))), "one column", "--delimiter")


def test_a_delimiter_that_was_named_wrongly(make: Make) -> None:
    refused(explain(make("a,b,y\n" + ROWS), "--delimiter", ";"), "one column")


def test_a_delimiter_that_is_no_character(make: Make) -> None:
    refused(explain(make("a,b,y\n" + ROWS), "--delimiter", "abc"), "--delimiter", "one character")


def test_ten_thousand_columns(make: Make) -> None:
    names = ",".join(f"x{i}" for i in range(10_000))
    row = ",".join("1" for _ in range(10_000))
    refused(explain(make(f"{names},y\n" + f"{row},1\n" * 60)), "10,001 columns", "--columns")


def test_a_row_with_too_many_cells_is_named(make: Make) -> None:
    refused(explain(make("a,b,y\n" + ROWS + "\n1,2,3,4\n")), "Line 82", "4 cells", "3")


def test_mixed_encodings_name_two_lines(make: Make) -> None:
    content = "a,b,y\nMünchen,1,2\n".encode() + "Köln,2,3\n".encode("latin-1")
    refused(explain(make(content)), "mixes encodings", "line 2", "line 3")


def test_duplicate_headers(make: Make) -> None:
    refused(explain(make("a,a,y\n" + ROWS)), "several columns named 'a'")


def test_all_cells_missing(make: Make) -> None:
    refused(explain(make("a,b,y\n" + ",,\n" * 80)), "can be used", "no value in any row")


def test_a_target_that_is_not_there_suggests_one_that_is(make: Make) -> None:
    path = make("alpha,beta,gamma\n" + ROWS)
    refused(invoke("explain", path, "--target", "gama"), "no column 'gama'", "'gamma'")


def test_a_target_without_a_value(make: Make) -> None:
    refused(explain(make("a,b,y\n" + "1,2,\n3,4,NA\n" * 40)), "no value in any row")


def test_a_constant_target(make: Make) -> None:
    lines = "\n".join(f"{i},{i % 3},5" for i in range(80))
    refused(explain(make("a,b,y\n" + lines)), "same value in all rows")


def test_too_few_rows(make: Make) -> None:
    refused(explain(make("a,b,y\n" + "\n".join(ROWS.splitlines()[:20]))), "rows")


def test_a_target_of_names(make: Make) -> None:
    lines = "\n".join(f"{i % 9},{i % 5},name{i}" for i in range(80))
    refused(explain(make("a,b,y\n" + lines)), "No class", "identifier")


def test_binary_junk(make: Make) -> None:
    junk = np.random.default_rng(1).integers(0, 256, 50_000, dtype=np.uint8).tobytes()
    refused(explain(make(junk)), "binary")


@pytest.mark.parametrize(
    ("start", "word"), [(b"PK\x03\x04", "Excel"), (b"SQLite format 3\0", "SQLite"), (b"%PDF-1.7", "PDF")]
)
def test_another_kind_of_file_is_called_by_its_name(make: Make, start: bytes, word: str) -> None:
    refused(explain(make(start + b"x" * 100)), word, "CSV or Parquet")


def test_a_line_without_an_end(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "LONGEST", 2 << 20)
    refused(explain(make(b"a,b,y\n" + b"1234567890," * 300_000)), "line of more than 2 MB")


def test_a_quote_that_is_never_closed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LONGEST", 1 << 16)
    refused(explain(make('a,b,y\n"1,2,3\n' + "4,5,6\n" * 20_000)), "line 2", "never closed")


def test_a_quote_that_is_open_at_the_end(make: Make) -> None:
    refused(explain(make('a,b,y\n1,"2,3\n' + ROWS)), "line 2", "never closed")


def test_a_quote_inside_of_a_cell(make: Make) -> None:
    refused(explain(make('a,b,y\n1,5" pipe,3\n2,6" pipe,4\n' + ROWS)), "Line 2", "inside a cell")


@pytest.mark.parametrize(("power", "word"), [("e300", "Divide"), ("e-300", "Multiply")])
def test_a_target_whose_squares_no_float_holds(make: Make, power: str, word: str) -> None:
    rows = "\n".join(f"{i % 7},{i * 31 % 11},1.{i:03}{power}" for i in range(80))
    assert "nan" not in refused(explain(make(f"a,b,y\n{rows}")), "The target 'y'", power[-3:], word)


def test_a_damaged_gzip_file(make: Make) -> None:
    packed = gzip.compress(("a,b,y\n" + ROWS * 50).encode())
    refused(explain(make(packed[:-40], "data.csv.gz")), "damaged")


def test_a_damaged_parquet_file(make: Make) -> None:
    refused(explain(make(b"PAR1" + b"junk" * 100, "data.parquet")), "damaged")


@pytest.mark.parametrize("engine", ["pyarrow", "polars"])
def test_nested_columns_of_parquet_are_named(make: Make, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda name: name == engine or None)
    path = make(b"", "data.parquet")
    pl.DataFrame({"a": [1, 2], "tags": [["x"], ["y", "z"]], "y": [1.0, 2.0]}).write_parquet(path)
    refused(explain(path), "nested", "'tags'", "--drop")


def test_parquet_without_a_reader_tells_what_to_install(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    refused(explain(make(b"PAR1" + b"junk" * 100, "data.parquet")), "pip install 'subgrove[pyarrow]'")


def test_a_parquet_file_without_rows(make: Make) -> None:
    path = make(b"", "data.parquet")
    pl.DataFrame({"a": [], "y": []}, schema={"a": pl.Float64, "y": pl.Float64}).write_parquet(path)
    refused(explain(path), "no rows")


def test_a_file_that_is_not_there() -> None:
    refused(explain(Path("nowhere.csv")), "no file nowhere.csv")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    refused(explain(tmp_path / "folder"), "Parquet", "folder")
    refused(invoke("dependence", tmp_path / "folder"), "is a folder")


def test_a_file_that_may_not_be_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make("a,b,y\n" + ROWS)
    monkeypatch.setattr(
        "subgrove._cli.open_file.os.access", lambda where, mode: Path(where) != path
    )  # root may read everything
    refused(explain(path), "permission")


def test_a_page_that_would_be_a_folder(make: Make, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    refused(explain(make("a,b,y\n" + ROWS), "--out", tmp_path / "folder"), "--out")


def test_a_page_in_a_folder_that_is_not_there(make: Make) -> None:
    refused(explain(make("a,b,y\n" + ROWS), "--out", "nowhere/page.html"), "no folder nowhere")


def test_a_page_that_is_not_called_html(make: Make) -> None:
    refused(explain(make("a,b,y\n" + ROWS), "--out", "page.txt"), ".html")


def test_control_characters_of_a_file_do_not_reach_the_terminal(make: Make) -> None:
    message = refused(explain(make("a\x1b[2J,b,c\n" + ROWS)), "no column 'y'")
    assert "\x1b" not in message


def test_a_number_that_is_none_is_named(make: Make) -> None:
    lines = ROWS + "\nmany,1,2"
    refused(explain(make("a,b,y\n" + lines), "--numeric", "a"), "--numeric a", "'many'", "--na")


def test_memory_that_runs_out_is_told(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(reading, "read_records", too_much)
    refused(explain(make("a,b,y\n" + ROWS)), "not enough memory", "--max-rows")
