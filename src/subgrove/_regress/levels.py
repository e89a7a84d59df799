"""Probabilities of levels, or of bins of a number: smooth functions, a random forest, a cumulative model.

Each is fitted with held-out log scores of the rows. `fit_kernel_levels` regresses indicators on the other columns,
`fit_forest_levels` grows a forest, `fit_ordered_levels` cuts a prediction of the rank at thresholds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import first_of
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.table import Table
from subgrove._regress.forest import TREES_AT_ONCE, grow_forest
from subgrove._regress.gram import FoldGrams
from subgrove._regress.kernel import KernelPredictor, PilotForest, PredictorSum, fit_kernel
from subgrove._regress.linear import fit_sparse_linear

_MAX_KEPT = 0.9
_PRIOR_WEIGHTS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # share of the overall probabilities in each prediction
_N_TREES = 60
_N_TRIAL_TREES = TREES_AT_ONCE  # of the forests by which the node size is selected: the first of the larger one
_NODE_SIZES = (20, 60, 5)  # the last one is tried only where the second is not better than the first
_EXPECTED = 0.92  # log score of the larger forest over that of the first small one, without their prior weights
_MAX_SAMPLES = 2500  # rows that a tree is grown on
_PRIOR_ROWS = 1.0  # rows with the overall shares that are added to each prediction
_LEAST = 1e-12  # probability of a level
_FLAT = 1e-3  # share of the overall shares in each prediction, so that no level is impossible


@dataclass(frozen=True, eq=False)
class KernelLevels:
    """Probabilities of levels by a kernel regression of their indicators.

    Attributes
    ----------
    feature : str
        Name of the feature.
    kernel : KernelPredictor
        Predicts the deviation of each probability from the overall one.
    shares : float array
        Share of each level in the training rows.
    weight : float
        Share of these in each prediction, so that no level is impossible.
    """

    feature: str
    kernel: KernelPredictor
    shares: Floats
    weight: float

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the kernel."""
        return self.kernel.columns

    def predict(self, table: Table) -> Floats:
        """Return the probability of each level in each row."""
        return as_probabilities(self.shares + self.kernel.predict(table), self.shares, self.weight)

    def text(self, most: int = 6) -> str:
        """Return one line: which columns the probabilities depend on."""
        return f"{self.feature} has probabilities that are smooth functions of {', '.join(self.columns[:most])}"


@dataclass(frozen=True, eq=False)
class KernelLevelsFit:
    """Predictor of probabilities, the value of each level, and leave-one-out probabilities of the rows."""

    predictor: KernelLevels
    values: npt.NDArray[np.generic]
    code: Rows
    probabilities: Floats
    noise: float

    @property
    def kept(self) -> float:
        """Share of rows that keep their own level, so that old and new levels differ as often as two true draws.

        With the true probabilities p, two draws differ with probability 1 - sum p^2, which is the noise variance of the
        indicators together. The estimated probabilities of held-out rows would change levels more often.
        """
        changes = float(1 - self.probabilities[np.arange(len(self.code)), self.code].mean())
        return float(np.clip(1 - self.noise / changes, 0.0, _MAX_KEPT)) if changes > 0 else 0.0

    @property
    def scores(self) -> Floats:
        """Log score of each row."""
        return log_scores(self.probabilities, self.code)


def log_scores(probabilities: Floats, code: Rows) -> Floats:
    """Return minus the logarithm of the probability of each row's level."""
    return np.asarray(-np.log(np.maximum(probabilities[np.arange(len(code)), code], 1e-300)))


