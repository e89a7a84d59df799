"""Two-sample test of rows and their resampled copies.

Each row is paired with a copy that has the same other columns and a resampled feature. If the feature is drawn from its
true conditional distribution given the other columns, row and copy are exchangeable. Then the AUC of a classifier is
0.5, and the paired squared MMD has mean 0.

Marginally, resampled columns are distributed like real ones; only the dependence on the other columns can differ. So
both statistics use the held-out predictions of the feature from the other columns, by a forest and by ridge regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._regress.forest import grow_forest
from subgrove._regress.linear import ridge_predictions

_N_TREES = 20
_NODE_SIZE, _CLASSIFIER_NODE_SIZE = 5, 20
_MAX_TRIED = 20  # largest number of candidate columns for a split, which bounds the cost for wide tables
_RIDGE = 0.02  # penalty, as a share of the number of rows
_MAX_LABELS = 8  # labels with a column of their own; the others share one
_MAX_VALUE = 1e9  # larger distances are not distinguished
_MAX_ROWS = 600  # in the classifier, whose forests are most of the cost of a check
_MMD_ROWS = 250  # whose squares are arrays of 250 x 250
_MEDIAN_STRIDE = 4  # every fourth row is used for the median distance

Singles = npt.NDArray[np.float32]
Halves = tuple[Rows, Rows]


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as points with distances.

    Attributes
    ----------
    numbers : float array (rows, columns)
        Squared distances are the squares of differences.
    labels : float array (rows, columns)
        Codes of labels: different ones have squared distance 1, like one-hot columns scaled by 1 / sqrt(2).
    """

    numbers: Floats
    labels: Floats

    @classmethod
    def of(cls, rows: Floats | Points) -> Points:
        """Return rows of numbers as points; points unchanged."""
        return rows if isinstance(rows, Points) else cls(rows, rows[:, :0])

    @classmethod
    def joined(cls, parts: Sequence[Points]) -> Points:
        """Return the rows of each part, one after the other."""
        return cls(np.vstack([part.numbers for part in parts]), np.vstack([part.labels for part in parts]))

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def none(self) -> Points:
        """The same rows without columns."""
        return Points(self.numbers[:, :0], self.labels[:, :0])

    @property
    def matrix(self) -> Floats:
        """All columns, labels last."""
        return np.hstack([self.numbers, self.labels])

    def beside(self, other: Points) -> Points:
        """Return the same rows with further columns."""
        return Points(np.hstack([self.numbers, other.numbers]), np.hstack([self.labels, other.labels]))

    def rows(self, rows: Any) -> Points:
        """Select rows."""
        return Points(self.numbers[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Rows and their resampled copies.

    Attributes
    ----------
    others : Points
        The other columns.
    real, resampled : Points
        The feature, observed and resampled.
    """

    others: Points
    real: Points
    resampled: Points

    def __len__(self) -> int:
        return len(self.real)

    def rows(self, rows: Rows) -> PairedRows:
        """Select rows and their copies."""
        return PairedRows(self.others.rows(rows), self.real.rows(rows), self.resampled.rows(rows))


@dataclass(frozen=True)
class PairedMMD:
    """Paired squared MMD of a draw, its mean over marginal draws, and its standard error under the null hypothesis."""

    squared: float
    marginal: float
    noise: float


def two_sample_test(
    pairs: PairedRows, rng: np.random.Generator, kept: dict[Any, Any]
) -> tuple[float, float, PairedMMD]:
    """Return the AUC of a classifier, its standard error, and the paired MMD.

    `kept` keeps the predictions of the real values for tests of other copies of the same rows by the same seed.
    """
    if len(pairs) > _MAX_ROWS:
        pairs = pairs.rows(np.sort(rng.permutation(len(pairs))[:_MAX_ROWS]))
    target = TargetColumns.of(pairs.real)
    seed = int(rng.integers(2**31))
    first, second = np.array_split(rng.permutation(len(pairs)), 2)
    if "predictions" not in kept:
        kept["predictions"] = predict_by_halves(pairs.others, target.matrix(pairs.real), (first, second), seed)
    predictions = kept["predictions"]
    auc, error = _cross_fitted_auc(pairs, target, predictions, (first, second), rng)
    few = np.concatenate([first, second])[:_MMD_ROWS] if len(pairs) > _MMD_ROWS else np.arange(len(pairs))
    return auc, error, paired_mmd(pairs.rows(few), [prediction[few] for prediction in predictions])


@dataclass(frozen=True, eq=False)
class TargetColumns:
    """Encoding of a feature as numbers to predict: its numbers, and one-hot columns of frequent labels.

    Attributes
    ----------
    levels : tuple of float array
        For each column of labels those with a column of their own; the others share one.
    """

    levels: tuple[Floats, ...]

    @classmethod
    def of(cls, real: Points) -> TargetColumns:
        """Select the frequent labels of real rows."""
        return cls(tuple(_frequent(column) for column in real.labels.T))

    def matrix(self, points: Points) -> Floats:
        """Return a column for each number, then the one-hot columns."""
        return np.hstack([points.numbers, *self._one_hot(points)])

    def residuals(self, points: Points, predicted: Floats) -> Floats:
        """Return the residual and absolute residual of numbers, and the predicted probability of each label."""
        n_numbers = points.numbers.shape[1]
        residual = points.numbers - predicted[:, :n_numbers]
        columns, at = [residual, np.abs(residual)], n_numbers
        for one_hot in self._one_hot(points):
            width = one_hot.shape[1]
            columns.append((one_hot * predicted[:, at : at + width]).sum(axis=1, keepdims=True))
            at += width
        return np.hstack(columns)

    def _one_hot(self, points: Points) -> list[Floats]:
        columns = []
        for levels, column in zip(self.levels, points.labels.T, strict=True):
            own = (column[:, None] == levels).astype(np.float64)
            columns.append(np.hstack([own, 1.0 - own.sum(axis=1, keepdims=True)]))
        return columns


def predict_by_halves(others: Points, target: Floats, halves: Halves, seed: int) -> list[Floats]:
    """Return predictions of each half of the rows by a forest and a ridge regression fitted on the other half.

    Leaving out single rows is not enough: it lowers the predicted probability of the label of a row, in all rows with
    that label and in no resampled copy, which a classifier could learn.
    """
    if not others.matrix.shape[1] or not np.ptp(target, axis=0).any():
        return [np.tile(target.mean(axis=0), (len(target), 1))]
    predictors, design = others.matrix, _with_one_hot(others)
    by_forest, by_ridge = np.empty_like(target), np.empty_like(target)
    for test, train in (halves, halves[::-1]):
        by_forest[test] = _grow(predictors[train], target[train], _NODE_SIZE, seed).predict(predictors[test])
        by_ridge[test] = ridge_predictions(design[train], target[train], design[test], _RIDGE)
    return [by_forest, by_ridge]


def _grow(predictors: Floats, target: Floats, node_size: int, seed: int) -> Any:
    tried = max(1, min(predictors.shape[1] // 3, _MAX_TRIED))
    return grow_forest(predictors, target, n_trees=_N_TREES, min_node_size=node_size, tried=tried, seed=seed, n_jobs=1)


def _with_one_hot(points: Points) -> Floats:
    """Return numbers, and one-hot columns of frequent labels."""
    columns = [points.numbers]
    columns += [(column[:, None] == _frequent(column)).astype(np.float64) for column in points.labels.T]
    return np.hstack(columns)


def _frequent(labels: Floats) -> Floats:
    distinct, counts = np.unique(labels, return_counts=True)
    frequent: Floats = np.sort(distinct[np.argsort(-counts, kind="stable")[:_MAX_LABELS]])
    return frequent


def _cross_fitted_auc(
    pairs: PairedRows, target: TargetColumns, predictions: list[Floats], halves: Halves, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the AUC and its standard error, for two forests, each evaluated on the training half of the other.

    A row and its copy belong to the same half.
    """
    real, resampled = (
        np.hstack([own.matrix, pairs.others.matrix, *(target.residuals(own, each) for each in predictions)])
        for own in (pairs.real, pairs.resampled)
    )
    areas, variances = [], []
    for test, train in (halves, halves[::-1]):
        label = np.repeat([0.0, 1.0], len(train))[:, None]
        seed = int(rng.integers(2**31))
        forest = _grow(np.vstack([real[train], resampled[train]]), label, _CLASSIFIER_NODE_SIZE, seed)
        score = forest.predict(np.vstack([real[test], resampled[test]]))[:, 0]
        area, variance = auc_and_variance(score[: len(test)], score[len(test) :])
        areas.append(area)
        variances.append(variance)
    return float(np.mean(areas)), float(np.sqrt(np.sum(variances)) / 2)


def auc_and_variance(real: Floats, resampled: Floats) -> tuple[float, float]:
    """Return the share of pairs in which the resampled row has the larger score (ties count half), and its variance.

    Each row belongs to many pairs, as itself and as its copy; its contribution is the sum of both shares.
    """
    above = (resampled[:, None] > real).astype(np.float64) + 0.5 * (resampled[:, None] == real)
    area = float(above.mean())
    contributions = above.mean(axis=1) + above.mean(axis=0)
    return area, float(contributions.var(ddof=1) / len(contributions))


def paired_mmd(pairs: PairedRows, predictions: list[Floats]) -> PairedMMD:
    """Return the paired squared MMD of rows and copies, as points of the feature and its predictions.

    With kernel k, row z and copy z', it is the mean over pairs of rows i and j of
    k(z_i, z_j) + k(z'_i, z'_j) - k(z_i, z'_j) - k(z'_i, z_j). Swapping a row and its copy changes the sign of its
    terms, so under exchangeability the mean is 0 and its variance follows from the squared terms. For marginal draws,
    the mean over all donors has a closed form: the product of two kernels, one of them centred.
    """
    points = Points.of(np.hstack([_unit_variance(each) for each in predictions]))
    predicted, real = _squared_distances(points, points), _squared_distances(pairs.real, pairs.real)
    median = float(np.median((predicted + real)[::_MEDIAN_STRIDE]))
    scale = -0.5 / (median if median > 0 else 1.0)
    weight, kernel = np.exp(scale * predicted), np.exp(scale * real)
    np.fill_diagonal(weight, 0.0)
    across = np.exp(scale * _squared_distances(pairs.resampled, pairs.real))
    terms = kernel + np.exp(scale * _squared_distances(pairs.resampled, pairs.resampled)) - across - across.T
    terms *= weight
    centred = _centre(kernel)
    noise = max(_null_error(terms), _null_error(_centre(weight) * centred))
    return PairedMMD(_mean(terms), _mean(weight * centred), noise)


def _centre(kernel: Floats) -> Floats:
    """Subtract row and column means without the diagonal, and add the total mean; the diagonal is set to 0.

    This is the mean of the four kernels over all rows as donors.
    """
    n = len(kernel)
    means = (kernel.sum(axis=0) - np.diag(kernel)) / (n - 1)
    centred: Floats = kernel - means - means[:, None] + means.mean()
    np.fill_diagonal(centred, 0.0)
    return centred


def _mean(terms: Floats) -> float:
    return float(terms.sum()) / (len(terms) * (len(terms) - 1))


def _null_error(terms: Floats) -> float:
    return float(np.sqrt(2.0 * (terms * terms).sum())) / (len(terms) * (len(terms) - 1))


def _squared_distances(points: Points, other: Points) -> Floats:
    """Return squared distances of each row to each row of other points."""
    from scipy.spatial.distance import cdist

    # Single precision, so that the last digits do not depend on the order of rows in memory.
    one, two = (np.clip(part.numbers, -_MAX_VALUE, _MAX_VALUE).astype(np.float32) for part in (points, other))
    total: Floats = cdist(one, two, "sqeuclidean")
    for a, b in zip(points.labels.T, other.labels.T, strict=True):
        total += a[:, None] != b
    return total


def _unit_variance(columns: Floats) -> Floats:
    """Scale columns to a total variance of 1; drop them if they are constant."""
    total = float(columns.var(axis=0).sum())
    return columns / np.sqrt(total) if total > 0 else columns[:, :0]
