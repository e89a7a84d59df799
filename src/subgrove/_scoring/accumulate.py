"""Adding up the losses of one feature, pass by pass.

What is kept of n rows and M repeats, for each loss:

- of each row the mean increase of its loss (it is then the one that was redrawn);
- of each row the mean increase of the loss of those it gave its value to (it is then the donor);
- of each subgroup the mean increase in each repeat, and how much single increases vary over repeats.

With donors among the same rows, the estimate is a U-statistic, whose noise has a share from both roles of a row:
`influence` holds their sum, and `inference.py` turns it into standard errors.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import CyclicShift, Donors, Rows
from subgrove._data.table import Table
from subgrove._models.predictor import Predictions
from subgrove._scoring.feature_result import FeatureResult, finite_population_correction
from subgrove._scoring.prediction_shifts import PredictionShifts
from subgrove._scoring.row_losses import RowLosses
from subgrove._scoring.sums import GroupSums, group_sums, to_float32
from subgrove.samplers.base import Feature, title
from subgrove.samplers.redraw import ResampledFeature

if TYPE_CHECKING:
    from subgrove._scoring.score import PredictionJob


@dataclass(eq=False)
class LossAccumulator:
    """Sums of one feature."""

    feature: Feature
    redraw: ResampledFeature
    scoring: RowLosses
    baseline: Floats
    whole: Floats
    weights: Floats | None
    n_repeats: int
    answers: Floats | None = None  # predictions of the rows as they are, (n, K), if they are numbers
    whole_repeats: list[Floats] = field(default_factory=list)
    n_passes: int | None = None  # how many there are, once that is known
    n_added: int = 0
    redrawn: Table | str | None = None  # input of the fidelity check

    def __post_init__(self) -> None:
        n_losses, n = self.baseline.shape
        groups = len(self.redraw.groups)
        self.title = title(self.feature)
        self.code = self.redraw.groups.code.astype(np.intp)
        counts = np.bincount(self.code, minlength=groups)
        sizes = counts if self.weights is None else np.bincount(self.code, weights=self.weights, minlength=groups)
        self.sizes = sizes.astype(np.float64)
        self.total = np.zeros((n_losses, n))
        self.cyclic_shift: CyclicShift | None = None  # the circles that rows turn in, if they do
        self.given = np.zeros((n_losses, n))  # in the order of the circles, if there are any
        self.sums = np.zeros((n_losses, self.n_repeats, groups))
        self.squares = np.zeros((n_losses, groups))
        self.donor_squares = np.zeros((n_losses, groups))  # with weights alone
        self.by_group = GroupSums(self.code, counts)
        self.drawn_by_group = self.by_group
        if self.redraw.sampled is not None and not self.redraw.sampled.all():
            self.drawn_by_group = group_sums(self.code[self.redraw.sampled], groups)
        self.has_donors = False
        self.among = True  # whether donors are of the same subgroup
        exact = self.redraw.exact
        self.cell_sums = np.zeros((n_losses, exact.n_cells if exact is not None else 0))
        self.moves = None if self.answers is None else PredictionShifts(self.answers)

    def add(self, one: PredictionJob, predictions: Predictions, rows: Rows | None) -> None:
        """Count the answers of one pass."""
        self.n_added += 1
        where = slice(None) if rows is None else rows
        increase = self.scoring.rows(predictions, where, one.about)
        increase -= self.baseline if rows is None else self.baseline[:, rows]
        if self.moves is not None:
            self.moves.add(predictions, rows, one.weights)
        if one.repeat is None:
            self._add_exact(one, increase, rows)
            return
        if len(self.scoring.per_row) < len(self.scoring.losses):
            self.whole_repeats.append(self.scoring.whole(predictions, one.about) - self.whole)
        if rows is None:
            self.total += increase
        else:
            self.total[:, rows] += increase
        column = next(iter(one.changes.values()))
        if isinstance(column, Donors) and column.cyclic_shift is not None and rows is None and self.weights is None:
            self._add_turned(column.cyclic_shift, one.repeat, increase)
            return
        counted = increase if self.weights is None else increase * self.weights[where]
        if isinstance(column, Donors) and not (column.train or column.representatives):
            self._add_donors(column, counted, rows)
        for at in self.scoring.per_row:
            self.sums[at, one.repeat] = self.drawn_by_group(counted[at])
            self.squares[at] += self.drawn_by_group(counted[at] * increase[at])

    def _add_turned(self, cyclic_shift: CyclicShift, repeat: int, increase: Floats) -> None:
        """Count what rows took and gave in circles: put in their order once, a subgroup is one stretch."""
        self.by_group.order = cyclic_shift.order
        self.cyclic_shift, self.has_donors = cyclic_shift, True
        for at in self.scoring.per_row:
            values = increase[at].take(cyclic_shift.order)
            self.given[at] += cyclic_shift.returned(values)
            self.sums[at, repeat] = self.by_group.stretches(values)
            values *= values
            self.squares[at] += self.by_group.stretches(values)

    def _add_donors(self, column: Donors, counted: Floats, rows: Rows | None) -> None:
        code = self.code if rows is None else self.code[rows]
        if not self.has_donors:
            self.among = bool((self.code[column.rows] == code).all())
        self.has_donors = True
        for at in self.scoring.per_row:
            self.given[at] += np.bincount(column.rows, weights=counted[at], minlength=len(self.code))
            if self.weights is not None:
                squares = counted[at] ** 2 / self.weights[column.rows]
                self.donor_squares[at] += np.bincount(code, weights=squares, minlength=len(self.sizes))

    def _add_exact(self, one: PredictionJob, increase: Floats, rows: Rows | None) -> None:
        assert rows is not None
        assert one.weights is not None
        self.total[:, rows] += increase * one.weights
        if one.cells is None:
            return
        self.has_donors = True
        counted = increase if self.weights is None else increase * self.weights[rows]
        for at in self.scoring.per_row:
            self.cell_sums[at] += np.bincount(one.cells, weights=counted[at], minlength=self.cell_sums.shape[1])

    def finished(self) -> FeatureResult:
        """Means in place of sums."""
        m = self.n_repeats
        rows = self.total
        exact = None if self.redraw.exact is None else self.redraw.exact.rows
        if exact is None:
            rows /= m
        else:
            rows[:, ~exact] /= m
        given = self._given_means(exact) if self.has_donors else None
        drawn = self._drawn()
        excess = self._excess(rows, given, exact, drawn)
        if exact is not None:
            self._fill_exact_repeats(rows, exact)
        with np.errstate(invalid="ignore", divide="ignore"):
            repeats = self.sums / self.sizes
            overall = self.sums.sum(axis=2) / self.sizes.sum()
        mc = self._mc_variance(repeats, exact, drawn)
        influence = rows.copy() if given is None else self._influence(rows, given, repeats.mean(axis=1), excess)
        for at, loss in enumerate(self.scoring.losses):
            if not loss.per_row:
                overall[at] = [values[at] for values in self.whole_repeats]
                rows[at] = influence[at] = repeats[at] = mc[at] = np.nan
        for kept in (rows, influence, repeats, overall, excess, mc, self.sizes):
            kept.flags.writeable = False
        groups = self.redraw.groups
        moved, moved_variance = self._moved(drawn, exact)
        return FeatureResult(
            feature=self.feature,
            rules=groups.rules,
            conditioning=groups.conditioning,
            folds=groups.folds,
            n_rows=len(self.code),
            code=self.code.astype(np.min_scalar_type(max(len(groups) - 1, 1))),
            sizes=self.sizes,
            rows=rows,
            influence=to_float32(influence),
            repeats=repeats,
            overall=overall,
            excess=excess,
            mc_variance=mc,
            n_exact=0 if exact is None else int(exact.sum()),
            singletons=tuple(np.flatnonzero((self.redraw.population == 0) & (self.sizes > 0)).tolist()),
            moved=moved,
            moved_variance=moved_variance,
        )

    def provisional(self) -> FeatureResult:
        """What is known so far, without an end to the adding."""
        twin = copy.copy(self)
        twin.total, twin.given, twin.sums = self.total.copy(), self.given.copy(), self.sums.copy()
        return twin.finished()

    def extended(self, redraw: ResampledFeature, n_repeats: int) -> LossAccumulator | None:
        """A tally of more repeats that goes on where this one ended.

        None where that cannot be: where more repeats make the expectation of more rows exact, which were drawn so far.
        """
        before, now = self.redraw.exact, redraw.exact
        if (before is None) != (now is None) or (before and now and not np.array_equal(before.rows, now.rows)):
            return None
        twin = copy.copy(self)
        twin.redraw, twin.n_repeats = redraw, n_repeats
        more = n_repeats - self.n_repeats
        twin.sums = np.concatenate([self.sums, np.zeros((len(self.sums), more, self.sums.shape[2]))], axis=1)
        twin.n_passes, twin.n_added = None, 0
        return twin

    def _moved(self, drawn: Floats, exact: npt.NDArray[np.bool_] | None) -> tuple[Any, Any]:
        if self.moves is None:
            return None, None
        in_rows = np.broadcast_to(drawn, len(self.sizes)).take(self.code)
        means, variances = self.moves.means(self.n_repeats, in_rows, exact)
        return to_float32(means), to_float32(variances)

    def _fill_exact_repeats(self, rows: Floats, exact: npt.NDArray[np.bool_]) -> None:
        counted = rows[:, exact] if self.weights is None else rows[:, exact] * self.weights[exact]
        sums = group_sums(self.code[exact], len(self.sizes))
        for at in self.scoring.per_row:
            self.sums[at] += sums(counted[at])

    def _drawn(self) -> Floats:
        """Of each subgroup what drawing without replacement leaves of the variance over draws."""
        return finite_population_correction(self.redraw.population, self.n_repeats)

    def _excess(self, rows: Floats, given: Floats | None, exact: npt.NDArray[np.bool_] | None, drawn: Floats) -> Floats:
        """Variance in `influence` that more repeats would remove, by subgroup.

        The squares of single increases, summed over a subgroup, are the same whether a row is seen as the one redrawn
        or as the donor; the squares of the means differ.
        """
        m, groups = self.n_repeats, len(self.sizes)
        excess = np.zeros((len(rows), groups))
        if m < 2:
            return excess
        counts: npt.NDArray[Any] | None = self.weights
        if exact is not None:
            counts = ~exact if counts is None else counts * ~exact
        for at in self.scoring.per_row:
            for means in (rows, given):
                if means is given and self.weights is not None:
                    # Such draws also vary in how many rows a donor gives its value to.
                    excess[at] += self.donor_squares[at] * (m - 1) / m
                elif means is not None:
                    square = means[at] * means[at]
                    of_means = self.by_group(square if counts is None else square * counts)
                    excess[at] += np.maximum(self.squares[at] - m * of_means, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.sizes > 0, excess / self.sizes, 0.0) / (m - 1) / m * drawn

    def _mc_variance(self, repeats: Floats, exact: npt.NDArray[np.bool_] | None, drawn: Floats) -> Floats:
        """Variance of the estimates over other draws, by subgroup."""
        m, groups = self.n_repeats, len(self.sizes)
        if m < 2:
            variance = np.full((len(repeats), groups), np.nan)
        else:
            with np.errstate(invalid="ignore"):
                variance = repeats.var(axis=1, ddof=1) / m * drawn
        if exact is not None:
            variance[:, np.bincount(self.code[~exact], minlength=groups) == 0] = 0.0  # exact, but for rounding
        return variance

    def _given_means(self, exact: npt.NDArray[np.bool_] | None) -> Floats:
        """Of each row the mean increase of those it gave its value to."""
        given = self.given if self.cyclic_shift is None else self.given.take(self.cyclic_shift.place, axis=1)
        given /= self.n_repeats
        if self.weights is not None:
            given /= self.weights
        cells = None if self.redraw.exact is None else self.redraw.exact.cell
        if exact is not None and cells is not None:
            own = 1.0 if self.weights is None else np.minimum(self.weights[exact], 1.0)
            others = np.maximum(self.sizes[self.code[exact]] - own, np.finfo(np.float64).tiny)
            given[:, exact] = self.cell_sums[:, cells[exact]] / others
        return given

    def _influence(self, rows: Floats, given: Floats, estimates: Floats, excess: Floats) -> Floats:
        """Of each row the sum of its two parts: its own increase, and what it gave, less the mean of its subgroup.

        A row is among the others' donors, so that their means move with it: within a subgroup of n rows the sums vary
        too little by (n - 2) / (n - 1). They are spread about the estimate of the subgroup by the inverse, which makes
        them the pseudo-values of the jackknife. Of two rows both are the same, and nothing is known.
        """
        factor = np.ones(len(self.sizes))
        if self.among:
            factor = np.where(self.sizes > 2, (self.sizes - 1) / np.maximum(self.sizes - 2, 1.0), 1.0)
            excess *= factor**2
        for at in self.scoring.per_row:
            means = estimates[at]  # in circles, where what was given is what was taken
            if self.cyclic_shift is None:
                counted = given[at] if self.weights is None else given[at] * self.weights
                with np.errstate(invalid="ignore", divide="ignore"):
                    means = self.by_group(counted) / self.sizes
            moved = estimates[at] - factor * (means + estimates[at])
            given[at] += rows[at]
            given[at] *= factor[0] if len(factor) == 1 else factor.take(self.code)
            given[at] += moved[0] if len(moved) == 1 else moved.take(self.code)
        return given
