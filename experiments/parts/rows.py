"""Rows of the experiments that draw: points and lines of a picture, and claims with the number that decides them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

Row = dict[str, Any]
CLAIM = "claim"
Check = Literal["near", "draw", "above", "below"]


def points(part: str, series: str, x: Iterable[Any], y: Iterable[Any], **more: Iterable[Any]) -> list[Row]:
    """A row for each point of a series; `more` are further columns."""
    columns = {"x": list(x), "y": list(y), **{name: list(values) for name, values in more.items()}}
    lines = zip(*columns.values(), strict=True)
    return [{"part": part, "series": series, **dict(zip(columns, line, strict=True))} for line in lines]


def claim(
    name: str,
    value: float | Sequence[float],
    check: Check,
    bound: float,
    *,
    published: float | None = None,
    tolerance: float = 0.0,
) -> Row:
    """A row that a claim stands or falls with.

    Parameters
    ----------
    name : str
        What the number is.
    value : float or sequence of float
        The number; or one for each of several samples, which gives a standard error too.
    check : {"near", "draw", "above", "below"}
        How it must stand to `bound`; "near" is within three standard errors, or within `tolerance` if that is more.
        "draw" says that `bound` is of one sample itself: within three standard deviations of the difference.
    bound : float
        What it is compared with.
    published : float, optional
        The number that the paper has.
    tolerance : float
        See `check`.
    """
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    row: Row = {"part": CLAIM, "series": name, "value": float(values.mean()), "std_error": error, "n": len(values)}
    row |= {"check": check, "bound": float(bound), "tolerance": float(tolerance)}
    return row | {"published": np.nan if published is None else float(published)}


def judged(results: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The claims among stored rows, each with whether it holds."""
    table = results[results["part"] == CLAIM].reset_index(drop=True)
    table = table[[*columns, "series", "value", "std_error", "n", "check", "bound", "tolerance", "published"]]
    table = table.rename(columns={"series": "claim", "value": "ours"}).assign(n=table["n"].astype(int))
    table["holds"] = [_holds(line) for line in table.to_dict("records")]
    return table


def _holds(line: dict[Any, Any]) -> bool:
    if line["check"] == "above":
        return bool(line["ours"] > line["bound"])
    if line["check"] == "below":
        return bool(line["ours"] < line["bound"])
    if line["check"] == "draw":
        return bool(abs(line["ours"] - line["bound"]) <= 3 * line["std_error"] * np.sqrt(line["n"] + 1))
    margin = max(3 * line["std_error"], line["tolerance"], 1e-9 * abs(line["bound"]), 1e-12)
    return bool(abs(line["ours"] - line["bound"]) <= margin)
