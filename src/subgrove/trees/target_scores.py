"""Target of a tree: its range, its histogram, and its scores, which growth tests against every candidate column.

A score is the derivative of a row's log-likelihood by the coefficients of the node's model (transformation model), or
a fixed function of the target (conditional inference, where the literature calls it the influence function).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._data.table import ColumnInfo, Floats, TypedColumn
from subgrove._native import loader
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees.likelihood import LOG_2PI, Density, Interval
from subgrove.trees.newton import maximise
from subgrove.trees.training import Block, ascending, has_three_values, power_of_two

BINS = 48  # of the histogram of a numeric target
LIKELIHOODS = ("auto", "density", "interval")
_BINS = 512
_BINNED_FROM = 4096  # rows from which a node is first fitted to binned values


@dataclass(frozen=True)
class Support:
    """Range of a numeric target: the interval on which h is a polynomial."""

    low: float
    high: float

    @classmethod
    def of(cls, x: Floats, name: str = "x") -> Support:
        """Return the range of x, which is called `name` in an error."""
        support = cls(float(x.min()), float(x.max()))
        if not support.half > 1e-300:
            raise InputError(
                f"{name} has a range of {support.high - support.low:g}, too small for floats. Rescale it: multiply "
                f"{name} by a large number."
            )
        return support

    @property
    def half(self) -> float:
        """Half the width, since the width itself may overflow."""
        return self.high / 2 - self.low / 2

    @property
    def unit(self) -> float:
        """Length of 1 on the scale of `scaled`."""
        return 0.5 / self.half

    @property
    def log_range(self) -> float:
        """Logarithm of the width."""
        return float(np.log(self.half) + np.log(2.0))

    def scaled(self, x: Floats) -> Floats:
        """Return x on a scale where the support is [0, 1]."""
        scaled: Floats = (x / 2 - self.low / 2) / self.half
        return scaled

    def raw(self, u: Floats) -> Floats:
        """Return the inverse of `scaled`."""
        with np.errstate(over="ignore"):
            raw: Floats = self.low + u * self.half + u * self.half
        return raw


@dataclass(frozen=True, eq=False)
class Histogram:
    """Histogram of the target, which nodes store for plots of the tree.

    Attributes
    ----------
    cell : int array
        Cell of each row.
    n_cells : int
        Number of cells.
    edges : tuple of float
        Numeric target: edges of equal-width cells over its range. Empty otherwise: a cell is then a level, and there
        are no cells if several features share the tree.
    """

    cell: npt.NDArray[np.intp]
    n_cells: int
    edges: tuple[float, ...]

    @classmethod
    def of(cls, info: ColumnInfo, values: npt.NDArray[Any]) -> Histogram:
        """Return the cells of a target: its levels, or equal-width bins over its range."""
        if not len(values) or not (info.levels or info.kind == "numeric"):
            return cls(np.zeros(len(values), dtype=np.intp), len(info.levels), ())
        if info.kind != "numeric":
            first = 0 if info.is_nominal else 1
            return cls(values.astype(np.intp) - first, len(info.levels), ())
        low, high = float(values.min()), float(values.max())
        # Halved before the difference is taken, since the range of the target may overflow.
        width = high / 2 - low / 2
        share = (values / 2 - low / 2) / width if width > 0 else np.zeros(len(values))
        cell = np.minimum((share * BINS).astype(np.intp), BINS - 1)
        at = np.linspace(0, 1, BINS + 1)
        return cls(cell, BINS, tuple((low * (1 - at) + high * at).tolist()))

    def node_counts(self, leaf: npt.NDArray[np.intp], parents: Sequence[int | None], weights: Floats | None) -> Floats:
        """Return the weight of each node in each cell: counted in leaves, summed up to the root.

        `leaf` is the position of the leaf of each row among the nodes, `parents` that of the parent of each node, which
        comes before the node.
        """
        shape = (len(parents), self.n_cells)
        counts = np.zeros(shape)
        if self.n_cells:
            flat = np.bincount(leaf * self.n_cells + self.cell, weights=weights, minlength=counts.size)
            counts = flat.reshape(shape).astype(np.float64)
        for node, parent in reversed(list(enumerate(parents))):
            if parent is not None:
                counts[parent] += counts[node]
        counts.flags.writeable = False
        return counts


@dataclass(frozen=True, eq=False)
class NodeScores:
    """Scores of the rows of a block of nodes, and the model fitted in each node.

    A node in which the target does not vary, or whose model could not be fitted, is a leaf. Steps without a likelihood
    belong to several models: children start from them, but they are not coefficients of the node.

    Attributes
    ----------
    scores : float array (nodes, q, m)
        Scores times the square roots of the weights.
    varies, fitted : bool array (nodes,)
        Whether the target varies in the node, and whether its model was fitted.
    steps : float array (nodes, order + 1) or None
        Steps between the coefficients of the model.
    log_likelihood : float array (nodes,) or None
        Log-likelihood of the model.
    """

    scores: Floats
    varies: npt.NDArray[np.bool_]
    fitted: npt.NDArray[np.bool_]
    steps: Floats | None = None
    log_likelihood: Floats | None = None


class TargetScores(Protocol):
    """Scores of a target in any block of nodes."""

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Fit the nodes of a block, starting from the steps of their parents, and score their rows."""


