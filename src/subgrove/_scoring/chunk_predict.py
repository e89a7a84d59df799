"""Asks the model about redraws of the rows of a batch, and adds up how much its losses grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, Floats
from subgrove._core.moments import Moments
from subgrove._data.replace_columns import Changes, Frames, Rows, changes_of
from subgrove._models.predictor import Predictions, Predictor
from subgrove._scoring.chunk_batch import ChunkBatch
from subgrove._scoring.chunk_sums import FeatureSums, sums_by_group
from subgrove._scoring.row_losses import ALL, RowLosses
from subgrove.exceptions import SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import Feature, title
from subgrove.samplers.redraw import ResampledFeature


@dataclass(eq=False)
class ChunkPredictor:
    """Asks the model about redraws of the rows of a batch, and adds up."""

    model: Predictor
    scoring: RowLosses
    weights: Floats | None
    batch: ChunkBatch
    about: Callable[..., str]
    baseline: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def ask_original(self, n_rows: int) -> Floats:
        """Losses of the rows as they are."""
        about = partial(self.about, "original rows")
        answers = self.model.predict(self.batch.table, n_rows, about)
        self.baseline = self.scoring.rows(answers, ALL, about)
        return self.baseline

    def ask(self, feature: Feature, redraw: ResampledFeature, frames: Frames, n_repeats: int) -> FeatureSums:
        """Sums over all redraws of one feature."""
        n_losses, n = self.baseline.shape
        code, n_groups = redraw.groups.code, len(redraw.groups)
        found = FeatureSums.none(n_losses, n_repeats, n_groups)
        means = np.zeros((n_losses, n))
        sampled = redraw.sampled
        if redraw.exact is not None:
            for rows, increase, share in self._steps(feature, redraw, frames):
                means[:, rows] += increase * share
            self._add_exact(found, means, redraw.exact.rows, code, n_groups)
        if sampled is None or sampled.any():
            self._add_drawn(found, means, feature, redraw, frames)
        drawn = code if sampled is None else code[sampled]
        found.n_drawn += np.bincount(drawn, minlength=n_groups)
        found.n_exact = n - len(drawn)
        found.moments = Moments.of(means, code, n_groups, self.weights)
        return found

    def _steps(
        self, feature: Feature, redraw: ResampledFeature, frames: Frames
    ) -> Iterator[tuple[Rows, Floats, Floats]]:
        assert redraw.exact is not None
        what = f"feature {title(feature)!r}, exact expectation"
        for step in redraw.exact.steps():
            if len(step.rows):
                table = self._built(feature, partial(frames.changed, step.rows, step.changes))
                yield step.rows, self._increase(table, step.rows, what), step.weights

    def _add_exact(
        self, found: FeatureSums, means: Floats, exact: npt.NDArray[np.bool_], code: Codes, n_groups: int
    ) -> None:
        """The same in all repeats."""
        own = None if self.weights is None else self.weights[exact]
        found.sums += sums_by_group(means[:, exact], code[exact], n_groups, own)[:, None, :]

    def _add_drawn(
        self, found: FeatureSums, means: Floats, feature: Feature, redraw: ResampledFeature, frames: Frames
    ) -> None:
        sampled = redraw.sampled
        rows = None if sampled is None else np.flatnonzero(sampled)
        code = redraw.groups.code if rows is None else redraw.groups.code[rows]
        weights = self.weights if rows is None or self.weights is None else self.weights[rows]
        mean = np.zeros((len(means), len(code)))
        squares = np.zeros(mean.shape) if found.sums.shape[1] > 1 else None
        for repeat, changes in enumerate(redraw.draws()):
            table = self._built(feature, partial(self._table, frames, rows, changes))
            increase = self._increase(table, rows, f"feature {title(feature)!r}, repeat {repeat}")
            self.batch.put_back()
            found.sums[:, repeat] += sums_by_group(increase, code, len(redraw.groups), weights)
            if squares is None:
                mean = increase
                continue
            # Welford's update: the spread about the mean of each row, whatever the size of the numbers.
            away = increase - mean
            mean += away / (repeat + 1)
            squares += away * (increase - mean)
        if squares is not None:
            found.spread += sums_by_group(squares, code, len(redraw.groups), weights)
        if rows is None:
            means[:] = mean
        else:
            means[:, rows] = mean

    def _table(self, frames: Frames, rows: Rows | None, changes: Changes) -> Any:
        if rows is None:
            return self.batch.written({name: frames.native(name, column) for name, column in changes.items()})
        return frames.changed(rows, changes_of(changes, rows))

    def _increase(self, table: Any, rows: Rows | None, what: str) -> Floats:
        n = self.baseline.shape[1] if rows is None else len(rows)
        numbers = (lambda row: row) if rows is None else (lambda row: None if row is None else int(rows[row]))

        def about(row: int | None = None) -> str:
            return str(self.about(what, numbers(row)))

        answers: Predictions = self.model.predict(table, n, about)
        increase = self.scoring.rows(answers, ALL if rows is None else rows, about)
        increase -= self.baseline if rows is None else self.baseline[:, rows]
        return increase

    def _built(self, feature: Feature, build: Any) -> Any:
        """A table for the model; values that its columns cannot hold are the sampler's fault."""
        try:
            return build()
        except (SubgroveError, SubgroveWarning):
            raise
        except Exception as error:
            raise SamplerError(
                f"The sampler gave values that the table cannot hold (feature {title(feature)!r}): {error}"
            ) from error
