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
    return _joined(backend, parts, several=len(outputs) > 1)


def _curve_columns(curve: Curve, group: EffectGroup, at: int, output: Any, level: float) -> dict[str, Any]:
    estimate, error = curve.estimate[:, at], curve.std_error[:, at]
    margin = _quantile(level, curve.n) * error
    m = len(estimate)
    columns: dict[str, Any] = {"feature": [TOGETHER.join(axis.info.name for axis in curve.axes)] * m}
    columns |= _head(output, curve.subgroup, group, m) | {"n": counts_as_integers(curve.n)} | _points(curve.axes)
    columns |= {"estimate": estimate, "std_error": error, "conf_low": estimate - margin, "conf_high": estimate + margin}
    columns["noise"] = [NOISE] * m
    for name, whiskers in (("in_box", False), ("in_whiskers", True)):
        columns[name] = _inside(curve.axes, group.supports, whiskers)
    if curve.spread is not None:
        columns |= {name: curve.spread[:, BOX.index(name), at] for name in SPREAD}
    return columns


def ice_table(backend: Backend, outputs: Sequence[Any], groups: Sequence[EffectGroup], curves: Sequence[Curve]) -> Any:
    """Return one row for each output, subgroup, row of X and point."""
    parts = []
    for at, output in enumerate(outputs):
        for curve in curves:
            assert curve.ice is not None
            grid_resolution, n_rows = len(curve.ice.values), len(curve.ice.rows)
            columns = _head(output, curve.subgroup, groups[curve.subgroup], grid_resolution * n_rows)
            columns["row"] = np.repeat(curve.ice.rows, grid_resolution)
            columns["x"] = _tiled(values_of(curve.axes[0].info, curve.axes[0].points), n_rows)
            columns["estimate"] = curve.ice.values[:, at].T.ravel()
            if curve.opacity is not None:
                columns["opacity"] = np.tile(curve.opacity, n_rows)
            parts.append(columns)
    return _joined(backend, parts, several=len(outputs) > 1)


def support_table(backend: Backend, groups: Sequence[EffectGroup]) -> Any:
    """Return one row for each subgroup, and level of a categorical feature."""
    infos = [support.info for support in groups[0].supports]
    parts = []
    for which, info in enumerate(infos):
        for subgroup, group in enumerate(groups):
            support = group.supports[which]
            m = len(info.levels) if has_levels(info) else 1
            columns = {"feature": [info.name] * m, "subgroup": [subgroup] * m, **_rule(group, m)}
            columns |= {
                "n": counts_as_integers(np.full(m, group.n)),
                "missing": counts_as_integers(np.full(m, support.missing)),
            }
            parts.append(columns | _support_columns(infos, support))
    return _joined(backend, parts, drop=() if len(infos) > 1 else ("feature",))


def _support_columns(infos: Sequence[ColumnInfo], support: FeatureSupport) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    levels = has_levels(support.info)
    m = len(support.info.levels) if levels else 1
    if not all(map(has_levels, infos)):
        columns |= {
            name: [None] * m if levels else values_of(support.info, support.box[at : at + 1])
            for at, name in enumerate(BOX)
        }
    if any(map(has_levels, infos)):
        columns["level"] = list(support.info.levels) if levels else [None]
        columns["count"] = counts_as_integers(support.counts) if levels else [None]
    return columns


def outliers_table(backend: Backend, groups: Sequence[EffectGroup]) -> Any:
    """Return one row for each distinct value beyond the whiskers."""
    parts = []
    for which in range(len(groups[0].supports)):
        for subgroup, group in enumerate(groups):
            support = group.supports[which]
            m = len(support.outliers)
            columns = {"feature": [support.info.name] * m, "subgroup": [subgroup] * m, **_rule(group, m)}
            columns |= {
                "x": values_of(support.info, support.outliers),
                "n": counts_as_integers(support.outlier_weights),
            }
            parts.append(columns)
    return _joined(backend, parts, drop=() if len(groups[0].supports) > 1 else ("feature",))


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


def _head(output: Any, subgroup: int, group: EffectGroup, m: int) -> dict[str, Any]:
    return {"output": [output] * m, "subgroup": np.full(m, subgroup), **_rule(group, m)}


def _rule(group: EffectGroup, m: int) -> dict[str, Any]:
    """Return the rule of a group, and the reason of its last split with `interactions`."""
    return {"rule": [group.rule] * m} | ({"reason": [group.reason] * m} if group.reason else {})


def _points(axes: tuple[GridAxis, ...]) -> dict[str, Any]:
    if len(axes) == 1:
        return {"x": values_of(axes[0].info, axes[0].points)}
    one, two = (np.arange(len(axis)) for axis in axes)
    first, second = np.repeat(one, len(two)), np.tile(two, len(one))
    return {
        "x1": values_of(axes[0].info, axes[0].points[first]),
        "x2": values_of(axes[1].info, axes[1].points[second]),
    }


def _inside(axes: tuple[GridAxis, ...], supports: tuple[FeatureSupport, ...], whiskers: bool) -> npt.NDArray[np.bool_]:
    each = [support.holds(axis.points, whiskers) for axis, support in zip(axes, supports, strict=True)]
    return each[0] if len(each) == 1 else np.logical_and.outer(*each).ravel()


def _quantile(level: float, n: Floats) -> Floats:
    """Return the quantile of Student's t with n - 1 degrees of freedom, for a two-sided interval."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.maximum(n - 1, 1e-9), (1 + level) / 2), dtype=np.float64)


def _tiled(values: npt.NDArray[Any] | list[Any], times: int) -> npt.NDArray[Any] | list[Any]:
    return values * times if isinstance(values, list) else np.tile(values, times)


def _joined(
    backend: Backend, parts: Sequence[dict[str, Any]], *, several: bool = True, drop: Sequence[str] = ()
) -> Any:
    """Concatenate the columns of several parts."""
    dropped = {*drop} | (set() if several else {"output"})
    names = [name for name in (parts[0] if parts else ()) if name not in dropped]
    columns = {name: _column(backend, [part[name] for part in parts]) for name in names}
    return make_table(backend, columns)


def _column(backend: Backend, parts: Sequence[Any]) -> Any:
    if all(isinstance(part, np.ndarray) for part in parts):
        joined = np.concatenate(parts)
        return joined if backend == "pandas" else joined.tolist()
    return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]
