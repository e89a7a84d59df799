"""Files as offices produce them, made from one clean table, with what a reader should find in them.

Each case writes the columns of `clean()` in its own way. `python -m tests.cli.messy_files FOLDER` writes all of them.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N = 300
Lines = list[list[str]]


def clean(n: int = N) -> pd.DataFrame:
    """Return houses: the area and the number of rooms predict the price; some prices are below 1,000."""
    rng = np.random.default_rng(3)
    area = rng.integers(600, 9000, n)
    rooms = rng.integers(1, 7, n)
    garden = np.where(rng.random(n) > 0.4, "yes", "no")
    price = (area * 7.25 + rooms * 1500 + 900 * rng.normal(size=n)).round(2)
    return pd.DataFrame({"area": area, "rooms": rooms, "garden": garden, "price": price})


@dataclass(frozen=True)
class Messy:
    """A file and what should be found in it.

    Attributes
    ----------
    content : bytes
    kinds : mapping
        Column -> "numeric", "nominal", "date" or "left out"; of the clean columns unless stated otherwise.
    notes : sequence of str
        Words that the notes contain.
    missing : mapping
        Column -> number of cells that are read as missing.
    suffix : str
    """

    content: bytes
    kinds: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    suffix: str = ".csv"


CASES: dict[str, Callable[[], Messy]] = {}


def case(function: Callable[[], Messy]) -> Callable[[], Messy]:
    CASES[function.__name__] = function
    return function


def text(frame: pd.DataFrame, delimiter: str = ",", before: Lines | None = None, after: Lines | None = None) -> bytes:
    """Return a table as CSV, with further lines before and after it."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows([*(before or []), list(frame.columns), *frame.astype(object).values.tolist(), *(after or [])])
    return file.getvalue().encode()


def english(value: float) -> str:
    return f"{value:,.2f}"


def german(value: float) -> str:
    return english(value).translate(str.maketrans(",.", ".,"))


def with_column(name: str, write: Callable[[Any], str], **more: Any) -> pd.DataFrame:
    """Return the clean table with one column written in another way, and further columns."""
    frame = clean().assign(**more)
    return frame.assign(**{name: [write(value) for value in frame[name]]})


@case
def currency() -> Messy:
    return Messy(text(with_column("price", lambda value: f"$ {english(value)}")), notes=["'$' removed", "thousands"])


@case
def thousands_separators_only() -> Messy:
    return Messy(text(with_column("area", lambda value: f"{value:,}")), notes=["thousands separators"])


@case
def percentages() -> Messy:
    frame = clean().assign(share=[f"{value / 100:.1f}%" for value in clean()["area"]])
    return Messy(text(frame), {"share": "numeric"}, ["'%' removed"])


@case
def decimal_commas() -> Messy:
    frame = with_column("price", lambda value: str(value).replace(".", ","))
    return Messy(text(frame, ";"), notes=["decimal commas"])


@case
def german_numbers() -> Messy:
    return Messy(text(with_column("price", german), ";"), notes=["decimal commas", "thousands separators"])


@case
def german_thousands_beside_decimal_commas() -> Messy:
    frame = with_column("price", german)
    return Messy(text(frame.assign(area=[f"{one:,}".replace(",", ".") for one in frame["area"]]), ";"))


@case
def byte_order_mark_and_umlauts() -> Messy:
    frame = clean().rename(columns={"garden": "Grünfläche"})
    return Messy(b"\xef\xbb\xbf" + text(frame, ";"), {"Grünfläche": "nominal"})


@case
def repeated_column_names() -> Messy:
    frame = clean()
    frame.insert(2, "other", frame["rooms"] + 1)
    content = text(frame).replace(b"area,rooms,other", b"area,rooms,rooms", 1)
    return Messy(content, {"rooms_2": "numeric"}, ["'rooms' is 'rooms_2'"])


@case
def separator_line() -> Messy:
    frame = with_column("price", lambda value: str(value).replace(".", ","))
    return Messy(b"sep=;\r\n" + text(frame, ";"), notes=["Delimiter: ';'"])


@case
def hyphens_for_missing() -> Messy:
    price = clean()["price"]
    frame = clean().assign(tax=["-" if at % 4 == 0 else f"{one / 10:.1f}" for at, one in enumerate(price)])
    return Messy(text(frame), {"tax": "numeric"}, ["75 cells read as missing", "'-'"], missing={"tax": 75})


