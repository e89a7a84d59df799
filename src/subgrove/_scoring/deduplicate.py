"""Rows that are predicted once: a redrawn row that equals one whose prediction is known is not asked for again.

A redrawn row is known by two numbers: which values it has in the other columns, and which value it is given. Where the
feature has values that many rows share (a column that is mostly zero, say), rows are given their own value, or one that
they had in an earlier repeat. Where whole rows are equal (a table of few levels), rows are given what others have had.

Looking for such rows takes time too, and their predictions must be kept. Whether that pays is decided from the numbers
of values and rows alone, so that the number of rows asked is the same each time. The numbers are those that would have
been found otherwise, for a model whose prediction of a row depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Donors, Frames, Rows
from subgrove._data.table import Table
from subgrove._models.predictor import About, Predictions
from subgrove.exceptions import ModelError
from subgrove.samplers.redraw import ResampledFeature

if TYPE_CHECKING:
    from subgrove._scoring.score import PredictionJob, ScoringContext

LEAST_ROWS = 20_000  # with fewer to be asked, looking takes as long as asking; and small batches serve many features
MOST_ASKED = 0.75  # the share of rows that must still be asked at most
_MOST_CELLS = 4_000_000  # most pairs of other columns and value that are told apart
_LOOK = 1_000  # rows of a first look
_EXACT = 2.0**53  # beyond it, whole numbers are not told apart in floats


def row_classes(table: Table, frames: Frames) -> Rows | None:
    """A number for each row, the same for equal rows; None unless at most half of the rows are different."""
    if set(table.names) != set(frames.names) or table.unseen:
        return None
    look = np.linspace(0, table.n_rows - 1, min(table.n_rows, _LOOK)).astype(np.intp)
    again = len(look) - _n_different(_joined(table, table.names, look))
    # Of D different rows that are as frequent as each other, look**2 / 2 D are met again, as long as that is few.
    if again < len(look) / 2 and again * table.n_rows < len(look) ** 2:
        return None
    if table.numbers.size and not np.nanmax(np.abs(table.numbers), initial=0.0) < _EXACT:
        return None
    classes = _joined(table, table.names)
    return classes if _n_different(classes) <= table.n_rows / 2 else None


def _n_different(codes: Rows) -> int:
    return int(codes.max()) + 1


def _joined(table: Table, names: Sequence[str], rows: Rows | slice = slice(None)) -> Rows:
    """Numbers from 0 of the different rows of some columns."""
    joined = np.zeros(len(table.numbers[rows]), dtype=np.intp)
    for name in names:
        _, codes = np.unique(table.values(name)[rows], return_inverse=True)
        _, joined = np.unique(joined * (int(codes.max()) + 1) + codes, return_inverse=True)
    return joined


@dataclass(eq=False)
class PredictionLookup:
    """What is known of one feature's rows, and passes that wait for what is not.

    Attributes
    ----------
    question : Question
        Whom to ask, and about which rows.
    name : str
        The feature.
    train : bool
        Whether donors are training rows.
    own, pool : int arrays
        Number of each row's own value, and of each donor's.
    others : int array
        For each row a number of its values in the other columns.
    progress : callable
        Told how many rows are done.
    about : callable
        What rows of some passes were made for.
    """

    question: ScoringContext
    name: str
    train: bool
    own: Rows
    pool: Rows
    others: Rows
    progress: Callable[[int], None]
    about: Callable[[list[PredictionJob], int], About]
    waiting: list[PredictionJob] = field(default_factory=list)
    n_waiting: int = 0

    def __post_init__(self) -> None:
        assert self.question.before is not None
        self.known: Predictions = self.question.before
        self.n_values = int(max(self.own.max(), self.pool.max())) + 1
        n_cells = (int(self.others.max()) + 1) * self.n_values
        # For each cell (other columns, value) the place of its prediction; too many of them are not looked up.
        self.place: npt.NDArray[np.int32] | None = None
        if n_cells * (self.known.size // len(self.known)) <= _MOST_CELLS:
            self.place = np.full(n_cells, -1, dtype=np.int32)
            self.place[self.others * self.n_values + self.own] = np.arange(len(self.own))

    def takes(self, one: PredictionJob) -> bool:
        """Whether a pass is of the kind that can be looked up."""
        column = one.changes.get(self.name)
        return isinstance(column, Donors) and column.train == self.train and len(one.changes) == 1

    def add(self, one: PredictionJob) -> None:
        """Take a pass; ask once there is enough for a batch."""
        self.waiting.append(one)
        self.n_waiting += self.question.frames.n_rows if one.rows is None else len(one.rows)
        if self.n_waiting >= self.question.batch_rows:
            self.finish()

    def finish(self) -> None:
        """Ask for what is not known of the passes that wait, and count all of them."""
        passes, self.waiting, self.n_waiting = self.waiting, [], 0
        if not passes:
            return
        every = np.arange(self.question.frames.n_rows)
        rows = np.concatenate([every if one.rows is None else one.rows for one in passes])
        columns = [one.changes[self.name] for one in passes]
        donors = np.concatenate([column.rows for column in columns if isinstance(column, Donors)])
        cells = self.others[rows] * self.n_values + self.pool[donors]
        if self.place is None:
            answers = self._with_own(passes, rows, donors)
        else:
            answers = self._looked_up(self.place, passes, rows, donors, cells)
        start = 0
        for one in passes:
            n = len(every) if one.rows is None else len(one.rows)
            one.tally.add(one, answers[start : start + n], one.rows)
            start += n
        self.progress(len(rows))

    def _with_own(self, passes: list[PredictionJob], rows: Rows, donors: Rows) -> Predictions:
        """Predictions, where those of rows that are given their own value are known."""
        open_rows = np.flatnonzero(self.pool[donors] != self.own[rows])
        answers = self.known[rows]
        found = self._asked(passes, rows, donors, open_rows)
        if found.dtype != answers.dtype:
            answers = answers.astype(np.result_type(answers, found))
        answers[open_rows] = found
        return answers

    def _looked_up(
        self, place: npt.NDArray[np.int32], passes: list[PredictionJob], rows: Rows, donors: Rows, cells: Rows
    ) -> Predictions:
        """Predictions, each cell's asked for once."""
        new = np.flatnonzero(place[cells] < 0)
        place[cells[new]] = new  # of equal cells the last one stays
        new = new[place[cells[new]] == new]
        place[cells[new]] = len(self.known) + np.arange(len(new))
        self.known = np.concatenate([self.known, self._asked(passes, rows, donors, new)])
        return self.known[place[cells]]

    def _asked(self, passes: list[PredictionJob], rows: Rows, donors: Rows, some: Rows) -> Predictions:
        """The model's answers to some of the rows."""
        about, batch = self.about(passes, self.question.frames.n_rows), self.question.batch_rows
        answers = [self.known[:0]]
        for start in range(0, len(some), batch):
            at = some[start : start + batch]
            try:
                answers.append(self._answer(rows[at], donors[at], _RowSubset(about, at)))
            except ModelError:
                self._find_the_one_that_fails(passes, rows, donors, at)
                raise
        return np.concatenate(answers) if len(answers) > 2 else answers[-1]

    def _answer(self, rows: Rows, donors: Rows, about: About) -> Predictions:
        table = self.question.frames.changed(rows, {self.name: Donors(donors, self.train)})
        return self.question.model.predict(table, len(rows), about)

    def _find_the_one_that_fails(self, passes: list[PredictionJob], rows: Rows, donors: Rows, at: Rows) -> None:
        """Ask for each pass of a failed batch alone, so that the error names the repeat."""
        start = 0
        for one in passes if len(passes) > 1 else ():
            end = start + (self.question.frames.n_rows if one.rows is None else len(one.rows))
            mine = at[(at >= start) & (at < end)]
            if len(mine):
                self._answer(rows[mine], donors[mine], _RowSubset(one.about, mine - start))
            start = end


