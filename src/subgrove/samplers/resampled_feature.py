"""Result of resampling one feature: subgroups, random draws, and exact expectations that need no draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats
from subgrove._data.replace_columns import Changes, Rows

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
    def single(cls, n_rows: int) -> RowGroups:
        """Return one subgroup of all rows.

        Parameters
        ----------
        n_rows : int
            Number of rows.
        """
        return cls(np.zeros(n_rows, dtype=np.int32))

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

    @property
    def sampled(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the rows that are drawn; None if all are."""
        return None if self.exact is None else ~self.exact.rows
