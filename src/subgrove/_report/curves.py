"""Curves of a feature: PDP and ALE of all rows, PDP in each subgroup, of every output that is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._data.table import TypedColumn
from subgrove._effects import Effect, effect
from subgrove._effects.curves import Curve
from subgrove._effects.grid import has_levels, point_text
from subgrove._effects.support import FeatureSupport
from subgrove._effects.tables import EffectGroup
from subgrove._report.distribution import MOST_LEVELS
from subgrove._report.inputs import Asked
from subgrove._report.summary import Line
from subgrove._subgroups import Partition
from subgrove.exceptions import ModelError, SubgroveError

SHOWN_CLASSES = 3
"""Classes that have curves, the most frequent ones."""
LEVEL = 0.95
_DIGITS = 7  # of the numbers of curves
_LABELS = 5  # on the axis of dates


@dataclass(frozen=True)
class Curves:
    """Lines of a feature, labels of its axis, rows that the model was asked for, and why there are no lines."""

    lines: tuple[Line, ...] = ()
    x_labels: tuple[tuple[float, str], ...] = ()
    rows_predicted: int = 0
    refused: str = ""


class Votes:
    """A classifier without probabilities, asked for the share of rows that it puts in each class."""

    def __init__(self, model: Any, classes: tuple[Any, ...]) -> None:
        self.model = model
        self.classes_ = np.asarray(classes)

    def predict_proba(self, X: Any) -> Floats:
        """1 for the class that is predicted, 0 for others."""
        same: Floats = (np.asarray(self.model.predict(X))[:, None] == self.classes_).astype(np.float64)
        return same


def curves_of(asked: Asked, feature: str, partition: Partition | None) -> Curves:
    """Curves of one feature; where they cannot be drawn, the reason."""
    try:
        return _curves(asked, feature, partition)
    except ModelError:
        raise
    except SubgroveError as refused:
        return Curves(refused=str(refused))


def _curves(asked: Asked, feature: str, partition: Partition | None) -> Curves:
    model, X = _answering(asked), asked.drawn.X
    more: dict[str, Any] = {"n_jobs": asked.n_jobs}
    if (points := _frequent(asked.drawn.table.series(feature))) is not None:
        more["grid"] = points
    found = [effect(model, X, feature, kind="pdp", **more), effect(model, X, feature, kind="ale", **more)]
    lines = [line for one in found for line in _lines(asked, one, whole=True)]
    if partition is not None and len(partition) > 1:
        found.append(effect(model, X, feature, kind="pdp", subgroups=partition, **more))
        lines += _lines(asked, found[-1], whole=False)
    labels = _labels(found[0].infos[0], [line for line in lines if line.kind == "pdp"])
    return Curves(tuple(lines), labels, sum(one.n_rows_predicted for one in found))


def _answering(asked: Asked) -> Any:
    """What is asked for curves: the model, or its votes where it tells classes without probabilities."""
    model = asked.model
    if asked.task == "classification" and hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        return Votes(model, asked.classes)
    return model


def _frequent(series: TypedColumn) -> list[str] | None:
    """The most frequent levels, of a column with very many."""
    if series.info.kind == "numeric":
        return None
    values = np.asarray(series.values, dtype=np.float64) - (series.info.kind == "ordered")
    known = values[np.isfinite(values) & (values >= 0)].astype(np.intp)
    counts = np.bincount(known, minlength=len(series.info.levels))
    if (counts > 0).sum() <= MOST_LEVELS:
        return None
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda at: (-int(counts[at]), at))
    return [series.info.levels[at] for at in sorted(order[: MOST_LEVELS - 1])]


def _lines(asked: Asked, found: Effect, *, whole: bool) -> list[Line]:
    """Lines of an effect: those of the outputs that are shown."""
    outputs = _shown(asked, len(found.outputs))
    return [
        _line(found.kind, curve, found.groups[curve.subgroup], at, name, whole=whole)
        for at, name in outputs
        for curve in found.lines
    ]


def _shown(asked: Asked, n_outputs: int) -> list[tuple[int, str | None]]:
    """Places and names of the outputs that have lines."""
    classes = [str(label) for label in asked.classes]
    if n_outputs == 1:
        return [(0, classes[1] if len(classes) == 2 else None)]
    if len(classes) == n_outputs == 2:
        return [(1, classes[1])]
    if len(classes) == n_outputs:
        return [(at, classes[at]) for at in sorted(asked.common[:SHOWN_CLASSES])]
    return [(at, str(at)) for at in range(min(n_outputs, SHOWN_CLASSES))]


def _line(kind: str, curve: Curve, group: EffectGroup, at: int, output: str | None, *, whole: bool) -> Line:
    from scipy.special import stdtrit

    axis, estimate = curve.axes[0], curve.estimate[:, at]
    margin = np.asarray(stdtrit(np.maximum(curve.n - 1, 1e-9), (1 + LEVEL) / 2)) * curve.std_error[:, at]
    known = np.isfinite(estimate)
    x: list[float | str] = [
        point_text(axis.info, point) if has_levels(axis.info) else float(point) for point in axis.points[known].tolist()
    ]
    return Line(
        kind,
        output,
        None if whole else curve.subgroup,
        tuple(x),
        tuple(_rounded(estimate[known])),
        tuple(_or_none((estimate - margin)[known])),
        tuple(_or_none((estimate + margin)[known])),
        _support(group.supports[0], axis.points[known]),
        round(group.n),
    )


def _support(support: FeatureSupport, points: Floats) -> tuple[int, ...]:
    box, whiskers = support.holds(points, False), support.holds(points, True)
    return tuple((box.astype(int) + whiskers.astype(int)).tolist())


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") + 0.0 for value in values.tolist()]


def _or_none(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in _rounded(values)]


def _labels(info: ColumnInfo, lines: list[Line]) -> tuple[tuple[float, str], ...]:
    """Dates and durations along the axis."""
    if not (info.is_date or info.is_duration) or not lines:
        return ()
    points = sorted({float(value) for line in lines for value in line.x})
    places = np.unique(np.linspace(0, len(points) - 1, min(_LABELS, len(points))).round().astype(int)).tolist()
    return tuple((points[at], point_text(info, points[at])) for at in places)