class FixedScores:
    """Scores that are the same in every node: level indicators of a nominal target, values of any other target."""

    def __init__(self, target: ColumnInfo, values: npt.NDArray[Any]) -> None:
        if not target.is_nominal:
            self.scores = (values * power_of_two(values))[None, :]
            return
        levels = len(target.levels)
        first = 1 if levels == 2 else 0
        self.scores = (np.arange(first, levels)[:, None] == values[None, :]).astype(np.float64)

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Return the scores of a block's rows; there is no model to fit."""
        scores = np.moveaxis(self.scores[:, block.rows], 0, 1).copy()
        # Relative to the first row, so that a target far from 0 loses no digits.
        scores -= scores[:, :, :1]
        varies = (scores != 0).any(axis=(1, 2))
        if block.roots is not None:
            scores *= block.roots[:, None, :]
        return NodeScores(scores, varies, np.ones(len(varies), dtype=np.bool_))


class DensityScores:
    """Scores of a continuous target: derivatives of the log-density of its transformation model."""

    def __init__(self, x: Floats, support: Support, order: int, sorted_rows: Callable[[], npt.NDArray[Any]]) -> None:
        self.u = support.scaled(x)
        self.support = support
        self.order = order
        self._bin = _quantile_bins(sorted_rows()) if len(x) >= _BINNED_FROM else None

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Fit the density in each node and score the rows."""
        u = np.asarray(block.gather(self.u), dtype=np.float64)
        return self._fit(u, block.roots, block.sizes, self._start(block, u, starts))

    def _fit(self, u: Floats, roots: Floats | None, sizes: Rows, start: Floats) -> NodeScores:
        return fit_density(u, roots, sizes, self.order, self.support.log_range, start)

    def _start(self, block: Block, u: Floats, starts: list[Any]) -> Floats:
        start = linear_start(len(u), self.order) if starts[0] is None else np.array(starts)
        if self._bin is None or len(start) > 1 or u.shape[1] < _BINNED_FROM:
            return start
        # A large node is first fitted to its binned values, so that few passes over its rows remain.
        weights = None if block.weights is None else block.weights[0]
        bins = np.asarray(block.gather(self._bin))[0]
        counts = np.bincount(bins, weights=weights, minlength=_BINS).astype(np.float64)
        sums = np.bincount(bins, weights=u[0] if weights is None else u[0] * weights, minlength=_BINS)
        used = counts > 0
        means = (sums[used] / counts[used])[None, :]
        if means.shape[1] < 2:
            return start
        coarse = self._fit(means, np.sqrt(counts[used])[None, :], np.array([means.shape[1]]), start)
        assert coarse.steps is not None
        # Mixed with the start: slopes that vanish between bins must not vanish at rows.
        return 0.99 * coarse.steps + 0.01 * start if coarse.fitted[0] else start


class IntervalScores:
    """Scores of an integer target: derivatives of the log-probability of its values, on the distinct values."""

    def __init__(self, x: Floats, support: Support, order: int) -> None:
        if (x != np.floor(x)).any():
            raise InputError("likelihood='interval' needs whole numbers in x, but it has fractions. Use 'density'.")
        values, self.code = np.unique(x, return_inverse=True)
        self.u = support.scaled(values)
        self.first = values == values[0]
        self.support = support
        self.order = order

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Fit the interval probabilities in each node and score the rows."""
        code = np.asarray(block.gather(self.code))
        nodes, m = code.shape
        if len(self.u) <= 2 * m:
            flat = (code + len(self.u) * np.arange(nodes)[:, None]).ravel()
            row_weights = None if block.weights is None else block.weights.ravel()
            weights = np.bincount(flat, weights=row_weights, minlength=nodes * len(self.u)).astype(np.float64)
            likelihood, point, done = self._fit(slice(None), weights.reshape(nodes, -1), starts)
            scores = np.take_along_axis(likelihood.scores(point), code[:, None, :], axis=2)
        else:
            ones = np.ones(code.shape) if block.weights is None else block.weights
            likelihood, point, done = self._fit(code, ones, starts)
            scores = likelihood.scores(point)
        if block.roots is not None:
            scores *= block.roots[:, None, :]
        varies = code.max(axis=1) > code.min(axis=1)
        return NodeScores(scores, varies, done, likelihood.steps(point), likelihood.log_likelihood(point))

    def _fit(self, points: Any, weights: Floats, starts: list[Any]) -> tuple[Interval, Floats, npt.NDArray[np.bool_]]:
        u, first = np.atleast_2d(self.u[points]), np.atleast_2d(self.first[points])
        likelihood = Interval(u, self.support.unit, first, weights, self.order)
        start = linear_start(len(weights), self.order) if starts[0] is None else np.array(starts)
        point, done = maximise(likelihood, likelihood.restart(start))
        return likelihood, point, done


