"""Rows and their redrawn twins: how well the two can be told apart.

A twin has the other columns of its row and a redrawn feature. If the redraw is from the true distribution given the
other columns, the two could be swapped without anyone noticing. Both numbers here have a known value then: the AUC is
0.5, and the paired squared MMD has mean 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._regress import grow_forest
from subgrove._scoring.fidelity_check.pairs import Points
from subgrove._scoring.fidelity_check.predict_column import Halves, TargetColumns, predict_by_halves, predict_held_out

_TREES, _NODE = 20, 20
_MOST_TRIED = 20  # columns that compete for a split
_FAR = 1e9  # distances beyond it are all the same
_LOOKED_AT = 4  # every fourth row has its part in the median distance

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PairedRows:
    """A feature in some rows, and what it was redrawn to there.

    Attributes
    ----------
    others : Points
        The columns that stay.
    real, redrawn : Points
        The columns that are redrawn, before and after.
    """

    others: Points
    real: Points
    redrawn: Points

    def __len__(self) -> int:
        return len(self.real)


@dataclass(frozen=True)
class PairedMMD:
    """Paired squared MMD of the redraw, its mean over marginal redraws, and the noise if there were nothing to see."""

    squared: float
    marginal: float
    noise: float


def two_sample_test(twins: PairedRows, rng: np.random.Generator) -> tuple[float, float, PairedMMD]:
    """AUC of telling twins from rows, its standard error, and their discrepancy."""
    outputs = TargetColumns.of(twins.real)
    seed = int(rng.integers(2**31))
    first, second = np.array_split(rng.permutation(len(twins)), 2)
    if outputs.levels:
        said = predict_by_halves(twins.others, outputs.matrix(twins.real), (first, second), seed)
    else:
        said = predict_held_out(twins.others, outputs.matrix(twins.real), seed)
    auc, error = _area(twins, outputs, said, (first, second), rng)
    return auc, error, paired_mmd(twins, said)


def _area(
    twins: PairedRows, outputs: TargetColumns, said: list[Floats], halves: Halves, rng: np.random.Generator
) -> tuple[float, float]:
    """Two forests, each judged on the half that the other learned from; a row and its twin are in the same half."""
    real, redrawn = (
        np.hstack([own.matrix, twins.others.matrix, *(outputs.residuals(own, each) for each in said)])
        for own in (twins.real, twins.redrawn)
    )
    tried = max(1, min(real.shape[1] // 3, _MOST_TRIED))
    areas, variances = [], []
    for judged, learned in (halves, halves[::-1]):
        given = np.vstack([real[learned], redrawn[learned]])
        label = np.repeat([0.0, 1.0], len(learned))[:, None]
        seed = int(rng.integers(2**31))
        forest = grow_forest(given, label, n_trees=_TREES, min_node_size=_NODE, tried=tried, seed=seed, n_jobs=1)
        score = forest.predict(np.vstack([real[judged], redrawn[judged]]))[:, 0]
        area, variance = auc_and_variance(score[: len(judged)], score[len(judged) :])
        areas.append(area)
        variances.append(variance)
    return float(np.mean(areas)), float(np.sqrt(np.sum(variances)) / 2)


def auc_and_variance(real: Floats, redrawn: Floats) -> tuple[float, float]:
    """Share of pairs in which the redrawn row has the larger score (ties count half), and its variance.

    A row stands in many pairs, once as itself and once as its twin: its part is the sum of both shares.
    """
    above = (redrawn[:, None] > real).astype(np.float64) + 0.5 * (redrawn[:, None] == real)
    area = float(above.mean())
    parts = above.mean(axis=1) + above.mean(axis=0)
    return area, float(parts.var(ddof=1) / len(parts))


def paired_mmd(twins: PairedRows, said: list[Floats]) -> PairedMMD:
    """Squared MMD of rows and twins, as points of the feature and what is foretold of it.

    With kernel k, row z and twin z', it is the mean over pairs of rows i and j of
    k(z_i, z_j) + k(z'_i, z'_j) - k(z_i, z'_j) - k(z'_i, z_j). Swapping a row with its twin turns the signs of its
    pairs, so if they may be swapped, the mean is 0 and its variance comes from the squares of the terms. For marginal
    redraws the mean over all donors has a closed form, a product of two kernels of which one is centred.
    """
    given = _squared(Points.of(np.hstack([_unit(each) for each in said])))
    own = _squared(twins.real)
    median = float(np.median((given + own)[::_LOOKED_AT]))
    scale = np.float32(-0.5 / (median if median > 0 else 1.0))
    weight = np.exp(given * scale)
    np.fill_diagonal(weight, 0.0)
    before, after, across = (
        np.exp(squared * scale) for squared in (own, _squared(twins.redrawn), _squared(twins.redrawn, twins.real))
    )
    terms = before + after
    terms -= across
    terms -= across.T
    terms *= weight
    before = _centred(before)
    noise = max(_noise(terms), _noise(_centred(weight) * before))
    return PairedMMD(_mean(terms), _mean(weight * before), noise)


def _centred(kernel: Singles) -> Singles:
    """A kernel less the means over one of its rows or the other, plus the mean over both; its diagonal is left out.

    It is what the sum of four kernels is on average over donors that are any rows.
    """
    n = len(kernel)
    sums = kernel.sum(axis=0, dtype=np.float64) - np.diag(kernel)
    means = (sums / (n - 1)).astype(np.float32)
    centred: Singles = kernel - means
    centred -= means[:, None]
    centred += np.float32(sums.sum() / (n * (n - 1)))
    np.fill_diagonal(centred, 0.0)
    return centred


def _mean(terms: Singles) -> float:
    return float(terms.sum(dtype=np.float64)) / (len(terms) * (len(terms) - 1))


def _noise(terms: Singles) -> float:
    return float(np.sqrt(2.0 * (terms * terms).sum(dtype=np.float64))) / (len(terms) * (len(terms) - 1))


def _squared(points: Points, to: Points | None = None) -> Singles:
    """Squared distances of each row to each row of the same, or of others."""
    other = points if to is None else to
    total = np.zeros((len(points), len(other)), dtype=np.float32)
    for a, b in zip(_singles(points.numbers), _singles(other.numbers), strict=True):
        gap = a[:, None] - b
        gap *= gap
        total += gap
    for a, b in zip(points.labels.T, other.labels.T, strict=True):
        total += a[:, None] != b
    return total


def _singles(numbers: Floats) -> Singles:
    """Columns in single precision, which is exact enough for means of kernels and three times as quick."""
    return np.clip(numbers.T, -_FAR, _FAR).astype(np.float32)


def _unit(columns: Floats) -> Floats:
    """Columns divided so that their variances add up to 1; nothing, if they do not vary."""
    total = float(columns.var(axis=0).sum())
    return columns / np.sqrt(total) if total > 0 else columns[:, :0]
