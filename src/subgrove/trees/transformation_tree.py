"""Transformation trees: subgroups in which the whole distribution of a numeric x is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._core.validate import ParamsMixin, public_names, whole_number
from subgrove._data.table import ColumnInfo, Floats, Kind
from subgrove.exceptions import InputError
from subgrove.trees.candidates import Block
from subgrove.trees.density_fit import DensityFit, fit_density
from subgrove.trees.growth import NodeScores, StoppingRules, TargetScores, grow
from subgrove.trees.likelihood import Interval
from subgrove.trees.newton import maximise
from subgrove.trees.sorted_table import ascending
from subgrove.trees.structure import Tree
from subgrove.trees.training import Training, read_training
from subgrove.trees.transformation import Support, checked_likelihood, linear_start

_BINS = 512
_BINNED_FROM = 4096


class TransformationTree(ParamsMixin):
    """Tree whose leaves differ in the distribution of a numeric x.

    In each node x has the model P(X <= x) = Phi(h(x)), h a monotone Bernstein polynomial. The scores of its
    coefficients are tested against every column; the most significant one is cut where the scores differ
    most. So the tree sees changes of location, spread and shape alike (Hothorn and Zeileis 2017).

    Parameters
    ----------
    max_depth : int, default 30
        Most splits above a leaf; 0 gives a single leaf.
    min_samples_leaf : int, default 30
        Least number of rows (weight) in a leaf; at least 1 % of the node that is split.
    alpha : float, default 0.05
        Level of the tests, after Sidak's adjustment for the number of columns; 1 splits as long as it can.
    order : int, default 5
        Order of the Bernstein polynomial.
    likelihood : {"auto", "density", "interval"}, default "auto"
        "interval" takes x for whole numbers, with P(x - 1 < X <= x); "auto" does so for an integer dtype.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="hum"), X["hum"])
    >>> print(tree.text())
    hum: transformation tree, 731 rows, 2 leaves
    [1] all rows (n = 731)
      [2] weather in {GOOD} (n = 463) *
      [3] weather in {BAD} (n = 268) *
    """

    _method = "transformation"

    def __init__(
        self,
        max_depth: int = 30,
        min_samples_leaf: int = 30,
        alpha: float = 0.05,
        order: int = 5,
        likelihood: Literal["auto", "density", "interval"] = "auto",
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.alpha = alpha
        self.order = order
        self.likelihood = likelihood

    def fit(
        self,
        X: Any,
        x: Any,
        sample_weight: Any = None,
        *,
        kinds: Mapping[str, Kind] | None = None,
    ) -> Tree:
        """Grow the tree.

        Parameters
        ----------
        X : pandas or polars frame, pyarrow table or 2-d array
            Candidate columns; missing values are allowed.
        x : column or 1-d array
            The feature whose subgroups are sought, numeric. Rows where it is missing are left out.
        weights : 1-d array, optional
            How often each row counts.
        kinds : mapping, optional
            Column name -> "numeric", "ordered" or "nominal", where the dtype says otherwise.

        Returns
        -------
        Tree
        """
        self._checked()  # before anything is read
        return self._grow(read_training(X, x, sample_weight, kinds=kinds))

    def _grow(self, training: Training) -> Tree:
        rules, order, likelihood = self._checked()
        if training.target.kind != "numeric":
            raise InputError(
                f"x ({training.target.name!r}) is {training.target.kind}, but a transformation tree needs numbers. "
                f"Use ConditionalInferenceTree for it, or convert it if it holds numbers."
            )
        response = transformation_scores(training.target, training.values, order, likelihood, lambda: training.order)
        return grow(training, response, rules, self._method, self.plain_params())

    def _checked(self) -> tuple[StoppingRules, int, str]:
        rules = StoppingRules.checked(self.max_depth, self.min_samples_leaf, self.alpha)
        return rules, whole_number("order", self.order, least=1), checked_likelihood(self.likelihood)

    @classmethod
    def _of_the_fitted(cls) -> frozenset[str]:
        return public_names(Tree)


def transformation_scores(
    target: ColumnInfo,
    values: Floats,
    order: int,
    likelihood: str,
    sorted_rows: Callable[[], npt.NDArray[Any]] | None = None,
) -> TargetScores:
    """What a numeric x contributes: scores of its transformation model; `sorted_rows` gives its ascending order."""
    support = Support.of(values)
    whole = likelihood == "interval" or (likelihood == "auto" and target.is_integer)
    if whole:
        return IntervalScores(values, support, order)
    return DensityScores(values, support, order, sorted_rows or (lambda: ascending(values)))


class DensityScores:
    """Scores of the density likelihood."""

    def __init__(self, x: Floats, support: Support, order: int, sorted_rows: Callable[[], npt.NDArray[Any]]) -> None:
        self.u = support.scaled(x)
        self.support = support
        self.order = order
        self._bin = _quantile_bins(sorted_rows()) if len(x) >= _BINNED_FROM else None

    def score(self, block: Block, starts: list[Any]) -> NodeScores:
        """Fit the density in each node and score the rows."""
        u = np.asarray(block.gather(self.u), dtype=np.float64)
        spread = u.max(axis=1) > u.min(axis=1)
        fit = self._fit(u, block.roots, block.sizes, self._start(block, u, starts))
        return NodeScores(fit.scores, spread, fit.done, fit.gamma, fit.log_likelihood)

    def _fit(self, u: Floats, roots: Floats | None, sizes: Rows, start: Floats) -> DensityFit:
        return fit_density(u, roots, sizes, self.order, self.support.log_range, start)

    def _start(self, block: Block, u: Floats, starts: list[Any]) -> Floats:
        start = linear_start(len(u), self.order) if starts[0] is None else np.array(starts)
        if self._bin is None or len(start) > 1 or u.shape[1] < _BINNED_FROM:
            return start
        # A large node is first fitted to its binned values: few full passes over its rows are left to do.
        weights = None if block.weights is None else block.weights[0]
        bins = np.asarray(block.gather(self._bin))[0]
        counts = np.bincount(bins, weights=weights, minlength=_BINS).astype(np.float64)
        sums = np.bincount(bins, weights=u[0] if weights is None else u[0] * weights, minlength=_BINS)
        used = counts > 0
        means = (sums[used] / counts[used])[None, :]
        if means.shape[1] < 2:
            return start
        coarse = self._fit(means, np.sqrt(counts[used])[None, :], np.array([means.shape[1]]), start)
        # Mixed with the start: slopes that vanish between bins must not vanish at rows.
        return 0.99 * coarse.gamma + 0.01 * start if coarse.done[0] else start


class IntervalScores:
    """Scores of the interval likelihood, on the distinct values of x."""

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
            counted = None if block.weights is None else block.weights.ravel()
            weights = np.bincount(flat, weights=counted, minlength=nodes * len(self.u)).astype(np.float64)
            likelihood, point, done = self._fit(slice(None), weights.reshape(nodes, -1), starts)
            scores = np.take_along_axis(likelihood.scores(point), code[:, None, :], axis=2)
        else:
            ones = np.ones(code.shape) if block.weights is None else block.weights
            likelihood, point, done = self._fit(code, ones, starts)
            scores = likelihood.scores(point)
        if block.roots is not None:
            scores *= block.roots[:, None, :]
        spread = code.max(axis=1) > code.min(axis=1)
        return NodeScores(scores, spread, done, likelihood.steps(point), likelihood.log_likelihood(point))

    def _fit(self, points: Any, weights: Floats, starts: list[Any]) -> tuple[Interval, Floats, npt.NDArray[np.bool_]]:
        u, first = np.atleast_2d(self.u[points]), np.atleast_2d(self.first[points])
        likelihood = Interval(u, self.support.unit, first, weights, self.order)
        start = linear_start(len(weights), self.order) if starts[0] is None else np.array(starts)
        point, done = maximise(likelihood, likelihood.restart(start))
        return likelihood, point, done


def _quantile_bins(order: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Bins with the same number of rows each; `order` puts the rows in ascending order."""
    bins = np.empty(len(order), dtype=np.intp)
    bins[order] = np.arange(len(order)) * _BINS // len(order)
    return bins
