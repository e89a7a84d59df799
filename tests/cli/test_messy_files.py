"""Files as offices produce them are read as people expect, and each decision is stated in a note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from typer.testing import CliRunner

from subgrove._cli import reading
from subgrove._cli.app import app
from subgrove._cli.reading import FileTable, read_like, read_table_file
from subgrove.exceptions import InputError, ParameterError

from .commands import invoke
from .conftest import options
from .messy_files import CASES, Messy, N, clean, excel_file, german, text, workbook


def read(messy: Messy, tmp_path: Path) -> FileTable:
    path = tmp_path / f"data{messy.suffix}"
    path.write_bytes(messy.content)
    return read_table_file(options(path))


def check(messy: Messy, data: FileTable) -> None:
    """Compare kinds, numbers and notes with what is expected."""
    found = {one.name: "left out" if one.left_out else one.kind for one in data.columns}
    expected = {name: "nominal" if name == "garden" else "numeric" for name in clean() if name in found}
    assert found == expected | dict(messy.kinds)
    n_copies = len(data.frame) // len(clean())
    for name, values in clean().items():
        if name in data.frame:
            assert data.frame[name].tolist() == values.tolist() * n_copies
    notes = " ".join([*data.notes, *(f"{one.note} {one.left_out}" for one in data.columns)])
    for word in messy.notes:
        assert word in notes
    for name, n in messy.missing.items():
        assert data.frame[name].isna().sum() == n


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_messy_file_is_read_as_people_expect(make: Callable[[], Messy], tmp_path: Path) -> None:
    messy = make()
    check(messy, read(messy, tmp_path))


def test_workbook_is_read_like_a_text_file(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    messy = excel_file()
    check(messy, read(messy, tmp_path))


def test_sheet_is_selected_by_name(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "data.xlsx"
    rows: list[list[Any]] = [["a", "b"], *([at % 5, at % 3] for at in range(40))]
    path.write_bytes(workbook({"First": rows, "Second": [["c", "d"], *rows[1:]]}))
    assert list(read_table_file(options(path, sheet="Second")).frame.columns) == ["c", "d"]
    with pytest.raises(ParameterError, match=r"no sheet 'Third'.*'First', 'Second'"):
        read_table_file(options(path, sheet="Third"))


def test_error_for_a_workbook_without_openpyxl_has_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "find_spec", lambda name: None)
    path = tmp_path / "data.xlsx"
    with ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    with pytest.raises(InputError, match=r"pip install 'subgrove\[xlsx\]'"):
        read_table_file(options(path))


def test_damaged_workbook_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "data.xlsx"
    with ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    with pytest.raises(InputError, match="damaged"):
        read_table_file(options(path))


def test_standard_input_is_read() -> None:
    result = CliRunner().invoke(app, ["dependence", "-", "-t", "price"], input=CASES["separator_line"]().content)
    assert result.exit_code == 0, result.output
    assert "standard input" in result.stdout


def test_line_ends_in_names_do_not_break_a_table(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(CASES["odd_names"]().content)
    result = invoke("dependence", tmp_path / "data.csv", "-t", "price")
    assert "rooms (without bath)" in result.stdout


@pytest.mark.parametrize("option", ["columns", "numeric"])
def test_identifiers_are_kept_if_an_option_names_them(tmp_path: Path, option: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(CASES["identifiers_and_codes"]().content)
    named = ["contract", "area", "price"] if option == "columns" else ["contract"]
    assert "contract" in read_table_file(options(path, **{option: named})).frame


def test_a_different_integer_in_each_row_is_an_identifier_but_not_a_year(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    order = np.random.default_rng(1).permutation(N)
    path.write_bytes(text(clean().assign(house=1 + order, built=1700 + order)))
    frame = read_table_file(options(path)).frame
    assert "house" not in frame
    assert "built" in frame


@pytest.mark.parametrize(("n", "n_levels"), [(12, 150), (2, 0)])
def test_equally_frequent_levels_are_all_kept_or_all_merged(tmp_path: Path, n: int, n_levels: int) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(text(clean(150 * n).assign(country=[f"c{at % 150}" for at in range(150 * n)])))
    frame = read_table_file(options(path)).frame
    assert (frame["country"].nunique() if "country" in frame else 0) == n_levels


def test_single_letters_of_both_cases_are_different_levels(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(text(clean().assign(allele=["Aa"[at % 2] for at in range(N)])))
    assert read_table_file(options(path)).frame["allele"].nunique() == 2


def test_spaces_around_levels_are_not_listed_as_spellings(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(text(clean().assign(garden=[("no", " no ", "yes")[at % 3] for at in range(N)])))
    data = read_table_file(options(path))
    assert set(data.frame["garden"]) == {"no", "yes"}
    assert {one.note for one in data.columns} == {""}


def test_unclear_separator_follows_the_option_and_the_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    frame = clean()[["area", "rooms"]].assign(area=[f"1,{500 + at}" for at in range(N)], share="2.5")
    path.write_bytes(text(frame))
    assert read_table_file(options(path)).frame["area"].iloc[0] == 1500
    assert read_table_file(options(path, decimal=",")).frame["area"].iloc[0] == 1.5
    path.write_bytes(text(frame.drop(columns="share"), ";"))
    data = read_table_file(options(path))
    assert data.frame["area"].iloc[0] == 1.5
    assert "'1,500' read as 1.5 (override with --decimal)" in data.columns[0].note
    path.write_bytes(text(frame, ";"))
    assert read_table_file(options(path)).frame["area"].iloc[0] == 1500


def test_test_rows_are_read_with_the_separators_and_spellings_of_the_training_rows(tmp_path: Path) -> None:
    path, more = tmp_path / "data.csv", tmp_path / "more.csv"
    path.write_bytes(text(clean().assign(price=[german(one) for one in clean()["price"]]), ";"))
    frame = clean().assign(price=[f"1.{at:03}" for at in range(N)], garden=[one.upper() for one in clean()["garden"]])
    more.write_bytes(text(frame, ";"))
    rows = read_like(options(more), read_table_file(options(path))).frame
    assert rows["price"].iloc[0] == 1000
    assert set(rows["garden"]) == {"yes", "no"}


def test_test_rows_in_another_style_are_numbers_too(tmp_path: Path) -> None:
    path, more = tmp_path / "data.csv", tmp_path / "more.csv"
    path.write_bytes(text(clean()))
    more.write_bytes(text(clean().assign(price=[german(one) for one in clean()["price"]]), ";"))
    rows = read_like(options(more), read_table_file(options(path))).frame
    assert rows["price"].tolist() == clean()["price"].tolist()


def test_notes_on_test_rows_are_printed(folder: Path) -> None:
    (folder / "data.csv").write_bytes(text(clean()))
    (folder / "more.csv").write_bytes(text(clean().assign(area=["?!", *clean()["area"][1:]])))
    words = ("explain", "data.csv", "-t", "price", "--test", "more.csv", "-f", "rooms", "--n-repeats", 1)
    result = invoke(*words)
    assert "more.csv: 'area': 1 cell read as missing, not a number: '?!'" in result.stderr
