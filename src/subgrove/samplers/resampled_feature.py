"""Result of resampling one feature: subgroups, random draws, and exact expectations that need no draws.

If a subgroup has few values, each value is predicted once instead of drawing among them: `exact_among` takes the
expectation over other rows of the table, `exact_from` over training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams, cached
from subgrove._core.kinds import Codes, Floats
from subgrove._core.weights import own_weights
from subgrove._data.columns import Members
from subgrove._data.replace_columns import Changes, Donors, Rows
from subgrove._data.table import Table
from subgrove.samplers.donors import Distribution

ALL_ROWS = "all rows"


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Subgroup of each row.

    Attributes
    ----------
    code : int array
        Index of the rule of each row.
    rules : tuple of str
        One rule per subgroup.
    conditioning : tuple of str
        Columns that the subgroups, or the sampler, condition on.
    folds : tuple of int
        Fold of each subgroup if the sampler was cross-fitted; empty otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> groups = sg.samplers.RowGroups(np.array([0, 1, 1]), rules=("x <= 2", "x > 2"), conditioning=("x",))
    >>> len(groups), groups.rules[groups.code[2]]
    (2, 'x > 2')
    >>> sg.samplers.RowGroups.single(3).rules
    ('all rows',)
    """

    code: Codes
    rules: tuple[str, ...] = (ALL_ROWS,)
    conditioning: tuple[str, ...] = ()
    folds: tuple[int, ...] = ()

    @classmethod
    def single(cls, n_rows: int, conditioning: tuple[str, ...] = ()) -> RowGroups:
        """Return one subgroup of all rows.

        Parameters
        ----------
        n_rows : int
            Number of rows.
        conditioning : tuple of str, optional
            Columns that the sampler conditions on.
        """
        return cls(np.zeros(n_rows, dtype=np.int32), conditioning=conditioning)

    def __len__(self) -> int:
        return len(self.rules)


@dataclass(frozen=True, eq=False)
class ExpectationTerm:
    """One term of an exact expectation: a value for some rows, with its probability.

    Attributes
    ----------
    rows : int array
        Rows that receive the value.
    changes : mapping
        Column name -> replacement, one entry per element of `rows`.
    weights : float array
        Probability of the value, one per element of `rows`.
    cells : int array or None
        Cell (subgroup and value) that the value belongs to, one per element of `rows`.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> rows = np.array([0, 1])
    >>> term = sg.samplers.ExpectationTerm(rows, {"season": np.array(["FALL", "FALL"])}, np.array([0.25, 0.25]))
    >>> term.rows.tolist(), list(term.changes), term.weights.tolist()
    ([0, 1], ['season'], [0.25, 0.25])
    """

    rows: Rows
    changes: Changes
    weights: Floats
    cells: Rows | None = None


@dataclass(frozen=True, eq=False)
class ExactExpectation:
    """Expectation over all values of a feature, each evaluated once and weighted by its probability.

    The value that a row already has is not among the terms: it leaves the prediction unchanged.

    Attributes
    ----------
    rows : bool array
        Rows with an exact expectation.
    terms : callable
        Returns a new iterator over the terms each time.
    cell : int array or None
        Cell (subgroup and value) of each row's own value; -1 outside `rows`.
    n_cells : int
        Number of cells.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> both = np.array([0, 1])
    >>> term = sg.samplers.ExpectationTerm(both, {"season": np.array(["FALL", "FALL"])}, np.array([0.25, 0.25]))
    >>> exact = sg.samplers.ExactExpectation(np.array([True, True, False]), lambda: iter([term]))
    >>> exact.rows.sum().item(), len(list(exact.terms()))
    (2, 1)
    """

    rows: npt.NDArray[np.bool_]
    terms: Callable[[], Iterator[ExpectationTerm]]
    cell: Rows | None = None
    n_cells: int = 0


@dataclass(frozen=True, eq=False)
class DonorPool:
    """Training rows whose values, or residuals, rows receive.

    Attributes
    ----------
    leaf : int array
        Subgroup of each member of the pool, within which it is drawn.
    members : callable
        Returns a new iterator each time; it yields the member that each row receives, one array per repeat.
    values : float array or None
        Values by which neighbours among the members have similar effects on the model, if known.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> pool = sg.samplers.DonorPool(np.array([0, 0, 1]), lambda: iter([np.array([1, 0, 2])]))
    >>> [pool.leaf[members].tolist() for members in pool.members()]
    [[0, 0, 1]]
    """

    leaf: Codes
    members: Callable[[], Iterator[Rows]]
    values: Floats | None = None


