"""Files as offices produce them are read as people expect, and each decision is stated in a note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from subgrove._cli.reading import FileTable, read_table_file

from .conftest import options
from .messy_files import CASES, Messy, clean, excel_file


def read(messy: Messy, tmp_path: Path) -> FileTable:
    path = tmp_path / f"data{messy.suffix}"
    path.write_bytes(messy.content)
    return read_table_file(options(path, **messy.options))


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
