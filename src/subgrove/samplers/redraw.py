"""What a fitted sampler gives for one feature, as frozen values: subgroups, draws, and what needs no draws."""

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
    """The subgroup of each row: the number of its rule.

    Attributes
    ----------
    code : int array
        For each row, the position of its rule.
    rules : tuple of str
        One for each subgroup.
    conditioning : tuple of str
        The columns that the rules speak of.
    folds : tuple of int
        For each subgroup the fold that it belongs to, if the sampler was cross-fitted; else empty.

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
        """All rows in one subgroup.

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
    """One value that some rows are given, as part of an exact expectation.

    Attributes
    ----------
    rows : int array
        Which rows.
    changes : mapping
        Column name -> what replaces it, one entry for each of `rows`.
    weights : float array
        Probability of the value, for each of `rows`.
    cells : int array or None
        For each of `rows` the number of the cell (subgroup and value) that the value belongs to.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> rows = np.array([0, 1])
    >>> step = sg.samplers.ExpectationTerm(rows, {"season": np.array(["FALL", "FALL"])}, np.array([0.25, 0.25]))
    >>> step.rows.tolist(), list(step.changes), step.weights.tolist()
    ([0, 1], ['season'], [0.25, 0.25])
    """

    rows: Rows
    changes: Changes
    weights: Floats
    cells: Rows | None = None


@dataclass(frozen=True, eq=False)
class ExactExpectation:
    """Rows whose expectation is computed by giving them each value once, with its probability.

    A row's own value is not among the steps: it leaves the prediction as it was.

    Attributes
    ----------
    rows : bool array
        Which rows.
    steps : callable
        Gives the steps anew each time.
    cell : int array or None
        For each row of the table the cell (subgroup and value) of its own value; -1 outside `rows`.
    n_cells : int
        Number of cells.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> both = np.array([0, 1])
    >>> step = sg.samplers.ExpectationTerm(both, {"season": np.array(["FALL", "FALL"])}, np.array([0.25, 0.25]))
    >>> exact = sg.samplers.ExactExpectation(np.array([True, True, False]), lambda: iter([step]))
    >>> exact.rows.sum().item(), len(list(exact.steps()))
    (2, 1)
    """

    rows: npt.NDArray[np.bool_]
    steps: Callable[[], Iterator[ExpectationTerm]]
    cell: Rows | None = None
    n_cells: int = 0


@dataclass(frozen=True, eq=False)
class ResampledFeature:
    """What a fitted sampler gives for one feature.

    Attributes
    ----------
    groups : Groups
        Subgroup of each row.
    draws : callable
        Gives, anew each time, one `Changes` for each repeat, with an entry for each row of the table.
    exact : Exact or None
        Rows that need no draws.
    population : float array
        For each subgroup the number of different draws that repeats are taken from without replacement; infinite
        where repeats are independent. It makes the Monte-Carlo error smaller.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> turn = sg.samplers.Donors(np.array([1, 2, 0]))
    >>> redraw = sg.samplers.ResampledFeature(sg.samplers.RowGroups.single(3), lambda: iter([{"temp": turn}]))
    >>> [changes["temp"].rows.tolist() for changes in redraw.draws()], redraw.sampled is None
    ([[1, 2, 0]], True)
    """

    groups: RowGroups
    draws: Callable[[], Iterator[Changes]]
    exact: ExactExpectation | None = None
    population: Floats = field(default_factory=lambda: np.array([np.inf]))

    @property
    def sampled(self) -> npt.NDArray[np.bool_] | None:
        """Which rows are drawn; None if all are."""
        return None if self.exact is None else ~self.exact.rows
