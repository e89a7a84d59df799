"""Curves of a feature (PDP and ALE over all rows, PDP in each subgroup, for each output), in numbers and in words.

The words are on shapes: rising, falling, flat or neither, and by how much over the middle 90 % of rows. The
distribution of the feature, which is drawn below its curves, is here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from subgrove._core.kinds import Floats
from subgrove._core.text import common_decimals, letter, number
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import TypedColumn
from subgrove._effects import Effect, effect
from subgrove._effects.curves import Curve
from subgrove._effects.grid import has_levels, point_text
from subgrove._effects.subgroup_rows import EffectGroup
from subgrove._report.inputs import ReportInputs
from subgrove._report.summary import Distribution, ReportCurve
from subgrove._report.wording import tidy
from subgrove._subgroups import Partition
from subgrove.exceptions import ModelError, SubgroveError

SHOWN_CLASSES = 3
"""Number of classes that have curves, the most frequent ones."""
LEVEL = 0.95
BINS = 20
MOST_LEVELS = 30
"""Number of levels that are shown, the most frequent ones; the others are pooled."""
POOLED = "other levels"
_DIGITS = 7  # of the numbers of curves
_LABELS = 5  # on the axis of dates


@dataclass(frozen=True)
class FeatureCurves:
    """Curves of a feature, labels of its axis, the number of rows predicted, and why there are no curves."""

    lines: tuple[ReportCurve, ...] = ()
    x_labels: tuple[tuple[float, str], ...] = ()
    rows_predicted: int = 0
    error: str = ""


class LabelShares:
    """A classifier without probabilities, as one that predicts 1 for its label and 0 for the other classes."""

    def __init__(self, model: Any, classes: tuple[Any, ...]) -> None:
        self.model = model
        self.classes_ = np.asarray(classes)

    def predict_proba(self, X: Any) -> Floats:
        """Return 1 for the predicted class, 0 for the others."""
        same: Floats = (np.asarray(self.model.predict(X))[:, None] == self.classes_).astype(np.float64)
        return same


def curves_of(inputs: ReportInputs, feature: str, partition: Partition | None) -> FeatureCurves:
    """Return the curves of one feature, or the reason why there are none."""
    try:
        return _curves(inputs, feature, partition)
    except ModelError:
        raise
    except SubgroveError as error:
        return FeatureCurves(error=str(error))


def _curves(inputs: ReportInputs, feature: str, partition: Partition | None) -> FeatureCurves:
    model, X = inputs.model, inputs.drawn.X
    if inputs.task == "classification" and hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        model = LabelShares(model, inputs.classes)
    more: dict[str, Any] = {"n_jobs": inputs.n_jobs}
    series = inputs.drawn.table.series(feature)
    if series.info.kind != "numeric":
        shown, pooled = _shown_levels(series)
        more.update({"grid": [series.info.levels[at] for at in shown]} if pooled else {})
    effects = [effect(model, X, feature, kind="pdp", **more), effect(model, X, feature, kind="ale", **more)]
    lines = [
        replace(line, mean=_row_mean(line, series)) for one in effects for line in _lines(inputs, one, all_rows=True)
    ]
    if partition is not None and len(partition) > 1:
        effects.append(effect(model, X, feature, kind="pdp", subgroups=partition, **more))
        lines += _lines(inputs, effects[-1], all_rows=False)
    labels = _labels(effects[0].infos[0], [line for line in lines if line.kind == "pdp"])
    return FeatureCurves(tuple(lines), labels, sum(one.n_rows_predicted for one in effects))


def level_codes(series: TypedColumn) -> npt.NDArray[np.intp]:
    """Return the position of each row's level; -1 for a missing value."""
    codes = np.asarray(series.values, dtype=np.float64) - (series.info.kind == "ordered")
    return np.where(codes >= 0, codes, -1).astype(np.intp)


def _shown_levels(series: TypedColumn) -> tuple[list[int], bool]:
    """Return the positions of all levels that occur, or of the most frequent ones; and whether there are others."""
    codes = level_codes(series)
    counts = np.bincount(codes[codes >= 0], minlength=len(series.info.levels)).tolist()
    present = [at for at, n in enumerate(counts) if n]
    if len(present) <= MOST_LEVELS:
        return present, False
    return sorted(sorted(present, key=lambda at: (-counts[at], at))[: MOST_LEVELS - 1]), True


