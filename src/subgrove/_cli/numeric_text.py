"""Numbers as people write them: with currency signs, units, thousands separators and decimal commas.

A cell that can be read in two ways, such as "1,234", is read like the other cells of its column; if all of them are
such cells, like the other columns of the file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from subgrove._cli.terminal import quoted
from subgrove._core.text import count_of

NUMERIC_SHARE = 0.9  # of the cells with a value, from which on a column is numeric
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|RUB|TRY|KRW|Rs|Fr|kr|zł|Kč|Ft"
_MONEY = rf"[A-Z]{{0,2}}[$€£¥₹₽₩₺₪₫₴₦₱฿¢]|(?:{_CODES})\.?"
_UNIT = r"(?!(?:st|nd|rd|th|(?<=\d)[A-Z])\b)(?:[^\W\d_]|[%‰°])[^\d()]{0,15}?"  # not the A of "12A", a code
_MULTIPLES = {None: 1, "k": 1e3, "K": 1e3, "M": 1e6, "bn": 1e9, "Mio": 1e6, "Mrd": 1e9}
_CELL = re.compile(
    rf"(?!\+\d{{7}})"  # a telephone number
    rf"(?P<before>(?:{_MONEY})? ?[+-]?|[+-] ?(?:{_MONEY})?) ?"
    rf"(?P<digits>\d[\d.,' ]*|[.,]\d+)(?:(?<=[.,])-)?(?P<power>[eE][+-]?\d+)?"
    rf"(?:(?P<multiple>k|K|M|bn|Mio|Mrd)\b\.?)? ?"
    rf"(?P<after>{_MONEY}|{_UNIT})??(?:(?<=[a-z]{{3}})s)?"  # months and month
)
_STYLES = {  # decimal separator -> digits, with or without thousands separators, then decimals
    decimal: re.compile(
        rf"(?:[1-9]\d{{0,2}}([{group}' ])\d{{3}}(?:\1\d{{3}})*|[1-9]\d?(?:[{group}]\d\d)+[{group}]\d{{3}}|\d+)"
        rf"(?:[{decimal}]\d*)?|[{decimal}]\d+"
    )
    for decimal, group in ((".", ","), (",", "."))
}
_TO_PLAIN = {".": str.maketrans("", "", ",' "), ",": str.maketrans(",", ".", ".' ")}  # decimal separator -> a point
_SIGN = re.compile(rf"{_MONEY}|[%‰]")
_NO_VALUE = re.compile(
    r"[\W_]*|n\.?[ad]\.?|k\.?a\.?|none|nil|missing|unknown|not available|tb[ad]|[+-]?inf(inity)?", re.IGNORECASE
)
_SPELLINGS = str.maketrans("\u00a0\u202f\u2009\u2212\u2019\u00b4", "   -''")
_PADDED_SHARE = 0.01  # of cells with leading zeros, from which on they are not a slip


class NumericText:
    """The distinct texts of a column, with the number of cells of each, as numbers.

    Attributes
    ----------
    counts : mapping
        Text -> number of cells.
    unit : str
        The currency or unit of the column; "" if it has none.
    cells : mapping
        Text -> its parts, of the texts that are numbers with this unit or without one.
    values : mapping
        Decimal separator -> text -> value, of the texts that are numbers with this separator.
    decimals : list of str
        Decimal separators that most cells can be read with: one, or both if these are equally many cells.
    numbers : mapping
        Text -> value, with the first of these separators.
    odd : list of str
        Texts that are neither numbers nor marks of missing values.
    share : float
        Share of numbers among the cells that are not marks of missing values.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts
        cells = {text: cell for text in counts if (cell := _CELL.fullmatch(_plain(text)))}
        units = {text: cell["before"].strip(" +-") + (cell["after"] or "") for text, cell in cells.items()}
        ranked = Counter(unit for text, unit in units.items() for _ in range(counts[text])).most_common()
        first, second, *_ = [*(unit for unit, _ in ranked), "", ""]
        self.unit = second if not first and _SIGN.fullmatch(second) else first
        self.cells = {text: cell for text, cell in cells.items() if units[text] in ("", self.unit)}
        self.values = {decimal: dict(self._values(decimal)) for decimal in _STYLES}
        n_cells = {decimal: self.n_cells(values) for decimal, values in self.values.items()}
        most = max(n_cells.values())
        self.decimals = [decimal for decimal in _STYLES if n_cells[decimal] == most]
        self.numbers = self.values[self.decimals[0]]
        self.odd = [text for text in counts if text not in self.numbers and not _NO_VALUE.fullmatch(text)]
        self.share = most / max(1, most + self.n_cells(self.odd))

    def n_cells(self, texts: Iterable[str]) -> int:
        """Return the number of cells with these texts."""
        return sum(self.counts[text] for text in texts)

    @property
    def are_codes(self) -> bool:
        """Whether all numbers are digits, and some have leading zeros."""
        padded = self.n_cells(text for text in self.numbers if re.fullmatch(r"0\d+", text))
        return padded >= max(1, _PADDED_SHARE * self.n_cells(self.numbers)) and all(map(str.isdigit, self.numbers))

    def read(self, decimal: str | None, usual: str) -> tuple[dict[str, float], list[str], str]:
        """Return the values of the texts that are numbers, notes, and the decimal separator.

        Parameters
        ----------
        decimal : {".", ","}, optional
            The decimal separator, if it is known.
        usual : {".", ","}
            The usual separator of the file, which decides if all cells can be read in two ways.
        """
        points, commas = self.values["."], self.values[","]
        is_clear = decimal or len(self.decimals) == 1
        unclear = [text for text in points if points[text] != commas.get(text, points[text]) and not is_clear]
        decimal = decimal or (self.decimals[0] if is_clear else usual)
        values = self.values[decimal]
        separators = {*"".join(self.cells[text]["digits"].strip() for text in values)} & {*"' ,."}
        multiples = [text for text in values if self.cells[text]["multiple"]]
        notes = [f"{self.unit!r} removed"] if self.unit else []
        notes += ["decimal commas"] if decimal == "," and "," in separators else []
        notes += ["thousands separators"] if separators - {decimal} else []
        notes += [f"{text!r} read as {values[text]:.10g} (override with --decimal)" for text in unclear[:1]]
        notes += [f"{text!r} read as {values[text]:,.10g}" for text in multiples[:1]]
        notes += odd_cells({text: n for text, n in self.counts.items() if text not in values}, "number")
        return values, notes, decimal

    def _values(self, decimal: str) -> Iterator[tuple[str, float]]:
        """Yield the texts that are finite numbers with this decimal separator, and their values."""
        for text, cell in self.cells.items():
            if _STYLES[decimal].fullmatch(digits := cell["digits"].strip()):
                plain = digits.translate(_TO_PLAIN[decimal]) + (cell["power"] or "")
                value = float(plain) * _MULTIPLES[cell["multiple"]]
                if math.isfinite(value):
                    yield text, -value if "-" in cell["before"] else value


def odd_cells(counts: Mapping[str, int], what: str) -> list[str]:
    """Return a note on cells that are read as missing, if there are any."""
    cells = count_of(sum(counts.values()), "cell")
    return [f"{cells} read as missing, not a {what}: {quoted(counts, 3, 24)}"] if counts else []


def _plain(text: str) -> str:
    """Return a text with usual signs and spaces, and a minus sign in front: (5) and 5- are negative."""
    plain = text if text.isascii() else text.translate(_SPELLINGS)
    return re.sub(r"^\((.*)\)$|^(.*)(?<!\d[.,])-$", r"-\1\2", plain) if plain.endswith((")", "-")) else plain