@case
def stray_texts() -> Messy:
    area = [
        ("n.a.", "see note", "~900")[at // 100] if at % 100 == 7 else str(one) for at, one in enumerate(clean()["area"])
    ]
    frame = clean().assign(copy=area)
    return Messy(text(frame), {"copy": "numeric"}, ["3 cells", "'see note'"], missing={"copy": 3})


@case
def title_lines() -> Messy:
    return Messy(text(clean(), before=[["Sales, 2024, by region"], []]), notes=["1 line above the header", "Sales"])


@case
def title_lines_of_a_spreadsheet() -> Messy:
    before = [["Sales 2024", "", "", ""], ["", "", "", ""], ["Region:", "", "", ""]]
    return Messy(text(clean(), before=before), notes=["3 lines above the header"])


@case
def total_line() -> Messy:
    frame = clean().astype(str)
    frame.insert(0, "city", [f"city {at % 9}" for at in range(N)])
    return Messy(text(frame, after=[["Total", "1", "2", "", "999999999"]]), {"city": "nominal"}, ["totals", "Total"])


@case
def footnotes() -> Messy:
    return Messy(
        text(clean(), after=[[], ["Source: land register"], ["* estimated"]]), notes=["2 lines at the end", "Source"]
    )


@case
def total_and_footnote_of_a_spreadsheet() -> Messy:
    after = [["Summe", "", "", "999.999,00 €"], ["", "", "", ""], ["Stand: 1.1.2025", "", "", ""]]
    frame = with_column("price", lambda value: f"{german(value)} €")
    return Messy(
        text(frame, ";", after=after), notes=["totals left out: 'Summe", "1 line at the end", "1 line without values"]
    )


@case
def case_and_spaces() -> Messy:
    garden = clean()["garden"]
    written = [
        (one, one.upper(), f" {one} ", one.title())[at % 8 if at % 8 < 4 else 0] for at, one in enumerate(garden)
    ]
    return Messy(text(clean().assign(garden=written)), notes=["spellings merged", "'YES' is 'yes'"])


@case
def identifiers_and_codes() -> Messy:
    rng = np.random.default_rng(1)
    frame = clean()
    frame.insert(0, "contract", 100_000 + rng.permutation(N))
    frame.insert(1, "customer_id", rng.choice(10**7, N, replace=False))
    frame.insert(2, "zip", [f"{one:05}" for one in rng.choice([1067, 1099, 80331, 80469], N)])
    frame.insert(3, "article", [("85123", "84029", "71053", "85123A")[at] for at in rng.integers(0, 4, N)])
    frame.insert(4, "phone", [f"+4917{one}" for one in rng.integers(10**7, 10**8, N)])
    frame.insert(5, "version", [f"1.{one}.{one}" for one in rng.integers(0, 4, N)])
    kinds = {"zip": "nominal", "article": "nominal", "version": "nominal"}
    dropped = dict.fromkeys(("contract", "customer_id", "phone"), "left out")
    return Messy(text(frame), kinds | dropped, ["identifier", "because of leading zeros", "because of '85123A'"])


@case
def unnamed_row_names() -> Messy:
    frame = clean()
    frame.insert(0, "", np.random.default_rng(1).choice(2000, N, replace=False))
    return Messy(text(frame), {"column_1": "left out"}, ["first column without a name"])


@case
def row_numbers_of_joined_files() -> Messy:
    frame = clean()
    frame.insert(0, "", [at % 100 for at in range(N)])
    return Messy(text(frame), {"column_1": "left out"}, ["row number"])


@case
def row_names_of_r() -> Messy:
    frame = clean()
    frame.insert(0, "x", [f"house {at}" for at in range(N)])
    return Messy(text(frame).replace(b"x,", b"", 1), {"column_1": "left out"})


@case
def booleans() -> Messy:
    return Messy(text(clean().assign(sold=clean()["price"] > 30_000)), {"sold": "nominal"})


@case
def dates_of_all_kinds() -> Messy:
    days = pd.date_range("2023-01-01", periods=N)
    frame = clean().assign(
        utc=[f"{one:%Y-%m-%dT%H:%M:%S}+02:00" for one in days],
        european=[f"{one:%d/%m/%Y}" for one in days],
        short=[f"{one:%d.%m.%y}" for one in days],
        compact=[f"{one:%Y%m%d}" for one in days],
        clock=[f"{one:%m/%d/%Y} 8:30 PM" for one in days],
        month=[f"{one:%m/%Y}" for one in days],
        words=[f"{one:%B %Y}" for one in days],
        gaps=["Total" if at == 5 else f"{one:%Y-%m-%d}" for at, one in enumerate(days)],
    )
    dates = dict.fromkeys(("utc", "european", "short", "compact", "clock", "month", "words", "gaps"), "date")
    return Messy(text(frame), dates, ["UTC", "day/month/year", "not a date: 'Total'"])


@case
def odd_names() -> Messy:
    names = {"rooms": "rooms\n(without bath)", "garden": "garden [y/n], 'front'"}
    frame = clean().rename(columns=names)
    return Messy(text(frame), {names["rooms"]: "numeric", names["garden"]: "nominal"})


@case
def long_text() -> Messy:
    frame = clean().assign(comment=[f"house {at}, well kept; " * 20 for at in range(N)])
    return Messy(text(frame), {"comment": "left out"}, ["300 distinct"])


@case
def equally_frequent_levels() -> Messy:
    frame = pd.concat([clean()] * 6, ignore_index=True)
    return Messy(text(frame.assign(country=[f"country {at % 150}" for at in range(6 * N)])), {"country": "nominal"})


@case
def bookkeeping_export() -> Messy:
    """Minus signs and a delimiter at the end, as SAP writes them."""
    frame = with_column("price", german).assign(balance=[f"{german(one)}-" for one in clean()["price"]])
    frame["due"] = [f"{1 + at % 28:02}.{1 + at % 12:02}.2024" for at in range(N)]
    content = b"\r\n".join(line + b";" if at else line for at, line in enumerate(text(frame, ";").splitlines()))
    return Messy(content, {"balance": "numeric", "due": "date", "column_7": "left out"}, ["all values missing"])


@case
def swiss_francs() -> Messy:
    frame = with_column("price", lambda value: f"CHF {english(value)}".replace(",", "\u2019"))
    return Messy(text(frame), notes=["'CHF' removed"])


@case
def french_windows_file() -> Messy:
    frame = with_column("price", lambda value: f"{english(value)} €".replace(",", "\xa0").replace(".", ","))
    frame["ville"] = [("Orléans", "Besançon", "Nîmes")[at % 3] for at in range(N)]
    return Messy(text(frame, ";").decode().encode("cp1252"), {"ville": "nominal"}, ["cp1252", "--encoding"])


@case
def two_header_lines() -> Messy:
    return Messy(text(clean(), before=[["", "", "2024", ""]]), notes=["1 line above the header"])


@case
def year_above_a_column() -> Messy:
    before = [["", "", "2024"]]
    return Messy(text(clean()[["area", "rooms", "price"]], before=before), notes=["1 line above the header"])


@case
def joined_exports() -> Messy:
    head = [*clean().columns]
    return Messy(
        text(clean().astype(str), after=[head, ["", "", "", ""], head]), notes=["repeat", "1 line without values"]
    )


@case
def units() -> Messy:
    frame = with_column("area", lambda value: f"{value} m²")
    frame["term"] = [("1 month", "12 months", "36 months", "60 months")[at % 4] for at in range(N)]
    return Messy(text(frame), {"term": "numeric"}, ["'m²' removed", "'month' removed"])


@case
def negatives_in_parentheses() -> Messy:
    profit = [f"({english(one)})" if at % 2 else english(one) for at, one in enumerate(clean()["price"])]
    return Messy(text(clean().assign(profit=profit)), {"profit": "numeric"})


@case
def unicode_text_of_excel() -> Messy:
    frame = with_column("price", lambda value: str(value).replace(".", ","))
    return Messy(text(frame, "\t").decode().encode("utf-16"), notes=["UTF-16", r"'\t'"])


@case
def polish_file() -> Messy:
    frame = clean().assign(miasto=[("Łódź", "Kraków", "Gdańsk", "Poznań", "Częstochowa")[at % 5] for at in range(N)])
    return Messy(text(frame, ";").decode().encode("cp1250"), {"miasto": "nominal"}, ["cp1250", "Łódź"])


@case
def japanese_file() -> Messy:
    frame = clean().assign(都市=[("東京", "大阪", "名古屋")[at % 3] for at in range(N)])
    return Messy(text(frame).decode().encode("cp932"), {"都市": "nominal"}, ["cp932"])


@case
def errors_of_a_spreadsheet() -> Messy:
    ratio = ["#DIV/0!" if at % 3 == 0 else f"{one / 7:.3f}" for at, one in enumerate(clean()["price"])]
    return Messy(text(clean().assign(ratio=ratio)), {"ratio": "numeric"}, missing={"ratio": 100})


@case
def numbers_and_words() -> Messy:
    """A third of the cells are words: levels, but with a note."""
    written = [("many", "few")[at % 2] if at % 3 == 0 else str(at % 9) for at in range(N)]
    return Messy(text(clean().assign(children=written)), {"children": "nominal"}, ["67%", "'many'", "--numeric"])


@case
def currencies_are_not_mixed() -> Messy:
    cost = [("€", "$")[at % 20 == 0] + f"{one:.2f}" for at, one in enumerate(clean()["price"])]
    return Messy(
        text(clean().assign(cost=cost)), {"cost": "numeric"}, ["'€' removed", "15 cells"], missing={"cost": 15}
    )


@case
def thousands_and_millions() -> Messy:
    value = [f"€{one / 1e3:.5f}K" if at % 3 else f"€{one / 1e6:.8f}M" for at, one in enumerate(clean()["price"])]
    return Messy(text(clean().assign(value=value)), {"value": "numeric"}, ["'€' removed", "M' read as"])


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """Return an Excel workbook with these sheets; openpyxl must be installed."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def excel_file() -> Messy:
    """A cover sheet, a title, typed dates and a total."""
    frame = clean()
    frame.insert(0, "day", pd.date_range("2023-01-01", periods=N, freq="D"))
    body = [[row[0].to_pydatetime(), *row[1:]] for row in frame.astype(object).values.tolist()]
    rows = [["Houses"], [], [*frame.columns], *body, ["Total", None, None, None, 1e9]]
    content = workbook({"About": [["Made by the office"]], "Data": rows, "Codes": [["a", 1], ["b", 2]]})
    notes = ["Sheet 'Data'", "2 lines above the header", "totals"]
    return Messy(content, {"day": "date"}, notes, suffix=".xlsx")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, make in CASES.items():
        messy = make()
        (folder / f"{name}{messy.suffix}").write_bytes(messy.content)
