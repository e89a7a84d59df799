"""An effect over data in partitions: points from a uniform sample, means over all rows, added up piece by piece.

Grids, box statistics and outliers need rows side by side and come from the sample; counts and curves are of all rows. A
piece is read, sorted into subgroups, asked for, and forgotten but for its sums.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._core.moments import Moments
from subgrove._data.columns import values_like
from subgrove._data.fingerprint import digest_of, fingerprint
from subgrove._data.from_containers import raw_columns
from subgrove._data.table import read_table, read_weights
from subgrove._effects.chunk_sums import CURVES, LAID_OUT, SUMMED, Layout
from subgrove._effects.grid import GridSpec, as_points, has_levels
from subgrove._effects.in_memory import WAYS, EffectSpec, carried_out, effect_in_memory
from subgrove._effects.outputs import ModelOutputs, model_for_effect
from subgrove._effects.predict import EffectPredictor, batch_rows
from subgrove._effects.result import Effect
from subgrove._effects.subgroup_rows import FeatureData, SubgroupRows
from subgrove._effects.tables import EffectGroup
from subgrove._effects.validate import (
    checked_interactions,
    checked_points,
    feature_names,
    group_of,
    is_enough,
    partition_of,
    parts_of,
    read_grids,
    read_source,
)
from subgrove._models.predictor import Predictor
from subgrove._scale import LargeData
from subgrove._scale.engines import ChunkArrays, run_chunks
from subgrove._scale.large_data import check_column_name, model_columns, select_columns
from subgrove._scale.readers import Chunk, ChunkedData, sample_rows
from subgrove._subgroups import Partition, Subgroups
from subgrove.exceptions import InputError, SubgroveError, SubgroveWarning, UnseenValueWarning

_LOOKED_AT = 400  # rows that tell the model and the data of a checkpoint from others
SEED = 0  # of the sample: the same call gives the same numbers


def effect_of_partitions(model: Any, X: LargeData, weights: Any, asked: EffectSpec) -> Effect:
    """The effect of a feature over all rows of data in partitions."""
    data = X.read()
    names = feature_names(asked.feature)
    data.reject_unknown(names, "feature")
    weight = check_column_name(weights, data, "weights", "whose values say how often rows count")
    key, folder, n = X.row_key, X.folder, X.sample_size
    known = tuple(column.name for column in asked.subgroups.columns) if isinstance(asked.subgroups, Subgroups) else ()
    columns = model_columns(data, model, known, (weight, key))
    run = partial(run_chunks, n_jobs=asked.n_jobs, what="Sampling rows")
    drawn = sample_rows(data, [*columns, *([weight] if weight else [])], n, SEED, key, run)
    table, counted = select_columns(drawn.table, columns), drawn.table[weight] if weight else None
    sampled = (drawn.n, drawn.of)
    if asked.kind == "ice" or asked.interactions:
        # Curves of single rows: of those that were drawn.
        found = effect_in_memory(model, table, counted, asked)
        return replace(found, sampled=sampled)
    source = read_source(table, asked.feature, asked.kind, asked.subgroups, counted)
    checked_interactions(asked.interactions, asked.kind, source)
    plan = _planned(model, source, asked, columns, weight)
    done = _added_up(plan, data, asked, folder)
    return _result(plan, done, data, asked, sampled)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the sample says: where curves have points, and what is known of subgroups."""

    work: _PieceWork
    source: FeatureData
    parts: Sequence[SubgroupRows]
    wanted: Sequence[GridSpec]
    grid_resolution: int


def _planned(model: Any, source: FeatureData, asked: EffectSpec, columns: Sequence[str], weight: str | None) -> _Plan:
    wanted, grid_resolution = read_grids(asked.grid, source), checked_points(asked.grid_resolution)
    counting = model_for_effect(model, asked.response)
    partition = partition_of(asked.subgroups, source.infos)
    parts = parts_of(source, partition)
    enough = [part for part in parts if is_enough(part, partition)]
    layouts = [layout for part in enough if (layout := LAID_OUT[asked.kind](part, wanted, grid_resolution))]
    work = _PieceWork(
        counting,
        ModelOutputs.of(counting, asked.output),
        batch_rows(asked.memory, len(columns)),
        tuple(columns),
        weight,
        asked.kind,
        partition,
        _holding(source),
        tuple(layouts),
    )
    return _Plan(work, source, parts, wanted, grid_resolution)


def _holding(source: FeatureData) -> FeatureData:
    """The few sampled rows that hold the levels of the feature, one for each."""
    rows = np.unique(np.concatenate([donors[donors >= 0] for donors in source.donors] + [np.zeros(1, dtype=np.intp)]))
    few = source.frames.changed(rows, {})
    return FeatureData(few, source.infos, tuple(x[rows] for x in source.x), None)


