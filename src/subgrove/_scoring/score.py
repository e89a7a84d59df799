"""Asking the model: the only step that needs predictions. What follows is arithmetic on what is kept here.

Requirements this design meets:

- the model is asked in large batches, that hold several repeats, and several features where tables are small;
- no table is copied for a repeat: only the redrawn column is written;
- equal rows are asked for once, where they are many (`repeated.py`);
- memory is bounded: a batch has a given number of rows, however many rows there are;
- sums are formed feature by feature and repeat by repeat in the same order whatever the batches are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.parallel import effective_jobs, one_blas_thread, parallel_map, progress_bar
from subgrove._core.random import Streams
from subgrove._data.replace_columns import Changes, Donors, Frames, Rows, changes_of
from subgrove._data.table import Table
from subgrove._models.predictor import Predictions, Predictor
from subgrove._scoring.accumulate import LossAccumulator
from subgrove._scoring.adaptive_repeats import AdaptiveRepeats
from subgrove._scoring.deduplicate import lookup_for, row_classes
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.fidelity_check.check import FidelityChecker
from subgrove._scoring.row_losses import RowLosses
from subgrove.exceptions import ModelError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.redraw import ResampledFeature


@dataclass(frozen=True, eq=False)
class ScoringContext:
    """Everything that the features of one call have in common.

    Attributes
    ----------
    model : Model
        Who is asked.
    frames : Frames
        The rows, for the model.
    table : Table
        The rows, for the sampler.
    sampler : Fitted
        What redraws.
    scoring : Scoring
        How answers are judged.
    baseline : float array
        Losses of the rows as they are: (number of losses, n).
    whole : float array
        FeatureResult of the rows as they are.
    weights : float array or None
        How often each row counts.
    checker : Certifier or None
        Who judges whether redraws pass for real data, if that is asked for.
    answers : float array (n, K), or None
        Predictions of the rows as they are, if they are numbers.
    budget : Budget or None
        When a feature has had redraws enough; `n_repeats` of them if None.
    before : array or None
        Predictions of the rows as they are, as the model gave them. Without them every row is asked for.
    holds_copy : bool
        Whether there is memory for a copy of a table that is larger than a batch; it needs no copying in each repeat.
    """

    model: Predictor
    frames: Frames
    table: Table
    sampler: FittedSampler
    scoring: RowLosses
    baseline: Floats
    whole: Floats
    weights: Floats | None
    n_repeats: int
    seed: int
    batch_rows: int
    checker: FidelityChecker | None = None
    answers: Floats | None = None
    budget: AdaptiveRepeats | None = None
    before: Predictions | None = None
    holds_copy: bool = False

    @cached_property
    def classes(self) -> Rows | None:
        """A number for each row, the same for equal rows, if these are many."""
        return row_classes(self.table, self.frames)


@dataclass(frozen=True, eq=False)
class PredictionJob:
    """Rows to be predicted once: those of one repeat, or of one value of an exact expectation.

    `rows` is None where these are all rows of the table; `repeat` is None in an exact expectation.
    """

    tally: LossAccumulator
    changes: Changes
    rows: Rows | None = None
    repeat: int | None = None
    weights: Floats | None = None
    cells: Rows | None = None

    def about(self, row: int | None = None) -> str:
        """What the rows were made for, in words."""
        what = "exact expectation" if self.repeat is None else f"repeat {self.repeat}"
        at = "" if row is None else f", row {row if self.rows is None else self.rows[row]}"
        return f"feature {self.tally.title!r}, {what}{at}"


def score_features(
    question: ScoringContext, features: Sequence[Feature], progress: Callable[[int], None]
) -> list[FeatureResult]:
    """Scores of features, one after the other, with batches that may hold several of them.

    With a budget, features that need more redraws are asked again, for those that were not asked yet.
    """
    finished: dict[Feature, FeatureResult] = {}
    open_tallies: dict[Feature, LossAccumulator] = {}
    redrawn: dict[Feature, Table | str | None] = {}
    n_repeats, left = question.n_repeats, list(features)
    while left:
        finished |= _one_round(question, left, n_repeats, open_tallies, redrawn, progress)
        left = [feature for feature in left if feature not in finished]
        if question.budget is not None:
            n_repeats = question.budget.more_than(n_repeats)
    if question.checker is None:
        return [finished[feature] for feature in features]
    with one_blas_thread():
        fidelity_checks = {feature: question.checker.check(feature, redrawn[feature]) for feature in features}
    return [replace(finished[feature], fidelity_check=fidelity_checks[feature]) for feature in features]


def _one_round(
    question: ScoringContext,
    features: Sequence[Feature],
    n_repeats: int,
    held: dict[Feature, LossAccumulator],
    redrawn: dict[Feature, Table | str | None],
    progress: Callable[[int], None],
) -> dict[Feature, FeatureResult]:
    """Ask for so many repeats; those that need more are put into `held`, and taken from there by the next round.

    The first redraw of those that are finished is put into `redrawn`.
    """
    asker = BatchPredictor(question, progress)
    waiting: list[LossAccumulator] = []
    finished: dict[Feature, FeatureResult] = {}

    def close() -> None:
        """Finish what has had all its answers, so that no more sums are held than are needed."""
        for tally in [tally for tally in waiting if tally.n_passes == tally.n_added]:
            if question.budget is not None and question.budget.needs_more(tally):
                held[tally.feature] = tally
            else:
                finished[tally.feature], redrawn[tally.feature] = tally.finished(), tally.redrawn
            waiting.remove(tally)

    for feature in features:
        tally, passes = _prepared(question, feature, n_repeats, held.pop(feature, None))
        tally.n_passes = _add_all(asker, tally, passes, n_repeats)
        waiting.append(tally)
        del tally, passes
        close()
    asker.finish()
    close()
    return finished


def _add_all(asker: BatchPredictor, tally: LossAccumulator, passes: Iterator[PredictionJob], n_repeats: int) -> int:
    """Have a feature's passes asked, those of repeated rows once; how many there are."""
    first = next(passes, None)
    if first is None:
        return 0
    question = asker.question
    known = lookup_for(question, tally.feature, tally.redraw, first, n_repeats, asker.progress, BatchDescription)
    n_passes = 0
    for one in chain([first], passes):
        n_passes += 1
        if known is not None and known.takes(one):
            known.add(one)
            continue
        if known is not None:
            known.finish()  # so that sums have the same order whatever the batches are
        asker.add(one)
        if known is not None:
            asker.finish()
    if known is not None:
        known.finish()
    return n_passes


