"""Files: the same values written in another way give the same numbers; damaged ones give numbers or a clear error."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import invoke

from .outcome import bounded

RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"a": RNG.normal(size=50).round(3), "b": RNG.integers(0, 5, 50), "k": RNG.choice(["u", "v"], 50)})
FRAME["a"] += FRAME["b"]
TEXT = FRAME.to_csv(index=False)


def described(path: Path) -> Any:
    """Return the subgroups of a file, as the command writes them; None if it says what is wrong with the file."""
    out = path.with_name("out.json")
    with bounded():
        result = invoke("subgroups", path, "--json", out)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.output
    written = {one.name for one in path.parent.iterdir()} - {path.name}
    assert written == ({out.name} if result.exit_code == 0 else set())
    if result.exit_code:
        assert "Error: " in result.stderr
        assert "subgrove-" not in result.stderr, "an error names the file of the user, not a temporary one"
        return None
    return json.loads(out.read_text(encoding="utf-8"))


def rules(values: Any) -> str:
    """Return what was found, without the name of the file."""
    return json.dumps(
        {name: value for name, value in values.items() if name not in ("source", "data", "file", "versions")}
    )


SAME: dict[str, Callable[[], bytes]] = {
    "line ends of Windows": lambda: TEXT.replace("\n", "\r\n").encode(),
    "byte order mark": lambda: b"\xef\xbb\xbf" + TEXT.encode(),
    "no last line end": lambda: TEXT.rstrip("\n").encode(),
    "quoted": lambda: FRAME.to_csv(index=False, quoting=1).encode(),
    "semicolons": lambda: FRAME.to_csv(index=False, sep=";").encode(),
    "tabs": lambda: FRAME.to_csv(index=False, sep="\t").encode(),
    "UTF-16": lambda: TEXT.encode("utf-16"),
}


@pytest.mark.parametrize("form", SAME)
def test_the_same_values_written_in_another_way_give_the_same_subgroups(form: str, tmp_path: Path) -> None:
    for name, content in (("one", TEXT.encode()), ("two", SAME[form]())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.csv").write_bytes(content)
    one, two = (described(tmp_path / name / "rows.csv") for name in ("one", "two"))
    assert rules(two) == rules(one)


def damaged(content: bytes, seed: int) -> bytes:
    """Return the bytes with one kind of damage: cut, overwritten, repeated, or moved."""
    rng = np.random.default_rng(seed)
    at, other = sorted(rng.integers(1, len(content), 2).tolist())
    noise = rng.bytes(int(rng.integers(1, 40)))
    return (
        content[:at],
        content[:at] + noise + content[at:],
        content[:at] + noise + content[at + len(noise) :],
        content[:at] + content[other:],
        content[:other] + content[at:],
        content[:at] + b"\x00" * 9 + content[at:],
        content[:at] + b'"' + content[at:],
        content[:at] + b"\r" * 3 + content[at:],
        content[other:] + content[:other],
        content[:at] + b"," * 60 + content[at:],
    )[seed % 10]


@pytest.mark.parametrize("seed", range(40))
def test_damaged_text_gives_numbers_or_a_clear_error(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(damaged(TEXT.encode(), seed))
    described(path)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_gzip_gives_a_clear_error(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(damaged(gzip.compress(TEXT.encode(), mtime=0), seed))
    described(path)


@pytest.mark.parametrize("seed", range(30))
def test_damaged_parquet_gives_numbers_or_a_clear_error(seed: int, tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.parquet", tmp_path / "rows.parquet"
    FRAME.to_parquet(whole)
    content = whole.read_bytes()
    whole.unlink()
    path.write_bytes(damaged(content, seed))
    described(path)


def numbered(text: str, n: int = 60) -> str:
    """Return a table with the target y, and a column whose cells are the text with the number of the row in it."""
    return "a,b,y\n" + "".join(f"{text.format(at)},{at % 5},{(at * 7) % 11}\n" for at in range(n))


ODD: dict[str, str | bytes] = {
    "numbers of 400 digits": numbered("9" * 400 + "{}"),
    "numbers beyond the largest": numbered("1e{}00"),
    "infinite": numbered("-inf"),
    "hexadecimal": numbered("0x{}"),
    "other digits": numbered("\u0661\u0662{}"),
    "days before our era": numbered("0001-02-{}"),
    "halves of surrogate pairs": b"a,b,y\n" + b"\xed\xa0\x80,1,2\n" * 60,
    "UTF-32": TEXT.encode("utf-32"),
    "EBCDIC": TEXT.encode("cp500"),
    "form feeds for line ends": TEXT.replace("\n", "\f"),
    "line separators of Unicode": TEXT.replace("\n", "\u2028"),
    "next lines": TEXT.replace("\n", "\x85"),
    "old Macintosh line ends": TEXT.replace("\n", "\r"),
    "ragged": TEXT + "1,2\n1,2,3,4,5\n",
    "names of one letter repeated": "a,a,a\n" + "1,2,3\n2,3,1\n" * 30,
    "names without text": ",,\n" + "1,2,3\n2,3,1\n" * 30,
    "names that look like others' numbers": "a,a_2,a,a_2\n" + "1,2,3,4\n2,3,1,0\n" * 30,
    "a hundred thousand names": ",".join(f"c{at}" for at in range(100_000)) + "\n" + "1," * 99_999 + "1\n",
    "a hundred thousand equal names": ",".join(["c"] * 100_000) + "\n" + "1," * 99_999 + "1\n",
    "only a header": "a,b,y\n",
    "only line ends": "\r\n" * 50_000,
    "only quotes": '"' * 100_001,
    "only zero bytes": b"\0" * 100_000,
    "only delimiters": ",,,\n" * 1_000,
    "one cell": "1",
    "JSON": json.dumps([{"a": 1, "y": 2}] * 60),
    "JSON lines": '{"a": 1, "y": 2}\n' * 60,
    "HTML": "<table>" + "<tr><td>1</td></tr>" * 60,
    "Parquet by its first and last bytes": b"PAR1" + TEXT.encode() + b"PAR1",
    "gzip by its first bytes": b"\x1f\x8b" + TEXT.encode(),
    "gzip in gzip": gzip.compress(gzip.compress(TEXT.encode())),
    "two gzip files": gzip.compress(TEXT.encode()) * 2,
    "long line in gzip": gzip.compress(b"a,b,y\n" + b"1" * 40_000_000),
    "escape sequences": numbered("\x1b[2J{}"),
    "spreadsheet formulas": numbered("=HYPERLINK({})"),
    "text right to left": numbered("\u202e{}"),
    "combining marks": numbered("a" + "\u0301" * 500 + "{}"),
    "thousands of both kinds": numbered('"1.000,{}"'),
    "negative zeros": numbered("-0.{0}0"),
    "percent and money": numbered("{}% $"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_text_file_gives_numbers_or_a_clear_error(name: str, tmp_path: Path) -> None:
    path, content = tmp_path / "rows.csv", ODD[name]
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    described(path)


def workbook(path: Path, sheet: str) -> None:
    """Write a workbook whose one sheet is this XML."""
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra: pip install 'subgrove[xlsx]'")
    book = openpyxl.Workbook()
    book.active.append(["a"])
    whole = path.with_name("whole")
    book.save(whole)
    with ZipFile(whole) as old, ZipFile(path, "w", ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, sheet if name.endswith("sheet1.xml") else old.read(name))
    whole.unlink()


def rows_of_sheet(*rows: str, start: str = '<?xml version="1.0"?>') -> str:
    kind = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    header = '<row r="1"><c t="inlineStr"><is><t>a</t></is></c><c t="inlineStr"><is><t>y</t></is></c></row>'
    return f"{start}<worksheet {kind}><sheetData>{header}{''.join(rows)}</sheetData></worksheet>"


CELL = "<c><v>1</v></c>"
BOMB = '<!DOCTYPE x [<!ENTITY e0 "aaaaaaaaaa">' + "".join(
    f'<!ENTITY e{at} "{f"&e{at - 1};" * 10}">' for at in range(1, 10)
)
SHEETS = {
    "a row far beyond the last": rows_of_sheet(f'<row r="999999999999">{CELL}</row>'),
    "the last row": rows_of_sheet(f'<row r="1048576">{CELL}</row>'),
    "a row before the first": rows_of_sheet(f'<row r="-5">{CELL}</row>'),
    "a row without a number": rows_of_sheet(f'<row r="one">{CELL}</row>'),
    "a cell without a place": rows_of_sheet('<row r="2"><c r="A-5"><v>1</v></c></row>'),
    "a cell in the last column": rows_of_sheet('<row r="2"><c r="XFD2"><v>1</v></c></row>'),
    "text where a number is stated": rows_of_sheet('<row r="2"><c t="n"><v>one</v></c></row>'),
    "a shared text that is not there": rows_of_sheet('<row r="2"><c t="s"><v>7</v></c></row>'),
    "a style that is not there": rows_of_sheet('<row r="2"><c s="99"><v>7</v></c></row>'),
    "a date beyond all calendars": rows_of_sheet('<row r="2"><c t="d"><v>99999-99-99</v></c></row>'),
    "entities in entities": rows_of_sheet("<row><c><v>&e9;</v></c></row>", start=f"{BOMB}]>"),
    "a file as an entity": rows_of_sheet("&f;", start='<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'),
    "50 megabytes of spaces": rows_of_sheet(" " * 50_000_000),
    "cut": rows_of_sheet(f'<row r="2">{CELL}</row>')[:-40],
    "empty": "",
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_damaged_sheet_gives_numbers_or_a_clear_error(name: str, tmp_path: Path) -> None:
    workbook(tmp_path / "rows.xlsx", SHEETS[name])
    described(tmp_path / "rows.xlsx")