@dataclass(frozen=True, eq=False)
class _PieceWork:
    """What is done with each piece: read, sort into subgroups, ask, sum up. It is sent to workers once."""

    model: Predictor
    outputs: ModelOutputs
    batch_rows: int
    columns: tuple[str, ...]
    weight: str | None
    kind: str
    partition: Partition | None
    holding: FeatureData
    layouts: tuple[Layout, ...]

    def __call__(self, piece: Chunk) -> ChunkArrays:
        """Sums of a piece; what goes wrong is told with its name."""
        try:
            return self._sums(piece)
        except (SubgroveError, SubgroveWarning) as error:
            raise type(error)(f"{piece.name}: {error}") from error

    def _sums(self, piece: Chunk) -> ChunkArrays:
        """Moments of each curve, counts of each subgroup, and what was asked for."""
        source, strange = self._source(piece)
        parts = parts_of(source, self.partition)
        asker = EffectPredictor(self.model.fresh(), self.outputs, self.batch_rows, 1)
        summing = {}
        for number, layout in enumerate(self.layouts):
            part = parts[layout.subgroup]
            found = SUMMED[self.kind](part, layout) if len(part.rows) else None
            if found is not None:
                summing[number] = found
        kept = iter(asker.run([work for one in summing.values() for work in one.works]))
        sums: dict[str, np.ndarray[Any, Any]] = {
            f"curve {number}": one.finish([next(kept) for _ in one.works]).array for number, one in summing.items()
        }
        sums |= _counts(source.infos, parts)
        sums["strange"] = np.array(strange, dtype=np.float64)
        sums["asked"] = np.array([asker.model.n_rows, asker.model.n_calls, len(asker.labels)], dtype=np.float64)
        return sums

    def _source(self, piece: Chunk) -> tuple[FeatureData, list[int]]:
        """The rows of a piece, and how many have a level of the feature that the sample does not."""
        whole = piece.read([*self.columns, *([self.weight] if self.weight else [])])
        table = select_columns(whole, list(self.columns))
        counted = _weights(whole[self.weight], piece.n_rows) if self.weight else None
        found = raw_columns(table, "X", only=[info.name for info in self.holding.infos])
        x, strange = [], []
        for which, info in enumerate(self.holding.infos):
            plain = found[info.name]
            values, _ = values_like(plain, info, "X")
            points = as_points(info, values)
            missing = np.isnan(plain.values) if plain.kind == "numeric" else plain.values < 0
            strange.append(int((self._without_point(which, points) & ~missing).sum()))
            x.append(points)
        return FeatureData(table, self.holding.infos, tuple(x), counted, self.holding), strange

    def _without_point(self, which: int, points: Floats) -> npt.NDArray[np.bool_]:
        """Rows whose level no sampled row has; a categorical column knows it, but there is no row to take it from."""
        absent = np.isnan(points)
        if has_levels(self.holding.infos[which]):
            held = self.holding.donors[which] >= 0
            absent[~absent] = ~held[points[~absent].astype(np.intp)]
        return absent


def _weights(column: Any, n_rows: int) -> Floats | None:
    """Weights of a piece, which may all be 0; those of all pieces may not."""
    values = np.asarray(column)
    return np.zeros(n_rows) if not np.any(values) else read_weights(values, n_rows)


def _counts(infos: Sequence[ColumnInfo], parts: Sequence[SubgroupRows]) -> dict[str, np.ndarray[Any, Any]]:
    """Weights of subgroups, of rows without a value, and of levels."""
    sums = {"n": np.array([part.n for part in parts])}
    for which, info in enumerate(infos):
        missing, levels = [], []
        for part in parts:
            x, weights = part.x[which], np.ones(len(part.rows)) if part.weights is None else part.weights
            absent = np.isnan(x)
            missing.append(float(weights[absent].sum()))
            if has_levels(info):
                codes = x[~absent].astype(np.intp)
                levels.append(np.bincount(codes, weights=weights[~absent], minlength=len(info.levels)))
        sums[f"missing {which}"] = np.array(missing)
        if levels:
            sums[f"levels {which}"] = np.array(levels, dtype=np.float64)
    return sums


