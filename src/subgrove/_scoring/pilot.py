"""`PilotRows`: a few hundred rows of large data, used before all rows are predicted.

They show whether the model, the losses and the sampler work, have the subgroups of each feature, and serve the fidelity
checks and the identification of a run by its checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from subgrove._core.execution import KeyedStreams, Keys, one_blas_thread
from subgrove._core.text import quote
from subgrove._data.replace_columns import Frames
from subgrove._data.table import digest_of, exact_digest, fingerprint, read_like, read_once, read_table, rounded
from subgrove._models.predictor import Predictions, Predictor, missing_in, read_target
from subgrove._scale.readers import ChunkedData
from subgrove._scoring.chunks import ChunkWork, ColumnRoles, raw_column, rows_for_model
from subgrove._scoring.context import check_repeatable, resample
from subgrove._scoring.fidelity_check import FidelityCheck, FidelityChecker
from subgrove._scoring.row_losses import RowLosses, describe_baseline_row
from subgrove.exceptions import InputError, ParameterError
from subgrove.losses import Loss
from subgrove.samplers.base import Feature, title
from subgrove.samplers.resampled_feature import ResampledFeature


@dataclass(frozen=True, eq=False)
class PilotRows:
    """A few hundred rows drawn at random.

    Attributes
    ----------
    rows : table
        The columns of the model.
    keys : uint64 array
        Keys of the rows.
    columns : ColumnRoles
        Columns of the data.
    losses : RowLosses
        Losses and target of the rows.
    predictions : array
        Predictions of the rows.
    """

    rows: Any
    keys: Keys
    columns: ColumnRoles
    losses: RowLosses
    predictions: Predictions

    @classmethod
    def of(
        cls,
        table: Any,
        keys: Keys,
        columns: ColumnRoles,
        predictor: Predictor,
        losses: tuple[Loss, ...],
        probabilities: bool,
        sampled: Any,
    ) -> PilotRows:
        """Predict the rows; `sampled` are more rows, whose y has the classes."""
        every = raw_column(sampled, columns.target)
        every = every[~missing_in(every)]  # the error for evaluated rows names their chunk
        known = read_target(every, len(every), predictor.classes, losses, probabilities=probabilities)
        y = raw_column(table, columns.target)
        present = np.flatnonzero(~missing_in(y))
        if not len(present):
            raise InputError(f"y, {columns.target!r}, is missing in all of {len(y)} sampled rows.")
        y, keys = y[present], keys[present]
        target = read_target(y, len(y), known.classes, losses, probabilities=probabilities)
        rows = rows_for_model(table, columns.model, present)
        frames = Frames(rows, ())
        copied = frames.changed(slice(0, len(y)), {})
        predictions = predictor.predict(copied, len(y), describe_baseline_row)
        predictor.writes = predictor.writes or not frames.holds(copied, slice(0, len(y)))
        check_repeatable(predictor, frames, predictions)
        row_losses = RowLosses(losses, target, probabilities).settled(predictions)
        scores = [loss.name for loss in row_losses.losses if not loss.per_row]
        if scores:
            raise ParameterError(
                f"loss {', '.join(scores)} is a score of all rows together, which cannot be computed from chunks of "
                f"large data. Use a loss that has a value for each row, such as 'log_loss' or 'squared_error'."
            )
        return cls(rows, keys, columns, row_losses, predictions)

    def only_columns(self, training: Any) -> Any:
        """Return training rows with the columns of the model only, in their order."""
        named = getattr(training, "column_names", None)
        if named is None and not hasattr(training, "columns"):
            raise InputError(
                f"train must be a table with the columns of the model ({quote(self.columns.model[:10])}"
                f"{' ...' if len(self.columns.model) > 10 else ''}), or large data with these; got "
                f"{type(training).__name__}, which has no column names."
            )
        present = list(training.columns if named is None else named)
        wanted = [name for name in self.columns.model if name in present]
        return training.select(wanted) if hasattr(training, "select") else training[wanted]

    def resample(self, work: ChunkWork) -> dict[Feature, ResampledFeature]:
        """Resample each feature in these rows, as it is resampled in chunks."""
        resampled: dict[Feature, ResampledFeature] = {}
        with read_once(self.rows):
            for feature, fitted in work.samplers.items():
                streams = KeyedStreams(work.seed, title(feature), work.n_repeats, rows=self.keys)
                resampled[feature] = resample(fitted, fitted.read(self.rows), feature, streams, None)
        return resampled

    def fidelity_checks(
        self, work: ChunkWork, resampled: Mapping[Feature, ResampledFeature]
    ) -> dict[Feature, FidelityCheck]:
        """Check for each feature that resampled rows are realistic."""
        checkers: dict[int, FidelityChecker] = {}
        table = read_table(self.rows, lenient=True)
        checks: dict[Feature, FidelityCheck] = {}
        with one_blas_thread():
            for feature, fitted in work.samplers.items():
                if id(fitted) not in checkers:
                    frames = Frames(self.rows, fitted.columns, fitted.train)
                    options = (fitted, fitted.read(self.rows), None, work.seed, self.keys)
                    checkers[id(fitted)] = FidelityChecker.of(frames, table, *options)
                checker = checkers[id(fitted)]
                checks[feature] = checker.check(feature, checker.read((), partial(resampled.__getitem__, feature)))
        return checks

    def describe_inputs(self, work: ChunkWork, resampled: Mapping[Feature, ResampledFeature], data: ChunkedData) -> str:
        """Return everything that sums depend on, a line for each input."""
        columns, rows = self.columns, fingerprint(read_table(self.rows, lenient=True))
        lines = {
            "data": data.description,
            "files": data.stamp,
            "rows looked at": sha256(f"{rows} {exact_digest(self.losses.target.raw)}".encode()).hexdigest()[:16],
            "columns": ", ".join(columns.model),
            "y": columns.target,
            "weights": f"{columns.weights} (frequencies)" if columns.frequencies else columns.weights,
            "row_key": columns.row_key,
            "features": ", ".join(map(title, work.samplers)),
            "loss": ", ".join(loss.name for loss in work.losses),
            "n_repeats": work.n_repeats,
            "random_state": work.seed,
            "rows left out": sha256(work.left_out.tobytes()).hexdigest()[:16],
            "model": digest_of(self.predictions),
            "sampler": self._digest_of_samplers(work, resampled),
        }
        return "\n".join(f"{what}: {value}" for what, value in lines.items())

    def _digest_of_samplers(self, work: ChunkWork, resampled: Mapping[Feature, ResampledFeature]) -> str:
        """Return a digest of the subgroups of the rows and of their first draw."""
        digest = sha256()
        for feature, fitted in work.samplers.items():
            own = resampled[feature]
            frames = Frames(self.rows, fitted.columns, fitted.train)
            columns = [column for column in fitted.columns if column.name in feature]
            digest.update(repr((feature, own.groups.rules)).encode())
            for changes in own.draws():
                table = read_like(frames.changed(slice(0, len(self.keys)), changes), columns)
                digest.update(rounded(table.numbers) + np.ascontiguousarray(table.codes).tobytes())
                break
        return digest.hexdigest()[:16]

    def fingerprint(self, inputs: str) -> str:
        """Return what identifies the data."""
        labels = ("data", "rows looked at", "rows left out")
        lines = [line for line in inputs.splitlines() if line.split(":")[0] in labels]
        return sha256("\n".join(lines).encode()).hexdigest()[:32]
