"""A short text that tells tables apart: equal data give equal text, in whatever container they came."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._data.table import ColumnInfo, Table

_DIGITS = 32
_ROUNDED = 6  # digits of predictions that tell one model from another: rounding depends on who asks


def fingerprint(table: Table) -> str:
    """32 hexadecimal digits that depend on names, kinds, levels and values of the columns and on their order.

    One column is copied at a time. Nominal levels count by name, as far as a row has them: containers
    differ in the order they put them in, and in whether they keep those that no row has.
    """
    digest = sha256()  # which most processors compute in hardware
    digest.update(_text(str(table.n_rows)))
    for column, at in zip(table.columns, table.positions(), strict=True):
        levels, values = _levels_and_values(column, (table.codes if column.is_nominal else table.numbers)[:, at])
        for part in (column.name, column.kind, str(len(levels)), *levels):
            digest.update(_text(part))
        digest.update(values.data)
    return digest.hexdigest()[:_DIGITS]


def _levels_and_values(column: ColumnInfo, values: npt.NDArray[Any]) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Levels and contiguous values that do not depend on the container, nor on the machine's order of bytes."""
    if not column.is_nominal:
        numbers = np.array(values, dtype="<f8")
        numbers += 0.0  # -0 becomes 0
        numbers[np.isnan(numbers)] = np.nan  # there are many kinds of NaN
        return column.levels, numbers
    present = sorted(column.levels[code] for code in np.unique(values) if code >= 0)
    place = {level: index for index, level in enumerate(present)}
    # Codes below 0, which stand for no level of the column, count from the end of the list.
    codes = np.array([*(place.get(level, 0) for level in column.levels), -2, -1], dtype="<i4")
    return tuple(present), codes[values]


def _text(text: str) -> bytes:
    """The text with its length before it, so that no two lists of texts run together alike."""
    encoded = text.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "little") + encoded


def digest_of(answers: npt.NDArray[Any]) -> str:
    """A short text that tells predictions from others, but for rounding."""
    if answers.dtype.kind not in "iufb":
        return exact_digest(answers)
    return sha256(rounded(answers.astype(np.float64))).hexdigest()[:16]


def exact_digest(values: npt.NDArray[Any]) -> str:
    """A short text that tells values from others: numbers or labels, as they are."""
    return sha256(str(values.tolist()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rounded(values: npt.NDArray[np.float64]) -> bytes:
    """Numbers to some digits of the largest of them, and how large that is."""
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    unit = 10.0 ** np.floor(np.log10(largest)) if largest > 0 else 1.0
    numbers = np.round(values / unit, _ROUNDED) + 0.0  # -0 becomes 0
    return repr(float(unit)).encode() + np.ascontiguousarray(numbers).tobytes()
