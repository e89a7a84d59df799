"""`LossAccumulator`: sums of the loss increases of one feature over its resamples.

For n rows and M repeats these are accumulated, for each loss:

- the mean increase of each row, as the row that is resampled (receiver);
- the mean increase of the rows that received a row's value (donor);
- the mean increase of each subgroup in each repeat, and the variation of single increases over repeats.

With donors among the same rows the estimate is a U-statistic, and its noise has a contribution from both roles of a
row: `influence` is their sum, and `estimate_variance` turns it into standard errors.

The same class serves a table in memory (NumPy), a chunk of large data (NumPy, `RunningAccumulator`) and a table on a
device (tensors): it is written against the methods of `NumpyArrays`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Column, CyclicShift, Donors
from subgrove._scoring.arrays import to_float32
from subgrove._scoring.feature_result import FeatureResult, result_from_sums
from subgrove.samplers.base import Feature
from subgrove.samplers.resampled_feature import ExpectationTerm, ResampledFeature

_TINY = 1e-300  # a size that divides the sums of an empty subgroup


@dataclass(frozen=True, eq=False)
class RowMeans:
    """Means by row of an accumulator, in its arrays; `donors` is None without donors among the same rows."""

    rows: Any
    donors: Any
    squares: list[Any]  # sums by subgroup of the squared means of rows, and of donors


class LossAccumulator:
    """Sums of the loss increases of one feature.

    Parameters
    ----------
    arrays : NumpyArrays or TensorArrays
        Array operations.
    resampled : ResampledFeature
        Subgroups, exact expectations and draws.
    n_losses, n_repeats : int
        Numbers of losses and repeats.
    """

    def __init__(self, arrays: Any, resampled: ResampledFeature, n_losses: int, n_repeats: int) -> None:
        self.arrays, self.resampled = arrays, resampled
        self.n_losses, self.n_repeats = n_losses, n_repeats
        groups, n = len(resampled.groups), arrays.n_rows
        code = resampled.groups.code.astype(np.intp)
        sizes = np.bincount(code, weights=arrays.host_weights, minlength=groups)
        self.sizes: Floats = sizes.astype(np.float64)
        self.host_code = code
        self.code = arrays.index(code)
        self.by_group = arrays.group_sums(code, groups)
        self.sampled_by_group: Any = None
        self.total = arrays.zeros(n_losses, n)
        self.received: Any = None  # by donor, in the order of the cyclic shift if there is one
        self.shift: Any = None
        self.donors_in_group: Any = None  # whether all donors are in the subgroup of their row
        self.sums = arrays.repeats(n_losses, n_repeats, groups)
        self.squares = arrays.zeros(n_losses, groups)
        self.donor_squares = arrays.zeros(n_losses, groups)  # with weights only
        exact = resampled.exact
        self.cell_sums = arrays.zeros(n_losses, exact.n_cells if exact is not None else 0)

    def add_repeat(self, repeat: int, column: Column, increase: Any, rows: Rows | None) -> None:
        """Add the increases (L, m) of one repeat, of all rows or of `rows`.

        Increases of all rows may have a column of zeros at the end, which sums on a device need.
        """
        weights = self._weights(rows)
        shift = column.cyclic_shift if isinstance(column, Donors) else None
        if shift is not None and rows is None and weights is None:
            self.total += increase[:, : self.arrays.n_rows]
            self._add_shifted(shift, repeat, increase)
            return
        weighted = increase if weights is None else increase * weights
        if isinstance(column, Donors) and not (column.train or column.representatives):
            self._add_donors(column.rows, weighted, rows)
        self._add_rows(repeat, increase, weighted, rows)
        self.sums[:, repeat] = self._group_sums(weighted, rows)

    def add_exact(self, term: ExpectationTerm, increase: Any) -> None:
        """Add the increases (L, m) of one value of an exact expectation."""
        index = self.arrays.index(term.rows)
        self.total[:, index] += increase * self.arrays.array(term.weights)
        if term.cells is None:
            return
        if self.received is None:
            self.received = self.arrays.zeros(self.n_losses, self.arrays.n_rows)
        weights = self._weights(term.rows)
        weighted = increase if weights is None else increase * weights
        self.cell_sums += self.arrays.scatter(self.arrays.index(term.cells), weighted, self.cell_sums.shape[1])

    def _weights(self, rows: Rows | None) -> Any:
        weights = self.arrays.weights
        return weights if rows is None or weights is None else self.arrays.take(weights, self.arrays.index(rows))

    def _group_sums(self, values: Any, rows: Rows | None) -> Any:
        if rows is None:
            return self.by_group(values)
        if self.sampled_by_group is None:
            self.sampled_by_group = self.arrays.subset_sums(self.by_group, rows)
        return self.sampled_by_group(values)

    def _add_rows(self, repeat: int, increase: Any, weighted: Any, rows: Rows | None) -> None:
        if rows is None:
            self.total += increase[:, : self.arrays.n_rows]
        else:
            self.total[:, self.arrays.index(rows)] += increase
        self.squares += self._group_sums(weighted * increase, rows)

    def _add_shifted(self, shift: CyclicShift, repeat: int, increase: Any) -> None:
        """Add increases with donors by cyclic shifts: in their order each subgroup is one segment."""
        self.shift, ordered = self.arrays.ordered_by(shift, increase)
        returned = self.arrays.returned(self.shift, shift, ordered)
        if self.received is None:
            self.received = returned
        else:
            self.received += returned
        self.by_group.order = self.shift.order
        self.sums[:, repeat] = self.by_group.ordered(ordered)
        self.squares += self.by_group.ordered(ordered * ordered)

    def _add_donors(self, donors: Rows, weighted: Any, rows: Rows | None) -> None:
        index, n = self.arrays.index(donors), self.arrays.n_rows
        if self.received is None:
            self.donors_in_group = self.arrays.same_group(self.code, index, None if rows is None else rows)
            self.received = self.arrays.zeros(self.n_losses, n)
        weighted = weighted[:, :n]
        self.received += self.arrays.scatter(index, weighted, n)
        if self.arrays.weights is not None:
            squares = weighted**2 / self.arrays.take(self.arrays.weights, index)
            self.donor_squares += self.arrays.squares_by_group(self.by_group, squares, rows)

    def row_means(self) -> RowMeans:
        """Replace sums by means, in place, and add exact expectations to the sums of each repeat."""
        exact = self.resampled.exact
        means = self._means()
        received = None if self.received is None else self._received_means()
        weights = self.arrays.weights
        counts = None if weights is None else weights[: self.arrays.n_rows]
        if exact is not None:
            sampled = self.arrays.array((~exact.rows).astype(np.float64))
            counts = sampled if counts is None else counts * sampled
        squares = [self._sum_of_squares(means, counts)]
        if received is not None:
            squares.append(self._sum_of_squares(received, counts) if weights is None else self.donor_squares)
        if exact is not None:
            self._add_exact_to_repeats(means, np.flatnonzero(exact.rows))
        return RowMeans(means, received, squares)

    def _means(self) -> Any:
        exact = self.resampled.exact
        divisor: Any = self.n_repeats
        if exact is not None:
            divisor = self.arrays.array(np.where(exact.rows, 1.0, float(self.n_repeats)))
        self.total /= divisor
        return self.total

    def _sum_of_squares(self, means: Any, counts: Any) -> Any:
        square = means * means
        return self.by_group(square if counts is None else square * counts)

    def _add_exact_to_repeats(self, means: Any, rows: Rows) -> None:
        values = means[:, self.arrays.index(rows)]
        weights = self._weights(rows)
        sums = self.arrays.subset_sums(self.by_group, rows)(values if weights is None else values * weights)
        self.sums += sums[:, None, :]

    def _received_means(self) -> Any:
        """Return for each row the mean increase of the rows that received its value."""
        arrays = self.arrays
        received = self.received if self.shift is None else arrays.take(self.received, self.shift.place)
        received /= self.n_repeats
        if arrays.weights is not None:
            received /= arrays.weights[: arrays.n_rows]
        exact = self.resampled.exact
        if exact is not None and exact.cell is not None:
            weights = arrays.host_weights
            own = 1.0 if weights is None else np.minimum(weights[exact.rows], 1.0)
            others = np.maximum(self.sizes[self.host_code[exact.rows]] - own, np.finfo(np.float64).tiny)
            cells = arrays.take(self.cell_sums, arrays.index(exact.cell[exact.rows]))
            received[:, arrays.index(np.flatnonzero(exact.rows))] = cells / arrays.array(others)
        return received

    def influence(self, means: RowMeans) -> Any:
        """Return for each row the sum of its two roles: its own increase, and the increase it caused as a donor.

        A row is among the donors of others, so that their means move with it: within a subgroup of n rows the sums vary
        too little by (n - 2) / (n - 1). They are spread about the estimate of the subgroup by the inverse, which makes
        them the pseudo-values of the jackknife. In a subgroup of two rows both are the same, and nothing is known.
        """
        if means.donors is None:
            return means.rows
        arrays, xp = self.arrays, self.arrays.xp
        factor = arrays.array(self._jackknife_factor())
        if self.donors_in_group is not None:
            factor = xp.where(self.donors_in_group, factor, 1.0)
        sizes = arrays.array(np.maximum(self.sizes, _TINY))
        estimates = arrays.estimates(self.sums, sizes)
        received = means.donors
        donor_means = estimates  # with cyclic shifts, where each row gives what it receives
        if self.shift is None:
            weights = arrays.weights
            donor_means = self.by_group(received if weights is None else received * weights[: arrays.n_rows]) / sizes
        moved = estimates - factor * (donor_means + estimates)
        received += means.rows
        received *= arrays.to_rows(factor, self.code)
        received += arrays.to_rows(moved, self.code)
        return received

    def _jackknife_factor(self) -> Floats:
        return np.where(self.sizes > 2, (self.sizes - 1) / np.maximum(self.sizes - 2, 1.0), 1.0)

    def result(self, feature: Feature, score_losses: dict[int, list[float]], **row_values: Any) -> FeatureResult:
        """Return the result with values of single rows, for a table in memory.

        `score_losses` has the increases in each repeat of the losses that are scores of all rows together.
        """
        n_sampled: npt.NDArray[Any] = np.ones(len(self.sizes))
        exact = self.resampled.exact
        if exact is not None:
            n_sampled = np.bincount(self.host_code[~exact.rows], minlength=len(self.sizes))
        means = self.row_means()
        with np.errstate(invalid="ignore"):
            spread = spread_from_sums(self.squares, means.squares, self.arrays.weights is not None, self.n_repeats)
            rows = means.rows.copy() if means.donors is None else means.rows
            influence = self.influence(means)
        has_factor = means.donors is not None and self.donors_in_group is not False
        result = result_from_sums(
            feature,
            self.resampled,
            self.sizes,
            self.sums,
            spread,
            n_sampled,
            jackknife_factor=self._jackknife_factor() if has_factor else None,
            code=self.host_code.astype(np.min_scalar_type(max(len(self.sizes) - 1, 1))),
            rows=rows,
            influence=influence,
            **row_values,
        )
        for at, increases in score_losses.items():
            result.overall[at], result.excess[at] = increases, 0.0
            for values in (rows, influence, result.repeats, result.mc_variance):
                values[at] = np.nan
        for values in (rows, influence, result.repeats, result.overall, result.excess, result.mc_variance, self.sizes):
            values.flags.writeable = False
        return replace(result, influence=to_float32(influence))

    def copy(self) -> LossAccumulator:
        """Return a copy, to compute a provisional result."""
        twin = copy.copy(self)
        twin.total, twin.sums = self.total.copy(), self.sums.copy()
        twin.received = None if self.received is None else self.received.copy()
        return twin

    def extended(self, resampled: ResampledFeature, n_repeats: int) -> LossAccumulator | None:
        """Return an accumulator of more repeats that continues this one.

        None where more repeats make the expectation of more rows exact, which were sampled so far.
        """
        old, new = self.resampled.exact, resampled.exact
        if (old is None) != (new is None) or (old and new and not np.array_equal(old.rows, new.rows)):
            return None
        twin = copy.copy(self)
        twin.resampled, twin.n_repeats = resampled, n_repeats
        more = np.zeros((len(self.sums), n_repeats - self.n_repeats, self.sums.shape[2]))
        twin.sums = np.concatenate([self.sums, more], axis=1)
        return twin


class RunningAccumulator(LossAccumulator):
    """The same for a chunk of large data: running means of rows (Welford), whose rounding errors stay small.

    Chunks have donors among training rows only, so that rows have one role.
    """

    def __init__(self, arrays: Any, resampled: ResampledFeature, n_losses: int, n_repeats: int) -> None:
        super().__init__(arrays, resampled, n_losses, n_repeats)
        self.rows: Rows | None = None
        self.deviations: Any = None  # squared deviations of single increases from the mean of their row
        self.mean: Any = None

    def _add_rows(self, repeat: int, increase: Any, weighted: Any, rows: Rows | None) -> None:
        self.rows = rows
        if self.n_repeats == 1:
            self.mean = increase
            return
        if self.mean is None:
            self.mean, self.deviations = np.zeros(increase.shape), np.zeros(increase.shape)
        away = increase - self.mean
        self.mean += away / (repeat + 1)
        self.deviations += away * (increase - self.mean)

    def finish(self) -> tuple[Floats, Floats]:
        """Return the mean increases of rows, and the squared deviations from them, summed by subgroup."""
        means: Floats = self.total
        if self.mean is not None:
            means[:, slice(None) if self.rows is None else self.rows] = self.mean
        if self.resampled.exact is not None:
            self._add_exact_to_repeats(means, np.flatnonzero(self.resampled.exact.rows))
        spread = np.zeros((self.n_losses, len(self.sizes)))
        if self.deviations is not None:
            weights = self._weights(self.rows)
            spread += self._group_sums(self.deviations if weights is None else self.deviations * weights, self.rows)
        return means, spread


def spread_from_sums(squares: Floats, squared_means: Any, weighted: bool, n_repeats: int) -> Floats:
    """Return the squared deviations of single increases from the means of their row, and of their donor, by subgroup.

    Summed over a subgroup, the squares of single increases are the same whether a row is seen as the receiver or as the
    donor; the squares of the means differ.
    """
    m = n_repeats
    spread: npt.NDArray[np.float64] = np.maximum(squares - m * squared_means[0], 0.0)
    if len(squared_means) > 1:
        of_donors = squared_means[1]
        # With weights, draws also vary in how many rows a donor gives its value to.
        spread += of_donors * (m - 1) / m if weighted else np.maximum(squares - m * of_donors, 0.0)
    return spread
