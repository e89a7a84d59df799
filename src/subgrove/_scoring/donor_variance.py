"""Variance of an importance over other training donors: values, or residuals, of training rows that are drawn.

Donors are a sample too. With N donors, whose mean effects on the loss vary by v from donor to donor, the estimate
varies by v / N; this is not small where test rows are more than training rows. The effects are estimated from the same
draws as the importance: draws of the same donor share its effect, whose variance v an analysis of variance separates
from the variation between rows. Donors of different subgroups serve different rows, so their variances are weighted by
the squared share of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from subgrove._core.kinds import Codes, Floats, Rows
from subgrove.samplers.resampled_feature import DonorPool, ResampledFeature


class DonorSums:
    """Sums of loss increases by donor.

    Parameters
    ----------
    resampled : ResampledFeature
        The feature, with a pool of donors.
    n_losses : int
        Number of losses.
    weights : float array or None
        Weights of the rows.
    """

    def __init__(self, resampled: ResampledFeature, n_losses: int, weights: Floats | None) -> None:
        assert resampled.donor_pool is not None
        self.pool: DonorPool = resampled.donor_pool
        self.group = resampled.groups.code.astype(np.intp)
        self.n_groups = len(resampled.groups)
        self.weights = weights
        n_donors = len(self.pool.leaf)
        self.counts = np.zeros(n_donors)
        self.sums = np.zeros((n_losses, n_donors))
        self.squares = np.zeros((n_losses, n_donors))
        self.rows = np.zeros((self.n_groups, int(self.pool.leaf.max(initial=0)) + 1))  # by subgroup and leaf
        self.members: Iterator[Rows] = self.pool.members()

    def go_on(self, resampled: ResampledFeature, n_done: int) -> None:
        """Take further draws, after some that were added."""
        assert resampled.donor_pool is not None
        self.members = resampled.donor_pool.members()
        for _ in range(n_done):
            next(self.members)

    def add(self, increase: Floats, rows: Rows | None) -> None:
        """Add the increases (losses, rows) of the next draw."""
        member = next(self.members)
        group, weights = self.group, self.weights
        if rows is not None:
            member, group = member[rows], group[rows]
            weights = None if weights is None else weights[rows]
        n_donors, n_leaves = len(self.counts), self.rows.shape[1]
        self.counts += np.bincount(member, weights=weights, minlength=n_donors)
        for line, sums, squares in zip(increase, self.sums, self.squares, strict=True):
            weighted = line if weights is None else line * weights
            sums += np.bincount(member, weights=weighted, minlength=n_donors)
            squares += np.bincount(member, weights=weighted * line, minlength=n_donors)
        cells = np.bincount(
            group * n_leaves + self.pool.leaf[member], weights=weights, minlength=self.n_groups * n_leaves
        )
        self.rows += cells.reshape(self.n_groups, n_leaves)

    def variances(self) -> tuple[Floats, Floats]:
        """Return the variance of the overall estimate, (losses,), and of those of subgroups, (losses, subgroups)."""
        by_leaf = self._by_leaf()
        overall = self.rows.sum(axis=0)
        total = by_leaf @ (overall / max(overall.sum(), 1e-300)) ** 2
        sizes = self.rows.sum(axis=1, keepdims=True)
        shares = self.rows / np.where(sizes > 0, sizes, 1.0)
        return total, by_leaf @ (shares**2).T

    def _by_leaf(self) -> Floats:
        """Return the variance of donor effects over the number of donors: (losses, leaves)."""
        found = np.zeros((len(self.sums), self.rows.shape[1]))
        for leaf in range(found.shape[1]):
            pool = np.flatnonzero(self.pool.leaf == leaf)
            used = pool[self.counts[pool] > 0]
            counts = self.counts[used]
            total = counts.sum()
            if len(used) < 2 or total <= len(used):
                continue
            means = self.sums[:, used] / counts
            centre = self.sums[:, used].sum(axis=1) / total
            between = (counts * (means - centre[:, None]) ** 2).sum(axis=1) / (len(used) - 1)
            within = (self.squares[:, used] - counts * means**2).sum(axis=1) / (total - len(used))
            each = (total - (counts**2).sum() / total) / (len(used) - 1)  # draws of a donor
            found[:, leaf] = np.maximum(between - within, 0.0) / each / len(pool)
        return found


def donor_variances(
    sums: Floats, code: Codes, leaf: Codes, resampled: ResampledFeature, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return the variance over other training donors of the overall estimate, and of those of subgroups.

    `sums` are the increases that each donor causes, summed over the rows of its leaf.
    """
    n_leaves = 1 + int(max(code.max(initial=0), leaf.max(initial=0)))
    rows = np.bincount(code, weights=weights, minlength=n_leaves).astype(np.float64)
    counts = np.bincount(leaf, minlength=n_leaves)
    effect = sums / np.where(rows > 0, rows, 1.0)[leaf]
    by_leaf = np.zeros((len(sums), n_leaves))
    for line, own in zip(effect, by_leaf, strict=True):
        mean = np.bincount(leaf, weights=line, minlength=n_leaves) / np.maximum(counts, 1)
        squares = np.bincount(leaf, weights=(line - mean[leaf]) ** 2, minlength=n_leaves)
        own[:] = np.where(counts > 1, squares / np.maximum(counts - 1, 1) / np.maximum(counts, 1), 0.0)
    group = resampled.groups.code.astype(np.intp)
    cells = np.bincount(group * n_leaves + code, weights=weights, minlength=len(resampled.groups) * n_leaves)
    table = cells.reshape(-1, n_leaves)
    sizes = table.sum(axis=1, keepdims=True)
    overall = by_leaf @ (rows / max(rows.sum(), 1e-300)) ** 2
    return overall, by_leaf @ ((table / np.where(sizes > 0, sizes, 1.0)) ** 2).T
