"""P-values of many tests read together: Holm's and Benjamini and Hochberg's adjustment.

An adjusted p-value is compared with the level as a plain one is. Holm's keeps the chance of any false finding in the
table below the level, Benjamini and Hochberg's the expected share of false ones among the findings. Holm's holds
however the tests depend on each other, the other one where they do not or do so positively.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats


def holm(p_values: Any) -> Floats:
    """P-values adjusted by Holm's method; those that are not known (NaN) stay so and do not count."""
    return _adjusted(p_values, _holm)


def benjamini_hochberg(p_values: Any) -> Floats:
    """P-values adjusted by Benjamini and Hochberg's method; those that are not known (NaN) do not count."""
    return _adjusted(p_values, _benjamini_hochberg)


def _adjusted(p_values: Any, method: Any) -> Floats:
    given = np.asarray(p_values, dtype=np.float64)
    found = np.full(given.shape, np.nan)
    known = np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known], kind="stable")]
    found[order] = np.minimum(method(given[order]), 1.0)
    return found


def _holm(ascending: Floats) -> Floats:
    steps = len(ascending) - np.arange(len(ascending))
    return np.maximum.accumulate(ascending * steps) if len(ascending) else ascending


def _benjamini_hochberg(ascending: Floats) -> Floats:
    n = len(ascending)
    falling = (ascending * n / np.arange(1, n + 1))[::-1]
    return np.minimum.accumulate(falling)[::-1] if n else ascending


def with_adjusted(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a table with `p_holm` and `p_bh` behind `p_value`, over the lines of the same loss."""
    columns: list[dict[str, float]] = [{} for _ in lines]
    for loss in dict.fromkeys(line.get("loss") for line in lines):
        places = [at for at, line in enumerate(lines) if line.get("loss") == loss]
        p_values = [lines[at]["p_value"] for at in places]
        for at, one, two in zip(places, holm(p_values), benjamini_hochberg(p_values), strict=True):
            columns[at] = {"p_holm": float(one), "p_bh": float(two)}
    return [_behind(line, "p_value", extra) for line, extra in zip(lines, columns, strict=True)]


def _behind(line: dict[str, Any], name: str, extra: dict[str, float]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in line.items():
        found[key] = value
        if key == name:
            found |= extra
    return found
