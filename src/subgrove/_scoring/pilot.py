"""Some hundred rows of large data, on which things are tried out before all rows are asked for.

They tell whether the model, the losses and the sampler work at all; what the subgroups of each feature are; whether
redraws pass for real data; and what a run can be told from another by, for its checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from subgrove._core.parallel import one_blas_thread
from subgrove._core.random import KeyedStreams, Keys
from subgrove._core.text import quote
from subgrove._data.fingerprint import digest_of, exact_digest, fingerprint, rounded
from subgrove._data.replace_columns import Frames
from subgrove._data.table import read_like, read_table
from subgrove._models.predictor import Predictions, Predictor, missing_in, read_target
from subgrove._scale.readers import ChunkedData
from subgrove._scoring.chunk_batch import ChunkBatch, raw_column
from subgrove._scoring.chunks import ChunkWork, ColumnRoles
from subgrove._scoring.fidelity_check.check import FidelityCheck, FidelityChecker
from subgrove._scoring.row_losses import RowLosses, describe_baseline_row
from subgrove._scoring.score import resample
from subgrove.exceptions import InputError, ParameterError
from subgrove.losses import Loss
from subgrove.samplers.base import Feature, title
from subgrove.samplers.redraw import ResampledFeature


@dataclass(frozen=True, eq=False)
class PilotRows:
    """Rows to try things out on.

    Attributes
    ----------
    rows : table
        The columns of the model.
    keys : uint64 array
        Keys of the rows.
    scoring : Scoring
        Losses, once it is known which of them have a value for each row.
    answers : array
        Predictions of the rows.
    """

    rows: Any
    keys: Keys
    names: ColumnRoles
    scoring: RowLosses
    answers: Predictions

    @classmethod
    def of(
        cls,
        table: Any,
        keys: Keys,
        names: ColumnRoles,
        model: Predictor,
        losses: tuple[Loss, ...],
        probabilities: bool,
        sampled: Any,
    ) -> PilotRows:
        """Ask the model about the rows; `sampled` are more rows, whose y tells which classes there are."""
        every = raw_column(sampled, names.target)
        every = every[~missing_in(every)]  # where such rows are judged, their chunk is told
        known = read_target(every, len(every), model.classes, losses, probabilities=probabilities)
        y = raw_column(table, names.target)
        kept = np.flatnonzero(~missing_in(y))
        if not len(kept):
            raise InputError(f"y, {names.target!r}, is missing in all of {len(y)} rows drawn at random. Name another.")
        y, keys = y[kept], keys[kept]
        target = read_target(y, len(y), known.classes, losses, probabilities=probabilities)
        rows = ChunkBatch.of(table, names.model, kept).table
        frames = Frames(rows, ())
        given = frames.changed(slice(0, len(y)), {})
        answers = model.predict(given, len(y), describe_baseline_row)
        model.writes = model.writes or not frames.holds(given, slice(0, len(y)))
        scoring = RowLosses(losses, target, probabilities).settled(answers)
        whole = [loss.name for loss in scoring.losses if not loss.per_row]
        if whole:
            raise ParameterError(
                f"loss {', '.join(whole)} is a score of all rows together, and of large data these are never "
                f"all at hand. Use a loss that has a value for each row, such as 'log_loss' or 'squared_error'."
            )
        return cls(rows, keys, names, scoring, answers)

    def only_columns(self, training: Any) -> Any:
        """Training rows with the columns of the model alone, in the order of these."""
        named = getattr(training, "column_names", None)
        if named is None and not hasattr(training, "columns"):
            raise InputError(
                f"train must be a table with the columns of the model ({quote(self.names.model[:10])}"
                f"{' ...' if len(self.names.model) > 10 else ''}), or such large data; got "
                f"{type(training).__name__}, which has no names of columns."
            )
        present = list(training.columns if named is None else named)
        wanted = [name for name in self.names.model if name in present]
        return training.select(wanted) if hasattr(training, "select") else training[wanted]

    def redraws(self, work: ChunkWork) -> dict[Feature, ResampledFeature]:
        """The redraw of each feature in these rows: the same as when the model is asked."""
        batch = ChunkBatch.of(self.rows, self.names.model, slice(0, len(self.keys)))
        found: dict[Feature, ResampledFeature] = {}
        for feature, fitted in work.samplers.items():
            rngs = KeyedStreams(work.seed, title(feature), work.n_repeats, rows=self.keys)
            found[feature] = resample(fitted.for_feature(feature), batch.read_by(fitted), feature, rngs, None)
        return found

    def fidelity_checks(
        self, work: ChunkWork, redraws: Mapping[Feature, ResampledFeature]
    ) -> dict[Feature, FidelityCheck]:
        """Whether redraws pass for real data, feature by feature."""
        checkers: dict[int, FidelityChecker] = {}
        table = read_table(self.rows, lenient=True)
        found: dict[Feature, FidelityCheck] = {}
        with one_blas_thread():
            for feature, fitted in work.samplers.items():
                if id(fitted) not in checkers:
                    frames = Frames(self.rows, fitted.columns, fitted.train)
                    checkers[id(fitted)] = FidelityChecker.of(frames, table, None, work.seed)
                checker = checkers[id(fitted)]
                found[feature] = checker.check(feature, checker.first_draw(redraws[feature]))
        return found

    def mark(self, work: ChunkWork, redraws: Mapping[Feature, ResampledFeature], data: ChunkedData) -> str:
        """All that sums depend on, a line for each thing."""
        names, rows = self.names, fingerprint(read_table(self.rows, lenient=True))
        lines = {
            "data": data.description,
            "files": data.stamp,
            "rows looked at": sha256(f"{rows} {exact_digest(self.scoring.target.raw)}".encode()).hexdigest()[:16],
            "columns": ", ".join(names.model),
            "y": names.target,
            "weights": names.weights,
            "row_key": names.row_key,
            "features": ", ".join(map(title, work.samplers)),
            "loss": ", ".join(loss.name for loss in work.losses),
            "n_repeats": work.n_repeats,
            "random_state": work.seed,
            "rows left out": sha256(work.left_out.tobytes()).hexdigest()[:16],
            "model": digest_of(self.answers),
            "sampler": self._of_samplers(work, redraws),
        }
        return "\n".join(f"{what}: {value}" for what, value in lines.items())

    def _of_samplers(self, work: ChunkWork, redraws: Mapping[Feature, ResampledFeature]) -> str:
        """Of the subgroups of the rows, and what the first draw gives them."""
        digest = sha256()
        for feature, fitted in work.samplers.items():
            redraw = redraws[feature]
            frames = Frames(self.rows, fitted.columns, fitted.train)
            columns = [column for column in fitted.columns if column.name in feature]
            digest.update(repr((feature, redraw.groups.rules)).encode())
            for changes in redraw.draws():
                table = read_like(frames.changed(slice(0, len(self.keys)), changes), columns)
                digest.update(rounded(table.numbers) + np.ascontiguousarray(table.codes).tobytes())
                break
        return digest.hexdigest()[:16]

    def fingerprint(self, mark: str) -> str:
        """What tells these data from others."""
        lines = [
            line for line in mark.splitlines() if line.split(":")[0] in ("data", "rows looked at", "rows left out")
        ]
        return sha256("\n".join(lines).encode()).hexdigest()[:32]
