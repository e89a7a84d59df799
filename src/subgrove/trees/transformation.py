"""Transformation model P(X <= x) = Phi(h(x)) of one sample: exact fit, and the fitted distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.validate import ParamsMixin, public_names, whole_number
from subgrove._core.weights import read_weights
from subgrove._data.table import Floats, read_series
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees.likelihood import Density, Interval, basis
from subgrove.trees.newton import maximise
from subgrove.trees.target_scores import Support, checked_likelihood, linear_start


@dataclass(eq=False, repr=False)
class TransformationModel(ParamsMixin):
    """Distribution of a sample by a monotone transformation to the standard normal.

    P(X <= x) = Phi(h(x)), where h is a Bernstein polynomial with coefficients theta_0 <= theta_1 <= ... on the
    support and linear outside. The likelihood is concave, and its maximum is computed exactly (Hothorn, Moest and
    Buehlmann 2018).

    Parameters
    ----------
    order : int, default 5
        Order of the polynomial.
    support : pair of float, optional
        Interval on which h is a polynomial; the range of the sample by default.
    likelihood : {"auto", "density", "interval"}, default "auto"
        "interval" treats x as integers, with P(x - 1 < X <= x) and the smallest value left-censored; "auto" does so for
        an integer dtype.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> x = np.random.default_rng(0).gamma(2.0, size=500)
    >>> model = sg.trees.TransformationModel().fit(x)
    >>> model.quantile([0.25, 0.5, 0.75]).round(2)
    array([1.  , 1.59, 2.43])
    >>> model.cdf(model.quantile(0.9)).round(6)
    np.float64(0.9)
    """

    order: int = 5
    support: tuple[float, float] | None = None
    likelihood: Literal["auto", "density", "interval"] = "auto"

    def fit(self, x: Any, sample_weight: Any = None) -> FittedTransformation:
        """Fit the model to a sample.

        Parameters
        ----------
        x : column or 1-d array
            Numbers; missing values are left out.
        sample_weight : 1-d array, optional
            Sample weights.

        Returns
        -------
        FittedTransformation
        """
        order = whole_number("order", self.order, least=1)
        likelihood = checked_likelihood(self.likelihood)
        series = read_series(x)
        if series.info.kind != "numeric":
            raise InputError(f"x is {series.info.kind}; a transformation model needs numbers.")
        weights = read_weights(sample_weight, len(series.values), "x")
        used = ~series.missing if weights is None else ~series.missing & (weights > 0)
        values = series.values[used]
        if len(values) < 2 or (values == values[0]).all():
            raise InputError("x has fewer than two distinct values; no distribution can be fitted. Pass more data.")
        support = self._support(values)
        whole = likelihood == "interval" or (likelihood == "auto" and series.info.is_integer)
        distinct, inverse = np.unique(values, return_inverse=True)
        totals = np.bincount(inverse, weights=None if weights is None else weights[used]).astype(np.float64)
        fitted = likelihood_of(distinct, totals[None, :], support, order, whole)
        point, done = maximise(fitted, fitted.restart(linear_start(1, order)))
        if not done[0]:
            raise InputError(
                "x is too concentrated for its support: the likelihood has no maximum within floating point. "
                "Pass a support nearer to the data, or remove far outliers."
            )
        return FittedTransformation(
            tuple(np.cumsum(fitted.steps(point)[0]).tolist()), support, float(fitted.log_likelihood(point)[0]), whole
        )

    def _support(self, values: Floats) -> Support:
        if self.support is None:
            return Support.of(values)
        try:
            low, high = (float(bound) for bound in self.support)
        except (TypeError, ValueError):
            raise ParameterError(f"support must be a pair of numbers (low, high); got {self.support!r}.") from None
        if not (np.isfinite(low) and np.isfinite(high) and high / 2 - low / 2 > 1e-300):
            raise ParameterError(f"support must have low < high, both finite; got {self.support!r}.")
        return Support(low, high)

    @classmethod
    def _of_the_fitted(cls) -> frozenset[str]:
        return public_names(FittedTransformation)


@dataclass(frozen=True)
class FittedTransformation:
    """Fitted distribution, as returned by `TransformationModel.fit`.

    Attributes
    ----------
    theta : tuple of float
        Coefficients of h, ascending.
    support : Support
        Interval on which h is a polynomial.
    log_likelihood : float
        Log-likelihood at the maximum.
    whole : bool
        Whether x was treated as integers.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> x = np.random.default_rng(1).normal(10, 2, size=500)
    >>> fitted = sg.trees.TransformationModel().fit(x)
    >>> fitted.quantile(np.array([0.5])).round()
    array([10.])
    """

    theta: tuple[float, ...]
    support: Support
    log_likelihood: float
    whole: bool = False

    @property
    def order(self) -> int:
        """Order of the polynomial."""
        return len(self.theta) - 1

    def transform(self, x: npt.ArrayLike) -> Floats:
        """Return h(x), which is standard normal if X has this distribution.

        Parameters
        ----------
        x : float array
            Values of the feature.
        """
        return self._at_scaled(self.support.scaled(np.asarray(x, dtype=np.float64)))[0]

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """Return P(X <= x).

        Parameters
        ----------
        x : float array
            Values of the feature.
        """
        from scipy.special import ndtr

        values: Floats = ndtr(self.transform(x))
        return values

    def logpdf(self, x: npt.ArrayLike) -> Floats:
        """Return the logarithm of the density of the continuous distribution, also if x was treated as integers.

        Parameters
        ----------
        x : float array
            Values of the feature.
        """
        h, slope = self._at_scaled(self.support.scaled(np.asarray(x, dtype=np.float64)))
        with np.errstate(divide="ignore", over="ignore"):
            values: Floats = np.log(slope) - self.support.log_range - (h**2 + np.log(2 * np.pi)) / 2
        return values

    def pdf(self, x: npt.ArrayLike) -> Floats:
        """Return the density.

        Parameters
        ----------
        x : float array
            Values of the feature.
        """
        values: Floats = np.exp(self.logpdf(x))
        return values

    def quantile(self, p: npt.ArrayLike) -> Floats:
        """Return the smallest x with P(X <= x) >= p of the continuous distribution, by bisection; infinite at 0 and 1.

        Parameters
        ----------
        p : float array
            Probabilities, from 0 to 1.
        """
        from scipy.special import ndtri

        p = np.asarray(p, dtype=np.float64)
        if ((p < 0) | (p > 1) | np.isnan(p)).any():
            raise ParameterError("p must be probabilities from 0 to 1.")
        aim = ndtri(p)
        low, high = self._bracket(aim)
        for _ in range(80):
            middle = low + (high - low) / 2
            below = self._at_scaled(middle)[0] < aim
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        values: Floats = np.where(np.isinf(aim), aim, self.support.raw(high))
        return values

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Floats:
        """Draw random values; integers if x was treated as such.

        Parameters
        ----------
        n : int
            Number of draws.
        rng : numpy Generator
            Source of randomness.
        """
        draws = self.quantile(np.random.default_rng(rng).uniform(size=whole_number("n", n, least=0)))
        return np.maximum(np.ceil(draws), self.support.low) if self.whole else draws

    def scores(self, x: npt.ArrayLike) -> Floats:
        """Return the derivatives of each log-likelihood by theta: (values, order + 1).

        Parameters
        ----------
        x : float array
            Values of the feature.
        """
        values = np.atleast_1d(np.asarray(x, dtype=np.float64))
        likelihood = likelihood_of(values, np.ones((1, len(values))), self.support, self.order, self.whole)
        gamma = np.diff(np.array(self.theta), prepend=0.0)[None, :]
        scores: Floats = likelihood.scores(likelihood.point(gamma))[0].T
        return scores

    def _at_scaled(self, u: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(np.atleast_1d(u).ravel(), 0.0, 1.0)
        values, basis_of_slope = basis(inside, self.order)
        theta = np.array(self.theta)
        slope = np.diff(theta) @ basis_of_slope
        with np.errstate(over="ignore", invalid="ignore"):
            # A flat end is extrapolated as constant.
            h = theta @ values + np.where(slope > 0, slope * (np.atleast_1d(u).ravel() - inside), 0.0)
        return h.reshape(u.shape), slope.reshape(u.shape)

    def _bracket(self, aim: Floats) -> tuple[Floats, Floats]:
        """Return scaled bounds around h(u) = aim: the support, or bounds on the linear extrapolation."""
        start, slope_start = self._at_scaled(np.zeros(()))
        end, slope_end = self._at_scaled(np.ones(()))
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(aim < start, (aim - start) / slope_start * 1.01 - 0.01, 0.0)
            high = np.where(aim > end, 1.01 + (aim - end) / slope_end * 1.01, 1.0)
        finite = np.isfinite(aim)
        return np.where(finite, np.nan_to_num(low, neginf=-1e15), 0.0), np.where(
            finite, np.nan_to_num(high, posinf=1e15), 1.0
        )


def likelihood_of(x: Floats, weights: Floats, support: Support, order: int, whole: bool) -> Density | Interval:
    """Return the log-likelihood of values x with weights (nodes, values)."""
    u = support.scaled(x)[None, :]
    if not whole:
        return Density(u, np.sqrt(weights), order, support.log_range)
    if (x != np.floor(x)).any():
        raise InputError("likelihood='interval' needs whole numbers in x, but it has fractions. Use 'density'.")
    return Interval(u, support.unit, (x <= support.low)[None, :], weights, order)
