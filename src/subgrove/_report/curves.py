"""Curves of a feature: PDP and ALE over all rows, PDP in each subgroup, for each output; and interactions of pairs.

The distribution of the feature, which is drawn below its curves, is here too. Interactions are those of models whose
trees can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from subgrove._core.kinds import Floats
from subgrove._core.text import number, percent
from subgrove._data.columns import ColumnInfo
from subgrove._data.table import TypedColumn
from subgrove._effects import Effect, InteractionStrength
from subgrove._effects.curves import Curve
from subgrove._effects.effect import effects_in_memory
from subgrove._effects.grid import has_levels, point_text
from subgrove._effects.plan import EffectSpec
from subgrove._report.inputs import ReportInputs
from subgrove._report.model_summary import InteractionSummary
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
GRID_RESOLUTION = 20
"""Number of grid points of a numeric feature."""
_DIGITS = 7  # of the numbers of curves
_LABELS = 5  # on the axis of dates
_PAIRED = 12  # features, the most important ones, of which all pairs are compared
_SHOWN_PAIRS = 8  # the strongest
_WEAK = 0.01  # share of the variance of the joint effect from which on features are said to interact

Interactions = tuple[tuple[InteractionSummary, ...], tuple[str, ...], int]


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


def curves_of_features(
    inputs: ReportInputs, features: Sequence[str], partitions: Mapping[str, Partition]
) -> dict[str, FeatureCurves]:
    """Return the curves of each feature, or the reason why it has none.

    The curves of all features are computed together, so that one pass over the trees of a model serves all of them. If
    this fails, they are computed one by one, to find out which ones cannot be.
    """
    try:
        return _together(inputs, {feature: _specs(inputs, feature, partitions.get(feature)) for feature in features})
    except ModelError:
        raise
    except SubgroveError as error:
        if len(features) == 1:
            return {features[0]: FeatureCurves(error=str(error))}
    found: dict[str, FeatureCurves] = {}
    for feature in features:
        found |= curves_of_features(inputs, [feature], partitions)
    return found


def _specs(inputs: ReportInputs, feature: str, partition: Partition | None) -> list[EffectSpec]:
    """Return the arguments of the PDP and ALE of a feature over all rows, and of its PDP in subgroups."""
    series, grid = inputs.drawn.table.series(feature), None
    if series.info.kind != "numeric":
        shown, pooled = _shown_levels(series)
        grid = [series.info.levels[at] for at in shown] if pooled else None
    wanted: list[tuple[str, Partition | None]] = [("pdp", None), ("ale", None)]
    if partition is not None and len(partition) > 1:
        wanted.append(("pdp", partition))
    options = False, grid, GRID_RESOLUTION, None, None, inputs.n_jobs
    return [EffectSpec.of(feature, kind, subgroups, *options) for kind, subgroups in wanted]


def _together(inputs: ReportInputs, specs: Mapping[str, list[EffectSpec]]) -> dict[str, FeatureCurves]:
    model = inputs.model
    if inputs.task == "classification" and hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        model = LabelShares(model, inputs.classes)
    effects = iter(effects_in_memory(model, inputs.drawn.X, None, [*chain(*specs.values())]))
    found = {}
    for feature, own in specs.items():
        everywhere, in_subgroups = [next(effects) for _ in own[:2]], [next(effects) for _ in own[2:]]
        series = inputs.drawn.table.series(feature)
        lines = [replace(line, mean=_row_mean(line, series)) for one in everywhere for line in _lines(inputs, one)]
        for one in in_subgroups:
            lines += _lines(inputs, one, in_subgroups=True)
        labels = _labels(everywhere[0].infos[0], [line for line in lines if line.kind == "pdp"])
        n_rows = sum(one.n_rows_predicted for one in (*everywhere, *in_subgroups))
        found[feature] = FeatureCurves(tuple(lines), labels, n_rows)
    return found


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


def _lines(inputs: ReportInputs, result: Effect, *, in_subgroups: bool = False) -> list[ReportCurve]:
    """Return the curves of the shown outputs of an effect."""
    shown = product(_shown(inputs, len(result.outputs)), result.lines)
    return [_line(result, curve, *output, curve.subgroup if in_subgroups else None) for output, curve in shown]


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


def _line(result: Effect, curve: Curve, at: int, output: str | None, subgroup: int | None) -> ReportCurve:
    from scipy.special import stdtrit

    axis, estimate, group = curve.axes[0], curve.estimate[:, at], result.groups[curve.subgroup]
    margin = np.asarray(stdtrit(np.maximum(curve.n - 1, 1e-9), (1 + LEVEL) / 2)) * curve.std_error[:, at]
    known = np.isfinite(estimate)
    points = axis.points[known]
    box, whiskers = (group.supports[0].holds(points, wide).astype(int) for wide in (False, True))
    x = [point_text(axis.info, point) if has_levels(axis.info) else float(point) for point in points.tolist()]
    ends = ((estimate + side * margin)[known] for side in (-1, 1))
    low, high = (tuple(one if np.isfinite(one) else None for one in _rounded(end)) for end in ends)
    y, support = tuple(_rounded(estimate[known])), tuple((box + whiskers).tolist())
    return ReportCurve(result.kind, output, subgroup, tuple(x), y, low, high, support, round(group.n))


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


def _labels(info: ColumnInfo, lines: list[ReportCurve]) -> tuple[tuple[float, str], ...]:
    """Return labels of dates and durations along the axis."""
    if not (info.is_date or info.is_duration) or not lines:
        return ()
    points = sorted({float(value) for line in lines for value in line.x})
    places = np.unique(np.linspace(0, len(points) - 1, min(_LABELS, len(points))).round().astype(int)).tolist()
    return tuple((points[at], point_text(info, points[at])) for at in places)


def distribution(series: TypedColumn, code: npt.NDArray[np.integer], n_groups: int) -> Distribution:
    """Return the distribution of one column; `code` is the subgroup of each row."""
    edges: Floats = np.empty(0)
    names: tuple[str, ...] = ()
    if series.info.kind == "numeric":
        values = np.asarray(series.values, dtype=np.float64)
        known = np.isfinite(values)
        edges = _edges(values[known])
        n_cells = max(len(edges) - 1, 0)
        cells = np.clip(np.searchsorted(edges, values[known], side="right") - 1, 0, max(n_cells - 1, 0))
    else:
        codes, (shown, pooled) = level_codes(series), _shown_levels(series)
        known = codes >= 0
        names = tuple(series.info.levels[at] for at in shown) + ((POOLED,) if pooled else ())
        place = np.full(len(series.info.levels), len(shown))
        place[shown] = np.arange(len(shown))
        n_cells, cells = len(names), place[codes[known]]
    counts = np.zeros((n_groups, n_cells), dtype=np.int64)
    np.add.at(counts, (code[known].astype(np.intp), cells), 1)
    by_group, n_missing = tuple(map(tuple, counts.tolist())), int((~known).sum())
    return Distribution(tuple(edges.tolist()), names, tuple(counts.sum(axis=0).tolist()), by_group, n_missing)


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


def interactions_of(inputs: ReportInputs, features: Sequence[str]) -> Interactions:
    """Return the strongest interactions of features, the sentences on them, and the number of rows predicted.

    `features` are in the order of their importance. There are no interactions if the trees of the model cannot be read.
    """
    names = list(features)[:_PAIRED]
    if len(names) < 2 or inputs.drawn.n < 2:
        return (), (), 0
    try:
        found = InteractionStrength.of_trees(inputs.model, inputs.drawn.X, names, inputs.seed)
    except ModelError:
        raise
    except SubgroveError:  # what the model gives is no number
        return (), (), 0
    several = len({repr(pair.output) for pair in found.pairs}) > 1
    pairs: dict[tuple[str, str], InteractionSummary] = {}
    for one in sorted(found.pairs, key=lambda one: -one.strength):
        key, output = (one.feature, one.other), str(one.output) if several else None
        pairs.setdefault(key, InteractionSummary(*key, output, one.strength, one.h_squared))
    shown = tuple(pairs.values())[:_SHOWN_PAIRS]
    return shown, _interaction_sentences(inputs, shown, len(names), found.scale), found.n_rows_predicted


def _interaction_sentences(
    inputs: ReportInputs, shown: Sequence[InteractionSummary], n_features: int, scale: str
) -> tuple[str, ...]:
    """Return the finding on the strongest pair, and the scale on which interactions are measured."""
    if not shown:
        return ()
    regression, one = inputs.task == "regression", shown[0]
    margin = "units of the log-odds" if len(inputs.classes) == 2 else "units of the margin"
    unit = margin if scale == "margin" else f"units of {inputs.target}" if regression else "units of probability"
    where = "" if one.output is None else f" for class {one.output}"
    strength, share = f"{number(one.strength)} (standard deviation, {unit})", percent(one.h_squared)
    finding = f"{one.feature} and {one.other} have the strongest interaction{where}: their joint effect differs from"
    finding += f" the sum of both effects by {strength}, which is {share} of the variance of the joint effect."
    if one.strength == 0 or max(each.h_squared for each in shown) < _WEAK:
        finding = f"No pair of features interacts: less than {percent(_WEAK)} of the variance of any joint effect."
    scope = f"Strengths are standard deviations, in {unit}."
    if n_features < len(inputs.features):
        scope += f" Pairs of the {n_features} features with the largest marginal importance."
    return tidy(finding), tidy(scope)