def _prepared(
    question: ScoringContext, feature: Feature, n_repeats: int, before: LossAccumulator | None
) -> tuple[LossAccumulator, Iterator[PredictionJob]]:
    """The sums of a feature, and what is to be asked for them; `before` has been asked already."""
    rngs = Streams(question.seed, title(feature), n_repeats)
    per_row = len(question.scoring.per_row) == len(question.scoring.losses)
    redraw = resample(question.sampler, question.table, feature, rngs, question.weights, exact=per_row)
    more = None if before is None else before.extended(redraw, n_repeats)
    if before is not None and more is not None:
        return more, _passes(more, redraw, before.n_repeats)
    tally = LossAccumulator(
        feature,
        redraw,
        question.scoring,
        question.baseline,
        question.whole,
        question.weights,
        n_repeats,
        question.answers,
    )
    return tally, _passes(tally, redraw, 0, question.checker)


def resample(
    sampler: FittedSampler, table: Table, feature: Feature, rngs: Streams, weights: Floats | None, *, exact: bool = True
) -> ResampledFeature:
    """The redraw of a feature; what a sampler raises is told with the feature's name."""
    try:
        return sampler.resample(table, feature, rngs, weights=weights, exact=exact)
    except (SubgroveError, SubgroveWarning):
        raise
    except Exception as error:
        raise SamplerError(
            f"The sampler raised {type(error).__name__} for feature {title(feature)!r}: {error}"
        ) from error