@dataclass(frozen=True, eq=False)
class ResampledFeature:
    """New values of one feature.

    Attributes
    ----------
    groups : RowGroups
        Subgroup of each row.
    draws : callable
        Returns a new iterator each time; it yields one `Changes` per repeat, with an entry for each row of the table.
    exact : ExactExpectation or None
        Rows that need no draws.
    population : float array
        Number of distinct draws per subgroup from which repeats are taken without replacement; infinite if repeats
        are independent. It reduces the Monte-Carlo error (finite population correction).
    donor_pool : DonorPool or None
        Training rows that are drawn, if their noise is to be part of standard errors.
    distribution : Distribution or None
        Distribution of the new values, if it is known.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> shifted = sg.samplers.Donors(np.array([1, 2, 0]))
    >>> temp = sg.samplers.ResampledFeature(sg.samplers.RowGroups.single(3), lambda: iter([{"temp": shifted}]))
    >>> [changes["temp"].rows.tolist() for changes in temp.draws()], temp.sampled is None
    ([[1, 2, 0]], True)
    """

    groups: RowGroups
    draws: Callable[[], Iterator[Changes]]
    exact: ExactExpectation | None = None
    population: Floats = field(default_factory=lambda: np.array([np.inf]))
    donor_pool: DonorPool | None = None
    distribution: Distribution | None = None

    @property
    def sampled(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the rows that are drawn; None if all are."""
        return None if self.exact is None else ~self.exact.rows


_PROBE = 4  # all rows of a subgroup are examined only if this many times the number of repeats show few values


@dataclass(frozen=True, eq=False)
class _ValueCells:
    """Distinct values within the subgroups that have few of them.

    `cell` is the cell (subgroup, value) of each row, -1 outside such subgroups. Each cell has a `group`, a `rank` among
    the values of its subgroup, a `donor` (a row with the value) and a `mass` (number or weight of the rows with it).
    """

    cell: Rows
    group: Rows
    rank: Rows
    donor: Rows
    mass: Floats


def exact_among(
    code: Codes, n_groups: int, table: Table, feature: Members, n_repeats: int, weights: Floats | None
) -> ExactExpectation | None:
    """Return the expectation over donors of the same subgroup, excluding the row itself, if values are few."""
    if any(len(table.unseen.get(name, ())) > 1 for name in feature):
        return None  # levels that are absent from training share one code, so they cannot be distinguished here
    if not _maybe_few(table, feature, code, n_groups, n_repeats):
        return None
    values = _ValueCoding.of(table, feature).codes(table, feature)
    cells = _few_values(code, n_groups, values, n_repeats, weights)
    if cells is None:
        return None
    mass = np.bincount(cells.group, weights=cells.mass, minlength=n_groups)
    own = np.ones(len(code)) if weights is None else own_weights(weights)

    def terms() -> Iterator[ExpectationTerm]:
        for cell_of_group in _by_rank(cells, n_groups):
            cell = cell_of_group[code]
            rows = np.flatnonzero((cell >= 0) & (cell != cells.cell))
            cell = cell[rows]
            donor_mass = mass[code[rows]] - own[rows]
            donors = Donors(cells.donor[cell])
            yield ExpectationTerm(rows, dict.fromkeys(feature, donors), cells.mass[cell] / donor_mass, cell)

    return ExactExpectation(cells.cell >= 0, terms, cells.cell, len(cells.group))


def exact_from(
    code: Codes,
    n_groups: int,
    table: Table,
    train: Table,
    train_code: Codes,
    feature: Members,
    rngs: Streams,
    places: Rows | None = None,
) -> ExactExpectation | None:
    """Return the expectation over training donors of the same subgroup, if their values are few.

    `places` are the positions of the rows of `train` in the user's table, if these are a subset of it.
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

    def terms() -> Iterator[ExpectationTerm]:
        for cell_of_group in _by_rank(cells, n_groups):
            rows = np.flatnonzero(few[code])
            cell = cell_of_group[code[rows]]
            differs = cell >= 0
            differs[differs] = value_of_cell[cell[differs]] != own[rows[differs]]
            rows, cell = rows[differs], cell[differs]
            donors = Donors(cells.donor[cell] if places is None else places[cells.donor[cell]], train=True)
            yield ExpectationTerm(rows, dict.fromkeys(feature, donors), cells.mass[cell] / mass[code[rows]])

    return ExactExpectation(few[code], terms)


def _known_values(
    train: Table, feature: Members, train_code: Codes, n_groups: int, n_repeats: int
) -> tuple[Rows, _ValueCells, _ValueCoding] | None:
    """Return value codes of training rows, their cells, and the coding of other rows; None if values are many."""
    if not _maybe_few(train, feature, train_code, n_groups, n_repeats):
        return None
    coding = _ValueCoding.of(train, feature)
    values = coding.codes(train, feature)
    cells = _few_values(train_code, n_groups, values, n_repeats, None)
    return None if cells is None else (values, cells, coding)


@dataclass(frozen=True, eq=False)
class _ValueCoding:
    """Sorted values of each column of a feature, and the sorted combinations of their indices that occur."""

    values: tuple[npt.NDArray[Any], ...]
    combinations: tuple[Rows, ...]

    @classmethod
    def of(cls, table: Table, feature: Members) -> _ValueCoding:
        values = tuple(np.unique(table.values(name)) for name in feature)
        coding, combinations = cls(values, ()), []
        for at in range(1, len(feature)):
            combinations.append(np.unique(coding.codes(table, feature[: at + 1], numbered=False)))
            coding = cls(values, tuple(combinations))
        return coding

    def codes(self, table: Table, feature: Members, *, numbered: bool = True) -> Rows:
        """Return an integer for each row, equal for equal values; -1 for unknown values."""
        joined = _places(self.values[0], table.values(feature[0]))
        for at, name in enumerate(feature[1:]):
            own = _places(self.values[at + 1], table.values(name))
            known = (joined >= 0) & (own >= 0)
            joined = np.where(known, joined * len(self.values[at + 1]) + own, -1)
            if numbered or at + 2 < len(feature):
                joined = _places(self.combinations[at], joined)
        return joined


def _places(known: npt.NDArray[Any], values: npt.NDArray[Any]) -> Rows:
    """Return the positions of values among sorted known values; -1 for others."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    nearest = known[at]
    same = nearest == values
    if values.dtype.kind == "f":
        same |= np.isnan(nearest) & np.isnan(values)
    return np.where(same, at, -1)


def _few_values(code: Codes, n_groups: int, values: Rows, n_repeats: int, weights: Floats | None) -> _ValueCells | None:
    """Return the cells of subgroups in which predicting every other value costs no more than the repeats."""
    pairs = code.astype(np.intp) * (int(values.max()) + 1) + values
    distinct, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    group = code[first].astype(np.intp)
    few = np.bincount(group, minlength=n_groups) - 1 <= n_repeats
    in_few = few[group]
    if not in_few.any():
        return None
    number = np.cumsum(in_few) - 1
    cell = np.where(few[code], number[inverse], -1)
    mass = np.bincount(inverse, weights=weights, minlength=len(distinct)).astype(np.float64)
    group = group[in_few]
    starts = np.searchsorted(group, np.arange(n_groups))
    rank = np.arange(len(group)) - starts[group]
    return _ValueCells(cell, group, rank, first[in_few], mass[in_few])


def _by_rank(cells: _ValueCells, n_groups: int) -> Iterator[Rows]:
    """Yield, for the first, second, ... value, the cell of each subgroup; -1 if it has no more values."""
    for rank in range(int(cells.rank.max()) + 1):
        cell = np.full(n_groups, -1, dtype=np.intp)
        at = np.flatnonzero(cells.rank == rank)
        cell[cells.group[at]] = at
        yield cell


def _maybe_few(table: Table, feature: Members, code: Codes, n_groups: int, n_repeats: int) -> bool:
    """Return whether some subgroup may have few values, judged by the first rows of each."""
    look = _PROBE * (n_repeats + 2)
    head = code[: 2 * look * n_groups]  # usually enough rows of every subgroup
    columns = [table.values(name) for name in feature]
    for k in range(n_groups):
        rows = np.flatnonzero(head == k)[:look]
        if len(rows) < look:
            rows = np.flatnonzero(code == k)[:look]
        if all(_n_distinct(column[rows]) - 1 <= n_repeats for column in columns):
            return True
    return False


def _n_distinct(values: npt.NDArray[Any]) -> int:
    """Return the number of distinct values; missing counts as one value.

    For a few dozen values a set takes a tenth of the time of `np.unique`; but in a set NaN does not equal NaN.
    """
    present = [value for value in values.tolist() if value == value]
    return len(set(present)) + (len(present) < len(values))
