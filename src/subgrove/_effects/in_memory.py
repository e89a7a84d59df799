"""An effect of rows in memory: what each subgroup's curve asks for, asked for together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from subgrove._data.fingerprint import fingerprint
from subgrove._data.from_containers import names_and_rows
from subgrove._data.result_tables import backend_of
from subgrove._data.table import read_like
from subgrove._effects.ale import accumulated
from subgrove._effects.curves import Curve, Plan, conditional_mean, ice_curves, partial_dependence
from subgrove._effects.grid import GridSpec
from subgrove._effects.ice_opacity import opacity_of
from subgrove._effects.interactions.interactions import one_subgroup, split_further
from subgrove._effects.outputs import ModelOutputs, model_for_effect
from subgrove._effects.predict import EffectPredictor, batch_rows
from subgrove._effects.result import Effect
from subgrove._effects.shared_grid import shared_points
from subgrove._effects.subgroup_rows import SubgroupRows
from subgrove._effects.validate import (
    checked_interactions,
    checked_points,
    group_of,
    is_enough,
    partition_of,
    parts_of,
    read_grids,
    read_source,
)
from subgrove._subgroups import Partition, Subgroups
from subgrove.exceptions import ColumnError, InputError, SameRowsWarning

WAYS: dict[str, Callable[[SubgroupRows, Sequence[GridSpec], int], Plan | None]] = {
    "pdp": partial_dependence,
    "ice": ice_curves,
    "ale": accumulated,
    "mplot": conditional_mean,
}


@dataclass(frozen=True)
class EffectSpec:
    """What was asked, as it was given: arguments of `effect`."""

    feature: Any
    kind: Any
    subgroups: Any
    interactions: Any
    grid: Any
    grid_resolution: Any
    output: Any
    response: Any
    n_jobs: Any
    memory: Any


def effect_in_memory(model: Any, X: Any, weights: Any, asked: EffectSpec) -> Effect:
    """The effect of a feature over all rows of a table."""
    kind, subgroups = asked.kind, asked.subgroups
    source = read_source(X, asked.feature, kind, subgroups, weights)
    depth = checked_interactions(asked.interactions, kind, source)
    wanted = read_grids(asked.grid, source)
    steps = checked_points(asked.grid_resolution)
    counting = model_for_effect(model, asked.response)
    asker = EffectPredictor(
        counting,
        ModelOutputs.of(counting, asked.output),
        batch_rows(asked.memory, len(source.frames.names)),
        asked.n_jobs,
    )
    partition = partition_of(subgroups, source.infos)
    _warn_of_same_rows(X, subgroups)
    if depth and partition is None:
        partition = one_subgroup(source.X, source.infos[0])
    parts = parts_of(source, partition)
    enough, way = [part for part in parts if is_enough(part, partition)], ice_curves if depth else WAYS[kind]
    points = [[own] for own in shared_points(enough, wanted[0], steps)] if depth else [wanted] * len(enough)
    plans = [plan for part, own in zip(enough, points, strict=True) if (plan := way(part, own, steps))]
    if not plans and subgroups is None:
        raise InputError(f"No row of X has a value of {source.infos[0].name!r} within grid. Choose other values.")
    curves = carried_out(asker, plans)
    told, reasons = None, ("",) * len(parts)
    if depth and partition is not None:
        found = split_further(partition, source.X, [part.rows for part in parts], curves, depth, source.counted)
        partition, told, reasons = found.partition, found.heterogeneity, found.reasons
        curves = found.curves if kind == "ice" else [replace(curve, ice=None) for curve in found.curves]
        parts = [SubgroupRows(source, k, rule, found.rows[k]) for k, rule in enumerate(partition.rules)]
        if subgroups is None and len(partition) == 1:
            partition = None  # nothing was split
    if kind == "ice" and partition is not None and subgroups is not None:
        curves = [_highlighted(curve, partition) for curve in curves]
    names = tuple(info.name for info in source.infos)
    title = names[0] if len(names) == 1 else (names[0], names[1])
    groups = tuple(group_of(part, reason) for part, reason in zip(parts, reasons, strict=True))
    counts, lines = (counting.n_rows, counting.n_calls), tuple(curves)
    return Effect(title, kind, asker.labels, *counts, partition, source.infos, groups, lines, backend_of(X), told)


def _warn_of_same_rows(X: Any, subgroups: Any) -> None:
    """Say that trees have seen these rows. A partition on its own does not know its training rows."""
    if not isinstance(subgroups, Subgroups) or not {each.name for each in subgroups.columns} <= {*names_and_rows(X)[0]}:
        return
    try:
        mark = fingerprint(read_like(X, subgroups.columns))
    except ColumnError:  # a column that is of another kind now, which is not the same table
        return
    if mark == subgroups.fingerprint:
        warnings.warn(
            "The subgroups were grown on the same rows as they are now used on. Grow them on training rows: "
            "find_subgroups(train).",
            SameRowsWarning,
            stacklevel=4,
        )


def carried_out(asker: EffectPredictor, plans: Sequence[Plan]) -> list[Curve]:
    kept = iter(asker.run([work for plan in plans for work in plan.works]))
    return [plan.finish([next(kept) for _ in plan.works]) for plan in plans]


def _highlighted(curve: Curve, partition: Partition) -> Curve:
    leaf = partition.tree.leaves[curve.subgroup]
    return replace(curve, opacity=opacity_of(partition.tree, leaf, curve.axes[0]))
