"""Numbers as people write them: with currency signs, units, thousands separators and decimal commas.

A cell that can be read in two ways, such as "1,234", is read like the other cells of its column; if all of them are
such cells, like the other columns of the file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from subgrove._cli.terminal import quoted
from subgrove._core.text import count_of

NUMERIC_SHARE = 0.9  # of the cells with a value, from which on a column is numeric
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|RUB|TRY|KRW|Rs|Fr|kr|zł|Kč|Ft"
_MONEY = rf"[A-Z]{{0,2}}[$€£¥₹₽₩₺₪₫₴₦₱฿¢]|(?:{_CODES})\.?"
_UNIT = r"(?!(?:st|nd|rd|th)\b)(?:[^\W\d_]|[%‰°])[^\d()]{0,15}?"
_CELL = re.compile(
    rf"(?!\+\d{{7}})"  # a telephone number
    rf"(?P<before>(?:{_MONEY})? ?[+-]?|[+-] ?(?:{_MONEY})?) ?"
    rf"(?P<digits>\d[\d.,' ]*|[.,]\d+)(?:(?<=[.,])-)?(?P<power>[eE][+-]?\d+)? ?"
    rf"(?P<after>{_MONEY}|{_UNIT})??(?:(?<=[a-z]{{3}})s)?"  # months and month
)
_STYLES = {  # decimal separator -> digits, with or without thousands separators, then decimals
    decimal: re.compile(
        rf"(?:[1-9]\d{{0,2}}([{group}' ])\d{{3}}(?:\1\d{{3}})*|[1-9]\d?(?:[{group}]\d\d)+[{group}]\d{{3}}|\d+)"
        rf"(?:[{decimal}]\d*)?|[{decimal}]\d+"
    )
    for decimal, group in ((".", ","), (",", "."))
}
_SIGN = re.compile(rf"{_MONEY}|[%‰]")
_PLAIN = re.compile(r"-?\d{1,99}(?:\.(?:\d\d?|\d{4,}))?")
_NO_VALUE = re.compile(
    r"[\W_]*|n\.?[ad]\.?|k\.?a\.?|none|nil|missing|unknown|not available|tb[ad]|[+-]?inf(inity)?", re.IGNORECASE
)
_SPELLINGS = str.maketrans("\u00a0\u202f\u2009\u2212\u2019\u00b4`", "   -'''")
_PADDED_SHARE = 0.01  # of cells with leading zeros, from which on they are not a slip


class Number(NamedTuple):
    """A text that is a number: its values by decimal separator, its digits and its unit."""

    values: dict[str, float]
    digits: str
    unit: str = ""


class NumericText:
    """The distinct texts of a column, with the number of cells of each, as numbers.

    Attributes
    ----------
    counts : mapping
        Text -> number of cells.
    numbers : mapping
        Text -> number, of the texts that are numbers without a unit or with that of the column.
    decimals : list of str
        Decimal separators that most cells can be read with: one, or both if these are equally many cells.
    odd : list of str
        Texts that are neither numbers nor marks of missing values.
    share : float
        Share of numbers among the cells that are not marks of missing values.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts
        numbers = {text: number for text in counts if (number := _number(text))}
        cells: Counter[str] = Counter()
        for text, number in numbers.items():
            cells[number.unit] += counts[text]
        unit = max(cells, key=lambda unit: (unit != "", cells[unit]), default="")
        units = ("", unit) if _SIGN.fullmatch(unit) or 2 * cells[unit] > cells.total() else ("",)
        self.numbers = {text: number for text, number in numbers.items() if number.unit in units}
        self.values = {
            decimal: {text: one.values[decimal] for text, one in self.numbers.items() if decimal in one.values}
            for decimal in _STYLES
        }
        n_cells = {decimal: self.n_cells(values) for decimal, values in self.values.items()}
        most = max(n_cells.values())
        self.decimals = [decimal for decimal in _STYLES if n_cells[decimal] == most]
        readable = self.values[self.decimals[0]]
        self.odd = [text for text in counts if text not in readable and not _NO_VALUE.fullmatch(text)]
        self.share = most / max(1, most + self.n_cells(self.odd))

    def n_cells(self, texts: Iterable[str]) -> int:
        """Return the number of cells with these texts."""
        return sum(self.counts[text] for text in texts)

    @property
    def are_codes(self) -> bool:
        """Whether all numbers are digits, and some have leading zeros."""
        padded = [text for text in self.numbers if text.isdigit() and text[0] == "0" and len(text) > 1]
        is_slip = self.n_cells(padded) < _PADDED_SHARE * self.n_cells(self.numbers)
        return bool(padded) and not is_slip and all(map(str.isdigit, self.numbers))

    def read(self, decimal: str | None, others: Set[str], delimiter: str) -> tuple[dict[str, float], list[str], str]:
        """Return the values of the texts that are numbers, notes, and the decimal separator.

        Parameters
        ----------
        decimal : {".", ","}, optional
            The decimal separator, if it is known.
        others : set of str
            Decimal separators of other columns of the file, which decide if all cells can be read in two ways.
        delimiter : str
            The delimiter of the file: unless it is a comma, the comma of "1,234" is decimal if no column decides.
        """
        unclear = []  # numbers with two values
        if not decimal and len(self.decimals) == 2:
            unclear = [text for text, one in self.numbers.items() if len({*one.values.values()}) > 1]
            comma = others == {","} if others else delimiter != "," and any("," in text for text in unclear)
            decimal = "," if comma else "."
        decimal = decimal or self.decimals[0]
        values = self.values[decimal]
        unit = max((self.numbers[text].unit for text in values), default="")
        separators = {*"".join(self.numbers[text].digits for text in values)} & {*"' ,."}
        notes = [f"{unit!r} removed"] if unit else []
        notes += ["decimal commas"] if decimal == "," and "," in separators else []
        notes += ["thousands separators"] if separators - {decimal} else []
        notes += [f"{text!r} read as {values[text]:.10g} (override with --decimal)" for text in unclear[:1]]
        notes += odd_cells({text: n for text, n in self.counts.items() if text not in values}, "number")
        return values, notes, decimal


def odd_cells(counts: Mapping[str, int], what: str) -> list[str]:
    """Return a note on cells that are read as missing, if there are any."""
    cells = count_of(sum(counts.values()), "cell")
    return [f"{cells} read as missing, not a {what}: {quoted(counts, 3, 24)}"] if counts else []


def _number(text: str) -> Number | None:
    """Return the number that a text is; None if it is none."""
    if _PLAIN.fullmatch(text):  # most texts; what follows would find the same
        return Number(dict.fromkeys("." if "." in text else ".,", float(text)), text)
    plain = re.sub(r"^\((.*)\)$|^(.*[^.,])-$", r"-\1\2", text.translate(_SPELLINGS))  # (5) and 5- are negative
    if not (cell := _CELL.fullmatch(plain)):
        return None
    digits, before = cell["digits"].strip(), cell["before"]
    values = {}
    for decimal, style in _STYLES.items():
        if style.fullmatch(digits):
            value = float(re.sub(rf"[^\d{decimal}]", "", digits).replace(",", ".") + (cell["power"] or ""))
            values[decimal] = -value if "-" in before else value
    is_finite = values and all(map(math.isfinite, values.values()))
    return Number(values, digits, before.strip(" +-") + (cell["after"] or "")) if is_finite else None
