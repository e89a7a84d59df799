"""The rows of a subgroup: the distribution of the feature in them, and copies of them with other values of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.columns import ColumnInfo
from subgrove._data.replace_columns import Changes, Column, Donors, Frames, Rows
from subgrove._effects.grid import GridAxis, has_levels
from subgrove._subgroups import Partition
from subgrove.trees import Tree
from subgrove.trees.nodes import ALL_ROWS, Node
from subgrove.trees.target_scores import Support
from subgrove.trees.transformation import FittedTransformation

BOX = ("low", "whisker_low", "q1", "median", "q3", "whisker_high", "high")
_CLOSE = 1e-12
_DENSITY_POINTS = 512  # points among which the maximum of a density is searched


@dataclass(frozen=True, eq=False)
class FeatureSupport:
    """Distribution of one feature in one subgroup.

    Attributes
    ----------
    info : ColumnInfo
        The feature.
    missing : float
        Weight of the rows with a missing value.
    box : float array
        Box statistics in the order of `BOX`; NaN without values. Empty for a categorical feature.
    outliers, outlier_weights : float array
        Distinct values beyond the whiskers, and the weight of their rows.
    counts : float array
        Weight of each level. Empty for a numeric feature.
    """

    info: ColumnInfo
    missing: float
    box: Floats
    outliers: Floats
    outlier_weights: Floats
    counts: Floats

    def holds(self, points: Floats, whiskers: bool) -> npt.NDArray[np.bool_]:
        """Return a mask of the points within the box or the whiskers; of levels, those that some row has."""
        if has_levels(self.info):
            return np.asarray(self.counts[points.astype(np.intp)] > 0)
        low, high = (self.box[1], self.box[5]) if whiskers else (self.box[2], self.box[4])
        return np.asarray((points >= low) & (points <= high))


@dataclass(frozen=True, eq=False)
class EffectGroup:
    """A subgroup: its rule, the weight of its rows, and the distribution of each feature in it.

    `reason` is that of its last split, empty without `interactions`.
    """

    rule: str
    n: float
    supports: tuple[FeatureSupport, ...]
    reason: str = ""


def support_of(info: ColumnInfo, x: Floats, weights: Floats | None) -> FeatureSupport:
    """Return the distribution of a feature in some rows."""
    missing, counts = count_values(info, x, weights)
    none = np.empty(0)
    if has_levels(info):
        return FeatureSupport(info, missing, none, none, none, counts)
    present = ~np.isnan(x) if missing else slice(None)
    values, w = x[present], None if weights is None else weights[present]
    box = box_statistics(values, w) if len(values) else np.full(len(BOX), np.nan)
    beyond = (values < box[1]) | (values > box[5])
    if not beyond.any():
        return FeatureSupport(info, missing, box, none, none, none)
    outliers, place = np.unique(values[beyond], return_inverse=True)
    outlier_weights = np.bincount(place, weights=None if w is None else w[beyond]).astype(np.float64)
    return FeatureSupport(info, missing, box, outliers, outlier_weights, none)


def count_values(info: ColumnInfo, x: Floats, weights: Floats | None) -> tuple[float, Floats]:
    """Return the weight of the rows with a missing value, and that of the rows with each level."""
    absent = np.isnan(x)
    missing = float(np.count_nonzero(absent) if weights is None else weights[absent].sum())
    if not has_levels(info):
        return missing, np.empty(0)
    present = None if weights is None else weights[~absent]
    counts = np.bincount(x[~absent].astype(np.intp), weights=present, minlength=len(info.levels))
    return missing, counts.astype(np.float64)


def box_statistics(x: Floats, weights: Floats | None) -> Floats:
    """Return Tukey's box statistics, in the order of `BOX`.

    The quartiles are hinges: medians of the halves, both including the middle row. Whiskers extend to the last value
    within 1.5 times the distance of the hinges from the box.
    """
    if weights is None:
        values, total = np.sort(x), np.arange(1.0, len(x) + 1)
    else:
        order = np.argsort(x, kind="stable")
        values, total = x[order], np.cumsum(weights[order])
    n = float(total[-1])
    whole = weights is None or not (weights % 1).any()
    half = float(np.ceil(n / 2)) if whole else n / 2
    q1, median, q3 = (_middle(values, total, mass) for mass in (half / 2, n / 2, n - half / 2))
    reach = 1.5 * (q3 - q1)  # infinite on overflow, without outliers then
    first = values[np.searchsorted(values, q1 - reach, side="left")]
    last = values[np.searchsorted(values, q3 + reach, side="right") - 1]
    return np.array([values[0], first, q1, median, q3, last, values[-1]])


def _middle(values: Floats, total: Floats, mass: float) -> float:
    """Return the quantile at a cumulative weight; the mean of two values if it lies between them."""
    rounding, last = _CLOSE * total[-1], len(values) - 1
    first = min(int(np.searchsorted(total, mass - rounding, side="left")), last)
    second = min(int(np.searchsorted(total, mass + rounding, side="right")), last)
    return float(values[first] / 2 + values[second] / 2) if first != second else float(values[first])


def opacity_of(tree: Tree, leaf: Node, axis: GridAxis) -> Floats:
    """Return the density of the feature at each point, relative to its maximum in the leaf; of levels, the frequency.

    It is that of the leaf's transformation model, or a kernel density estimate of its training rows for leaves at the
    depth limit, which have no model.
    """
    if not leaf.counts.any():
        return np.zeros(len(axis))
    if has_levels(axis.info):
        at_level = dict(zip(tree.target.levels, leaf.counts / leaf.counts.max(), strict=True))
        return np.array([at_level.get(axis.info.levels[int(point)], 0.0) for point in axis.points])
    edges = np.array(tree.edges)
    fine = np.union1d(np.linspace(edges[0], edges[-1], _DENSITY_POINTS), axis.points)
    if leaf.theta is not None and edges[-1] > edges[0]:
        density = FittedTransformation(leaf.theta, Support(edges[0], edges[-1]), 0.0).pdf(fine)
    else:
        density = _smooth(edges, leaf.counts, fine)
    density = np.nan_to_num(density)
    highest = density.max()
    at = density[np.searchsorted(fine, axis.points)]
    # The density is unknown outside of the range of the training rows.
    known = (axis.points >= edges[0]) & (axis.points <= edges[-1])
    return np.where(known, at / highest, 0.0) if highest > 0 else np.zeros(len(axis))


def _smooth(edges: Floats, counts: Floats, x: Floats) -> Floats:
    """Smooth a histogram with a normal kernel, of Silverman's bandwidth but at least one cell."""
    middles, cell = edges[:-1] / 2 + edges[1:] / 2, edges[1] - edges[0]
    if cell <= 0:
        return np.ones(len(x))
    n = counts.sum()
    mean = counts @ middles / n
    width = max(0.9 * np.sqrt(counts @ (middles - mean) ** 2 / n) * n**-0.2, cell)
    return np.asarray(np.exp(-(((x[:, None] - middles) / width) ** 2) / 2) @ counts)


