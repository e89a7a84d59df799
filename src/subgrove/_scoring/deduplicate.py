"""Deduplication: a resampled row equal to one with a known prediction is not predicted again.

A resampled row is identified by two codes: that of its values in the other columns, and that of its new value. If many
rows share a value of the feature (a column that is mostly zero, say), rows receive their own value, or one they had in
an earlier repeat. If whole rows are equal (a table of few levels), rows receive values that equal rows had before.

The lookup takes time, and predictions must be stored. Whether it saves time is decided from the numbers of values and
rows alone, so that the number of predicted rows is reproducible. Results are the same as without it, for a model whose
prediction of a row depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Donors, Frames, Rows
from subgrove._data.table import Table
from subgrove._models.predictor import About, Predictions
from subgrove._scoring.context import BatchDescription, PredictionJob, ScoringContext
from subgrove.exceptions import ModelError
from subgrove.samplers.resampled_feature import ResampledFeature

MIN_ROWS = 20_000  # with fewer rows the lookup takes as long as predicting; and small batches hold several features
MAX_SHARE = 0.75  # maximum share of rows that still have to be predicted
_MAX_CELLS = 4_000_000  # maximum number of pairs of other columns and value
_LOOK = 1_000  # rows of a quick check
_EXACT = 2.0**53  # floats represent integers exactly up to here


def row_classes(table: Table, frames: Frames) -> Rows | None:
    """Return a code for each row, the same for equal rows; None unless at most half of the rows are distinct."""
    if set(table.names) != set(frames.names) or table.unseen:
        return None
    look = np.linspace(0, table.n_rows - 1, min(table.n_rows, _LOOK)).astype(np.intp)
    again = len(look) - _n_distinct(_joint_codes(table, table.names, look))
    # Of D equally frequent distinct rows, about look**2 / 2 D are met again, as long as these are few.
    if again < len(look) / 2 and again * table.n_rows < len(look) ** 2:
        return None
    if table.numbers.size and not np.nanmax(np.abs(table.numbers), initial=0.0) < _EXACT:
        return None
    classes = _joint_codes(table, table.names)
    return classes if _n_distinct(classes) <= table.n_rows / 2 else None


def _n_distinct(codes: Rows) -> int:
    return int(codes.max()) + 1


def _joint_codes(table: Table, names: Sequence[str], rows: Rows | slice = slice(None)) -> Rows:
    """Return codes from 0 of the distinct rows of some columns."""
    joined = np.zeros(len(table.numbers[rows]), dtype=np.intp)
    for name in names:
        _, codes = np.unique(table.values(name)[rows], return_inverse=True)
        _, joined = np.unique(joined * (int(codes.max()) + 1) + codes, return_inverse=True)
    return joined


@dataclass(eq=False)
class PredictionLookup:
    """Known predictions of the resampled rows of one feature, and jobs that wait for unknown ones.

    Attributes
    ----------
    context : ScoringContext
        Model and rows.
    name : str
        The feature.
    train : bool
        Whether donors are training rows.
    own, pool : int arrays
        Code of each row's own value, and of each donor's.
    others : int array
        For each row a code of its values in the other columns.
    progress : callable
        Called with the number of rows that are done.
    """

    context: ScoringContext
    name: str
    train: bool
    own: Rows
    pool: Rows
    others: Rows
    progress: Callable[[int], None]
    waiting: list[PredictionJob] = field(default_factory=list)
    n_waiting: int = 0

    def __post_init__(self) -> None:
        assert self.context.baseline_predictions is not None
        self.known: Predictions = self.context.baseline_predictions
        self.n_values = int(max(self.own.max(), self.pool.max())) + 1
        n_cells = (int(self.others.max()) + 1) * self.n_values
        # For each cell (other columns, value) the position of its prediction; not if there are too many cells.
        self.position: npt.NDArray[np.int32] | None = None
        if n_cells * (self.known.size // len(self.known)) <= _MAX_CELLS:
            self.position = np.full(n_cells, -1, dtype=np.int32)
            self.position[self.others * self.n_values + self.own] = np.arange(len(self.own))

    def takes(self, job: PredictionJob) -> bool:
        """Return whether the rows of a job can be looked up."""
        column = job.changes.get(self.name)
        return isinstance(column, Donors) and column.train == self.train and len(job.changes) == 1

    def add(self, job: PredictionJob) -> Iterator[tuple[PredictionJob, Predictions]]:
        """Take a job; yield predictions once there is enough for a batch."""
        self.waiting.append(job)
        self.n_waiting += job.n_rows(self.context.frames.n_rows)
        if self.n_waiting >= self.context.batch_rows:
            yield from self.finish()

    def finish(self) -> Iterator[tuple[PredictionJob, Predictions]]:
        """Predict unknown rows of the jobs that wait, and yield the predictions of all of them."""
        jobs, self.waiting, self.n_waiting = self.waiting, [], 0
        if not jobs:
            return
        every = np.arange(self.context.frames.n_rows)
        rows = np.concatenate([every if job.rows is None else job.rows for job in jobs])
        columns = [job.changes[self.name] for job in jobs]
        donors = np.concatenate([column.rows for column in columns if isinstance(column, Donors)])
        if self.position is None:
            predictions = self._except_own_values(jobs, rows, donors)
        else:
            predictions = self._by_cell(self.position, jobs, rows, donors)
        yield from BatchDescription(jobs, len(every)).split(predictions)
        self.progress(len(rows))

    def _except_own_values(self, jobs: list[PredictionJob], rows: Rows, donors: Rows) -> Predictions:
        """Return predictions, with known ones where rows are given their own value."""
        unknown = np.flatnonzero(self.pool[donors] != self.own[rows])
        predictions = self.known[rows]
        new = self._predict(jobs, rows, donors, unknown)
        if new.dtype != predictions.dtype:
            predictions = predictions.astype(np.result_type(predictions, new))
        predictions[unknown] = new
        return predictions

    def _by_cell(
        self, position: npt.NDArray[np.int32], jobs: list[PredictionJob], rows: Rows, donors: Rows
    ) -> Predictions:
        """Return predictions; each cell is predicted once."""
        cells = self.others[rows] * self.n_values + self.pool[donors]
        new = np.flatnonzero(position[cells] < 0)
        position[cells[new]] = new  # the last one of equal cells stays
        new = new[position[cells[new]] == new]
        position[cells[new]] = len(self.known) + np.arange(len(new))
        self.known = np.concatenate([self.known, self._predict(jobs, rows, donors, new)])
        predictions: Predictions = self.known[position[cells]]
        return predictions

    def _predict(self, jobs: list[PredictionJob], rows: Rows, donors: Rows, subset: Rows) -> Predictions:
        """Return the predictions of a subset of the rows."""
        about, batch = BatchDescription(jobs, self.context.frames.n_rows), self.context.batch_rows
        predictions = [self.known[:0]]
        for start in range(0, len(subset), batch):
            at = subset[start : start + batch]
            try:
                predictions.append(self._predict_rows(rows[at], donors[at], partial(_about_subset, about, at)))
            except ModelError:
                self._predict_one_by_one(jobs, rows, donors, at)
                raise
        found: Predictions = np.concatenate(predictions) if len(predictions) > 2 else predictions[-1]
        return found

    def _predict_rows(self, rows: Rows, donors: Rows, about: About) -> Predictions:
        table = self.context.frames.changed(rows, {self.name: Donors(donors, self.train)})
        return self.context.predictor.predict(table, len(rows), about)

    def _predict_one_by_one(self, jobs: list[PredictionJob], rows: Rows, donors: Rows, at: Rows) -> None:
        """Predict each job of a failed batch alone, so that the error names the repeat."""
        start = 0
        for job in jobs if len(jobs) > 1 else ():
            end = start + job.n_rows(self.context.frames.n_rows)
            own = at[(at >= start) & (at < end)]
            if len(own):
                self._predict_rows(rows[own], donors[own], partial(_about_subset, job.about, own - start))
            start = end


def _about_subset(about: About, rows: Rows, row: int | None = None) -> str:
    """Describe a row of a batch by its number in a subset of it."""
    return about(None if row is None else int(rows[row]))


def lookup_for(
    context: ScoringContext,
    feature: Sequence[str],
    resampled: ResampledFeature,
    first: PredictionJob,
    n_repeats: int,
    progress: Callable[[int], None],
) -> PredictionLookup | None:
    """Return the lookup of a feature; None where it saves no time."""
    n = context.frames.n_rows
    column = first.changes.get(feature[0])
    known = context.baseline_predictions
    if known is None or len(feature) > 1 or not isinstance(column, Donors):
        return None
    if "row_classes" not in context.cache:
        context.cache["row_classes"] = row_classes(context.table, context.frames)
    name, classes = feature[0], context.cache["row_classes"]
    sampled = n if resampled.sampled is None else int(resampled.sampled.sum())
    if classes is None and sampled * n_repeats < MIN_ROWS:
        return None
    codes = _codes(context, name, column.train, few=classes is None)
    if codes is None:
        return None
    own, pool = codes
    if classes is None and _share_predicted(pool, n_repeats) > MAX_SHARE:
        return None
    others = np.arange(n) if classes is None else _codes_of_others(context.table, name, classes)
    return PredictionLookup(context, name, column.train, own, pool, others, progress)


def _codes(context: ScoringContext, name: str, train: bool, few: bool) -> tuple[Rows, Rows] | None:
    """Return codes of the values of rows, and of donors; None if `few` is set and there are many."""
    if context.table.unseen.get(name):
        return None
    own = context.table.values(name)
    if few and len(np.unique(own[:: max(1, len(own) // _LOOK)])) > MAX_SHARE * min(_LOOK, len(own)):
        return None
    if not train:
        if own.dtype.kind == "f" and not np.nanmax(np.abs(own), initial=0.0) < _EXACT:
            return None
        codes: Rows = np.unique(own, return_inverse=True)[1]
        return codes, codes
    import pandas as pd

    rows, donors = context.frames.plain(name), context.frames.plain(name, train=True)
    joined = pd.factorize(np.concatenate([rows, donors]))[0].astype(np.intp) + 1  # missing values have a code, too
    return joined[: len(rows)], joined[len(rows) :]


def _share_predicted(pool: Rows, n_repeats: int) -> float:
    """Return the share of rows to predict if values are independent draws from a pool."""
    p: Floats = np.bincount(pool) / len(pool)
    return float(((1 - p) * (1 - (1 - p) ** n_repeats)).sum() / n_repeats)


def _codes_of_others(table: Table, name: str, classes: Rows) -> Rows:
    """Return for each row a code of its values in the other columns, computed for one row of each class."""
    _, first = np.unique(classes, return_index=True)
    others = _joint_codes(table, [other for other in table.names if other != name], first)
    return np.asarray(others[classes])
