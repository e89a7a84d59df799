"""Effects of large data: grid points from a uniform sample, means over all rows, accumulated chunk by chunk.

Grids, box statistics and outliers need rows in memory and come from the sample; counts and curves use all rows. A chunk
is read, assigned to subgroups, predicted, and summarized by moments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._core.moments import Moments
from subgrove._core.validate import warn
from subgrove._core.weights import FrequencyWeights, kish_scale, read_raw_weights, unwrapped
from subgrove._data.columns import ColumnInfo, values_like
from subgrove._data.from_containers import untyped_columns
from subgrove._data.replace_columns import Frames
from subgrove._data.table import digest_of, fingerprint, read_table
from subgrove._effects.ale import AccumulatedEffects
from subgrove._effects.curves import CurveSummary
from subgrove._effects.grid import as_points, has_levels
from subgrove._effects.plan import EffectPlan, EffectSpec, summaries_together
from subgrove._effects.result import Effect
from subgrove._effects.subgroup_rows import EffectGroup, FeatureData, SubgroupRows, count_values, rows_by_subgroup
from subgrove._models.tree_ensemble.reading import TREE_STEPS, model_predictions
from subgrove._scale import LargeData
from subgrove._scale.engines import ChunkArrays, run_chunks
from subgrove._scale.large_data import check_column_name, model_columns, select_columns
from subgrove._scale.readers import Chunk, ChunkedData, sample_rows
from subgrove._scoring.context import check_repeatable
from subgrove._subgroups import Subgroups
from subgrove.exceptions import SubgroveError, SubgroveWarning, UnseenValueWarning

_FINGERPRINT_ROWS = 400  # rows that identify the model and the data of a checkpoint
_CHECKED_ROWS = 20  # sampled rows that are predicted to see whether the model predicts ten of them the same once more
SEED = 0  # of the sample, so that the same call gives the same numbers


@dataclass(frozen=True, eq=False)
class LargeRows:
    """Large data, and a uniform sample of its rows.

    Attributes
    ----------
    data : ChunkedData
        All rows.
    columns : tuple of str
        Columns of the model.
    weight : str or None
        Column of sample weights.
    frequencies : bool
        Whether these are frequencies of rows.
    table, weights
        The sampled rows and their weights.
    sampled : (int, int)
        Number of sampled rows and of all rows.
    checkpoint : path or None
        Folder of finished chunks.
    """

    data: ChunkedData
    columns: tuple[str, ...]
    weight: str | None
    frequencies: bool
    table: Any
    weights: Any
    sampled: tuple[int, int]
    checkpoint: Path | None

    @classmethod
    def of(cls, model: Any, X: LargeData, spec: EffectSpec, sample_weight: Any) -> LargeRows:
        """Open the data, and draw the sample."""
        data = X.read()
        data.reject_unknown(spec.names, "feature")
        frequencies = isinstance(sample_weight, FrequencyWeights)
        weight = check_column_name(unwrapped(sample_weight), data, "sample_weight", "which holds the sample weights")
        groups = spec.subgroups
        known = tuple(column.name for column in groups.columns) if isinstance(groups, Subgroups) else ()
        columns = model_columns(data, model, known, (weight, X.row_key))
        run = partial(run_chunks, n_jobs=spec.n_jobs, what="Sampling rows")
        drawn = sample_rows(data, [*columns, *([weight] if weight else [])], X.sample_size, SEED, X.row_key, run)
        weights = drawn.table[weight] if weight else None
        return cls(
            data=replace(data, chunks=drawn.chunks),
            columns=tuple(columns),
            weight=weight,
            frequencies=frequencies,
            table=select_columns(drawn.table, columns),
            weights=FrequencyWeights(weights) if frequencies else weights,
            sampled=(drawn.n, drawn.of),
            checkpoint=X.folder,
        )


def effect_of_chunks(model: Any, large: LargeRows, spec: EffectSpec) -> Effect:
    """Compute the effect of a feature over all rows of large data."""
    plan = EffectPlan.of(model, spec.read_data(large.table, large.weights), spec)
    sums = _sum_chunks(plan, large, spec)
    _warn_of_unseen_levels(spec.names, sums["unseen"])
    spreads = _spreads(plan)
    chunks, by_trees = sums.get("by trees", (1.0, 0.0))  # a checkpoint of an older version has none
    reason = f"trees served {by_trees:.0f} of {chunks:.0f} chunks"
    plan.predictor.evaluation = TREE_STEPS if by_trees == chunks else model_predictions(reason)
    if by_trees < chunks:
        _check_sampled_rows(plan)
    curves = []
    for number, layout in enumerate(plan.layouts):
        if (moments := sums.get(f"curve {number}")) is not None:
            n, spread = float(sums[f"rows {number}"]), spreads.get(layout.subgroup)
            curves.append(plan.kind.curve(layout, CurveSummary(n, moments.n, moments.mean, moments.m2, spread)))
    groups = [_group(rows, sums, k) for k, rows in enumerate(plan.rows)]
    return plan.effect(spec, groups, curves, large.data.backend, sampled=large.sampled)


def _rows_of_levels(data: FeatureData) -> FeatureData:
    """Return one sampled row for each level of the features."""
    rows = np.unique(np.concatenate([rows[rows >= 0] for rows in data.level_rows] + [np.zeros(1, dtype=np.intp)]))
    return FeatureData(data.frames.changed(rows, {}), data.infos, tuple(x[rows] for x in data.x), None)


@dataclass(frozen=True, eq=False)
class _ChunkWork:
    """The work for each chunk: read, assign to subgroups, predict, summarize. It is sent to workers once.

    `plan` contains no rows but one for each level, whose values are copied into the rows of chunks.
    """

    plan: EffectPlan
    columns: tuple[str, ...]
    weight: str | None

    def __call__(self, chunk: Chunk) -> ChunkArrays:
        """Return the sums of a chunk; errors are re-raised with its name."""
        try:
            return self._sums(chunk)
        except (SubgroveError, SubgroveWarning) as error:
            raise type(error)(f"{chunk.name}: {error}") from error

    def _sums(self, chunk: Chunk) -> ChunkArrays:
        """Return moments of each curve, counts of each subgroup, and the number of predictions."""
        data, n_unseen = self._read(chunk)
        rows = rows_by_subgroup(data, self.plan.partition)
        plan = replace(self.plan, predictor=self.plan.predictor.fresh())
        sums = _counts(data.infos, rows)
        for number, summary in summaries_together([(plan, rows)])[0].items():
            sums[f"curve {number}"] = np.array([summary.counts, summary.mean, summary.m2])
            sums[f"rows {number}"] = np.array(summary.n)
        if data.weights is not None:
            sums["squares"] = np.array((data.weights**2).sum())
        sums["unseen"] = np.array(n_unseen, dtype=np.float64)
        sums["by trees"] = np.array([1.0, plan.predictor.evaluation == TREE_STEPS])
        counts = [plan.predictor.model.n_rows, plan.predictor.model.n_calls, plan.predictor.n_outputs]
        return sums | {"predicted": np.array(counts, dtype=np.float64)}

    def _read(self, chunk: Chunk) -> tuple[FeatureData, list[int]]:
        """Return the rows of a chunk, and for each feature the number of rows with a level that the sample lacks."""
        whole = chunk.read([*self.columns, *([self.weight] if self.weight else [])])
        table = select_columns(whole, list(self.columns))
        weights = _chunk_weights(whole[self.weight], chunk.n_rows) if self.weight else None
        columns = untyped_columns(table, "X", only=self.plan.data.names)
        x, n_unseen = [], []
        for which, info in enumerate(self.plan.data.infos):
            plain = columns[info.name]
            values, _ = values_like(plain, info, "X")
            points = as_points(info, values)
            missing = np.isnan(plain.values) if plain.kind == "numeric" else plain.values < 0
            n_unseen.append(int((self._without_point(which, points) & ~missing).sum()))
            x.append(points)
        return FeatureData(table, self.plan.data.infos, tuple(x), weights, self.plan.data), n_unseen

    def _without_point(self, which: int, points: Floats) -> npt.NDArray[np.bool_]:
        """Return a mask of rows whose level no sampled row has, so that its value cannot be copied."""
        absent = np.isnan(points)
        if has_levels(self.plan.data.infos[which]):
            present = self.plan.data.level_rows[which] >= 0
            absent[~absent] = ~present[points[~absent].astype(np.intp)]
        return absent


def _chunk_weights(column: Any, n_rows: int) -> Floats:
    """Return the weights of a chunk, which may all be 0, unlike those of all rows."""
    values = np.asarray(column)
    return np.zeros(n_rows) if not np.any(values) else read_raw_weights(values, n_rows)


def _counts(infos: Sequence[ColumnInfo], rows: Sequence[SubgroupRows]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the weights of subgroups, of missing values and of levels."""
    sums = {"n": np.array([each.n for each in rows])}
    for which, info in enumerate(infos):
        counts = [count_values(info, each.x[which], each.weights) for each in rows]
        sums[f"missing {which}"] = np.array([missing for missing, _ in counts])
        if has_levels(info):
            sums[f"levels {which}"] = np.array([levels for _, levels in counts])
    return sums


