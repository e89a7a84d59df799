"""Numbers as people write them: with currency signs, units, thousands separators and decimal commas.

A cell that can be read in two ways, such as "1,234", is read like the other cells of its column; if all of them are
such cells, like the other columns of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from subgrove._cli.terminal import quoted
from subgrove._core.text import count_of

NUMERIC_SHARE = 0.9  # of the cells with a value, from which on a column is numeric
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|RUB|TRY|KRW|Rs|Fr|kr|zł|Kč|Ft"
_MONEY = rf"[A-Z]{{0,2}}[$€£¥₹₽₩₺₪₫₴₦₱฿¢]|(?:{_CODES})\.?"
_CELL = re.compile(
    rf"(?P<sign>[+-]?) ?(?P<before>{_MONEY})? ?(?P<sign2>[+-]?)(?P<digits>\d[\d.,' ]*|[.,]\d+)(?P<power>[eE][+-]?\d+)?"
    rf" ?(?P<after>{_MONEY}|(?!(?:st|nd|rd|th)\b)(?:[^\W\d_]|[%‰°])[^\d()]{{0,15}}?)?"
)
_STYLES = {  # decimal separator -> digits, with or without thousands separators, then decimals
    decimal: re.compile(
        rf"(?:[1-9]\d{{0,2}}([{group}' ])\d{{3}}(?:\1\d{{3}})*|[1-9]\d?(?:[{group}]\d\d)+[{group}]\d{{3}}|\d+)"
        rf"(?:[{decimal}]\d*)?|[{decimal}]\d+"
    )
    for decimal, group in ((".", ","), (",", "."))
}
_SIGN = re.compile(rf"{_MONEY}|[%‰]")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE)
_NO_VALUE = re.compile(r"[\W_]*|n\.?[ad]\.?|k\.?a\.?|none|nil|missing|unknown|not available|tb[ad]", re.IGNORECASE)
_CODE = re.compile(r"[^\W\d_]?\d+[^\W\d_]?")
_SPELLINGS = str.maketrans("\u00a0\u202f\u2009\u2212\u2019\u00b4`", "   -'''")
_MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "bn": 1e9, "Mio": 1e6, "Mrd": 1e9}  # directly after the digits
_PADDED_SHARE = 0.01  # of cells with leading zeros, from which on they are not a slip
_LONGEST_PLUS = 6  # digits after a plus sign; more are a telephone number

ReadNumbers = tuple[dict[str, float], list[str], str]  # value of each text, notes, and the decimal separator


class Number(NamedTuple):
    """A number as it was written."""

    value: float
    digits: str
    unit: str = ""
    times: float = 1.0


class NumericText:
    """The distinct texts of a column, with the number of cells of each, as numbers.

    Attributes
    ----------
    counts : mapping
        Text -> number of cells.
    styles : mapping
        Decimal separator -> text -> number, of the texts that are numbers with this separator.
    decimals : list of str
        Decimal separators that most cells can be read with: one, or both if these are equally many cells.
    odd : list of str
        Texts that are neither numbers nor marks of missing values.
    share : float
        Share of numbers among the cells that are not marks of missing values.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts
        self.styles = {decimal: self._numbers(decimal) for decimal in _STYLES}
        n_cells = {decimal: self.n_cells(numbers) for decimal, numbers in self.styles.items()}
        most = max(n_cells.values())
        self.decimals = [decimal for decimal in _STYLES if n_cells[decimal] == most]
        numbers = self.styles[self.decimals[0]]
        self.odd = [text for text in counts if text not in numbers and not _NO_VALUE.fullmatch(text)]
        self.share = most / max(1, most + self.n_cells(self.odd))

    def n_cells(self, texts: Iterable[str]) -> int:
        """Return the number of cells with these texts."""
        return sum(self.counts[text] for text in texts)

    @property
    def are_codes(self) -> bool:
        """Whether there are leading zeros, or numbers of one length beside codes of letters and digits."""
        digits = [text for text in self.counts if text.isdigit()]
        others = [text for text in self.counts if not text.isdigit() and not _NO_VALUE.fullmatch(text)]
        same_length = len({len(text) for text in digits}) == 1
        padded = self.n_cells(text for text in digits if text[0] == "0" and len(text) > 1)
        if padded and (same_length or padded >= _PADDED_SHARE * self.n_cells(digits)):
            return not any(text in self.styles["."] for text in others)
        return same_length and len(digits[0]) > 2 and bool(others) and all(map(_CODE.fullmatch, others))

    def read(self, decimal: str | None, others: Collection[str], comma_is_decimal: bool) -> ReadNumbers:
        """Return the values of the texts that are numbers, notes, and the decimal separator.

        Parameters
        ----------
        decimal : {".", ","}, optional
            The decimal separator, if it is known.
        others : collection of str
            Decimal separators of other columns of the file, which decide if all cells can be read in two ways.
        comma_is_decimal : bool
            Whether the comma of "1,234" is decimal if no column decides.
        """
        points, commas = self.styles["."], self.styles[","]
        is_clear = decimal is not None or len(self.decimals) == 1
        both = [text for text in points if text in commas and commas[text] != points[text] and not is_clear]
        has_comma = any("," in text for text in both)
        is_comma = set(others) == {","} or (has_comma and comma_is_decimal and "." not in others)
        decimal = decimal or (self.decimals[0] if is_clear else "," if is_comma else ".")
        doubtful = has_comma or comma_is_decimal or "," in others  # else a point is decimal as usual
        numbers = self.styles[decimal]
        unit = max((one.unit for one in numbers.values()), default="")
        plain = self.n_cells(text for text, one in numbers.items() if not one.unit)
        notes = [f"{unit!r} removed" + (f" ({count_of(plain, 'cell')} without it)" if plain else "")] if unit else []
        digits = set("".join(one.digits for one in numbers.values()))
        notes += ["decimal commas"] if decimal == "," and "," in digits else []
        notes += ["thousands separators"] if digits & set("' ,.") - {decimal} else []
        unclear = both[:1] if doubtful else []
        notes += [f"{text!r} read as {numbers[text].value:.10g} (override with --decimal)" for text in unclear]
        notes += [f"{text!r} read as {one.value:,.10g}" for text, one in numbers.items() if one.times > 1][:1]
        notes += odd_cells({text: n for text, n in self.counts.items() if text not in numbers}, "number")
        return {text: one.value for text, one in numbers.items()}, notes, decimal

    def _numbers(self, decimal: str) -> dict[str, Number]:
        """Return the numbers without a unit, and those with the most frequent one if it is money, percent or usual."""
        numbers = {text: number for text in self.counts if (number := _number(text, decimal))}
        cells: Counter[str] = Counter()
        for text, one in numbers.items():
            cells[one.unit] += self.counts[text]
        unit = max(cells, key=lambda unit: (unit != "", cells[unit]), default="")
        units = ("", unit) if 2 * cells[unit] > cells.total() or _SIGN.fullmatch(unit) else ("",)
        return {text: one for text, one in numbers.items() if one.unit in units}


