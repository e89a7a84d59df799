"""Numbers that tell how a row is: of each column its value and its square, or one number for each level.

Training rows and test rows are told alike, so that what was learned on test rows can be said of training rows too. Far
values are pulled in, so that no single row decides.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.table import Table, TypedColumn

_FAR = 4.0  # spreads from the middle that a value counts with at most
_NORMAL_QUARTILES = 1.349  # distance of the quartiles of a normal distribution, in standard deviations
_MOST_LEVELS = 20
_LEAST_ROWS = 5  # that have a level


@dataclass(frozen=True)
class Term:
    """One number of each row.

    Attributes
    ----------
    column : str
        The column that it is made of.
    power : int
        1 for the value, 2 for its square, 0 for whether it is a certain level, or missing.
    centre, scale : float
        What is taken off a value, and what it is divided by then.
    level : int
        Code of the level; -1 for whether the value is missing.
    """

    column: str
    power: int
    centre: float = 0.0
    scale: float = 1.0
    level: int = -1

    def of(self, series: TypedColumn) -> Floats:
        """The number for each row of a column."""
        if self.power == 0:
            found = series.missing if self.level < 0 else series.values == self.level
            return found.astype(np.float64)
        present = np.where(series.missing, self.centre, series.values)
        with np.errstate(over="ignore"):
            scaled: Floats = np.clip((present - self.centre) / self.scale, -_FAR, _FAR)
        return scaled**self.power


@dataclass(frozen=True, eq=False)
class RowTerms:
    """The terms of two tables with the same columns: the rows that are judged, and further rows."""

    test: Table
    further: Table

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All terms that differ between rows."""
        found: list[Term] = []
        for name in self.further.names:
            one, two = self.test.series(name), self.further.series(name)
            values = np.concatenate([one.values, two.values])
            missing = np.concatenate([one.missing, two.missing])
            found += _level_terms(name, values) if one.info.is_nominal else _number_terms(name, values[~missing])
            if 0 < missing.sum() < len(missing):
                found.append(Term(name, 0))
        return tuple(found)

    def matrix(self, rows: npt.NDArray[np.intp]) -> Floats:
        """All terms of some of the rows that are judged: (rows, terms)."""
        table = self.test.rows(rows)
        matrix = np.empty((len(self.terms), len(rows)))
        for at, term in enumerate(self.terms):
            matrix[at] = term.of(table.series(term.column))
        return matrix.T

    def both(self, term: Term) -> tuple[Floats, Floats]:
        """A term of the rows that are judged, and of the further ones."""
        return term.of(self.test.series(term.column)), term.of(self.further.series(term.column))

    def allowed(self, without: Collection[str]) -> npt.NDArray[np.bool_]:
        """Which terms are of none of these columns."""
        return np.array([term.column not in without for term in self.terms], dtype=np.bool_)


def _number_terms(name: str, values: npt.NDArray[Any]) -> list[Term]:
    values = values[np.isfinite(values)]
    if not len(values):
        return []
    low, centre, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        scale = (high - low) / _NORMAL_QUARTILES
        scale = scale if scale > 0 else float(values.std())
    if not 0 < scale < np.inf:
        return []
    two_values = bool(((values == values.min()) | (values == values.max())).all())
    return [Term(name, power, centre, scale) for power in ((1,) if two_values else (1, 2))]


def _level_terms(name: str, codes: npt.NDArray[Any]) -> list[Term]:
    counts = np.bincount(codes[codes >= 0])
    frequent = np.argsort(-counts, kind="stable")[1 : _MOST_LEVELS + 1]  # the first is told by what the others leave
    return [Term(name, 0, level=int(level)) for level in frequent if counts[level] >= _LEAST_ROWS]