@dataclass(frozen=True, eq=False)
class FeatureData:
    """A table, and one or two of its features.

    Attributes
    ----------
    X : frame, table or 2-d array
        The user's table.
    infos : tuple of ColumnInfo
        The feature, or the two features.
    x : tuple of float arrays
        Their values, encoded like `GridAxis.points`; NaN where missing.
    weights : float array or None
        Sample weights.
    level_data : FeatureData or None
        Rows to copy values of levels from, if these rows may lack some levels (chunks of large data).
    """

    X: Any
    infos: tuple[ColumnInfo, ...]
    x: tuple[Floats, ...]
    weights: Floats | None
    level_data: FeatureData | None = None

    @cached_property
    def frames(self) -> Frames:
        """All rows; values of levels are copied from rows, as the user's container stores them."""
        return Frames(self.X, self.infos, self.level_source.X)

    @property
    def level_source(self) -> FeatureData:
        """The rows that values of levels are copied from."""
        return self.level_data or self

    @property
    def row_weights(self) -> Floats:
        """Sample weights, 1 without weights."""
        return np.ones(self.frames.n_rows) if self.weights is None else self.weights

    @cached_property
    def level_rows(self) -> tuple[Rows, ...]:
        """For each feature the first row with each level, -1 without one; empty for numeric features."""
        first_rows = [np.full(len(info.levels), -1, dtype=np.intp) for info in self.infos]
        for info, x, rows in zip(self.infos, self.x, first_rows, strict=True):
            if has_levels(info):
                present = np.flatnonzero(~np.isnan(x))[::-1]
                rows[x[present].astype(np.intp)] = present
        return tuple(first_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the one or two features."""
        return tuple(info.name for info in self.infos)

    def column(self, name: str, points: Floats) -> Column:
        """Return the column that replaces a feature by the given points."""
        which = self.names.index(name)
        if not has_levels(self.infos[which]):
            return points
        return Donors(self.level_source.level_rows[which][points.astype(np.intp)], train=True)


@dataclass(frozen=True, eq=False)
class SubgroupRows:
    """The rows of one subgroup.

    Attributes
    ----------
    data : FeatureData
        The table that they belong to.
    subgroup : int
        Index of the subgroup.
    rule : str
        Its rule.
    rows : int array
        Indices of its rows with a positive weight.
    """

    data: FeatureData
    subgroup: int
    rule: str
    rows: Rows

    @cached_property
    def frames(self) -> Frames:
        """These rows, in the container of the model."""
        whole = self.data.frames
        if len(self.rows) == whole.n_rows:
            return whole
        return Frames(whole.changed(self.rows, {}), self.data.infos, self.data.level_source.X)

    @cached_property
    def x(self) -> tuple[Floats, ...]:
        """Values of the one or two features."""
        return tuple(x[self.rows] for x in self.data.x)

    @cached_property
    def weights(self) -> Floats | None:
        """Sample weights of the rows."""
        return None if self.data.weights is None else self.data.weights[self.rows]

    @property
    def is_chunk(self) -> bool:
        """Whether these are rows of a chunk of large data, whose moments are merged with those of other chunks."""
        return self.data.level_data is not None

    @property
    def n(self) -> float:
        """Sum of the weights; the number of rows without weights."""
        return float(len(self.rows) if self.weights is None else self.weights.sum())

    def where(self, mask: npt.NDArray[np.bool_]) -> SubgroupRows:
        """Return the rows selected by a mask."""
        return self if mask.all() else replace(self, rows=self.rows[mask])

    def with_values(self) -> SubgroupRows:
        """Return the rows in which no feature is missing."""
        return self.where(np.asarray(~np.isnan(self.x).any(axis=0)))

    def has_curve(self, partition: Partition | None) -> bool:
        """Whether there are enough rows for a curve: two in a subgroup, and one with a value of each feature."""
        if not len(self.rows) or any(np.isnan(x).all() for x in self.x):
            return False
        return partition is None or len(self.rows) > 1 or self.n >= 2

    def supports(self) -> tuple[FeatureSupport, ...]:
        """Return the distribution of each feature in the subgroup."""
        return tuple(support_of(info, x, self.weights) for info, x in zip(self.data.infos, self.x, strict=True))

    def blocks(self, axes: Sequence[GridAxis]) -> list[GridBlock]:
        """Return all rows at each grid point, or at each pair of points."""
        return [
            self.block_of(
                [axis.points[[at]] for axis, at in zip(axes, place, strict=True)],
                ", ".join(axis.text(at) for axis, at in zip(axes, place, strict=True)),
            )
            for place in product(*(range(len(axis)) for axis in axes))
        ]

    def block_of(self, points: Sequence[Floats], description: str) -> GridBlock:
        """Return all rows with each feature replaced by its points: one for all rows, or one for each."""
        text = f"effect of {' and '.join(self.data.names)}, {description}, {self.rule}"
        return GridBlock(dict(zip(self.data.names, points, strict=True)), text)

    def unchanged(self) -> GridBlock:
        """Return all rows with their observed values."""
        return replace(self.block_of(self.x, "observed values"), points={})


@dataclass(frozen=True, eq=False)
class GridBlock:
    """Rows with features replaced by points, on the scale of grids: one for all rows, or one for each.

    `points` are those of each replaced feature; `text` describes them in error messages.
    """

    points: Mapping[str, Floats]
    text: str


@dataclass(frozen=True, eq=False)
class PredictionRequest:
    """Blocks of the same rows to predict, and how to summarize the predictions.

    `summarize` maps the predictions of some blocks, (blocks, outputs, rows), to an array with an entry for each block,
    which must not depend on the other blocks. `is_checked` says whether rows of its first block are predicted again.
    """

    rows: SubgroupRows
    blocks: Sequence[GridBlock]
    summarize: Callable[[Floats], Floats]
    is_checked: bool = False

    @property
    def n_predictions(self) -> int:
        """Number of predictions."""
        return len(self.rows.rows) * len(self.blocks)

    def changes(self, block: GridBlock) -> Changes:
        """Return the columns that a block replaces."""
        n = len(self.rows.rows)
        return {name: self.rows.data.column(name, np.full(n, points)) for name, points in block.points.items()}

    def split(self, n_jobs: int) -> list[PredictionRequest]:
        """Distribute the blocks over several requests."""
        if n_jobs == 1:
            return [self]
        cuts = np.linspace(0, len(self.blocks), min(n_jobs, len(self.blocks)) + 1).round().astype(int).tolist()
        parts = [replace(self, blocks=self.blocks[a:b], is_checked=False) for a, b in pairwise(cuts)]
        return [replace(parts[0], is_checked=self.is_checked), *parts[1:]]


def rows_by_subgroup(data: FeatureData, partition: Partition | None) -> list[SubgroupRows]:
    """Return the rows of each subgroup; all rows without a partition."""
    weighted = np.ones(data.frames.n_rows, dtype=np.bool_) if data.weights is None else data.weights > 0
    if partition is None:
        return [SubgroupRows(data, 0, ALL_ROWS, np.flatnonzero(weighted))]
    code = partition.assign(data.X)
    return [
        SubgroupRows(data, k, rule, np.flatnonzero(weighted & (code == k))) for k, rule in enumerate(partition.rules)
    ]