def _sum_chunks(plan: EffectPlan, large: LargeRows, spec: EffectSpec) -> dict[str, Any]:
    """Return the sums of all chunks, merged in their order, and count their predictions."""
    total: dict[str, Any] = {}
    what = f"Effect of {' and '.join(spec.names)}"
    mark = _checkpoint_key(plan, large, spec) if large.checkpoint is not None else ""
    work = _ChunkWork(replace(plan, data=_rows_of_levels(plan.data), rows=[]), large.columns, large.weight)
    options: dict[str, Any] = {"n_jobs": spec.n_jobs, "what": what, "checkpoint": large.checkpoint, "mark": mark}
    for _, sums in run_chunks(work, large.data.chunks, **options):
        plan.predictor.count(*(int(value) for value in sums["predicted"]))
        for name, array in sums.items():
            if name.startswith("curve "):
                moments = Moments(*array, *np.zeros((2, *array.shape[1:])))  # curves do not use the last two
                total[name] = total[name].merged(moments) if name in total else moments
            else:
                total[name] = total[name] + array if name in total else array
    return total if large.weight is None or large.frequencies else _scaled(total)


def _scaled(sums: dict[str, Any]) -> dict[str, Any]:
    """Return the sums with relative weights on the scale of Kish's effective number of rows."""
    scale = kish_scale(sums["n"].sum(), sums["squares"])
    of_weights = ("n", "missing", "levels", "rows")
    counts = {name: value * scale for name, value in sums.items() if name.split()[0] in of_weights}
    curves = {name: value.scaled(scale) for name, value in sums.items() if name.startswith("curve ")}
    return {**sums, **counts, **curves}