def _added_up(plan: _Plan, data: ChunkedData, asked: EffectSpec, checkpoint: Any) -> dict[str, Any]:
    """Sums of all pieces, merged in their order."""
    total: dict[str, Any] = {}
    work = plan.work
    what = f"Effect of {' and '.join(info.name for info in work.holding.infos)}"
    mark = _mark(plan, data) if checkpoint is not None else ""
    for _, sums in run_chunks(work, data.chunks, n_jobs=asked.n_jobs, what=what, checkpoint=checkpoint, mark=mark):
        for name, array in sums.items():
            if name.startswith("curve "):
                moments = Moments.from_array(array)
                total[name] = total[name].merged(moments) if name in total else moments
            elif name == "asked" and name in total:
                total[name] = np.append(total[name][:2] + array[:2], max(total[name][2], array[2]))
            else:
                total[name] = total[name] + array if name in total else array
    return total


def _mark(plan: _Plan, data: ChunkedData) -> str:
    """All that sums depend on, a line for each thing; the model is told by what it predicts for some rows."""
    work = plan.work
    n = min(_LOOKED_AT, plan.source.frames.n_rows)
    rows = plan.source.frames.changed(np.arange(n), {})
    seen = fingerprint(read_table(rows, lenient=True))
    answers = work.model.fresh().predict(rows, n, lambda row: "rows drawn at random")
    points = [axis.points.tobytes() for layout in work.layouts for axis in layout.axes]
    edges = [b"" if layout.edges is None else layout.edges.tobytes() for layout in work.layouts]
    lines = {
        "effect": f"{work.kind} of {[info.name for info in work.holding.infos]}",
        "points": hashlib.blake2b(b"/".join(points + edges), digest_size=8).hexdigest(),
        "columns": ", ".join(work.columns),
        "subgroups": "; ".join(work.partition.rules) if work.partition else "none",
        "model": digest_of(answers),
        "output": str(work.outputs.wanted),
        "weights": str(work.weight),
        "data": f"{data.description}, {data.n_rows} rows",
        "files": data.stamp,
        "rows looked at": seen,
    }
    return "\n".join(f"{name}: {text}" for name, text in lines.items())


def _result(
    plan: _Plan, done: dict[str, Any], data: ChunkedData, asked: EffectSpec, sampled: tuple[int, int]
) -> Effect:
    source, work = plan.source, plan.work
    names = tuple(info.name for info in source.infos)
    _warn_of_strange(names, done["strange"])
    extra = work.model.fresh()
    spreads = _spreads(plan, extra)
    curves = [
        CURVES[asked.kind](done[name], layout, float(done["n"][layout.subgroup]), spreads.get(layout.subgroup))
        for number, layout in enumerate(work.layouts)
        if (name := f"curve {number}") in done
    ]
    if not curves and asked.subgroups is None:
        raise InputError(f"No row of X has a value of {names[0]!r} within grid. Choose other values.")
    n_rows, n_calls, n_outputs = (int(value) for value in done["asked"])
    labels = work.outputs.told(n_outputs)
    groups = tuple(_group(part, done, k) for k, part in enumerate(plan.parts))
    title = names[0] if len(names) == 1 else (names[0], names[1])
    counts = (n_rows + extra.n_rows, n_calls + extra.n_calls)
    return Effect(
        title,
        asked.kind,
        labels,
        *counts,
        work.partition,
        source.infos,
        groups,
        tuple(curves),
        data.backend,
        sampled=sampled,
    )


def _group(part: SubgroupRows, done: dict[str, Any], k: int) -> EffectGroup:
    """The subgroup: box statistics of the sample, counts of all rows."""
    group = group_of(part, "")
    supports = []
    for which, support in enumerate(group.supports):
        counts = done[f"levels {which}"][k] if f"levels {which}" in done else support.counts
        supports.append(replace(support, missing=float(done[f"missing {which}"][k]), counts=counts))
    return replace(group, n=float(done["n"][k]), supports=tuple(supports))


def _spreads(plan: _Plan, model: Predictor) -> dict[int, Floats]:
    """Box statistics of predictions at levels, which need predictions side by side: those of the sampled rows."""
    work = plan.work
    infos = plan.source.infos
    if len(infos) > 1 or not has_levels(infos[0]) or work.kind == "ale":
        return {}
    asker = EffectPredictor(model, work.outputs, work.batch_rows, 1)
    mine = {layout.subgroup for layout in work.layouts}
    parts = [part for part in plan.parts if part.subgroup in mine]
    plans = [found for part in parts if (found := WAYS[work.kind](part, plan.wanted, plan.grid_resolution))]
    return {curve.subgroup: curve.spread for curve in carried_out(asker, plans) if curve.spread is not None}


def _warn_of_strange(names: Sequence[str], strange: Floats) -> None:
    for name, n in zip(names, strange, strict=True):
        if n:
            warnings.warn(
                f"{int(n):,} rows have levels of {name!r} that the sample does not; there are no points for them. "
                f"Draw a larger sample.",
                UnseenValueWarning,
                stacklevel=5,
            )
