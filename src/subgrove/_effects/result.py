"""The result of `effect`, its evaluation by linear interpolation, and the heterogeneity that splits explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.html_views import ResultView
from subgrove._core.kinds import Floats
from subgrove._core.text import percent, quote
from subgrove._core.validate import proportion, warn
from subgrove._data.columns import ColumnInfo, values_like
from subgrove._data.from_containers import names_and_rows, untyped_column, untyped_columns
from subgrove._data.to_containers import Backend, make_table
from subgrove._effects.curves import Curve, centre_ice
from subgrove._effects.grid import GridAxis, as_points, has_levels
from subgrove._effects.subgroup_rows import EffectGroup
from subgrove._effects.tables import counts_as_integers, curves_table, ice_table, outliers_table, support_table
from subgrove._subgroups import Partition
from subgrove.exceptions import InputError, ParameterError, UnseenValueWarning

DEPENDENCE, INTERACTION, NONE = "dependence", "interaction", "none"  # reasons of splits


@dataclass(frozen=True)
class ExplainedSplit:
    """One split, its reason, and the share of heterogeneity that it explains.

    Attributes
    ----------
    node : str
        Rule of the rows that are split.
    column : str
        Column of the split.
    reason : {"dependence", "interaction"}
        Whether the feature depends on the column, or the shape of the curves does.
    n : float
        Number of rows that are split.
    share : float
        Share of the heterogeneity of ICE curves that the split explains.
    p_value : float or None
        Permutation p-value, for interaction splits.
    """

    node: str
    column: str
    reason: str
    n: float
    share: float
    p_value: float | None = None


@dataclass(frozen=True)
class Heterogeneity:
    """Heterogeneity of ICE curves, and the shares that splits explain.

    Attributes
    ----------
    feature : str
        The feature.
    splits : tuple of ExplainedSplit
        Splits due to dependence first, then those due to interaction, each from the root downwards.
    additive : bool
        Whether all curves have the same shape, so that there is no heterogeneity.
    n : float
        Number of rows with curves.
    """

    feature: str
    splits: tuple[ExplainedSplit, ...]
    additive: bool
    n: float

    def explained(self, reason: str) -> float:
        """Return the share of heterogeneity that splits with this reason explain."""
        return sum(split.share for split in self.splits if split.reason == reason)

    @property
    def left(self) -> float:
        """Share that no split explains."""
        return 0.0 if self.additive else max(1.0 - self.explained(DEPENDENCE) - self.explained(INTERACTION), 0.0)

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        if self.additive:
            return f"{self.feature}: all curves have the same shape, so there is no interaction to split on."
        parts = []
        if any(split.reason == DEPENDENCE for split in self.splits):
            parts.append(f"by dependence splits {percent(self.explained(DEPENDENCE))}")
        interactions = [split for split in self.splits if split.reason == INTERACTION]
        if interactions:
            n, columns = len(interactions), ", ".join(dict.fromkeys(split.column for split in interactions))
            parts.append(f"by {n} interaction split{'s' * (n > 1)} on {columns} {percent(self.explained(INTERACTION))}")
        else:
            parts.append("no significant interaction split")
        return f"{self.feature}: heterogeneity explained {', '.join(parts)}; unexplained {percent(self.left)}."

    def table(self, backend: Backend) -> Any:
        """Return a row for each split and one for the unexplained share: feature, node, column, reason, n, ..."""
        rows = [*self.splits, ExplainedSplit("", "", NONE, self.n, self.left)]
        columns: dict[str, Any] = {"feature": [self.feature] * len(rows)}
        columns |= {each.name: [getattr(row, each.name) for row in rows] for each in fields(ExplainedSplit)}
        columns["n"] = counts_as_integers(np.array(columns["n"]))
        columns["p_value"] = [np.nan if row.p_value is None else row.p_value for row in rows]
        return make_table(backend, columns)


@dataclass(frozen=True, eq=False)
class Effect(ResultView):
    """Curves of the prediction against a feature, as returned by `subgrove.effect`.

    Reading it makes no predictions. Tables are frames of the same library as X, pandas for arrays.

    Attributes
    ----------
    feature : str, or pair of str
        The feature, or the two features of a surface.
    kind : {"pdp", "ice", "ale", "mplot"}
        Kind of the curves.
    outputs : tuple
        Classes or numbers of the model's outputs with curves.
    n_rows_predicted, n_calls : int
        Number of predicted rows, and of calls of the model.
    subgroups : Partition or None
        The subgroups, if any.
    infos, groups, lines, backend
        Data behind the tables, for plots: the features, the subgroups with the distributions of the features, the
        curves as arrays, and the library of the tables.
    heterogeneity : Heterogeneity or None
        With `interactions`, the heterogeneity of ICE curves and the shares that splits explain: `sentence`,
        `explained("dependence")`, `explained("interaction")`, `left` and `splits`.
    sampled : (int, int), or None
        For large data, the number of sampled rows, which grids, box statistics, outliers and ICE curves come from, and
        the number of all rows, which counts and mean curves come from.
    settings : mapping
        "evaluation": whether predictions came from the trees of the model ("tree steps"), or from calls of the model
        ("model predictions", with the reason).
    splits : table
        With `interactions`, a row for each split, with its `reason`, `share` of the heterogeneity and `p_value`; the
        last row is the unexplained share.
    curves : table
        A row for each output (if there are several), subgroup and point: `feature`, `output`, `subgroup`, `rule`,
        `reason` (of the last split, with `interactions`), `n`, `x` (two features: `x1`, `x2`), `estimate`, `std_error`,
        `conf_low`, `conf_high`, `noise` (source of the noise that the interval covers: "test rows"), `in_box`,
        `in_whiskers`. Categorical features also have box statistics of the predictions at each level: `whisker_low`,
        `q1`, `median`, `q3`, `whisker_high`.
    support : table
        A row for each subgroup, also for those without a curve: `n`, `missing` (rows with a missing value of the
        feature) and Tukey's box statistics of the feature; or a row for each level and the number of rows with it.
    outliers : table
        Values of the feature beyond the whiskers, and the number of rows with them.
    ice : table
        A row for each output, subgroup, row of X and point; with subgroups also `opacity`. Of kind "ice" only.

    Notes
    -----
    How to read it: `std_error` and the interval cover the sampling of the rows, for a fixed model and fixed subgroups.
    They do not cover the variance of the model over training data. Those of "ale" include the noise of the centring.
    The curve is well supported where `in_box` is true (between the quartiles of the feature, or at a level that rows
    of the subgroup have), and extrapolates where `in_whiskers` is false.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> def model(X):
    ...     return 100 * X["temp"] - 2 * X["hum"]
    >>> eff = sg.effect(model, X, "temp", subgroups=None, grid_resolution=3)
    >>> eff
    <Effect of 'temp': pdp, 1 curve, 3 points>
    >>> eff.curves[["x", "estimate", "std_error", "n"]].round(2)
           x  estimate  std_error    n
    0  -5.20   -645.58       1.05  731
    1  14.44   1318.88       1.05  731
    2  32.50   3124.42       1.05  731
    >>> eff.predict([0.0, 1.0]).round(2)
    array([-125.58,  -25.58])
    """

    _tables = ("curves", "support", "outliers")

    feature: str | tuple[str, str]
    kind: str
    outputs: tuple[Any, ...]
    n_rows_predicted: int
    n_calls: int
    subgroups: Partition | None
    infos: tuple[ColumnInfo, ...]
    groups: tuple[EffectGroup, ...]
    lines: tuple[Curve, ...]
    backend: Backend
    heterogeneity: Heterogeneity | None = None
    sampled: tuple[int, int] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def curves(self) -> Any:
        """Estimates with 95 % intervals."""
        return self.table()

    def table(self, level: float = 0.95) -> Any:
        """Return the curves with intervals of another level.

        Parameters
        ----------
        level : float, default 0.95
            Coverage probability of the intervals.
        """
        return curves_table(self.backend, self.outputs, self.groups, self.lines, proportion("level", level))

    @property
    def support(self) -> Any:
        """Distribution of the feature in each subgroup."""
        return support_table(self.backend, self.groups)

    @property
    def outliers(self) -> Any:
        """Values of the feature beyond the whiskers."""
        return outliers_table(self.backend, self.groups)

    @property
    def ice(self) -> Any:
        """A curve for each row."""
        self._reject_without_ice("ice")
        return ice_table(self.backend, self.outputs, self.groups, self.lines)

    @property
    def splits(self) -> Any:
        """Share of the heterogeneity of ICE curves that each split explains."""
        if self.heterogeneity is None:
            raise ParameterError("splits needs interactions. Use effect(..., interactions=True).")
        return self.heterogeneity.table(self.backend)

    def centred(self) -> Effect:
        """Return the effect with ICE curves as differences from their first point, and their means and errors.

        Examples
        --------
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> model = lambda X: 100 * X["temp"] - 2 * X["hum"]
        >>> eff = sg.effect(model, X, "temp", kind="ice", subgroups=None, grid_resolution=3)
        >>> eff.centred().curves[["x", "estimate", "std_error"]].round(6)
                   x     estimate  std_error
        0  -5.200000     0.000000        0.0
        1  14.444574  1964.457399        0.0
        2  32.500000  3770.000000        0.0
        """
        self._reject_without_ice("centred")
        return replace(self, lines=tuple(centre_ice(curve) for curve in self.lines))

    def _reject_without_ice(self, what: str) -> None:
        if self.kind != "ice":
            raise ParameterError(f"{what} needs ICE curves, but kind is {self.kind!r}. Use kind='ice'.")

    def predict(self, x: Any) -> Floats:
        """Evaluate the curves at values of the feature.

        Parameters
        ----------
        x : column, list, 1-d array, or table
            Values of the feature; or a table with the feature, which subgroups and two features need. Each row uses
            the curve of its subgroup.

        Returns
        -------
        float array
            (rows,), or (rows, outputs) for several outputs. Linear between the points of a curve, and constant beyond
            its ends; for a categorical feature the value of the level. NaN where the feature is missing or has a level
            without a value, and in a subgroup without a curve.
        """
        if not _is_table(x) and (self.subgroups is not None or len(self.infos) > 1):
            reason = "subgroups depend on other columns" if self.subgroups is not None else "there are two features"
            raise ParameterError(f"predict needs a table here, since {reason}; got {type(x).__name__}. Pass rows of X.")
        values = _read_values(x, self.infos)
        group = np.zeros(len(values[0]), dtype=np.intp) if self.subgroups is None else self.subgroups.assign(x)
        predicted = np.full((len(group), max(len(self.outputs), 1)), np.nan)
        for curve in self.lines:
            mine = group == curve.subgroup
            predicted[mine] = values_at(curve, [column[mine] for column in values])
        return predicted[:, 0] if predicted.shape[1] == 1 else predicted

    def __repr__(self) -> str:
        n = len(self.lines)
        points = {len(curve.n) for curve in self.lines} or {0}
        shown = str(points.pop()) if len(points) == 1 else f"{min(points)} to {max(points)}"
        more = f", {len(self.outputs)} outputs" if len(self.outputs) > 1 else ""
        return f"<Effect of {self.feature!r}: {self.kind}, {n} curve{'s' * (n != 1)}, {shown} points{more}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Effect) and _same(self, other)

    def __hash__(self) -> int:
        return hash((self.feature, self.kind, self.outputs, self.n_rows_predicted, len(self.lines)))


def _same(one: Any, two: Any) -> bool:
    """Return whether two values are equal; arrays by value, NaN equal to NaN."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return one.shape == two.shape and np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
    if type(one) is not type(two):
        return False
    if isinstance(one, Sequence) and not isinstance(one, str):
        return len(one) == len(two) and all(_same(*pair) for pair in zip(one, two, strict=True))
    if is_dataclass(one) and type(one).__module__.startswith("subgrove._effects"):
        return all(_same(getattr(one, each.name), getattr(two, each.name)) for each in fields(one))
    return bool(one == two)