def _checkpoint_key(plan: EffectPlan, large: LargeRows, spec: EffectSpec) -> str:
    """Return everything that the sums depend on, one line each; the model is identified by its predictions."""
    frames = plan.data.frames
    n = min(_FINGERPRINT_ROWS, frames.n_rows)
    rows = frames.changed(np.arange(n), {})
    predictions = plan.predictor.model.fresh().predict(rows, n, lambda row: "sampled rows")
    points = [axis.points.tobytes() for layout in plan.layouts for axis in layout.axes]
    edges = [b"" if layout.edges is None else layout.edges.tobytes() for layout in plan.layouts]
    lines = {
        "effect": f"{spec.kind} of {list(spec.names)}",
        "points": hashlib.blake2b(b"/".join(points + edges), digest_size=8).hexdigest(),
        "columns": ", ".join(large.columns),
        "subgroups": "; ".join(plan.partition.rules) if plan.partition else "none",
        "model": digest_of(predictions),
        "output": str(plan.predictor.outputs.wanted),
        "weights": f"{large.weight}{' (frequencies)' if large.frequencies else ''}",
        "data": f"{large.data.description}, {large.data.n_rows} rows",
        "files": large.data.stamp,
        "sampled rows": fingerprint(read_table(rows, lenient=True)),
    }
    return "\n".join(f"{name}: {text}" for name, text in lines.items())


def _group(rows: SubgroupRows, sums: dict[str, Any], k: int) -> EffectGroup:
    """Return a subgroup with the box statistics of the sample and the counts of all rows."""
    supports = []
    for which, support in enumerate(rows.supports()):
        counts = sums[f"levels {which}"][k] if f"levels {which}" in sums else support.counts
        supports.append(replace(support, missing=float(sums[f"missing {which}"][k]), counts=counts))
    return EffectGroup(rows.rule, float(sums["n"][k]), tuple(supports))


def _spreads(plan: EffectPlan) -> dict[int, Floats]:
    """Return box statistics of the predictions at each level, from the sampled rows, by subgroup."""
    infos = plan.data.infos
    if len(infos) > 1 or not has_levels(infos[0]) or isinstance(plan.kind, AccumulatedEffects):
        return {}
    (summaries,) = summaries_together([(plan, plan.rows)])
    curves = [plan.kind.curve(plan.layouts[number], summary) for number, summary in summaries.items()]
    return {curve.subgroup: curve.spread for curve in curves if curve.spread is not None}


def _check_sampled_rows(plan: EffectPlan) -> None:
    """Predict some sampled rows, and half of them once more; warn if the model then predicts other values."""
    sample, predictor = plan.data.frames, plan.predictor
    rows = np.unique(np.linspace(0, sample.n_rows - 1, _CHECKED_ROWS).astype(np.intp))
    frames = Frames(sample.changed(rows, {}), ())
    copied = frames.changed(np.arange(len(rows)), {})
    predictions = predictor.model.predict(copied, len(rows), lambda row: "sampled rows")
    predictor.n_rows_again = len(rows) + check_repeatable(predictor.model, frames, predictions, "The effect")


def _warn_of_unseen_levels(names: Sequence[str], n_unseen: Floats) -> None:
    for name, n in zip(names, n_unseen, strict=True):
        if n:
            warn(
                f"{int(n):,} rows have levels of {name!r} that the sample lacks, so there are no points for them. "
                f"Increase the sample size.",
                UnseenValueWarning,
            )
