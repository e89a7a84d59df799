"""Rows that are redrawn and rows that they are compared with, and what comes of each comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.parallel import one_blas_thread
from subgrove._core.random import Streams, stream
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_like
from subgrove._fidelity.classifier import held_out_auc
from subgrove._fidelity.fit_samplers import Fit
from subgrove._fidelity.mmd import Pairs, sample_two
from subgrove._fidelity.result import UNCHANGED
from subgrove._scoring.fidelity_check.encoding import PointEncoding, columns_with_missing
from subgrove.exceptions import InputError, SubgroveError
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.user_defined import UserSampler

_LEAST_ROWS = 4


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """The rows of a question.

    Attributes
    ----------
    encoding : Encoding
        How rows become points.
    rows : frame, table or 2-d array
        The user's test rows.
    test, reference : Table
        Test rows, and rows to compare them with; the latter is None if it is to be half of the test rows.
    max_rows : int
        Most rows of both together.
    gaps : set of str
        Columns of numbers that have missing values somewhere.
    """

    encoding: PointEncoding
    rows: Any
    test: Table
    reference: Table | None
    max_rows: int
    gaps: frozenset[str]

    @classmethod
    def of(cls, train: Table, rows: Any, reference: Any, max_rows: int) -> ComparisonData:
        """The rows, read as the training rows are."""
        test = read_like(rows, train.columns, argument="test")
        if test.n_rows < _LEAST_ROWS:
            raise InputError(f"test has {test.n_rows} rows; at least {_LEAST_ROWS} are needed to compare two halves.")
        other = None if reference is None else read_like(reference, train.columns, argument="reference")
        if other is not None and other.n_rows < 2:
            raise InputError(f"reference has {other.n_rows} row; at least 2 are needed.")
        tables = [train, test, *([] if other is None else [other])]
        return cls(PointEncoding.of(train), rows, test, other, max_rows, columns_with_missing(tables))

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows that are redrawn, and of those that they are compared with."""
        redrawn, reference = self.halves(np.random.default_rng(0))
        return len(redrawn), len(reference)

    def halves(self, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Rows to redraw, of the test rows; and rows to compare with, of the reference or else of the test rows."""
        n = self.test.n_rows
        if self.reference is None:
            shuffled = rng.permutation(n)[: self.max_rows]
            half = len(shuffled) // 2
            return np.sort(shuffled[:half]), np.sort(shuffled[half:])
        theirs, own = sample_two(self.reference.n_rows, n, self.max_rows, rng)
        return np.arange(n)[own], np.arange(self.reference.n_rows)[theirs]


@dataclass(frozen=True, eq=False)
class FidelityComparison:
    """Which features are redrawn by which samplers, how often.

    Attributes
    ----------
    data : Data
        The rows.
    fits : mapping
        Sampler -> feature -> fitted sampler, or why there is none.
    n_repeats, seed : int
        Number of repeats, and what their randomness starts from.
    classifier : bool or object
        Whether a classifier is asked, too, and which.
    """

    data: ComparisonData
    fits: Mapping[str, Mapping[Feature, Fit]]
    n_repeats: int
    seed: int
    classifier: Any


@dataclass(frozen=True, eq=False)
class ComparisonResult:
    """What comes of one feature: arrays (samplers, repeats), NaN where a sampler failed, and why it did."""

    squared_mmd: Floats
    auc: Floats
    notes: Mapping[str, str]


@dataclass(frozen=True)
class ComparisonTask:
    """One feature, and the samplers that redraw it."""

    feature: Feature
    samplers: tuple[str, ...]


def comparison_tasks(fits: Mapping[str, Mapping[Feature, Fit]]) -> list[ComparisonTask]:
    """A task for each feature; unchanged rows are the same for all of them, and have a task of their own."""
    features = list(fits[UNCHANGED])
    redrawn = tuple(name for name in fits if name != UNCHANGED)
    return [ComparisonTask(features[0], (UNCHANGED,)), *(ComparisonTask(feature, redrawn) for feature in features)]


def compare(question: FidelityComparison, task: ComparisonTask) -> ComparisonResult:
    """What comes of one feature with each of the samplers of a task."""
    squared, auc = np.full((2, len(task.samplers), question.n_repeats), np.nan)
    fits = [question.fits[name][task.feature] for name in task.samplers]
    notes = {name: fit for name, fit in zip(task.samplers, fits, strict=True) if isinstance(fit, str)}
    with one_blas_thread():
        for repeat in range(question.n_repeats):
            part = _ComparisonRepeat.of(question, task.feature, repeat)
            for place, (name, fit) in enumerate(zip(task.samplers, fits, strict=True)):
                if name in notes or isinstance(fit, str):
                    continue
                try:
                    squared[place, repeat], auc[place, repeat] = part.judged(fit)
                except SubgroveError as error:
                    notes[name] = str(error)
                    squared[place] = auc[place] = np.nan
    return ComparisonResult(squared, auc, notes)


@dataclass(frozen=True, eq=False)
class _ComparisonRepeat:
    """One repeat of one feature.

    Attributes
    ----------
    own : frame, table or 2-d array
        The rows that are redrawn.
    table, reference : Table
        These rows, and those that they are compared with.
    pairs : Pairs
        Of both, by the columns that stay.
    """

    question: FidelityComparison
    feature: Feature
    repeat: int
    own: Any
    reference: Table
    pairs: Pairs

    @classmethod
    def of(cls, question: FidelityComparison, feature: Feature, repeat: int) -> _ComparisonRepeat:
        """The rows of a repeat, the same for all features."""
        data = question.data
        redrawn, compared = data.halves(stream(question.seed, f"halves {repeat}"))
        reference = _rows(data.test if data.reference is None else data.reference, compared)
        stay = [name for name in data.test.names if name not in feature]
        points = [data.encoding.points(table, stay, data.gaps) for table in (reference, _rows(data.test, redrawn))]
        own = Frames(data.rows, data.test.columns).changed(redrawn, {})
        return cls(question, feature, repeat, own, reference, Pairs.of(*points))

    def judged(self, fitted: FittedSampler) -> tuple[float, float]:
        """Squared MMD and held-out AUC of the rows that a sampler gives."""
        data = self.question.data
        redrawn = read_like(self._redrawn(fitted), data.test.columns, argument="test")
        changed = [data.encoding.points(table, self.feature, self.feature) for table in (self.reference, redrawn)]
        squared = self.pairs.squared_mmd(changed[0], [changed[1]])
        if self.question.classifier is False:
            return squared, float("nan")
        gaps = {*data.gaps, *self.feature}
        real, drawn = (data.encoding.points(table, data.test.names, gaps) for table in (self.reference, redrawn))
        seed = int(stream(self.question.seed, f"classifier {self.repeat}").integers(2**31))
        return squared, held_out_auc(real, drawn, self.question.classifier, seed)

    def _redrawn(self, fitted: FittedSampler) -> Any:
        """The rows in their own container, with the feature redrawn."""
        frames = Frames(self.own, fitted.columns, fitted.train)
        if isinstance(fitted, UserSampler):
            fitted, streams, at = replace(fitted, X=self.own), self._streams(1, f" {self.repeat}"), 0
        else:  # the draw of this repeat, for some samplers take another tree in each
            streams, at = self._streams(self.question.n_repeats), self.repeat
        draws = fitted.resample(fitted.read(self.own), self.feature, streams, exact=False).draws()
        return frames.changed(slice(0, frames.n_rows), next(islice(draws, at, None)))

    def _streams(self, n: int, more: str = "") -> Streams:
        return Streams(self.question.seed, title(self.feature) + more, n)


def _rows(table: Table, rows: Rows) -> Table:
    return replace(table, numbers=table.numbers[rows], codes=table.codes[rows])