def _lines(inputs: ReportInputs, result: Effect, *, all_rows: bool) -> list[ReportCurve]:
    """Return the curves of the shown outputs of an effect."""
    return [
        _line(result.kind, curve, result.groups[curve.subgroup], at, name, all_rows=all_rows)
        for at, name in _shown(inputs, len(result.outputs))
        for curve in result.lines
    ]


def _shown(inputs: ReportInputs, n_outputs: int) -> list[tuple[int, str | None]]:
    """Return the positions and names of the outputs that have curves."""
    classes = [str(label) for label in inputs.classes]
    if n_outputs == 1:
        return [(0, classes[1] if len(classes) == 2 else None)]
    if len(classes) == n_outputs == 2:
        return [(1, classes[1])]
    if len(classes) == n_outputs:
        return [(at, classes[at]) for at in sorted(inputs.common[:SHOWN_CLASSES])]
    return [(at, str(at)) for at in range(min(n_outputs, SHOWN_CLASSES))]


def _line(kind: str, curve: Curve, group: EffectGroup, at: int, output: str | None, *, all_rows: bool) -> ReportCurve:
    from scipy.special import stdtrit

    axis, estimate = curve.axes[0], curve.estimate[:, at]
    margin = np.asarray(stdtrit(np.maximum(curve.n - 1, 1e-9), (1 + LEVEL) / 2)) * curve.std_error[:, at]
    known = np.isfinite(estimate)
    points, support = axis.points[known], group.supports[0]
    inside_box, inside_whiskers = support.holds(points, False), support.holds(points, True)
    x = [point_text(axis.info, point) if has_levels(axis.info) else float(point) for point in points.tolist()]
    return ReportCurve(
        kind,
        output,
        None if all_rows else curve.subgroup,
        tuple(x),
        tuple(_rounded(estimate[known])),
        tuple(_or_none((estimate - margin)[known])),
        tuple(_or_none((estimate + margin)[known])),
        tuple((inside_box.astype(int) + inside_whiskers.astype(int)).tolist()),
        round(group.n),
    )


def _row_mean(line: ReportCurve, series: TypedColumn) -> float | None:
    """Return the mean of a curve over the rows; None without points or values."""
    if isinstance(next(iter(line.x), None), str):
        height = dict(zip(line.x, line.y, strict=True))
        names = [series.info.levels[code] for code in level_codes(series).tolist() if code >= 0]
        known = [height[name] for name in names if name in height]
    else:
        values = np.asarray(series.values, dtype=np.float64)
        values = values[~np.isnan(values)]
        known = np.interp(values, np.array(line.x, dtype=np.float64), line.y).tolist() if line.x else []
    return float(np.mean(known)) if known else None


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") + 0.0 for value in values.tolist()]


def _or_none(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in _rounded(values)]


def _labels(info: ColumnInfo, lines: list[ReportCurve]) -> tuple[tuple[float, str], ...]:
    """Return labels of dates and durations along the axis."""
    if not (info.is_date or info.is_duration) or not lines:
        return ()
    points = sorted({float(value) for line in lines for value in line.x})
    places = np.unique(np.linspace(0, len(points) - 1, min(_LABELS, len(points))).round().astype(int)).tolist()
    return tuple((points[at], point_text(info, points[at])) for at in places)


def distribution(series: TypedColumn, code: npt.NDArray[np.integer], n_groups: int) -> Distribution:
    """Return the distribution of one column; `code` is the subgroup of each row."""
    if series.info.kind == "numeric":
        return _of_numeric(np.asarray(series.values, dtype=np.float64), code, n_groups)
    codes, (shown, pooled) = level_codes(series), _shown_levels(series)
    known = codes >= 0
    place = np.full(len(series.info.levels), len(shown), dtype=np.intp)
    place[shown] = np.arange(len(shown))
    names = tuple(series.info.levels[at] for at in shown) + ((POOLED,) if pooled else ())
    counts = _counts(place[codes[known]], code[known], len(names), n_groups)
    return Distribution((), names, *counts, int((~known).sum()))


