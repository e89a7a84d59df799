"""Exact expectations: where a subgroup has few values, each is predicted once instead of drawing among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats
from subgrove._core.random import Streams, cached
from subgrove._data.replace_columns import Donors, Rows
from subgrove._data.table import Table
from subgrove.samplers.base import Feature
from subgrove.samplers.redraw import ExactExpectation, ExpectationTerm

_PROBE = 4  # a subgroup is looked at whole only if this many times the repeats show few values


@dataclass(frozen=True, eq=False)
class _Cells:
    """Values within the subgroups that have few of them.

    `cell` is the number of each row's (subgroup, value), -1 elsewhere; of each cell `group`, `rank` among the values
    of its subgroup, `donor` (a row that has the value) and `mass` (rows or weight that have it) are known.
    """

    cell: Rows
    group: Rows
    rank: Rows
    donor: Rows
    mass: Floats


def exact_among(
    code: Codes, n_groups: int, table: Table, feature: Feature, n_repeats: int, weights: Floats | None
) -> ExactExpectation | None:
    """The expectation over donors of the same subgroup, without the row itself, where values are few."""
    if any(len(table.unseen.get(name, ())) > 1 for name in feature):
        return None  # levels that training did not have share one code, so they cannot be told apart here
    if not _maybe_few(table, feature, code, n_groups, n_repeats):
        return None
    cells = _few_values(code, n_groups, value_codes(table, feature), n_repeats, weights)
    if cells is None:
        return None
    mass = np.bincount(cells.group, weights=cells.mass, minlength=n_groups)
    own = np.ones(len(code)) if weights is None else np.minimum(weights, 1.0)

    def steps() -> Iterator[ExpectationTerm]:
        for cell_of_group in _by_rank(cells, n_groups):
            given = cell_of_group[code]
            rows = np.flatnonzero((given >= 0) & (given != cells.cell))
            given = given[rows]
            others = mass[code[rows]] - own[rows]
            donors = Donors(cells.donor[given])
            yield ExpectationTerm(rows, dict.fromkeys(feature, donors), cells.mass[given] / others, given)

    return ExactExpectation(cells.cell >= 0, steps, cells.cell, len(cells.group))


def exact_from(
    code: Codes,
    n_groups: int,
    table: Table,
    train: Table,
    train_code: Codes,
    feature: Feature,
    rngs: Streams,
    places: Rows | None = None,
) -> ExactExpectation | None:
    """The expectation over training donors of the same subgroup, where their values are few.

    `places` are those of the rows of `train` in the user's table, if they are not all of it.
    """
    known = cached(rngs, "cells", lambda: _known_values(train, feature, train_code, n_groups, len(rngs)))
    if known is None:
        return None
    values, cells, coding = known
    own = coding.codes(table, feature)
    mass = np.bincount(cells.group, weights=cells.mass, minlength=n_groups)
    few = np.zeros(n_groups, dtype=np.bool_)
    few[cells.group] = True
    value_of_cell = values[cells.donor]

    def steps() -> Iterator[ExpectationTerm]:
        for cell_of_group in _by_rank(cells, n_groups):
            rows = np.flatnonzero(few[code])
            given = cell_of_group[code[rows]]
            kept = given >= 0
            kept[kept] = value_of_cell[given[kept]] != own[rows[kept]]
            rows, given = rows[kept], given[kept]
            donors = Donors(cells.donor[given] if places is None else places[cells.donor[given]], train=True)
            yield ExpectationTerm(rows, dict.fromkeys(feature, donors), cells.mass[given] / mass[code[rows]])

    return ExactExpectation(few[code], steps)


def value_codes(table: Table, feature: Feature) -> Rows:
    """A number for each row, the same for rows with the same value (of all columns of a group)."""
    joined: Rows | None = None
    for name in feature:
        _, codes = np.unique(table.values(name), return_inverse=True)
        if joined is None:
            joined = codes
        else:
            _, joined = np.unique(joined * (int(codes.max()) + 1) + codes, return_inverse=True)
    assert joined is not None
    return joined


def _known_values(
    train: Table, feature: Feature, train_code: Codes, n_groups: int, n_repeats: int
) -> tuple[Rows, _Cells, _Coding] | None:
    """Value codes of training rows, their cells, and how other rows get such codes; None if values are many."""
    if not _maybe_few(train, feature, train_code, n_groups, n_repeats):
        return None
    coding = _Coding.of(train, feature)
    values = coding.codes(train, feature)
    cells = _few_values(train_code, n_groups, values, n_repeats, None)
    return None if cells is None else (values, cells, coding)


@dataclass(frozen=True, eq=False)
class _Coding:
    """Values of the columns of a feature, ascending, and combinations of their numbers that there are, likewise."""

    values: tuple[npt.NDArray[Any], ...]
    combinations: tuple[Rows, ...]

    @classmethod
    def of(cls, table: Table, feature: Feature) -> _Coding:
        values = tuple(np.unique(table.values(name)) for name in feature)
        coding, combinations = cls(values, ()), []
        for at in range(1, len(feature)):
            combinations.append(np.unique(coding.codes(table, feature[: at + 1], numbered=False)))
            coding = cls(values, tuple(combinations))
        return coding

    def codes(self, table: Table, feature: Feature, *, numbered: bool = True) -> Rows:
        """A number for each row, the same for the same values; -1 for values that are not known."""
        joined = _places(self.values[0], table.values(feature[0]))
        for at, name in enumerate(feature[1:]):
            own = _places(self.values[at + 1], table.values(name))
            known = (joined >= 0) & (own >= 0)
            joined = np.where(known, joined * len(self.values[at + 1]) + own, -1)
            if numbered or at + 2 < len(feature):
                joined = _places(self.combinations[at], joined)
        return joined


def _places(known: npt.NDArray[Any], values: npt.NDArray[Any]) -> Rows:
    """Where values are among known ones, which ascend; -1 if they are not."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found = known[at]
    same = found == values
    if values.dtype.kind == "f":
        same |= np.isnan(found) & np.isnan(values)
    return np.where(same, at, -1)


