"""Fingerprints of tables and predictions: equal data have equal fingerprints, in any container."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._data.table import ColumnInfo, Table

_DIGITS = 32
_ROUNDED = 6  # digits of predictions that identify a model; further ones depend on the batch size


def fingerprint(table: Table) -> str:
    """Return 32 hexadecimal digits that depend on the columns: their order, names, kinds, levels and values.

    One column is copied at a time. Nominal levels are identified by name, and only those that occur: containers differ
    in the order of levels, and in whether they have unused ones.
    """
    digest = sha256()  # computed in hardware on most processors
    digest.update(_text(str(table.n_rows)))
    for column, at in zip(table.columns, table.positions(), strict=True):
        levels, values = _levels_and_values(column, (table.codes if column.is_nominal else table.numbers)[:, at])
        for part in (column.name, column.kind, str(len(levels)), *levels):
            digest.update(_text(part))
        digest.update(values.data)
    return digest.hexdigest()[:_DIGITS]


def _levels_and_values(column: ColumnInfo, values: npt.NDArray[Any]) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Return levels and contiguous values that do not depend on the container or on the byte order."""
    if not column.is_nominal:
        numbers = np.array(values, dtype="<f8")
        numbers += 0.0  # -0 becomes 0
        numbers[np.isnan(numbers)] = np.nan  # NaN has many bit patterns
        return column.levels, numbers
    present = sorted(column.levels[code] for code in np.unique(values) if code >= 0)
    place = {level: index for index, level in enumerate(present)}
    # Codes below 0, for missing and unseen values, index from the end.
    codes = np.array([*(place.get(level, 0) for level in column.levels), -2, -1], dtype="<i4")
    return tuple(present), codes[values]


def _text(text: str) -> bytes:
    """Return the text after its length, so that different lists of texts give different bytes."""
    encoded = text.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "little") + encoded


def digest_of(predictions: npt.NDArray[Any]) -> str:
    """Return a fingerprint of predictions that ignores rounding errors."""
    if predictions.dtype.kind not in "iufb":
        return exact_digest(predictions)
    return sha256(rounded(predictions.astype(np.float64))).hexdigest()[:16]


def exact_digest(values: npt.NDArray[Any]) -> str:
    """Return a fingerprint of numbers or labels."""
    return sha256(str(values.tolist()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rounded(values: npt.NDArray[np.float64]) -> bytes:
    """Return numbers rounded relative to the largest of them, with its order of magnitude, as bytes."""
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    unit = 10.0 ** np.floor(np.log10(largest)) if largest > 0 else 1.0
    numbers = np.round(values / unit, _ROUNDED) + 0.0  # -0 becomes 0
    return repr(float(unit)).encode() + np.ascontiguousarray(numbers).tobytes()