class JointScores:
    """Concatenated scores of several features; 0 where a feature does not vary or could not be fitted."""

    def __init__(self, members: list[TypedColumn], order: int) -> None:
        self.members = [_member_scores(member, order) for member in members]
        self.order = order

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Score each feature, starting from its last successful fit."""
        n_nodes, at_root = len(starts), starts[0] is None
        steps = np.ones((n_nodes, len(self.members), self.order + 1)) if at_root else np.array(starts)
        parts, any_varies, any_fitted = [], np.zeros(n_nodes, np.bool_), np.zeros(n_nodes, np.bool_)
        for place, member in enumerate(self.members):
            scored = member.score(block, starts if at_root else list(steps[:, place]))
            usable = scored.varies & scored.fitted
            scores = scored.scores
            scores[~usable] = 0.0
            scores *= _scale_factors(scores, block)[:, None, None]
            parts.append(scores)
            if scored.steps is not None:
                steps[usable, place] = scored.steps[usable]
            any_varies |= scored.varies
            any_fitted |= usable
        return NodeScores(np.concatenate(parts, axis=1), any_varies, any_fitted, steps)


def transformation_scores(
    target: ColumnInfo,
    values: Floats,
    order: int,
    likelihood: str,
    sorted_rows: Callable[[], npt.NDArray[Any]] | None = None,
) -> TargetScores:
    """Return the scores of a numeric target's transformation model; `sorted_rows` returns its ascending order."""
    support = Support.of(values, target.name)
    if likelihood == "interval" or (likelihood == "auto" and target.is_integer):
        return IntervalScores(values, support, order)
    return DensityScores(values, support, order, sorted_rows or (lambda: ascending(values)))


def fit_density(
    u: Floats, roots: Floats | None, sizes: Rows, order: int, log_range: float, start: Floats
) -> NodeScores:
    """Fit the density likelihood in every node of a block: compiled if available, else in NumPy.

    Parameters
    ----------
    u : float array (nodes, m)
        Target on the scale of its support.
    roots : float array (nodes, m) or None
        Square roots of the weights, 0 for padding.
    sizes : int array (nodes,)
        Number of rows before padding.
    order : int
        Order of the Bernstein polynomial.
    log_range : float
        Logarithm of the width of the support.
    start : float array (nodes, order + 1)
        Initial steps, of this node or of an ancestor.
    """
    varies = u.max(axis=1) > u.min(axis=1)
    if loader.tree_fit is None or order > loader.MAX_COEFFICIENTS:
        likelihood = Density(u, roots, order, log_range)
        point, done = maximise(likelihood, likelihood.restart(start))
        log_likelihood = likelihood.log_likelihood(point)
        return NodeScores(likelihood.scores(point), varies, done, likelihood.steps(point), log_likelihood)
    nodes, m = u.shape
    steps = np.array(start, dtype=np.float64, order="C")
    log_likelihood, reached = np.empty(nodes), np.empty(nodes)
    scores = np.empty((nodes, order + 1, m))
    weights = None if roots is None else np.ascontiguousarray(roots)
    found = (steps, log_likelihood, scores, reached)
    loader.tree_fit.fit(np.ascontiguousarray(u), weights, sizes.astype(np.float64), order, nodes, m, *found)
    n = sizes if roots is None else (roots * roots).sum(axis=1)
    log_likelihood -= n * (LOG_2PI / 2 + log_range)
    return NodeScores(scores, varies, reached > 0, steps, log_likelihood)


def checked_likelihood(value: Any) -> str:
    """Return `value` if it is the name of a likelihood; raise an error otherwise."""
    if value not in LIKELIHOODS:
        raise ParameterError(f"likelihood must be one of {', '.join(map(repr, LIKELIHOODS))}; got {value!r}.")
    return str(value)


def linear_start(nodes: int, order: int) -> Floats:
    """Return the steps of a linear h, which `restart` shifts and scales."""
    return np.ones((nodes, order + 1))


def _member_scores(member: TypedColumn, order: int) -> TargetScores:
    if member.info.kind == "numeric" and has_three_values(member.values):
        return transformation_scores(member.info, member.values, order, "auto")
    return FixedScores(member.info, member.values)


def _scale_factors(scores: Floats, block: Block) -> Floats:
    """Return a power of two per node that brings the standard deviation of its scores near 1 without rounding."""
    total = scores.sum(axis=2) if block.roots is None else np.matmul(scores, block.roots[:, :, None])[:, :, 0]
    spread = np.einsum("kqm,kqm->k", scores, scores) / block.n - ((total / block.n[:, None]) ** 2).sum(axis=1)
    exponents = np.frexp(np.maximum(spread, 0.0))[1] // 2
    return np.asarray(np.ldexp(1.0, -exponents))


def _quantile_bins(order: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return bins with equal numbers of rows; `order` sorts the rows in ascending order."""
    bins = np.empty(len(order), dtype=np.intp)
    bins[order] = np.arange(len(order)) * _BINS // len(order)
    return bins