def _few_values(code: Codes, n_groups: int, values: Rows, n_repeats: int, weights: Floats | None) -> _Cells | None:
    """Cells of the subgroups in which giving every other value costs no more than the repeats do."""
    pairs = code.astype(np.intp) * (int(values.max()) + 1) + values
    found, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    group = code[first].astype(np.intp)
    few = np.bincount(group, minlength=n_groups) - 1 <= n_repeats
    kept = few[group]
    if not kept.any():
        return None
    number = np.cumsum(kept) - 1
    cell = np.where(few[code], number[inverse], -1)
    mass = np.bincount(inverse, weights=weights, minlength=len(found)).astype(np.float64)
    group = group[kept]
    starts = np.searchsorted(group, np.arange(n_groups))
    rank = np.arange(len(group)) - starts[group]
    return _Cells(cell, group, rank, first[kept], mass[kept])


def _by_rank(cells: _Cells, n_groups: int) -> Iterator[Rows]:
    """For the first, second, ... value: the cell that each subgroup gives, -1 if it has no more."""
    for rank in range(int(cells.rank.max()) + 1):
        chosen = np.full(n_groups, -1, dtype=np.intp)
        at = np.flatnonzero(cells.rank == rank)
        chosen[cells.group[at]] = at
        yield chosen


def _maybe_few(table: Table, feature: Feature, code: Codes, n_groups: int, n_repeats: int) -> bool:
    """Whether some subgroup may have few values: a quick look at the first rows of each."""
    look = _PROBE * (n_repeats + 2)
    head = code[: 2 * look * n_groups]  # mostly enough of every subgroup
    columns = [table.values(name) for name in feature]
    for k in range(n_groups):
        rows = np.flatnonzero(head == k)[:look]
        if len(rows) < look:
            rows = np.flatnonzero(code == k)[:look]
        if all(_n_different(column[rows]) - 1 <= n_repeats for column in columns):
            return True
    return False


def _n_different(values: npt.NDArray[Any]) -> int:
    """How many values there are, missing ones being one of them.

    Of some dozen values a set is made in a tenth of the time of `np.unique`; but in it NaN does not equal NaN.
    """
    present = [value for value in values.tolist() if value == value]
    return len(set(present)) + (len(present) < len(values))
