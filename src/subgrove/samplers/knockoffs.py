"""Knockoffs: new values from a normal distribution that preserves mean and covariance of all numeric columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from subgrove._core.execution import Streams, one_blas_thread
from subgrove._core.kinds import Floats
from subgrove._core.validate import number_in, warn
from subgrove._data.replace_columns import Changes
from subgrove._data.table import Table
from subgrove.exceptions import InputError, ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, read_training_table
from subgrove.samplers.knockoff_solver import drawn_in, equal_s, largest_s
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups

_COPY = 0.01  # 1 minus the correlation with the original below which a knockoff is nearly a copy
_MIN_EIGENVALUE = 1e-6  # of the correlation matrix; below it, results would be rounding error
_CONSTANT = 16 * np.finfo(np.float64).eps  # relative deviations from the mean that are rounding error


@dataclass(eq=False, repr=False)
class Knockoffs(Sampler):
    """Draws each value given the other numeric columns, as if all of them were jointly normal.

    Second-order Gaussian Model-X knockoffs (Candes, Fan, Janson and Lv 2018): a row is replaced by a draw from a normal
    distribution given the row, such that the knockoffs together with the originals preserve mean and covariance of the
    training rows, and a knockoff is correlated with its own original as little as possible.

    Parameters
    ----------
    method : {"sdp", "equi"}, default "sdp"
        Choice of s, 1 minus the correlation of knockoffs with their originals: the largest sum over columns (a
        semidefinite program), or the largest value common to all columns, which is faster and often much smaller.
    shrink : float or "auto", default "auto"
        Shrinkage of the correlations, from 0 (none) to 1 (all), so that their matrix is invertible. "auto" takes 0 if
        there are more training rows than columns, else the estimate of Schaefer and Strimmer (2005). It is at least so
        large that the smallest eigenvalue is 1e-6. The fitted attribute `shrinkage` is the value used.

    Notes
    -----
    Numeric columns only: other columns are neither resampled nor conditioned on, so dependence on them is lost. Missing
    values in any numeric column raise an error. Dates are numeric. Integers become floats.

    A column that is constant in training keeps its values. A column that is determined by others, such as a duplicate,
    receives values very close to the old ones, as it should; the correlations are shrunk by about 1e-6 for that. With
    fewer training rows than columns, every column seems to be determined by the others: the correlations are then
    shrunk by the estimate for small samples.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> sampler = sg.samplers.Knockoffs().fit(train.X, ["temp"])
    >>> sampler.names
    ('temp', 'hum', 'wind')
    >>> for column in sampler.sample(test.X, "temp", 2):
    ...     print(len(column))
    219
    219
    """

    name = "knockoffs"
    accepts_any_column = True
    feature_kinds = frozenset({"numeric"})
    accepts_missing = False

    method: Literal["sdp", "equi"] = "sdp"
    shrink: float | Literal["auto"] = "auto"

    def fit(self, X: Any, features: Any = None) -> FittedKnockoffs:
        """Estimate mean and covariance of all numeric columns, and compute s.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        if self.method not in ("sdp", "equi"):
            raise ParameterError(f"method must be 'sdp' or 'equi'; got {self.method!r}.")
        shrink = self.shrink if self.shrink == "auto" else number_in("shrink", self.shrink, low=0, high=1)
        table, parsed = read_training_table(X, features, self)
        if table.n_rows < 2:
            raise InputError("train has 1 row; sampler 'knockoffs' needs at least 2 to estimate a covariance.")
        names, values = _numeric_columns(table)
        mean, scale, standard = _standardized(values)
        varying = np.flatnonzero(scale > 0)
        s, precision, shrinkage = np.zeros(len(names)), np.zeros((len(names), len(names))), 0.0
        if varying.size:
            with one_blas_thread():
                correlation, shrinkage = _correlation(standard[:, varying], shrink)
                largest = largest_s(correlation).s if self.method == "sdp" else equal_s(correlation)
                s[varying] = drawn_in(largest, correlation)
                precision[np.ix_(varying, varying)] = np.linalg.inv(correlation)
        _warn_of_copies(names, s, scale, [name for (name,) in parsed])
        return FittedKnockoffs(
            table.columns, names=names, mean=mean, scale=scale, s=s, precision=precision, shrinkage=shrinkage
        )


def _warn_of_copies(names: tuple[str, ...], s: Floats, scale: Floats, features: list[str]) -> None:
    """Warn about knockoffs that hardly differ from their originals."""
    copies = [name for name, one, spread in zip(names, s, scale, strict=True) if one < _COPY and spread > 0]
    copies = [name for name in copies if name in features]
    if copies:
        warn(
            f"Knockoffs of {', '.join(map(repr, copies[:5]))} are nearly copies of the originals (s below {_COPY:g}), "
            f"so the importance of these features is near 0 in any case. Use another sampler for them."
        )


