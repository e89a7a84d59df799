"""Tables of an effect, in the library of the user's frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.text import TOGETHER
from subgrove._data.columns import ColumnInfo
from subgrove._data.to_containers import Backend, make_table
from subgrove._effects.curves import Curve
from subgrove._effects.grid import GridAxis, aware_moments, has_levels
from subgrove._effects.subgroup_rows import BOX, EffectGroup, FeatureSupport

NOISE = "test rows"  # source of the noise that intervals cover
SPREAD = ("whisker_low", "q1", "median", "q3", "whisker_high")


def curves_table(
    backend: Backend, outputs: Sequence[Any], groups: Sequence[EffectGroup], curves: Sequence[Curve], level: float
) -> Any:
    """Return one row for each output, subgroup and point."""
    parts = [
        _curve_columns(curve, groups[curve.subgroup], at, output, level)
        for at, output in enumerate(outputs)
        for curve in curves
    ]
    return _joined(backend, parts, () if len(outputs) > 1 else ("output",))


def _curve_columns(curve: Curve, group: EffectGroup, at: int, output: Any, level: float) -> dict[str, Any]:
    from scipy.special import stdtrit

    estimate, error = curve.estimate[:, at], curve.std_error[:, at]
    # Student's t with n - 1 degrees of freedom, for a two-sided interval.
    margin = stdtrit(np.maximum(curve.n - 1, 1e-9), (1 + level) / 2) * error
    columns: dict[str, Any] = {
        "feature": TOGETHER.join(axis.info.name for axis in curve.axes),
        "output": output,
        **_group_columns(curve.subgroup, group),
        "n": counts_as_integers(curve.n),
        **_points(curve.axes),
        "estimate": estimate,
        "std_error": error,
        "conf_low": estimate - margin,
        "conf_high": estimate + margin,
        "noise": NOISE,
        "in_box": _inside(curve.axes, group.supports, False),
        "in_whiskers": _inside(curve.axes, group.supports, True),
    }
    if curve.spread is not None:
        columns |= {name: curve.spread[:, BOX.index(name), at] for name in SPREAD}
    return columns


def ice_table(backend: Backend, outputs: Sequence[Any], groups: Sequence[EffectGroup], curves: Sequence[Curve]) -> Any:
    """Return one row for each output, subgroup, row of X and point."""
    parts = []
    for at, output in enumerate(outputs):
        for curve in curves:
            assert curve.ice is not None
            n_rows, (axis,) = len(curve.ice.rows), curve.axes
            columns = {"output": output, **_group_columns(curve.subgroup, groups[curve.subgroup])}
            columns["row"] = np.repeat(curve.ice.rows, len(axis))
            columns["x"] = values_of(axis.info, np.tile(axis.points, n_rows))
            columns["estimate"] = curve.ice.values[:, at].T.ravel()
            if curve.opacity is not None:
                columns["opacity"] = np.tile(curve.opacity, n_rows)
            parts.append(columns)
    return _joined(backend, parts, () if len(outputs) > 1 else ("output",))


def support_table(backend: Backend, groups: Sequence[EffectGroup]) -> Any:
    """Return one row for each subgroup, and level of a categorical feature."""
    infos = [support.info for support in groups[0].supports]
    parts = []
    for which, info in enumerate(infos):
        for subgroup, group in enumerate(groups):
            support, levels = group.supports[which], has_levels(info)
            columns = {"feature": info.name, **_group_columns(subgroup, group)}
            counts = np.full((len(info.levels) if levels else 1, 2), [group.n, support.missing])
            columns |= {"n": counts_as_integers(counts[:, 0]), "missing": counts_as_integers(counts[:, 1])}
            if not all(map(has_levels, infos)):
                for at, name in enumerate(BOX):
                    columns[name] = None if levels else values_of(info, support.box[at : at + 1])
            if any(map(has_levels, infos)):
                columns["level"] = list(info.levels) if levels else [None]
                columns["count"] = counts_as_integers(support.counts) if levels else [None]
            parts.append(columns)
    return _joined(backend, parts, () if len(infos) > 1 else ("feature",))


def outliers_table(backend: Backend, groups: Sequence[EffectGroup]) -> Any:
    """Return one row for each distinct value beyond the whiskers."""
    parts = []
    for which, first in enumerate(groups[0].supports):
        for subgroup, group in enumerate(groups):
            support = group.supports[which]
            columns = {"feature": first.info.name, **_group_columns(subgroup, group)}
            columns["x"] = values_of(first.info, support.outliers)
            columns["n"] = counts_as_integers(support.outlier_weights)
            parts.append(columns)
    return _joined(backend, parts, () if len(groups[0].supports) > 1 else ("feature",))


def values_of(info: ColumnInfo, points: Floats) -> npt.NDArray[Any] | list[Any]:
    """Decode points: labels of levels, dates (in their time zone), durations or numbers."""
    if has_levels(info):
        return [info.levels[int(point)] for point in points]
    if info.zone is not None:
        return aware_moments(points, info.zone)
    if info.is_date or info.is_duration:
        moments = np.where(np.isnan(points), np.iinfo(np.int64).min, np.round(points)).astype(np.int64)
        return moments.view("datetime64[us]" if info.is_date else "timedelta64[us]")
    return points


def counts_as_integers(values: Floats) -> npt.NDArray[Any]:
    """Return counts as integers, if all are whole."""
    return values if (values % 1).any() else values.astype(np.int64)


def _group_columns(subgroup: int, group: EffectGroup) -> dict[str, Any]:
    """Return the number and rule of a group, and the reason of its last split with `interactions`."""
    return {"subgroup": subgroup, "rule": group.rule} | ({"reason": group.reason} if group.reason else {})


def _points(axes: tuple[GridAxis, ...]) -> dict[str, Any]:
    if len(axes) == 1:
        return {"x": values_of(axes[0].info, axes[0].points)}
    (one, two), (n, m) = axes, map(len, axes)
    return {"x1": values_of(one.info, np.repeat(one.points, m)), "x2": values_of(two.info, np.tile(two.points, n))}


def _inside(axes: tuple[GridAxis, ...], supports: tuple[FeatureSupport, ...], whiskers: bool) -> npt.NDArray[np.bool_]:
    each = [support.holds(axis.points, whiskers) for axis, support in zip(axes, supports, strict=True)]
    return each[0] if len(each) == 1 else np.logical_and.outer(*each).ravel()


def _joined(backend: Backend, parts: Sequence[dict[str, Any]], dropped: Sequence[str]) -> Any:
    """Concatenate the columns of several parts; a single value stands for a column of it."""
    lengths = [next(len(column) for column in part.values() if _is_column(column)) for part in parts]
    names = [name for name in (parts[0] if parts else ()) if name not in dropped]
    columns = {name: _column(backend, [part[name] for part in parts], lengths) for name in names}
    return make_table(backend, columns)


def _column(backend: Backend, parts: Sequence[Any], lengths: Sequence[int]) -> Any:
    columns = [part if _is_column(part) else [part] * m for part, m in zip(parts, lengths, strict=True)]
    if backend == "pandas" and len(columns) == 1:
        return columns[0]
    if backend == "pandas" and all(isinstance(column, np.ndarray) for column in columns):
        return np.concatenate(columns)
    return [value for column in columns for value in (column.tolist() if isinstance(column, np.ndarray) else column)]


def _is_column(values: Any) -> bool:
    return isinstance(values, list | np.ndarray)
