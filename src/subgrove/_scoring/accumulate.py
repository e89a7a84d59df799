"""`LossAccumulator`: sums of the loss increases of one feature over its resamples.

For n rows and M repeats these are accumulated, for each loss:

- the mean increase of each row, as the row that is resampled (receiver);
- the mean increase of the rows that received a row's value (donor);
- the mean increase of each subgroup in each repeat, and the variation of single increases over repeats.

With donors among the same rows the estimate is a U-statistic: `influence` is the sum of both roles of a row.
`NumpyArrays` and `TensorArrays` have the array operations, and the order of sums, of a table in memory and on a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.weights import RelativeWeights, independent_units, own_weights
from subgrove._data.replace_columns import Column, CyclicShift, Donors
from subgrove._scoring.feature_result import (
    ExactShifts,
    FeatureResult,
    finite_population_correction,
    result_from_sums,
    spread_from_sums,
    to_float32,
)
from subgrove._scoring.row_losses import PredictionShifts
from subgrove.samplers.base import Feature
from subgrove.samplers.resampled_feature import ExpectationTerm, ResampledFeature


class GroupSums:
    """Sums of values (..., n) by subgroup: rows are sorted by subgroup once, then each subgroup is one segment.

    Parameters
    ----------
    code : int array
        Subgroup of each row.
    n_groups : int
        Number of subgroups.
    """

    def __init__(self, code: Rows, n_groups: int) -> None:
        self.code, self.n_groups = code, n_groups
        self.order: Rows | None = None  # rows by subgroup, once known
        if n_groups > 1:
            counts = np.bincount(code, minlength=n_groups)
            self.nonempty = np.flatnonzero(counts)
            self.starts = (np.cumsum(counts) - counts)[self.nonempty]

    def __call__(self, values: Floats) -> Floats:
        """Return the sums of values in the order of the rows."""
        if self.n_groups == 1:
            return self.ordered(values)
        if self.order is None:
            # NumPy sorts small integers by counting, which is several times as fast.
            small = self.code.astype(np.min_scalar_type(self.n_groups - 1)) if self.n_groups <= 65536 else self.code
            self.order = np.argsort(small, kind="stable")
        return self.ordered(values.take(self.order, axis=-1))

    def ordered(self, values: Floats) -> Floats:
        """Return the sums of values in the order of the subgroups."""
        if self.n_groups == 1:
            return np.asarray(values.sum(axis=-1, keepdims=True))
        segments: Floats = np.add.reduceat(values, self.starts, axis=-1)
        if segments.shape[-1] == self.n_groups:
            return segments
        sums = np.zeros((*values.shape[:-1], self.n_groups))
        sums[..., self.nonempty] = segments
        return sums


class NumpyArrays:
    """Arrays of the rows of a table in memory.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    weights : float array (n,) or None
        Weights of the rows.
    sums : class
        How values are summed by subgroup.
    """

    xp: Any = np

    def __init__(self, n_rows: int, weights: Floats | None, sums: Any = GroupSums) -> None:
        self.n_rows, self.host_weights, self.sums = n_rows, weights, sums
        self.weights = None if weights is None else np.asarray(weights)

    def zeros(self, *shape: int) -> Floats:
        """Return zeros in float64."""
        return np.zeros(shape)

    def repeats(self, n_losses: int, n_repeats: int, n_groups: int) -> Floats:
        """Return zeros for sums of each loss, repeat and subgroup."""
        return np.zeros((n_losses, n_repeats, n_groups))

    def array(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array of the host."""
        return values

    index = array

    def group_sums(self, code: Rows, n_groups: int) -> Any:
        """Return a function that sums values of all rows by subgroup."""
        return self.sums(code, n_groups)

    def subset_sums(self, by_group: Any, rows: Rows) -> Any:
        """Return a function that sums values of some rows by subgroup."""
        return self.sums(by_group.code[rows], by_group.n_groups)

    def scatter(self, index: Rows, values: Floats, n: int) -> Floats:
        """Return sums (L, n) of values (L, m) by index."""
        return np.array([np.bincount(index, weights=line, minlength=n) for line in values])

    def take(self, values: Floats, index: Rows) -> Floats:
        """Return values at an index of the last axis."""
        return values.take(index, axis=-1)

    def to_rows(self, values: Floats, code: Rows) -> Floats:
        """Return the values (..., K) of the subgroup of each row; one subgroup is broadcast."""
        return values if values.shape[-1] == 1 else values.take(code, axis=-1)

    def same_group(self, code: Rows, donors: Rows, rows: Rows | None) -> Any:
        """Return whether all donors are in the subgroup of their row."""
        return bool((code[donors] == (code if rows is None else code[rows])).all())

    def estimates(self, sums: Floats, sizes: Floats) -> Floats:
        """Return the mean increase of each loss and subgroup."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Floats = (sums / sizes).mean(axis=1)
            return mean

    def squares_by_group(self, by_group: Any, squares: Floats, rows: Rows | None) -> Floats:
        """Return squares of rows summed by subgroup, in the order of the rows."""
        code = by_group.code if rows is None else by_group.code[rows]
        return self.scatter(code, squares, by_group.n_groups)

    def ordered_by(self, shift: CyclicShift, values: Floats) -> tuple[Any, Floats]:
        """Return a cyclic shift as these arrays use it, and values in its order."""
        return shift, values.take(shift.order, axis=-1)

    def returned(self, own: CyclicShift, shift: CyclicShift, values: Floats) -> Floats:
        """Return values of receivers at the positions of their donors, both in the order of the shift."""
        if len(values) == 1:
            return shift.returned(values[0])[None]
        return np.array([shift.returned(line) for line in values])


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
    clusters : int array or None
        Clusters of dependent rows.
    """

    def __init__(
        self, arrays: Any, resampled: ResampledFeature, n_losses: int, n_repeats: int, clusters: Rows | None = None
    ) -> None:
        self.arrays, self.resampled, self.clusters = arrays, resampled, clusters
        self.n_losses, self.n_repeats = n_losses, n_repeats
        self.relative = isinstance(arrays.host_weights, RelativeWeights)  # squares have squared weights
        groups, n, code = len(resampled.groups), arrays.n_rows, resampled.groups.code.astype(np.intp)
        self.sizes: Floats = np.bincount(code, arrays.host_weights, groups).astype(np.float64)
        self.host_code, self.code = code, arrays.index(code)
        self.by_group = arrays.group_sums(code, groups)
        self.sampled_by_group: Any = None
        self.total = arrays.zeros(n_losses, n)
        self.expected: Any = None  # by donor, if expectations of all rows have been set
        self.is_set = False
        self.received: Any = None  # by donor, in the order of the cyclic shift if there is one
        self.shift: Any = None
        self.donors_in_group: Any = None  # whether all donors are in the subgroup of their row
        self.sums = arrays.repeats(n_losses, n_repeats, groups)
        self.squares = arrays.zeros(n_losses, groups)
        self.donor_squares = arrays.zeros(n_losses, groups)  # with weights or clusters only
        exact = resampled.exact
        self.cell_sums = arrays.zeros(n_losses, exact.n_cells if exact is not None else 0)

    def add_repeat(self, repeat: int, column: Column, increase: Any, rows: Rows | None) -> None:
        """Add the increases (L, m) of one repeat, of all rows (on a device with a last column of 0) or of `rows`."""
        if rows is None and self.arrays.weights is None and isinstance(column, Donors) and column.cyclic_shift:
            self._add_shifted(column.cyclic_shift, repeat, increase)
            return
        weighted = self._weighted(increase, rows)
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
        weighted = self._weighted(increase, term.rows)
        self.cell_sums += self.arrays.scatter(self.arrays.index(term.cells), weighted, self.cell_sums.shape[1])

    def set_expectation(self, increase: Floats, received: Floats | None, donors_in_group: bool) -> None:
        """Set the exact expectations of all rows, (L, n), and of the increases that they cause as donors."""
        self.total, self.expected, self.is_set = increase, received, True
        self.donors_in_group = None if donors_in_group else False

    def _weighted(self, values: Any, rows: Rows | None) -> Any:
        """Return values of all rows, or of `rows`, times their weights."""
        if (weights := self.arrays.weights) is None:
            return values
        return values * (weights if rows is None else self.arrays.take(weights, self.arrays.index(rows)))

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
        self.squares += self._group_sums(weighted * (weighted if self.relative else increase), rows)

    def _add_shifted(self, shift: CyclicShift, repeat: int, increase: Any) -> None:
        """Add increases with donors by cyclic shifts."""
        self.total += increase[:, : self.arrays.n_rows]
        self.shift, ordered = self.arrays.ordered_by(shift, increase)
        returned = self.arrays.returned(self.shift, shift, ordered)
        if self.received is None:
            self.received = returned
        else:
            self.received += returned
        self.by_group.order = self.shift.order
        self.sums[:, repeat] = self.by_group.ordered(ordered)
        ordered *= ordered
        self.squares += self.by_group.ordered(ordered)

    def _add_donors(self, donors: Rows, weighted: Any, rows: Rows | None) -> None:
        index, n = self.arrays.index(donors), self.arrays.n_rows
        if self.received is None:
            self.donors_in_group = self.arrays.same_group(self.code, index, None if rows is None else rows)
            self.received = self.arrays.zeros(self.n_losses, n)
        weighted = weighted[:, :n]
        self.received += (received := self.arrays.scatter(index, weighted, n))
        if self.arrays.weights is None and self.clusters is not None:
            self.donor_squares += self.by_group(received**2)
        elif self.arrays.weights is not None:
            given = 1.0 if self.relative else self.arrays.take(self.arrays.weights, index)
            self.donor_squares += self.arrays.squares_by_group(self.by_group, weighted**2 / given, rows)

    def row_means(self) -> RowMeans:
        """Replace sums by means, in place, and add exact expectations to the sums of each repeat."""
        exact, means = self.resampled.exact, self.total
        received = self.expected if self.received is None else self._received_means()
        if self.is_set:
            self._add_exact_to_repeats(means, None)
            return RowMeans(means, received, [self.donor_squares] * (1 if received is None else 2))
        means /= self.n_repeats if exact is None else self.arrays.array(np.where(exact.rows, 1.0, self.n_repeats))
        weights = self.arrays.weights
        counts = None if weights is None else weights[: self.arrays.n_rows]
        counts = counts**2 if counts is not None and self.relative else counts
        if exact is not None:
            sampled = self.arrays.array((~exact.rows).astype(np.float64))
            counts = sampled if counts is None else counts * sampled
        squares = [self._sum_of_squares(means, counts)]
        if received is not None:
            squares.append(self._sum_of_squares(received, counts) if weights is None else self.donor_squares)
        if exact is not None:
            self._add_exact_to_repeats(means, np.flatnonzero(exact.rows))
        return RowMeans(means, received, squares)

    def _sum_of_squares(self, means: Any, counts: Any) -> Any:
        return self.by_group(means * means if counts is None else means * means * counts)

    def _add_exact_to_repeats(self, means: Any, rows: Rows | None) -> None:
        of_rows = means if rows is None else means[:, self.arrays.index(rows)]
        by_group = self.by_group if rows is None else self.arrays.subset_sums(self.by_group, rows)
        self.sums += by_group(self._weighted(of_rows, rows))[:, None, :]

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
            own = 1.0 if weights is None else own_weights(weights[exact.rows])
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
        factor = arrays.array(self.jackknife_factor)
        if self.donors_in_group is not None:
            factor = xp.where(self.donors_in_group, factor, 1.0)
        sizes = arrays.array(np.maximum(self.sizes, 1e-300))  # of empty ones
        estimates = arrays.estimates(self.sums, sizes)
        received = means.donors
        donor_means = estimates  # with cyclic shifts, where each row gives what it receives
        if self.shift is None:
            weights = arrays.weights
            donor_means = self.by_group(received if weights is None else received * weights[: arrays.n_rows]) / sizes
        received += means.rows
        received *= arrays.to_rows(factor, self.code)
        received += arrays.to_rows(estimates - factor * (donor_means + estimates), self.code)
        return received

    @cached_property
    def jackknife_factor(self) -> Floats:
        """Factor of each subgroup by which pseudo-values are spread about their mean."""
        clusters = self.clusters
        units = self.sizes if clusters is None else independent_units(self.sizes, self.host_code, clusters)
        return np.where(units > 2, (units - 1) / np.maximum(units - 2, 1.0), 1.0)

    def result(
        self, feature: Feature, score_losses: dict[int, list[float]], shifts: PredictionShifts | ExactShifts | None
    ) -> FeatureResult:
        """Return the result with values of single rows, for a table in memory.

        `score_losses` has the increases in each repeat of the losses that are scores of all rows together.
        """
        moved = moved_variance = None
        exact = None if self.resampled.exact is None else self.resampled.exact.rows
        n_sampled = None if exact is None else np.bincount(self.host_code[~exact], minlength=len(self.sizes))
        correction = finite_population_correction(self.resampled.population, self.n_repeats)
        if shifts is not None:
            by_row = correction if correction.size == 1 else correction.take(self.host_code)
            moved, moved_variance = map(to_float32, shifts.means(self.n_repeats, by_row, exact))
        means = self.row_means()
        with np.errstate(invalid="ignore"):
            both = (self.squares, None if self.clusters is None else self.donor_squares)
            spread = spread_from_sums(both, means.squares, self.arrays.weights is not None, self.n_repeats)
            rows = means.rows.copy() if means.donors is None else means.rows
            influence = self.influence(means)
        for at in score_losses:
            rows[at] = influence[at] = np.nan
        result = result_from_sums(
            feature,
            self.resampled,
            self.sizes,
            self.sums,
            spread,
            n_sampled,
            correction,
            jackknife_factor=None if means.donors is None or self.donors_in_group is False else self.jackknife_factor,
            code=self.resampled.groups.code.astype(np.min_scalar_type(max(len(self.sizes) - 1, 1)), copy=False),
            rows=rows,
            influence=to_float32(influence),
            clusters=self.clusters,
            moved=moved,
            moved_variance=moved_variance,
        )
        for at, increases in score_losses.items():
            result.overall[at], result.excess[at] = increases, 0.0
            result.repeats[at] = result.mc_variance[at] = np.nan
        for values in (rows, result.repeats, result.overall, result.excess, result.mc_variance, self.sizes):
            values.flags.writeable = False
        return result