def odd_cells(counts: Mapping[str, int], what: str) -> list[str]:
    """Return a note on cells that are read as missing, if there are any."""
    cells = count_of(sum(counts.values()), "cell")
    return [f"{cells} read as missing, not a {what}: {quoted(counts, 3, 24)}"] if counts else []


def _number(text: str, decimal: str) -> Number | None:
    """Return the number that a text is with this decimal separator."""
    if _PLAIN.fullmatch(text) and text[-4:-3] != ".":  # most texts; what follows would find the same
        return Number(float(text), text) if decimal == "." or "." not in text else None
    plain = re.sub(r"(?<=\d[.,])-$", "", text.translate(_SPELLINGS))  # "5.-" has no cents
    cell = _CELL.fullmatch(re.sub(r"^\((.*)\)$|^(.*)-$", r"-\1\2", plain))  # (5) and 5- are negative
    if cell is None or not _STYLES[decimal].fullmatch(digits := cell["digits"].strip()):
        return None
    sign = cell["sign"] + cell["sign2"]
    if len(sign) > 1 or (sign == "+" and len(digits) > _LONGEST_PLUS):
        return None
    after, times = (cell["after"] or "").strip(), 1.0
    if after.rstrip(".") in _MULTIPLES and not cell["digits"].endswith(" "):
        after, times = "", _MULTIPLES[after.rstrip(".")]
    unit = (cell["before"] or "") + re.sub("(?<=[a-z]{3})s$", "", after)  # months and month
    plain = re.sub(rf"[^\d{decimal}]", "", digits).replace(",", ".")
    return Number(times * float(f"{sign}{plain}{cell['power'] or ''}"), digits, unit, times)