def as_probabilities(predicted: Floats, shares: Floats, weight: float) -> Floats:
    """Return positive numbers with sum 1, mixed with the overall shares."""
    positive = np.maximum(predicted, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    normed = np.where(total > 0, positive / np.where(total > 0, total, 1.0), shares)
    return np.asarray((1 - weight) * normed + weight * shares)


def fit_kernel_levels(
    grams: FoldGrams,
    feature: str,
    series: npt.NDArray[np.generic],
    names: Sequence[str],
    seed: int,
    summaries: Floats | None = None,
    pilot: PilotForest | None = None,
) -> KernelLevelsFit | None:
    """Fit the probabilities of the values of a column; None if no column predicts them.

    `summaries` are numbers of each row whose prediction decides on the columns and widths of the kernel; by default
    the indicators of the values. `pilot` is a forest on them, if it has been grown before.
    """
    values, code = np.unique(series, return_inverse=True)
    if len(values) < 2:
        return None
    indicators = (code[:, None] == np.arange(len(values))).astype(np.float64)
    shares = indicators.mean(axis=0)
    centred = indicators - shares
    pilot = pilot or PilotForest.of(grams, centred if summaries is None else summaries, names, seed)
    fit = fit_kernel(grams, centred, pilot, seed, summaries)
    if fit is None:
        return None
    left_out = shares + centred - fit.residuals
    tried = [as_probabilities(left_out, shares, weight) for weight in _PRIOR_WEIGHTS]
    best = int(np.argmin([log_scores(one, code).mean() for one in tried]))
    predictor = KernelLevels(feature, fit.predictor, shares, _PRIOR_WEIGHTS[best])
    return KernelLevelsFit(predictor, values, code, tried[best], float(fit.noise.sum()))


@dataclass(frozen=True, eq=False)
class ForestLevels:
    """Probabilities of levels by a forest, given the other columns.

    Attributes
    ----------
    feature : str
        Name of the feature.
    parts : tuple of DesignColumn
        Predictors.
    forest : RandomForest
        Predicts an indicator of each level.
    shares : float array
        Share of each level in the training rows.
    weight : float
        Share of these in each prediction, so that no level is impossible.
    design : Design
        Encoding of the columns.
    """

    feature: str
    parts: tuple[DesignColumn, ...]
    forest: Any
    shares: Floats
    weight: float
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the forest."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def predict(self, table: Table) -> Floats:
        """Return the probability of each level in each row."""
        predictors = np.column_stack([self.design.numbers(table, part) for part in self.parts])
        return mixed(self.forest.predict(predictors), self.shares, self.weight)

    def text(self, most: int = 6) -> str:
        """Return one line: which columns predict the levels."""
        return f"{self.feature} is predicted by a random forest of {first_of(self.columns, most)}"


@dataclass(frozen=True, eq=False)
class LevelsFit:
    """Predictor of probabilities, the value of each level, and held-out log scores of the rows."""

    kept: ClassVar[float] = 0.0
    predictor: Any
    values: npt.NDArray[np.generic]
    scores: Floats


def fit_forest_levels(
    grams: FoldGrams,
    feature: str,
    series: npt.NDArray[np.generic],
    names: Sequence[str],
    seed: int,
    score: float = np.inf,
) -> LevelsFit | None:
    """Select the size of the leaves by the out-of-bag log score of small forests, and grow a larger one.

    None if a small forest shows that the larger one would hardly have a lower log score than `score`.
    """
    values, code = np.unique(series, return_inverse=True)
    parts = grams.design.allowed(names, log_scales=False)
    if len(values) < 2 or not len(parts):
        return None
    predictors, trees = grams.forest_columns.some(parts), defaultdict[int, dict[int, Any]](dict)
    outputs = (code[:, None] == np.arange(len(values))).astype(np.float64)
    shares = outputs.mean(axis=0)

    def grown(size: int, n_trees: int) -> tuple[Any, float, Floats]:
        tried = max(1, (2 * len(parts) + 2) // 3)
        forest = grow_forest(
            predictors,
            outputs,
            n_trees=n_trees,
            min_node_size=size,
            tried=tried,
            seed=seed,
            codes=code,
            max_samples=_MAX_SAMPLES,
            n_jobs=1,
            grown=trees[size],
        )
        weight = _PRIOR_ROWS / (_PRIOR_ROWS + size)
        known = np.where(np.isnan(forest.out_of_bag), shares, forest.out_of_bag)
        return forest, weight, log_scores(mixed(known, shares, weight), code)

    trials: dict[int, float] = {}
    for size in _NODE_SIZES:
        if 2 * size <= len(code) and trials.get(_NODE_SIZES[1], np.inf) >= trials.get(_NODE_SIZES[0], -np.inf):
            _, weight, scores = grown(size, _N_TRIAL_TREES)
            trials[size] = float(scores.mean())
            if _EXPECTED * (trials[size] - weight) > score and len(trials) == 1:
                return None
    if not trials:
        return None
    forest, weight, scores = grown(min(trials, key=trials.__getitem__), _N_TREES)
    columns = tuple(grams.design.parts[at] for at in parts)
    return LevelsFit(ForestLevels(feature, columns, forest, shares, weight, grams.design), values, scores)


def mixed(probabilities: Floats, shares: Floats, weight: float) -> Floats:
    """Return predicted probabilities, mixed with the overall shares."""
    return (1 - weight) * np.maximum(probabilities, 0.0) + weight * shares


@dataclass(frozen=True, eq=False)
class OrderedLevels:
    """Probabilities of ordered levels: F(cut - slope * location) up to each of them.

    Attributes
    ----------
    location : LinearPredictor or PredictorSum
        Predicts the normal score of a level.
    cuts : float array
        Upper threshold of each level but the last.
    slope : float
    link : {"probit", "logit"}
        The distribution function F.
    shares : float array
        Share of each level in the training rows.
    """

    location: Any
    cuts: Floats
    slope: float
    link: str
    shares: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the location."""
        return tuple(self.location.columns)

    def predict(self, table: Table) -> Floats:
        """Return the probability of each level in each row."""
        predicted = _probabilities(self.cuts, self.slope, self.location.predict(table), _link(self.link))
        return np.asarray((1 - _FLAT) * predicted + _FLAT * self.shares)

    def text(self, most: int = 6) -> str:
        """Return the formula of the location."""
        return str(self.location.text(most))


def _link(name: str) -> Callable[[Floats], Floats]:
    """Return the distribution function of a link."""
    from scipy import special

    return special.ndtr if name == "probit" else special.expit


def fit_ordered_levels(
    grams: FoldGrams, feature: str, series: npt.NDArray[np.generic], names: Sequence[str], seed: int
) -> LevelsFit | None:
    """Fit the probabilities of levels whose values are ordered; None if no column predicts their rank."""
    from scipy.special import ndtri

    values, code = np.unique(series, return_inverse=True)
    shares = np.bincount(code) / len(code)
    if len(values) < 3:
        return None
    scores = ndtri(np.cumsum(shares) - shares / 2)[code]  # of the middle of each level
    linear = fit_sparse_linear(grams, feature, scores, names)
    if linear is None:
        return None
    location, residuals = linear.predictor, linear.residuals
    pilot = PilotForest.of(grams, residuals[:, None], names, seed)
    smooth = fit_kernel(grams, residuals[:, None], pilot, seed)
    if smooth is not None:
        location, residuals = PredictorSum(location, smooth.predictor), smooth.residuals[:, 0]
    best: LevelsFit | None = None
    for link in ("probit", "logit"):
        cuts, slope = _fit_thresholds(code, scores - residuals, shares, link)
        predicted = _probabilities(cuts, slope, scores - residuals, _link(link))
        found = log_scores((1 - _FLAT) * predicted + _FLAT * shares, code)
        if best is None or found.mean() < best.scores.mean():
            best = LevelsFit(OrderedLevels(location, cuts, slope, link, shares), values, found)
    return best


def _probabilities(cuts: Floats, slope: float, location: Floats, link: Callable[[Floats], Floats]) -> Floats:
    upper = link(cuts - slope * location[:, None])
    ends = np.column_stack([np.zeros(len(location)), upper, np.ones(len(location))])
    return np.maximum(np.diff(ends, axis=1), _LEAST)


def _fit_thresholds(code: Rows, location: Floats, shares: Floats, name: str) -> tuple[Floats, float]:
    """Return the thresholds and the slope of the largest likelihood, given the location of each row."""
    from scipy.optimize import minimize
    from scipy.special import ndtri

    link = _link(name)

    def density(at: Floats) -> Floats:
        if name == "probit":
            return np.asarray(np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi))
        share = link(at)
        return np.asarray(share * (1 - share))

    spread = float(location.std()) or 1.0
    start = 1.7 * ndtri(np.cumsum(shares)[:-1])
    above, below, n = np.minimum(code, len(start) - 1), np.maximum(code - 1, 0), len(code)
    has_above, has_below = code < len(start), code > 0

    def unpacked(parameters: Floats) -> tuple[Floats, float]:
        steps = np.exp(parameters[1:-1])
        return np.concatenate([parameters[:1], parameters[0] + np.cumsum(steps)]), parameters[-1] / spread

    def cost(parameters: Floats) -> tuple[float, Floats]:
        """Return minus the mean log-likelihood, and its gradient."""
        cuts, slope = unpacked(parameters)
        upper, lower = cuts[above] - slope * location, cuts[below] - slope * location
        up, low = np.where(has_above, link(upper), 1.0), np.where(has_below, link(lower), 0.0)
        shown = np.maximum(up - low, _LEAST)
        weight = np.where(up - low > _LEAST, -1 / (n * shown), 0.0)
        of_upper, of_lower = weight * has_above * density(upper), weight * has_below * density(lower)
        by_cut = np.bincount(above, of_upper, len(cuts)) - np.bincount(below, of_lower, len(cuts))
        later = np.cumsum(by_cut[::-1])[::-1]  # a step moves all later cuts
        by_slope = -float(((of_upper - of_lower) * location).sum()) / spread
        gradient = np.concatenate([later[:1], later[1:] * np.exp(parameters[1:-1]), [by_slope]])
        return float(-np.log(shown).mean()), gradient

    first = np.concatenate([start[:1], np.log(np.maximum(np.diff(start), 1e-3)), [1.0]])
    found = minimize(cost, first, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    return unpacked(found.x)