def _passes(
    tally: LossAccumulator, redraw: ResampledFeature, done: int, checker: FidelityChecker | None = None
) -> Iterator[PredictionJob]:
    """What is to be asked after `done` repeats."""
    if redraw.exact is not None and not done:
        for step in redraw.exact.steps():
            if len(step.rows):
                yield PredictionJob(tally, step.changes, step.rows, None, step.weights, step.cells)
    sampled = redraw.sampled
    if sampled is not None and not sampled.any():
        if checker is not None:
            tally.redrawn = checker.first_draw(redraw)
        return
    rows = None if sampled is None else np.flatnonzero(sampled)
    for repeat, changes in enumerate(redraw.draws()):
        if repeat < done:
            continue
        if repeat == 0 and checker is not None:
            tally.redrawn = checker.read_draw(changes)
        if rows is not None:
            changes = changes_of(changes, rows)
        yield PredictionJob(tally, changes, rows, repeat)


@dataclass(eq=False)
class BatchPredictor:
    """Collects passes until a batch is full, then asks."""

    question: ScoringContext
    progress: Callable[[int], None]
    whole: list[PredictionJob] = field(default_factory=list)
    parts: list[PredictionJob] = field(default_factory=list)
    n_waiting: int = 0
    tile: Any = None

    def __post_init__(self) -> None:
        self.times = max(1, self.question.batch_rows // self.question.frames.n_rows)

    def add(self, one: PredictionJob) -> None:
        """Take a pass; ask once there is enough for a batch."""
        if one.rows is None and self.question.frames.n_rows <= self.question.batch_rows:
            self.whole.append(one)
            if len(self.whole) == self.times:
                self._ask_whole()
            return
        n_rows = self.question.frames.n_rows if one.rows is None else len(one.rows)
        if one.rows is None or n_rows > self.question.batch_rows:
            self.finish()  # what waits comes first, so that sums have the same order whatever the batches are
            self._ask_in_pieces(one, n_rows)
            return
        if self.parts and (
            self.n_waiting + n_rows > self.question.batch_rows or self.parts[0].changes.keys() != one.changes.keys()
        ):
            self._ask_parts()
        self.parts.append(one)
        self.n_waiting += n_rows

    def finish(self) -> None:
        """Ask for what is left."""
        if self.whole:
            self._ask_whole()
        if self.parts:
            self._ask_parts()

    def _ask_whole(self) -> None:
        """All rows, once for each pass."""
        n = self.question.frames.n_rows
        if self.tile is None:
            self.tile = self.question.frames.tile(len(self.whole))
        table = self._built(self.whole, lambda: self.tile.fill([one.changes for one in self.whole]))
        answers = self._ask(table, self.whole)
        for at, one in enumerate(self.whole):
            one.tally.add(one, answers[at * n : (at + 1) * n], None)
        self.whole = []

    def _ask_parts(self) -> None:
        """Some rows of several passes of the same feature."""
        rows = np.concatenate([one.rows for one in self.parts if one.rows is not None])
        changes = {name: _joined([one.changes[name] for one in self.parts]) for name in self.parts[0].changes}
        table = self._built(self.parts, lambda: self.question.frames.changed(rows, changes))
        answers = self._ask(table, self.parts)
        start = 0
        for one in self.parts:
            assert one.rows is not None
            one.tally.add(one, answers[start : start + len(one.rows)], one.rows)
            start += len(one.rows)
        self.parts, self.n_waiting = [], 0

    def _ask_in_pieces(self, one: PredictionJob, n_rows: int) -> None:
        """A pass that is larger than a batch."""
        pieces = []
        held = self._filled(one) if one.rows is None and self.question.holds_copy else None
        for start in range(0, n_rows, self.question.batch_rows):
            piece = slice(start, min(start + self.question.batch_rows, n_rows))
            if held is not None:
                table = held.rows(piece)
            else:
                changes = changes_of(one.changes, piece)
                rows = piece if one.rows is None else one.rows[piece]
                table = self._built([one], partial(self.question.frames.changed, rows, changes))
            n = piece.stop - piece.start
            pieces.append(self.question.model.predict(table, n, one.about))
            self.progress(n)
        one.tally.add(one, np.concatenate(pieces), one.rows)

    def _filled(self, one: PredictionJob) -> Any:
        """The copy of the whole table, whose rows a batch is taken from as they lie, with the columns of a pass."""
        if self.tile is None:
            self.tile = self.question.frames.tile(1)
        self._built([one], lambda: self.tile.fill([one.changes]))
        return self.tile

    def _built(self, passes: list[PredictionJob], build: Callable[[], Any]) -> Any:
        """A table for the model; values that its columns cannot hold are the sampler's fault."""
        try:
            return build()
        except (SubgroveError, SubgroveWarning):
            raise
        except Exception as error:
            about = BatchDescription(passes, self.question.frames.n_rows)
            raise SamplerError(
                f"The sampler gave values that the table cannot hold ({about(None)}): {error}"
            ) from error

    def _ask(self, table: Any, passes: list[PredictionJob]) -> Predictions:
        together = BatchDescription(passes, self.question.frames.n_rows)
        try:
            answers = self.question.model.predict(table, together.n_rows, together)
        except ModelError:
            self._find_the_one_that_fails(passes)
            raise
        self.progress(together.n_rows)
        return answers

    def _find_the_one_that_fails(self, passes: list[PredictionJob]) -> None:
        """Ask for each pass of a failed batch alone, so that the error names the feature and the repeat."""
        for one in passes if len(passes) > 1 else ():
            rows: slice | Rows = slice(None) if one.rows is None else one.rows
            table = self.question.frames.changed(rows, one.changes)
            self.question.model.predict(table, BatchDescription([one], self.question.frames.n_rows).n_rows, one.about)


class BatchDescription:
    """What a batch of passes was made for."""

    def __init__(self, passes: list[PredictionJob], n_rows: int) -> None:
        self.passes = passes
        self.ends = np.cumsum([n_rows if one.rows is None else len(one.rows) for one in passes])
        self.n_rows = int(self.ends[-1])

    def __call__(self, row: int | None = None) -> str:
        if row is not None:
            at = int(np.searchsorted(self.ends, row, side="right"))
            return self.passes[at].about(row - (int(self.ends[at - 1]) if at else 0))
        first, last = self.passes[0].about(), self.passes[-1].about()
        return first if len(self.passes) == 1 else f"{first} to {last}"


def _joined(columns: list[Any]) -> Any:
    if isinstance(columns[0], Donors):
        return Donors(np.concatenate([column.rows for column in columns]), columns[0].train, columns[0].representatives)
    return np.concatenate(columns)


def score_all(
    question: ScoringContext, features: tuple[Feature, ...], n_jobs: int | None, progress: bool | None
) -> list[FeatureResult]:
    """Score features in several processes."""
    total = question.frames.n_rows * question.n_repeats * len(features)
    workers = min(effective_jobs(n_jobs), len(features))
    with progress_bar(progress, total, "Predicting") as done:
        if workers == 1:
            return score_features(question, features, done)
        shares = [features[at::workers] for at in range(workers)]
        found: dict[Feature, FeatureResult] = {}
        for share, (scores, n_rows, n_calls) in zip(
            shares, parallel_map(_FeatureWork(question), shares, n_jobs), strict=True
        ):
            found |= dict(zip(share, scores, strict=True))
            question.model.n_rows += n_rows
            question.model.n_calls += n_calls
            done(n_rows)
        return [found[feature] for feature in features]


class _FeatureWork:
    """The share of one worker."""

    def __init__(self, question: ScoringContext) -> None:
        self.question = question

    def __call__(self, features: tuple[Feature, ...]) -> tuple[list[FeatureResult], int, int]:
        question = replace(self.question, model=self.question.model.fresh())
        return score_features(question, features, _no_progress), question.model.n_rows, question.model.n_calls


def _no_progress(done: int) -> None:
    """Workers in other processes show no bar."""
