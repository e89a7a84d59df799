"""Levels with probabilities: the shift of a nominal feature, a sparse multinomial model of the other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.random import Streams
from subgrove._data.replace_columns import Rows
from subgrove._data.table import Table, TypedColumn
from subgrove._regress import Design, FoldGrams, fit_sparse_linear
from subgrove._regress.design import DesignColumn
from subgrove.samplers.base import Feature
from subgrove.samplers.level_draws import draw_levels
from subgrove.samplers.redraw import ResampledFeature, RowGroups

MOST_LEVELS = 12  # more have no shift
_MOST_PARTS = 10
_RIDGE = 1.0  # penalty on squares, in rows: one row's worth of doubt
_MOST_STEPS = 30
_MOST_HALVINGS = 30  # of a step that leads too far
_SMALL_STEP = 1e-6  # the next one would be of the size of its square
_SMALL_GAIN = 1e-12  # of the cost, where rounding would hide it


@dataclass(frozen=True, eq=False)
class MultinomialPredictor:
    """What the other columns tell of the probabilities of levels.

    Attributes
    ----------
    feature : str
    levels : tuple of str
        In words.
    parts : tuple of Part
        The parts of columns that probabilities depend on, those that matter most first.
    coefficients : float array (1 + parts, levels)
        Of the logarithms of probabilities, up to a sum; parts are centred and scaled.
    design : Design
    """

    feature: str
    levels: tuple[str, ...]
    parts: tuple[DesignColumn, ...]
    coefficients: Floats
    design: Design

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are asked for."""
        return tuple(dict.fromkeys(part.column for part in self.parts))

    def predict(self, table: Table) -> Floats:
        """The probability of each level in each row."""
        ones = np.ones((table.n_rows, 1))
        known = [self.design.numbers(table, part)[:, None] for part in self.parts]
        return _softmax(self.coefficients.T @ np.hstack([ones, *known]).T).T

    def text(self, most: int = 6) -> str:
        """In one line: which columns make which level likely."""
        if not self.parts:
            return f"{self.feature} has the same shares everywhere"
        pieces = []
        for at, part in enumerate(self.parts[:most]):
            line = self.coefficients[1 + at]
            pieces.append(
                f"{part.label} (more {self.levels[int(line.argmax())]}, less {self.levels[int(line.argmin())]})"
            )
        left = len(self.parts) - most
        more = f" and {left} more" if left > 0 else ""
        return f"{self.feature} goes with {', '.join(pieces)}{more}"


@dataclass(frozen=True, eq=False)
class LevelFit:
    """A level shift, the rows' own level numbers, and what it was fitted from."""

    shift: MultinomialPredictor
    values: npt.NDArray[np.generic]  # what the table holds for each level
    code: Rows
    matrix: Floats

    def held_out(self, halves: Sequence[tuple[Rows, Rows]]) -> Floats:
        """Log scores of rows by fits to the other half."""
        scores = np.empty(len(self.code))
        for rows, asked in halves:
            b = _fitted(self.matrix[rows], self.code[rows], len(self.values), self.shift.coefficients)
            shares = _softmax(b.T @ self.matrix[asked].T)
            scores[asked] = -np.log(np.maximum(shares[self.code[asked], np.arange(len(asked))], 1e-300))
        return scores


def fit_sparse_multinomial(rivals: FoldGrams, series: TypedColumn, names: Sequence[str]) -> LevelFit:
    """The sparse shift of a feature with few levels by some columns.

    Columns are those that a sparse shift of some level's indicator asks for; of more than ten parts, the largest.
    """
    values, code = np.unique(series.values, return_inverse=True)
    sizes: dict[int, float] = {}
    place = {part: at for at, part in enumerate(rivals.design.parts)}
    if 1 < len(values) <= MOST_LEVELS:
        for k in range(len(values) if len(values) > 2 else 1):
            found = fit_sparse_linear(rivals, series.info.name, (code == k).astype(np.float64), names, products=False)
            for term in found.shift.terms if found is not None else ():
                (part,) = term.parts
                sizes[place[part]] = max(sizes.get(place[part], 0.0), term.size)
    parts = sorted(sizes, key=lambda at: (-sizes[at], at))[:_MOST_PARTS]
    back = np.empty_like(rivals.order)
    back[rivals.order] = np.arange(len(back))
    matrix = np.hstack([np.ones((rivals.n_rows, 1)), rivals.values[:, parts][back]])
    b = _fitted(matrix, code, len(values))
    labels = tuple(_label(series, value) for value in values)
    shift = MultinomialPredictor(
        series.info.name, labels, tuple(rivals.design.parts[at] for at in parts), b, rivals.design
    )
    return LevelFit(shift, values, code, matrix)


