"""Kernel ridge regression of residuals: smooth curves, waves and interactions that terms of a linear model miss.

Requirements this design meets:

- bounded cost: the kernel is approximated by landmarks (Nystroem), and its widths are selected on a sample of rows;
- honest residuals: those of leaving each row out, in closed form, for each penalty;
- interactions without main effects are found: the columns to try come from a forest, jointly and one by one;
- numbers with few values, such as an hour or a weekday, may have a curve of their own for each value;
- the noise variance is estimated too, so that a sampler can correct for the error of the estimated curve.

A width of 0 leaves a column out; k(z, z') = exp(-sum_j (w_j (z_j - z'_j))^2 / 2) for standardized columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import Design, DesignColumn
from subgrove._data.table import Table
from subgrove._regress.forest import grow_forest
from subgrove._regress.gram import FoldGrams, exceeds_standard_error

_CLIP = 4.0  # standard deviations at which columns are clipped
_PENALTIES = 10.0 ** np.arange(-6, -0.9, 0.5)  # as shares of the number of rows
_PRECISION = 1e-8  # of the kernel; landmarks that are not needed for it are left out
_LEAST_ROOM = 1e-6  # of 1 minus the leverage: a larger one would make the errors of interpolations look small
_BLOCK_ROWS = 1000
_SEARCH_ROWS, _SEARCH_LANDMARKS = 600, 80
_MAX_ROWS, _MAX_LANDMARKS = 5000, 250
_MOST_COLUMNS = 5
_STARTS = ((0.3, 1.0, 3.0, 10.0), (0.3, 0.8, 2.0, 5.0), (0.3, 0.8, 2.0), (0.3, 0.8))  # by number of columns
_FEW_VALUES, _FEW_VALUES_OF = 31, 1000  # of a number whose values may have indicators, in its first rows
_SAME = 1e-9  # difference of equal values, in standard deviations
_MIN_GAIN = 0.01  # relative decrease of the error for which a width is changed
_PILOT_TREES, _PILOT_ROWS, _PILOT_NODE = 20, 1000, 15
_SHUFFLED_ROWS = 200
_MIN_ROWS = 40
_PROJECTIONS = 3


@dataclass(frozen=True)
class ValueIndicator:
    """Indicator of one of the few values of a numeric column, on the scale of its design column."""

    part: DesignColumn
    value: float

    @property
    def column(self) -> str:
        """Name of the table column."""
        return self.part.column


@dataclass(frozen=True, eq=False)
class KernelPredictor:
    """Kernel expansion around landmarks.

    Attributes
    ----------
    parts : tuple of DesignColumn or ValueIndicator
        Columns of the kernel.
    widths : float array
        Inverse length scale of each column.
    landmarks : float array (landmarks, columns)
        In units of the widths.
    coefficients : float array (landmarks, outputs)
        Of the landmarks.
    intercept : float array (outputs,)
    design : Design
        Encoding of the columns.
    """

    parts: tuple[DesignColumn | ValueIndicator, ...]
    widths: Floats
    landmarks: Floats
    coefficients: Floats
    intercept: Floats
    design: Design

    terms: ClassVar[tuple[Any, ...]] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the kernel, that of the shortest length scale first."""
        order = np.argsort(-self.widths, kind="stable")
        return tuple(dict.fromkeys(self.parts[at].column for at in order))

    def predict(self, table: Table) -> Floats:
        """Return the predictions for each row: (rows, outputs)."""
        columns = np.column_stack([self._numbers(table, part) for part in self.parts])
        kernel = _gaussian(columns * self.widths, self.landmarks)
        return np.asarray(self.intercept + kernel @ self.coefficients)

    def _numbers(self, table: Table, part: DesignColumn | ValueIndicator) -> Floats:
        if isinstance(part, DesignColumn):
            return np.clip(self.design.numbers(table, part), -_CLIP, _CLIP)
        return _indicators(self.design.numbers(table, part.part), [part.value])[:, 0]

    def text(self) -> str:
        """Return the columns in words."""
        return f"a smooth function of {', '.join(self.columns)}"