@dataclass(frozen=True, eq=False)
class FittedKnockoffs(FittedSampler):
    """Draws from the conditional normal distribution of knockoffs.

    Attributes
    ----------
    names : tuple of str
        Numeric columns; the arrays below have an entry for each of them.
    mean, scale : float array
        Mean and standard deviation (n - 1) in training; the latter is 0 for a constant column.
    s : float array
        1 minus the correlation of a knockoff with its original; 0 if the column keeps its values.
    precision : float array (columns, columns)
        Inverse of the shrunk correlation matrix.
    shrinkage : float
        Shrinkage of the correlations.
    """

    row_wise: ClassVar[bool] = True
    names: tuple[str, ...] = field(kw_only=True)
    mean: Floats = field(kw_only=True)
    scale: Floats = field(kw_only=True)
    s: Floats = field(kw_only=True)
    precision: Floats = field(kw_only=True)
    shrinkage: float = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature: its coordinate of the joint knockoff distribution."""
        if feature[0] not in self.names:
            raise ParameterError(
                f"sampler 'knockoffs' resamples the numeric columns {', '.join(self.names)}; got {feature[0]!r}."
            )
        _, values = _numeric_columns(table)
        at = self.names.index(feature[0])
        mean = self.conditional_mean(values, at)
        # Not from the covariance, in which squares of very large or small numbers over- or underflow.
        spread = float(self.scale[at] * np.sqrt(max(0.0, self.s[at] * (2.0 - self.precision[at, at] * self.s[at]))))

        def draws() -> Iterator[Changes]:
            return ({feature[0]: mean + spread * rng.standard_normal(len(mean))} for rng in rngs)

        return ResampledFeature(RowGroups.single(table.n_rows), draws)

    def conditional_mean(self, values: Floats, at: int | slice = slice(None)) -> Floats:
        """Return X - (X - mu) Sigma^-1 D in the columns `at`."""
        standard = (values - self.mean) / np.where(self.scale > 0, self.scale, 1.0)
        with one_blas_thread():
            projected = standard @ self.precision[:, at]
        mean: Floats = values[:, at] - projected * (self.s * self.scale)[at]
        return mean

    @property
    def conditional_covariance(self) -> Floats:
        """2 D - D Sigma^-1 D."""
        on_correlations = 2.0 * np.diag(self.s) - self.s[:, None] * self.precision * self.s
        covariance: Floats = self.scale[:, None] * on_correlations * self.scale
        return covariance


def _numeric_columns(table: Table) -> tuple[tuple[str, ...], Floats]:
    """Return names and values of the numeric columns; raise if any is missing."""
    placed = zip(table.columns, table.positions(), strict=True)
    numeric = [(column.name, at) for column, at in placed if column.kind == "numeric"]
    values = np.ascontiguousarray(table.numbers[:, [at for _, at in numeric]])
    missing = np.flatnonzero(np.isnan(values).any(axis=0))
    if missing.size:
        names = ", ".join(repr(numeric[at][0]) for at in missing)
        raise ParameterError(
            f"sampler 'knockoffs' conditions on all numeric columns and takes no missing values, but there are some in "
            f"{names}. Impute them, drop these columns, or use 'subgroups'."
        )
    return tuple(name for name, _ in numeric), values


def _standardized(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean, standard deviation and standardized values of each column; 0 for constant columns."""
    mean = values.mean(axis=0)
    centred = values - mean
    largest = np.abs(centred).max(axis=0)
    varies = largest > _CONSTANT * np.abs(mean)
    # Divided by the largest first, so that squares neither under- nor overflow.
    centred = np.where(varies, centred / np.where(varies, largest, 1.0), 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / (len(values) - 1))
    return mean, np.where(varies, largest * spread, 0.0), centred / np.where(varies, spread, 1.0)


def _correlation(standard: Floats, shrink: float | Literal["auto"]) -> tuple[Floats, float]:
    """Return the correlation matrix, shrunk towards the identity, and the shrinkage."""
    n, p = standard.shape
    correlation = standard.T @ standard / (n - 1)
    np.fill_diagonal(correlation, 1.0)
    if p < 2:
        return correlation, 0.0
    least = float(np.linalg.eigvalsh(correlation)[0])
    enough = max(0.0, (_MIN_EIGENVALUE - least) / (1.0 - least))
    if shrink == "auto":
        shrink = _best_shrinkage(standard, correlation) if n <= p else 0.0
    shrinkage = max(shrink, enough)
    shrunk = (1.0 - shrinkage) * correlation
    np.fill_diagonal(shrunk, 1.0)
    return shrunk, shrinkage


def _best_shrinkage(standard: Floats, correlation: Floats) -> float:
    """Return Schaefer and Strimmer's (2005) estimate: variance of the off-diagonal correlations over their squares."""
    n, p = standard.shape
    if n < 3:
        return 1.0
    off = ~np.eye(p, dtype=np.bool_)
    products = standard.T @ standard / n
    squares = (standard**2).T @ standard**2 / n
    variance = (squares - products**2) * n**2 / (n - 1) ** 3
    return float(min(1.0, variance[off].sum() / max((correlation[off] ** 2).sum(), np.finfo(np.float64).tiny)))
