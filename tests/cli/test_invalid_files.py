"""Invalid files and options give a clear message and exit code 2, and nothing is written."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from subgrove._cli import csv_records, reading

from .commands import error_message, invoke

ROWS = "\n".join(f"{i % 7},{(i * 31) % 11},{(i % 7) * 2 + (i * 13) % 5}" for i in range(80))


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test creates its input files in a folder; other files were written by the command."""
    monkeypatch.chdir(tmp_path)
    yield
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("data", "folder")] == []


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes an input file."""

    def write(content: str | bytes, name: str = "data.csv") -> Path:
        (tmp_path / "data").mkdir(exist_ok=True)
        path = tmp_path / "data" / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def explain(path: Path, *more: Any) -> Any:
    return invoke("explain", path, "--target", "y", *more)


Make = Callable[..., Path]


def test_empty_file(make: Make) -> None:
    error_message(explain(make("")), "is empty")


def test_blank_lines_only(make: Make) -> None:
    error_message(explain(make("\n\n\n")), "is empty")


def test_header_without_rows(make: Make) -> None:
    error_message(explain(make("a,b,y\n")), "no rows")


def test_one_column(make: Make) -> None:
    error_message(explain(make("y\n1\n2\n3\n")), "one column", "--delimiter")


def test_uncommon_delimiter(make: Make) -> None:
    error_message(explain(make("a^b^y\n" + ROWS.replace(",", "^"))), "one column", "--delimiter")


def test_wrong_delimiter_option(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS), "--delimiter", ";"), "one column")


def test_delimiter_option_of_several_characters(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS), "--delimiter", "abc"), "--delimiter", "one character")


def test_ten_thousand_columns(make: Make) -> None:
    names = ",".join(f"x{i}" for i in range(10_000))
    row = ",".join("1" for _ in range(10_000))
    error_message(explain(make(f"{names},y\n" + f"{row},1\n" * 60)), "10,001 columns", "--columns")


def test_row_with_too_many_cells_is_located(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS + "\n1,2,3,4\n")), "Line 82", "4 cells", "3")


def test_rows_that_are_all_shorter_than_the_header_are_located(make: Make) -> None:
    error_message(explain(make("a,b,y,z\n" + ROWS)), "Line 2", "3 cells", "4")


def test_many_short_rows_at_the_end_are_located(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS + "\n1,2" * 30)), "2 cells", "3")


def test_mixed_encodings_are_located(make: Make) -> None:
    content = "a,b,y\nMünchen,1,2\n".encode() + "Köln,2,3\n".encode("latin-1")
    error_message(explain(make(content)), "Some lines are UTF-8", "'Köln'")


def test_all_cells_missing(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ",,\n" * 80)), "no rows with values")
    error_message(explain(make("a,b,y\n" + "1,,\n1,,\n" * 40)), "usable column", "all values missing")


def test_unknown_target_with_a_suggestion(make: Make) -> None:
    path = make("alpha,beta,gamma\n" + ROWS)
    error_message(invoke("explain", path, "--target", "gama"), "no column 'gama'", "'gamma'")


def test_target_with_missing_values_only(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + "1,2,\n3,4,NA\n" * 40)), "The target 'y'", "all its values are missing")


def test_constant_target(make: Make) -> None:
    lines = "\n".join(f"{i},{i % 3},5" for i in range(80))
    error_message(explain(make("a,b,y\n" + lines)), "constant")


def test_too_few_rows(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + "\n".join(ROWS.splitlines()[:20]))), "rows")


def test_identifiers_as_target(make: Make) -> None:
    lines = "\n".join(f"{i % 9},{i % 5},name{i}" for i in range(80))
    error_message(explain(make("a,b,y\n" + lines)), "80 classes", "'name0' (1)", "identifier")


def test_binary_file(make: Make) -> None:
    junk = np.random.default_rng(1).integers(0, 256, 50_000, dtype=np.uint8).tobytes()
    error_message(explain(make(junk)), "binary")


def test_old_workbook_is_recognized(make: Make) -> None:
    error_message(explain(make(b"\xd0\xcf\x11\xe0" + b"x" * 100)), "before 2007", "CSV, Excel (.xlsx) or Parquet")


def test_damaged_zip_archive(make: Make) -> None:
    error_message(explain(make(b"PK\x03\x04" + b"x" * 100)), "is damaged, or not of a format that can be read")


def test_very_long_line(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LONGEST_LINE", 2 << 20)
    error_message(explain(make(b"a,b,y\n" + b"1234567890," * 300_000)), "more than 2 MB")


def test_unclosed_quote(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LONGEST_LINE", 1 << 16)
    error_message(explain(make('a,b,y\n"1,2,3\n' + "4,5,6\n" * 20_000)), "line 2", "never closed")


def test_unclosed_quote_at_the_end(make: Make) -> None:
    error_message(explain(make('a,b,y\n1,"2,3\n' + ROWS)), "line 2", "never closed")


def test_quote_inside_an_unquoted_cell(make: Make) -> None:
    error_message(explain(make('a,b,y\n1,5" pipe,3\n2,6" pipe,4\n' + ROWS)), "Line 2", "inside a cell")


@pytest.mark.parametrize(("power", "word"), [("e300", "Divide"), ("e-300", "Multiply")])
def test_target_whose_squares_overflow_or_underflow(make: Make, power: str, word: str) -> None:
    rows = "\n".join(f"{i % 7},{i * 31 % 11},1.{i:03}{power}" for i in range(80))
    assert "nan" not in error_message(explain(make(f"a,b,y\n{rows}")), "The target 'y'", power[-3:], word)


def test_damaged_gzip_file(make: Make) -> None:
    packed = gzip.compress(("a,b,y\n" + ROWS * 50).encode())
    error_message(explain(make(packed[:-40], "data.csv.gz")), "damaged")


def test_damaged_parquet_file(make: Make) -> None:
    error_message(explain(make(b"PAR1" + b"junk" * 100, "data.parquet")), "damaged")


def test_error_for_parquet_without_a_reader_has_the_install_command(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    error_message(explain(make(b"PAR1" + b"junk" * 100, "data.parquet")), "pip install 'subgrove[pyarrow]'")


def test_parquet_file_without_rows(make: Make) -> None:
    path = make(b"", "data.parquet")
    pl.DataFrame({"a": [], "y": []}, schema={"a": pl.Float64, "y": pl.Float64}).write_parquet(path)
    error_message(explain(path), "no rows")


def test_missing_file() -> None:
    error_message(explain(Path("nowhere.csv")), "no file nowhere.csv")


def test_folder_without_parquet_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    error_message(explain(tmp_path / "folder"), "Parquet", "folder")
    error_message(invoke("dependence", tmp_path / "folder"), "Parquet", "folder")


def test_file_without_read_permission(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make("a,b,y\n" + ROWS)
    monkeypatch.setattr(
        "subgrove._cli.reading.os.access", lambda where, mode: Path(where) != path
    )  # root may read everything
    error_message(explain(path), "permission")


def test_page_path_is_a_folder(make: Make, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    error_message(explain(make("a,b,y\n" + ROWS), "--out", tmp_path / "folder"), "--out")


def test_page_in_a_missing_folder(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS), "--out", "nowhere/page.html"), "no folder nowhere")


def test_page_with_wrong_suffix(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS), "--out", "page.txt"), ".html")


@pytest.mark.parametrize("link", [False, True])
def test_the_file_that_is_read_is_not_overwritten(make: Make, link: bool) -> None:
    path = make("a,b,y\n" + ROWS, "data.html")
    page = path.with_name("link.html") if link else path
    if link:
        page.symlink_to(path)
    error_message(explain(path, "--out", page), "--out", "is a file to read, and would be overwritten")
    table = make("a,b,y\n" + ROWS, "data.json")
    error_message(invoke("dependence", table, "--json", table), "--json", "would be overwritten")
    error_message(invoke("report", path), "--out", "would be overwritten")
    assert path.read_text() == table.read_text() == "a,b,y\n" + ROWS


def test_page_with_a_name_that_is_too_long(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS), "--out", f"{'n' * 300}.html"), "--out", "File name too long")


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\x07"])
def test_control_characters_in_titles_of_tables_are_escaped(make: Make, name: str) -> None:
    result = invoke("subgroups", make(f"{name},b,y\n" + ROWS, f"{name}.csv"), "-t", "y")
    assert result.exit_code == 0, result.output
    assert name not in result.output
    assert name[1] not in result.output


def test_target_that_is_dropped(make: Make) -> None:
    error_message(explain(make("a,b,y\n" + ROWS), "--drop", "y"), "--drop: 'y' cannot be left out (--target)")


def test_folder_with_a_time_zone_that_is_unknown(make: Make) -> None:
    path = make(b"", "data.parquet")
    times = pa.array(np.arange(80), pa.timestamp("us", "Mars/Base"))
    pq.write_table(pa.table({"a": np.arange(80), "z": times, "y": np.arange(80) % 7}), path)
    error_message(explain(path.parent), "that can be read")


@pytest.mark.parametrize("option", ["--random-state", "--sample-size", "--n-jobs"])
def test_number_beyond_what_libraries_accept(make: Make, option: str) -> None:
    result = explain(make("a,b,y\n" + ROWS), option, 2**64)
    assert result.exit_code == 2
    assert option in result.stderr


def test_titles_of_tables_are_one_line_whatever_names_a_file_has(make: Make) -> None:
    result = invoke("subgroups", make('"a\nReport: all is well",b,y\n' + ROWS), "-t", "y")
    assert result.exit_code == 0, result.output
    assert "\na Report: all is well: one subgroup" in result.output


def test_control_characters_are_escaped(make: Make) -> None:
    message = error_message(explain(make("a\x1b[2J,b,c\n" + ROWS)), "no column 'y'")
    assert "\x1b" not in message


def test_text_in_a_column_declared_numeric(make: Make) -> None:
    lines = ROWS + "\nmany,1,2" * 100
    error_message(explain(make("a,b,y\n" + lines), "--numeric", "a"), "--numeric a", "44%", "'many'", "--na")


def test_out_of_memory(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(reading, "read_csv", too_much)
    error_message(explain(make("a,b,y\n" + ROWS)), "not enough memory", "--sample-size")