@dataclass(frozen=True, eq=False)
class PredictorSum:
    """A prediction plus another part: a smooth function, terms that change at thresholds, or means by level.

    Attributes
    ----------
    first : LinearPredictor or PredictorSum
        The prediction.
    extra : KernelPredictor, ThresholdChanges or LevelMeans
        The other part.
    """

    first: Any
    extra: Any

    @property
    def feature(self) -> str:
        """Name of the predicted feature."""
        return str(self.first.feature)

    @property
    def terms(self) -> tuple[Any, ...]:
        """Terms of both parts."""
        return (*self.first.terms, *self.extra.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of both parts."""
        return tuple(dict.fromkeys((*self.extra.columns, *self.first.columns)))

    def predict(self, table: Table) -> Floats:
        """Return the prediction for each row."""
        return np.asarray(self.first.predict(table) + self.extra.predict(table).reshape(table.n_rows, -1)[:, 0])

    def text(self, most: int = 6) -> str:
        """Return the formula of the first part, and the other one in words."""
        return f"{self.first.text(most)} + {self.extra.text()}"


@dataclass(frozen=True, eq=False)
class KernelFit:
    """Kernel predictor with leave-one-out residuals (rows, outputs), and the noise variance of each output."""

    predictor: KernelPredictor
    residuals: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class PilotForest:
    """Small forest that shows whether, and by which columns, values are predicted.

    Attributes
    ----------
    ranked : int array
        Design columns that the forest uses, most important first.
    predictive : bool
        Whether its out-of-bag error is below the variance by more than one standard error.
    promising : bool
        The same; with few rows, whether it is not above the variance by as much: a kernel may see what it does not.
    """

    ranked: Rows
    predictive: bool
    promising: bool

    @classmethod
    def of(cls, grams: FoldGrams, targets: Floats, names: Sequence[str], seed: int) -> PilotForest:
        """Grow on a sample of rows; `targets` (rows, outputs) are in the order of the rows."""
        parts = grams.design.allowed(names, log_scales=False)
        rows = stream(seed, "rows of a pilot forest").permutation(len(targets))[:_PILOT_ROWS]
        values = targets[grams.order[rows]]
        scale = values.std(axis=0)
        if not len(parts) or len(rows) < _MIN_ROWS or not scale.any():
            return cls(parts[:0], False, False)
        predictors = grams.values[rows][:, parts]
        values = np.ascontiguousarray((values - values.mean(axis=0))[:, scale > 0] / scale[scale > 0])
        forest = grow_forest(
            predictors,
            values,
            n_trees=_PILOT_TREES,
            min_node_size=_PILOT_NODE,
            tried=max(1, (len(parts) + 1) // 2),
            seed=seed,
            n_jobs=1,
        )
        gains = values**2 - (values - np.nan_to_num(forest.out_of_bag)) ** 2
        predictive = any(exceeds_standard_error(gain) for gain in gains.T)
        if not predictive and (
            len(rows) >= _SEARCH_ROWS or not any(exceeds_standard_error(gain, -1) for gain in gains.T)
        ):
            return cls(parts[:0], False, False)
        shown, units = predictors[:_SHUFFLED_ROWS], _table_columns(grams.design, parts)
        copies = np.repeat(shown[None], units[-1] + 2, axis=0)
        for unit in range(units[-1] + 1):
            copies[unit][:, units == unit] = np.roll(shown[:, units == unit], 1 + unit % 7, axis=0)
        predicted = forest.predict(copies.reshape(-1, len(parts))).reshape(len(copies), -1)
        changes = ((predicted[:-1] - predicted[-1]) ** 2).mean(axis=1)
        return cls(parts[np.argsort(-changes[units], kind="stable")], predictive, True)


def _table_columns(design: Design, parts: Rows) -> Rows:
    """Return the number of the table column of each design column, in the order in which they appear."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(design.parts[at].column, len(numbers)) for at in parts], dtype=np.intp)


def fit_kernel(
    grams: FoldGrams, targets: Floats, pilot: PilotForest, seed: int, summaries: Floats | None = None
) -> KernelFit | None:
    """Fit a kernel regression on the columns of a pilot forest; None if it does not reduce the squared error.

    `targets` (rows, outputs) are in the order of the rows, with mean 0. Widths and penalty are the same for all
    outputs; they are selected by a few random projections of these, and by `summaries` of the outputs if given.
    """
    if not pilot.promising:
        return None
    parts, columns, units = _kernel_columns(grams, pilot)
    values, rng = targets[grams.order], stream(seed, "rows of a kernel")
    order = rng.permutation(len(values))
    few = values
    if values.shape[1] > _PROJECTIONS:
        few = values @ rng.standard_normal((values.shape[1], _PROJECTIONS))
    if summaries is not None:
        few = np.hstack([few / few.std(axis=0), summaries[grams.order] / summaries.std(axis=0)])
    n_columns = int(units[sum(isinstance(part, DesignColumn) for part in parts) - 1]) + 1
    widths = _search_widths(columns, units, few, order, n_columns)[units]
    used = np.flatnonzero(widths)
    if not len(used):
        return None
    scaled, rows = columns[:, used] * widths[used], np.sort(order[:_MAX_ROWS])
    landmarks = scaled[_spread_landmarks(scaled, order, _MAX_LANDMARKS)]
    needed, basis = _orthonormal(_gaussian(landmarks, landmarks))
    landmarks = landmarks[needed]
    problem = _RidgeProblem.of(_gaussian(scaled[rows], landmarks), basis)
    slopes, intercept, residuals, noise = problem.fit(values[rows], problem.best_penalty(few[rows]))
    left_out = residuals
    if len(rows) < len(values):
        left_out = values - intercept - _gaussian(scaled, landmarks) @ slopes
        left_out[rows] = residuals
    if not exceeds_standard_error((values**2 - left_out**2).sum(axis=1)):
        return None
    used_parts = tuple(parts[at] for at in used)
    predictor = KernelPredictor(used_parts, widths[used], landmarks, slopes, intercept, grams.design)
    in_row_order = np.empty_like(left_out)
    in_row_order[grams.order] = left_out
    return KernelFit(predictor, in_row_order, noise)


def _kernel_columns(grams: FoldGrams, pilot: PilotForest) -> tuple[list[DesignColumn | ValueIndicator], Floats, Rows]:
    """Return the columns of a kernel, their values, and which of them share a width.

    Those that the pilot ranks first, on logarithmic scales if there are any; then indicators of each of few values.
    """
    units = _table_columns(grams.design, pilot.ranked)
    ranked, units = grams.design.on_log_scales(pilot.ranked[units < _MOST_COLUMNS]), units[units < _MOST_COLUMNS]
    parts: list[DesignColumn | ValueIndicator] = [grams.design.parts[at] for at in ranked]
    columns = [np.clip(grams.values[:, ranked], -_CLIP, _CLIP)]
    for at in ranked:
        part, own = grams.design.parts[at], grams.values[:, at]
        values = np.unique(own[:_FEW_VALUES_OF])
        if part.is_value and 2 < len(values) <= _FEW_VALUES:
            parts += [ValueIndicator(part, float(value)) for value in values]
            columns.append(_indicators(own, values))
            units = np.append(units, np.full(len(values), units[-1] + 1))
    return parts, np.hstack(columns), units


def _indicators(numbers: Floats, values: Sequence[float] | Floats) -> Floats:
    """Return an indicator of each value."""
    return np.asarray((np.abs(numbers[:, None] - np.asarray(values)) < _SAME).astype(np.float64))


def _search_widths(columns: Floats, units: Rows, target: Floats, order: Rows, n_columns: int) -> Floats:
    """Return the widths with the smallest leave-one-out error on a sample of rows; all 0 if none reduces it.

    `units` are the table columns of the design columns: the indicators of the levels of a column share a width. The
    first `n_columns` of them are tried together, the others one by one.
    """
    rows, few = order[:_SEARCH_ROWS], min(_SEARCH_LANDMARKS, len(order))
    values, sample = target[rows], columns[rows]
    distances = np.zeros((units[-1] + 1, few, len(rows)))  # squared, of landmarks to rows, by table column
    for unit, column in zip(units, np.ascontiguousarray(sample.T), strict=True):
        distances[unit] -= 0.5 * (column[:few, None] - column) ** 2

    @cache
    def error_of(key: tuple[float, ...]) -> float:
        used = [at for at, width in enumerate(key) if width]
        needed, basis = _orthonormal(np.exp(sum(key[at] ** 2 * distances[at, :, :few] for at in used)))
        kernel = np.exp(sum(key[at] ** 2 * distances[at, needed] for at in used)).T
        return float(_RidgeProblem.of(kernel, basis).errors(values).min())

    def error(by_unit: Floats) -> float:
        return error_of(tuple(by_unit.tolist()))

    best, least = np.zeros(units[-1] + 1), float(values.var(axis=0).sum()) * len(rows) / max(len(rows) - 1, 1)
    for count, starts in enumerate(_STARTS[:n_columns], start=1):
        for width in starts:
            widths = np.where(np.arange(len(best)) < count, width, 0.0)
            if (found := error(widths)) < least * (1 - _MIN_GAIN):
                best, least = widths, found
    if not best.any():
        return best
    for step in (3.0, 1.7):
        for at in range(len(best)):
            trials = (0.0, best[at] * step, best[at] / step) if best[at] else (0.3, 1.0)
            for width in trials:
                widths = best.copy()
                widths[at] = width
                if widths.any() and (found := error(widths)) < least * (1 - _MIN_GAIN * (width != 0)):
                    best, least = widths, found
    return best


def _spread_landmarks(scaled: Floats, order: Rows, most: int) -> Rows:
    """Return the first rows of a random order, without repeated points."""
    _, first = np.unique(scaled[order[: 4 * most]], axis=0, return_index=True)
    return order[np.sort(first)[:most]]


def _gaussian(rows: Floats, landmarks: Floats) -> Floats:
    exponent = rows @ landmarks.T
    exponent -= 0.5 * (rows**2).sum(axis=1)[:, None]
    exponent -= 0.5 * (landmarks**2).sum(axis=1)
    np.minimum(exponent, 0.0, out=exponent)
    return np.asarray(np.exp(exponent, out=exponent))


def _orthonormal(of_landmarks: Floats) -> tuple[Rows, Floats]:
    """Return landmarks that all others are combinations of, and the rows of a matrix that makes them orthonormal."""
    from scipy.linalg.lapack import dpstrf, dtrtri

    factor, pivots, rank, _ = dpstrf(of_landmarks, tol=_PRECISION, lower=1)
    return pivots[:rank] - 1, np.tril(dtrtri(factor[:rank, :rank], lower=1)[0])


@dataclass(frozen=True, eq=False)
class _RidgeProblem:
    """Ridge regression of any targets on a kernel, for several penalties; each row is left out in closed form."""

    means: Floats
    along: Floats  # rows along the principal axes
    axes: Floats  # (landmarks, axes)
    lengths: Floats

    @classmethod
    def of(cls, kernel: Floats, basis: Floats) -> _RidgeProblem:
        """Return the problem for the kernel of rows with landmarks (Nystroem), which is centred in place."""
        means = kernel.mean(axis=0)
        kernel -= means
        lengths, axes = np.linalg.eigh(basis @ (kernel.T @ kernel) @ basis.T)
        axes = basis.T @ axes
        return cls(means, kernel @ axes, axes, np.maximum(lengths, 0.0))

    def _shrinkage(self) -> Floats:
        """Return the shrinkage of each axis for each penalty."""
        return 1 / (self.lengths + _PENALTIES[:, None] * len(self.along))

    def errors(self, targets: Floats) -> Floats:
        """Return the mean squared leave-one-out error for each penalty, summed over targets."""
        values, n, shrinkage = targets - targets.mean(axis=0), len(targets), self._shrinkage()
        projections = self.along.T @ values
        total = np.zeros(len(_PENALTIES))
        for at in range(0, n, _BLOCK_ROWS):  # that stay near the processor
            some = slice(at, at + _BLOCK_ROWS)
            along = self.along[some]
            room = np.maximum(1 - 1 / n - (along**2) @ shrinkage.T, _LEAST_ROOM)
            slopes = (projections.T[:, None] * shrinkage).reshape(-1, len(self.lengths))
            left_out = values[some][:, :, None] - (along @ slopes.T).reshape(len(along), -1, len(_PENALTIES))
            left_out = (left_out / room[:, None]).reshape(-1, len(_PENALTIES))
            total += np.einsum("ij,ij->j", left_out, left_out)
        return total / n

    def best_penalty(self, targets: Floats) -> int:
        """Return the position of the penalty with the smallest error."""
        return int(self.errors(targets).argmin())

    def fit(self, targets: Floats, penalty: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return slopes, intercepts, leave-one-out residuals and the noise variance of each output for one penalty."""
        level, n, shrinkage = targets.mean(axis=0), len(targets), self._shrinkage()[penalty]
        values = targets - level
        along = shrinkage[:, None] * (self.along.T @ values)
        in_sample = values - self.along @ along
        leverages = np.einsum("ij,ij,j->i", self.along, self.along, shrinkage) + 1 / n
        left_out = in_sample / np.maximum(1 - leverages, _LEAST_ROOM)[:, None]
        shares = self.lengths * shrinkage
        degrees = n - 1 - float((2 * shares - shares**2).sum())
        slopes = self.axes @ along
        noise = (in_sample**2).sum(axis=0) / max(degrees, 1.0)
        return slopes, level - self.means @ slopes, left_out, noise