Places = npt.NDArray[np.intp]


def values_at(curve: Curve, x: Sequence[Floats]) -> Floats:
    """Evaluate a curve or surface: (rows, outputs). NaN where x is missing or a level without a value."""
    axes, estimate = _known(curve)
    located = [_bracket(axis, values) for axis, values in zip(axes, x, strict=True)]
    total = np.zeros((len(x[0]), estimate.shape[1]))
    for corner in product((0, 1), repeat=len(axes)):  # two of a curve, four of a surface
        places = tuple(right if end else left for (left, right, _), end in zip(located, corner, strict=True))
        shares = [weight if end else 1 - weight for (_, _, weight), end in zip(located, corner, strict=True)]
        at = np.ravel_multi_index(places, tuple(map(len, axes)))
        total += np.prod(shares, axis=0)[:, None] * estimate[at]
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


def _read_values(x: Any, infos: Sequence[ColumnInfo]) -> list[Floats]:
    """Read values of the features from a table, or those of one feature from a column."""
    wanted = [info.name for info in infos]
    argument = "X" if _is_table(x) else "x"
    columns = untyped_columns(x, "X", only=wanted) if _is_table(x) else {wanted[0]: untyped_column(x, "x")[0]}
    absent = [name for name in wanted if name not in columns]
    if absent:
        raise InputError(f"X lacks {quote(absent)}. It has {quote(names_and_rows(x)[0])}. Pass a table that has it.")
    points = []
    for info in infos:
        values, strange = values_like(columns[info.name], info, argument)
        if strange:
            warn(
                f"{info.name!r} has levels without a point on the curves: {quote(strange)}. Their rows get NaN.",
                UnseenValueWarning,
            )
        points.append(as_points(info, values))
    return points


def _is_table(x: Any) -> bool:
    """Return whether x is a table, not a column."""
    if isinstance(x, np.ndarray):
        return x.ndim == 2 and x.shape[1] > 1
    return hasattr(x, "columns") or hasattr(x, "column_names")