def _of_numeric(values: Floats, code: npt.NDArray[np.integer], n_groups: int) -> Distribution:
    known = np.isfinite(values)
    edges = _edges(values[known])
    cells = np.clip(np.searchsorted(edges, values[known], side="right") - 1, 0, max(len(edges) - 2, 0))
    counts = _counts(cells, code[known], max(len(edges) - 1, 0), n_groups)
    return Distribution(tuple(edges.tolist()), (), *counts, int((~known).sum()))


def _edges(values: Floats) -> Floats:
    """Return the edges of equal bins; one bin for each of few integers."""
    if not len(values):
        return np.empty(0)
    low, high = float(values.min()), float(values.max())
    if low == high:
        width = max(abs(low) * 0.01, 0.5)
        return np.array([low - width, high + width])
    if high - low < BINS and not (values % 1).any():
        return np.arange(low - 0.5, high + 1)
    return 2 * np.linspace(low / 2, high / 2, BINS + 1)  # the range may be wider than a float holds


def _counts(
    cells: npt.NDArray[np.intp], code: npt.NDArray[np.integer], n_cells: int, n_groups: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    each = np.zeros((n_groups, n_cells), dtype=np.int64)
    np.add.at(each, (code.astype(np.intp), cells), 1)
    return tuple(each.sum(axis=0).tolist()), tuple(tuple(row) for row in each.tolist())


FLAT = 0.05
"""A curve is flat if it moves by less than this share of the standard deviation of the predictions."""
_BACK = 0.1  # a curve still rises if it goes back by no more than this share of how far it moves
_MOST_SUBGROUPS = 8  # that have a sentence each

Shape = Literal["flat", "rises", "falls", "rises, then falls", "falls, then rises", "goes up and down"]


@dataclass(frozen=True)
class CurveShape:
    """The shape of a curve between two values of the feature.

    Attributes
    ----------
    shape : str
    low, high : float
        The two values of the feature.
    start, end : float
        Prediction at these.
    least, most : float
        Lowest and highest prediction between them.
    turn : float
        Value of the feature at the turning point.
    """

    shape: Shape
    low: float
    high: float
    start: float
    end: float
    least: float
    most: float
    turn: float


def curve_shape(line: ReportCurve, low: float, high: float, spread: float) -> CurveShape | None:
    """Return the shape of a curve between two values of the feature; None if it has fewer than two points there."""
    x = np.array([float(value) for value in line.x])
    y = np.array(line.y)
    if len(x) < 2 or not low < high:
        return None
    low, high = max(low, float(x[0])), min(high, float(x[-1]))
    if not low < high:
        return None
    inside = (x > low) & (x < high)
    at = np.concatenate([[low], x[inside], [high]])
    values = np.interp(at, x, y)
    steps = np.diff(values)
    up, down = float(steps[steps > 0].sum()), float(-steps[steps < 0].sum())
    least, most = float(values.min()), float(values.max())
    turn = float(at[values.argmax()])
    ends = float(values[0]), float(values[-1])
    if most - least <= FLAT * spread or most == least:
        shape: Shape = "flat"
    elif down <= _BACK * up:
        shape = "rises"
    elif up <= _BACK * down:
        shape = "falls"
    else:
        shape, turn = _turning(values, at)
    return CurveShape(shape, low, high, *ends, least, most, turn)


def _turning(values: np.ndarray, at: np.ndarray) -> tuple[Shape, float]:
    """Return whether a curve has one turning point, and where."""
    size = float(values.max() - values.min())
    for sign, shape in ((1.0, "rises, then falls"), (-1.0, "falls, then rises")):
        top = int((sign * values).argmax())
        rise, fall = np.diff(sign * values[: top + 1]), np.diff(sign * values[top:])
        back = -float(rise[rise < 0].sum()) + float(fall[fall > 0].sum())
        if 0 < top < len(values) - 1 and back <= _BACK * size:
            return shape, float(at[top])  # type: ignore[return-value]  # a literal of the two above
    return "goes up and down", float(at[int(values.argmax())])


def shape_words(one: CurveShape) -> str:
    """Return a shape in words, such as "rises by 2,310, from 3,010 to 5,320"."""
    size = one.most - one.least
    if one.shape == "flat":
        return f"is flat: it changes by {number(size)}"
    low, high, start, end, change = common_decimals(
        [one.least, one.most, one.start, one.end, abs(one.end - one.start)], size
    )
    if one.shape in ("rises", "falls"):
        return f"{one.shape} by {change}, from {start} to {end}"
    if one.shape == "goes up and down":
        return f"goes up and down between {low} and {high}"
    peak = high if one.shape == "rises, then falls" else low
    return f"{one.shape}: from {start} over {peak} at {number(one.turn)} to {end}"


def numeric_sentences(
    name: str,
    lines: Sequence[ReportCurve],
    bounds: Sequence[tuple[float, float] | None],
    spread: float,
    ends: tuple[str, str] | None,
) -> list[str]:
    """Return the sentences on one output. `bounds` are the middle 90 % of all rows, then of each subgroup.

    `ends` are the first of these as text, where numbers stand for dates.
    """
    sentences: list[str] = []
    overall = next((line for line in lines if line.kind == "pdp" and line.subgroup is None), None)
    shape = None if overall is None or bounds[0] is None else curve_shape(overall, *bounds[0], spread)
    if overall is not None and shape is not None:
        shown = ends or tuple(common_decimals([shape.low, shape.high], shape.high - shape.low))
        sentences.append(
            f"Over the middle 90 % of the rows ({name} from {shown[0]} to {shown[1]}), the {_output(overall)} "
            f"{_words(shape, ends)}."
        )
        sentences += _against_ale(name, lines, shape, bounds[0], spread)
    by_subgroup = [line for line in lines if line.kind == "pdp" and line.subgroup is not None]
    for line in by_subgroup[:_MOST_SUBGROUPS]:
        assert line.subgroup is not None
        own = bounds[1 + line.subgroup]
        inside = None if own is None else curve_shape(line, *own, spread)
        if inside is not None:
            subject = "it" if line.output is None else f"the {_output(line)}"
            sentences.append(f"In subgroup {letter(line.subgroup)}, {subject} {_words(inside, ends)}.")
    return [tidy(sentence) for sentence in sentences]


def _output(line: ReportCurve) -> str:
    return f"mean probability of class {line.output}" if line.output is not None else "mean prediction"


def _words(one: CurveShape, ends: tuple[str, str] | None) -> str:
    """Return a shape in words, without the turning point for dates, which are numbers here."""
    if ends is not None and one.shape in ("rises, then falls", "falls, then rises"):
        return one.shape
    return shape_words(one)


def _against_ale(
    name: str, lines: Sequence[ReportCurve], shape: CurveShape, bounds: tuple[float, float] | None, spread: float
) -> list[str]:
    """Return where the ALE curve, of differences between neighbouring rows, differs from the PDP."""
    ale = next((line for line in lines if line.kind == "ale"), None)
    near = None if ale is None or bounds is None else curve_shape(ale, *bounds, spread)
    if near is None:
        return []
    one, two = shape.end - shape.start, near.end - near.start
    if abs(one - two) <= 2 * FLAT * spread or abs(one - two) <= 0.5 * max(abs(one), abs(two)):
        return []
    changes = common_decimals([one, two], min(abs(value) for value in (one, two) if value) if one or two else 1.0)
    return [
        f"The ALE curve, which compares neighbouring rows, changes by {changes[1]} where the PDP changes by "
        f"{changes[0]}: the PDP averages over combinations with {name} that do not occur."
    ]


def level_sentences(name: str, lines: Sequence[ReportCurve], spread: float) -> list[str]:
    """Return the sentences on one output of a feature with levels: the highest and the lowest mean."""
    sentences = []
    for line in [line for line in lines if line.kind == "pdp"][: 1 + _MOST_SUBGROUPS]:
        # a level that no row of the subgroup has is beyond the data
        seen = [(y, str(x)) for x, y, support in zip(line.x, line.y, line.support, strict=True) if support]
        if len(seen) < 2:
            continue
        least, most = min(seen), max(seen)
        start = "In all rows" if line.subgroup is None else f"In subgroup {letter(line.subgroup)}"
        size = most[0] - least[0]
        if size <= FLAT * spread or size == 0:
            sentences.append(
                f"{start}, the {_output(line)} hardly differs between levels of {name} (by {number(size)})."
            )
        else:
            high, low, by = common_decimals([most[0], least[0], size], size)
            sentences.append(
                f"{start}, the {_output(line)} is highest for {name} = {most[1]} ({high}) and lowest for {least[1]} "
                f"({low}), a difference of {by}."
            )
    return [tidy(sentence) for sentence in sentences]
