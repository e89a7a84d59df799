"""Evaluate curves by linear interpolation, constant beyond their ends."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._core.text import quote
from subgrove._data.columns import values_like
from subgrove._data.from_containers import names_and_rows, untyped_column, untyped_columns
from subgrove._effects.curves import Curve
from subgrove._effects.grid import GridAxis, as_points, has_levels
from subgrove.exceptions import InputError, UnseenValueWarning

Places = npt.NDArray[np.intp]


def values_at(curve: Curve, x: Sequence[Floats]) -> Floats:
    """Evaluate a curve or surface: (rows, outputs). NaN where x is missing or a level without a value."""
    axes, estimate = _known(curve)
    shape = tuple(len(axis) for axis in axes)
    total = np.zeros((len(x[0]), estimate.shape[1]))
    for places, share in _corners([_bracket(axis, values) for axis, values in zip(axes, x, strict=True)]):
        total += share[:, None] * estimate[np.ravel_multi_index(places, shape)]
    return total


def _known(curve: Curve) -> tuple[tuple[GridAxis, ...], Floats]:
    """Return axes and estimates without points that have no estimate, as an M-plot without rows near a point."""
    known = np.isfinite(curve.estimate).all(axis=1)
    if known.all() or len(curve.axes) > 1:
        return curve.axes, curve.estimate
    return (GridAxis(curve.axes[0].info, curve.axes[0].points[known]),), curve.estimate[known]


def _bracket(axis: GridAxis, x: Floats) -> tuple[Places, Places, Floats]:
    """Return the points around each value, and the weight of the second; NaN where x is missing or off the axis."""
    if has_levels(axis.info):
        place = np.full(len(axis.info.levels) + 1, -1, dtype=np.intp)
        place[axis.points.astype(np.intp)] = np.arange(len(axis))
        at = place[np.where(np.isnan(x), len(axis.info.levels), x).astype(np.intp)]
        known = np.maximum(at, 0)
        return known, known, np.where(at < 0, np.nan, 0.0)
    if len(axis) == 1:
        zero = np.zeros(len(x), dtype=np.intp)
        return zero, zero, np.where(np.isnan(x), np.nan, 0.0)
    inside = np.clip(x, axis.points[0], axis.points[-1])
    right = np.clip(np.searchsorted(axis.points, inside, side="left"), 1, len(axis) - 1)
    left = right - 1
    half = axis.points / 2  # halved, since the width may overflow
    return left, right, (inside / 2 - half[left]) / (half[right] - half[left])


def _corners(located: Sequence[tuple[Places, Places, Floats]]) -> list[tuple[tuple[Places, ...], Floats]]:
    """Return the points around each value and their weights: two of a curve, four of a surface."""
    corners: list[tuple[tuple[Places, ...], Floats]] = [((), np.ones(len(located[0][0])))]
    for left, right, weight in located:
        ends = (left, 1 - weight), (right, weight)
        corners = [((*places, at), share * part) for places, share in corners for at, part in ends]
    return corners


def read_column(x: Any, info: ColumnInfo) -> Floats:
    """Read values of the feature from a column."""
    column, _ = untyped_column(x, "x")
    values, strange = values_like(column, info, "x")
    _warn(info, strange)
    return as_points(info, values)


def read_columns(X: Any, infos: Sequence[ColumnInfo]) -> list[Floats]:
    """Read values of the features from a table."""
    wanted = [info.name for info in infos]
    found = untyped_columns(X, "X", only=wanted)
    absent = [name for name in wanted if name not in found]
    if absent:
        raise InputError(f"X lacks {quote(absent)}. It has {quote(names_and_rows(X)[0])}. Pass a table that has it.")
    read = []
    for info in infos:
        values, strange = values_like(found[info.name], info, "X")
        _warn(info, strange)
        read.append(as_points(info, values))
    return read


def is_table(x: Any) -> bool:
    """Return whether x is a table, not a column."""
    if isinstance(x, np.ndarray):
        return x.ndim == 2 and x.shape[1] > 1
    return hasattr(x, "columns") or hasattr(x, "column_names")


def _warn(info: ColumnInfo, strange: Sequence[str]) -> None:
    if strange:
        warnings.warn(
            f"{info.name!r} has levels without a point on the curves: {quote(strange)}. Their rows get NaN.",
            UnseenValueWarning,
            stacklevel=4,
        )