@dataclass(frozen=True, eq=False)
class _RowSubset:
    """What some of the rows of a batch were made for."""

    about: About
    rows: Rows

    def __call__(self, row: int | None = None) -> str:
        return self.about(None if row is None else int(self.rows[row]))


def lookup_for(
    question: ScoringContext,
    feature: Sequence[str],
    redraw: ResampledFeature,
    first: PredictionJob,
    n_repeats: int,
    progress: Callable[[int], None],
    about: Callable[[list[PredictionJob], int], About],
) -> PredictionLookup | None:
    """Whoever looks up the rows of a feature; None where that is not worth while."""
    n = question.frames.n_rows
    column = first.changes.get(feature[0])
    if question.before is None or len(feature) > 1 or not isinstance(column, Donors) or n * n_repeats < LEAST_ROWS:
        return None
    name, classes = feature[0], question.classes
    sampled = n if redraw.sampled is None else int(redraw.sampled.sum())
    if classes is None and sampled * n_repeats < LEAST_ROWS:
        return None
    codes = _codes(question, name, column.train, few=classes is None)
    if codes is None:
        return None
    own, pool = codes
    if classes is None and _share_asked(pool, n_repeats) > MOST_ASKED:
        return None
    others = np.arange(n) if classes is None else _without(question.table, name, classes)
    return PredictionLookup(question, name, column.train, own, pool, others, progress, about)


def _codes(question: ScoringContext, name: str, train: bool, few: bool) -> tuple[Rows, Rows] | None:
    """Numbers of the values of rows, and of donors; None if `few` are asked for and a first look shows many."""
    if question.table.unseen.get(name):
        return None
    own = question.table.values(name)
    if few and len(np.unique(own[:: max(1, len(own) // _LOOK)])) > MOST_ASKED * min(_LOOK, len(own)):
        return None
    if not train:
        if own.dtype.kind == "f" and not np.nanmax(np.abs(own), initial=0.0) < _EXACT:
            return None
        codes: Rows = np.unique(own, return_inverse=True)[1]
        return codes, codes
    import pandas as pd

    rows, donors = question.frames.plain(name), question.frames.plain(name, train=True)
    joined = pd.factorize(np.concatenate([rows, donors]))[0].astype(np.intp) + 1  # missing values have a number too
    return joined[: len(rows)], joined[len(rows) :]


def _share_asked(pool: Rows, n_repeats: int) -> float:
    """The share of rows that are to be asked if rows are given the values of independent draws from a pool."""
    p: Floats = np.bincount(pool) / len(pool)
    return float(((1 - p) * (1 - (1 - p) ** n_repeats)).sum() / n_repeats)


def _without(table: Table, name: str, classes: Rows) -> Rows:
    """For each row a number of its values in the columns but one, of the first row of each class of equal rows."""
    _, first = np.unique(classes, return_index=True)
    others = _joined(table, [other for other in table.names if other != name], first)
    return np.asarray(others[classes])
