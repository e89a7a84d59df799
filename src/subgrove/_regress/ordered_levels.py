"""Probabilities of ordered levels: a prediction of their rank, cut at thresholds (a cumulative link model)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import Table
from subgrove._regress.gram import FoldGrams
from subgrove._regress.kernel import PilotForest, SmoothPredictor, fit_kernel
from subgrove._regress.kernel_levels import log_scores
from subgrove._regress.linear import fit_sparse_linear

_LEAST = 1e-12  # probability of a level
_FLAT = 1e-3  # share of the overall shares in each prediction, so that no level is impossible


@dataclass(frozen=True, eq=False)
class OrderedLevels:
    """Probabilities of ordered levels: F(cut - slope * location) up to each of them.

    Attributes
    ----------
    location : LinearPredictor or SmoothPredictor
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
        predicted = _probabilities(self.cuts, self.slope, self.location.predict(table), _LINKS[self.link]())
        return np.asarray((1 - _FLAT) * predicted + _FLAT * self.shares)

    def text(self, most: int = 6) -> str:
        """Return the formula of the location."""
        return str(self.location.text(most))


@dataclass(frozen=True, eq=False)
class OrderedLevelsFit:
    """Predictor of probabilities, the value of each level, and held-out log scores of the rows."""

    kept: ClassVar[float] = 0.0
    predictor: OrderedLevels
    values: npt.NDArray[np.generic]
    scores: Floats

    @property
    def n_terms(self) -> int:
        """Number of terms of the location."""
        return len(self.predictor.location.terms)


def _probit() -> Callable[[Floats], Floats]:
    from scipy.special import ndtr

    return ndtr


def _logit() -> Callable[[Floats], Floats]:
    from scipy.special import expit

    return expit


_LINKS: dict[str, Callable[[], Callable[[Floats], Floats]]] = {"probit": _probit, "logit": _logit}


def fit_ordered_levels(
    grams: FoldGrams, feature: str, series: npt.NDArray[np.generic], names: Sequence[str], seed: int
) -> OrderedLevelsFit | None:
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
        location, residuals = SmoothPredictor(location, smooth.predictor), smooth.residuals[:, 0]
    best: OrderedLevelsFit | None = None
    for link in _LINKS:
        cuts, slope = _fit_thresholds(code, scores - residuals, shares, _LINKS[link]())
        predicted = _probabilities(cuts, slope, scores - residuals, _LINKS[link]())
        found = log_scores((1 - _FLAT) * predicted + _FLAT * shares, code)
        if best is None or found.mean() < best.scores.mean():
            best = OrderedLevelsFit(OrderedLevels(location, cuts, slope, link, shares), values, found)
    return best


def _probabilities(cuts: Floats, slope: float, location: Floats, link: Callable[[Floats], Floats]) -> Floats:
    upper = link(cuts - slope * location[:, None])
    ends = np.column_stack([np.zeros(len(location)), upper, np.ones(len(location))])
    return np.maximum(np.diff(ends, axis=1), _LEAST)


def _fit_thresholds(
    code: Rows, location: Floats, shares: Floats, link: Callable[[Floats], Floats]
) -> tuple[Floats, float]:
    """Return the thresholds and the slope of the largest likelihood, given the location of each row."""
    from scipy.optimize import minimize
    from scipy.special import ndtri

    spread = float(location.std()) or 1.0
    start = 1.7 * ndtri(np.cumsum(shares)[:-1])
    rows = np.arange(len(code))

    def unpacked(parameters: Floats) -> tuple[Floats, float]:
        steps = np.exp(parameters[1:-1])
        return np.concatenate([parameters[:1], parameters[0] + np.cumsum(steps)]), parameters[-1] / spread

    def cost(parameters: Floats) -> float:
        cuts, slope = unpacked(parameters)
        return float(-np.log(_probabilities(cuts, slope, location, link)[rows, code]).mean())

    first = np.concatenate([start[:1], np.log(np.maximum(np.diff(start), 1e-3)), [1.0]])
    found = minimize(cost, first, method="L-BFGS-B", options={"maxiter": 60})
    return unpacked(found.x)