def _label(series: TypedColumn, value: np.generic) -> str:
    if series.info.kind == "numeric":
        return f"{float(value):g}"
    return series.info.levels[int(value) - (series.info.kind == "ordered")]


def _softmax(scores: Floats) -> Floats:
    """Shares of the levels, the first axis."""
    scores = np.exp(scores - scores.max(axis=0))
    return np.asarray(scores / scores.sum(axis=0))


def _fitted(matrix: Floats, code: Rows, n_levels: int, start: Floats | None = None) -> Floats:
    """Coefficients of a multinomial model by Newton's method, the last level's being 0; squares cost a little.

    It starts from those of similar rows, or from the shares of the levels.
    """
    d = matrix.shape[1]
    free = n_levels - 1
    b = np.zeros((d, n_levels))
    if not free:
        return b
    counts = np.maximum(np.bincount(code, minlength=n_levels), 0.5)
    b[0] = np.log(counts / counts[-1])
    if d == 1:  # without a column there is nothing else, and levels may be very many
        return b
    if start is not None:
        b = start.copy()
    columns = np.ascontiguousarray(matrix.T)  # rows side by side: sums over levels are then quick
    has = (np.arange(n_levels)[:, None] == code).astype(np.float64)
    penalty = np.full((d, free), _RIDGE)
    penalty[0] = 1e-3

    def judged(b: Floats) -> tuple[float, Floats]:
        shares = _softmax(b.T @ columns)
        likely = np.log(np.maximum((shares * has).sum(axis=0), 1e-300)).sum()
        return float((penalty * b[:, :free] ** 2).sum() / 2 - likely), shares[:free]

    pairs = [(one, two) for one in range(free) for two in range(one, free)]
    first, second = np.triu_indices(d)
    products = columns[first] * columns[second]
    bend = np.empty((free, free, d, d))
    cost, shares = judged(b)
    for _ in range(_MOST_STEPS):
        slope = columns @ (has[:free] - shares).T - penalty * b[:, :free]
        weights = np.array([shares[one] * ((one == two) - shares[two]) for one, two in pairs])
        for (one, two), sums in zip(pairs, weights @ products.T, strict=True):
            bend[one, two, first, second] = bend[one, two, second, first] = sums
            bend[two, one] = bend[one, two]
        full = bend.transpose(0, 2, 1, 3).reshape(free * d, free * d) + np.diag(penalty.T.ravel())
        step = np.zeros_like(b)
        step[:, :free] = np.linalg.solve(full, slope.T.ravel()).reshape(free, d).T
        gain = float((slope * step[:, :free]).sum()) / 2  # what the step is to take off the cost
        if np.abs(step).max() < _SMALL_STEP or gain < _SMALL_GAIN * max(1.0, abs(cost)):
            return b + step
        before = cost
        for _ in range(_MOST_HALVINGS):
            cost, shares = judged(b + step)
            if cost < before:
                break
            step /= 2
        else:
            return b  # as near as floats can tell
        b = b + step
    return b


@dataclass(frozen=True, eq=False)
class LevelSampler:
    """What redraws one feature by the probabilities of its levels.

    Attributes
    ----------
    shift : LevelShift
    values : array
        What the table holds for each level.
    representatives : int array
        For each level a training row that has it.
    """

    shift: MultinomialPredictor
    values: npt.NDArray[np.generic]
    representatives: Rows

    @classmethod
    def of(cls, found: LevelFit, series: TypedColumn, rows: Rows) -> LevelSampler:
        """From what was found; `rows` are the places of the rows in X."""
        _, first = np.unique(series.values, return_index=True)
        return cls(found.shift, found.values, rows[first])

    def resample(self, table: Table, feature: Feature, rngs: Streams, *, exact: bool) -> ResampledFeature:
        """The redraw of the feature."""
        shares = self.shift.predict(table)
        groups = RowGroups(np.zeros(table.n_rows, dtype=np.int32), conditioning=self.shift.columns)
        return draw_levels(
            shares, self.values, self.representatives, table.values(feature[0]), feature[0], rngs, exact, groups
        )
