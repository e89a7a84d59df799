"""What was asked about an effect, checked: the feature, its grid, its subgroups, and the rows of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import ColumnInfo
from subgrove._core.text import quote
from subgrove._core.validate import reject_another_index, whole_number
from subgrove._data.from_containers import names_and_rows, raw_columns
from subgrove._data.table import read_weights
from subgrove._effects.grid import GridSpec, read_grid, read_values
from subgrove._effects.interactions.interactions import DEPTH
from subgrove._effects.subgroup_rows import FeatureData, SubgroupRows
from subgrove._effects.support import support_of
from subgrove._effects.tables import EffectGroup
from subgrove._subgroups import Partition, Subgroups
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees.conditions import ALL_ROWS

KINDS = ("pdp", "ice", "ale", "mplot")


def read_source(X: Any, feature: Any, kind: Any, subgroups: Any, weights: Any) -> FeatureData:
    """The table and the feature in it, checked."""
    if kind not in KINDS:
        raise ParameterError(f"kind must be one of {quote(KINDS)}; got {kind!r}.")
    names = feature_names(feature)
    if len(names) > 1 and kind != "pdp":
        raise ParameterError(f"Only kind='pdp' takes two features; kind is {kind!r}. Name one feature.")
    columns = raw_columns(X, "X", only=names)
    present, n_rows = names_and_rows(X)
    unknown = [name for name in names if name not in columns]
    if unknown:
        listed = quote(present[:30]) + (" ..." if len(present) > 30 else "")
        raise ParameterError(f"feature names {quote(unknown)}, which X does not have. Its columns: {listed}.")
    if not n_rows:
        raise InputError("X has no rows; an effect is a mean over rows. Pass at least one.")
    known = subgroups.columns if isinstance(subgroups, Subgroups) else ()
    if isinstance(subgroups, Partition):
        known = (subgroups.tree.target,)
    kinds = {column.name: column.kind for column in known}
    read = [read_values(columns[name], name, kinds.get(name)) for name in names]
    reject_another_index(X, sample_weight=weights)
    infos, x = zip(*read, strict=True)
    return FeatureData(X, infos, x, read_weights(weights, n_rows))


def checked_interactions(interactions: Any, kind: str, source: FeatureData) -> int:
    """How many interaction splits there may be above a group."""
    if isinstance(interactions, bool | np.bool_):
        depth = DEPTH if interactions else 0
    else:
        depth = whole_number("interactions", interactions, least=0)
    if depth and (kind not in ("pdp", "ice") or len(source.infos) > 1):
        what = f"kind is {kind!r}" if len(source.infos) == 1 else "there are two"
        raise ParameterError(
            f"interactions needs curves of single rows for one feature; {what}. Use kind='pdp' or 'ice', and name one."
        )
    return depth


def feature_names(feature: Any) -> tuple[str, ...]:
    if isinstance(feature, str | int | np.integer) and not isinstance(feature, bool):
        return (str(feature),)
    if isinstance(feature, list | tuple) and 1 <= len(feature) <= 2 and len(set(map(str, feature))) == len(feature):
        return tuple(map(str, feature))
    raise ParameterError(f"feature must be a column name, or a pair of different ones; got {feature!r}.")


def read_grids(grid: Any, source: FeatureData) -> list[GridSpec]:
    names = [info.name for info in source.infos]
    if len(names) > 1 and grid is not None and not isinstance(grid, str | Mapping):
        raise ParameterError("grid must be a mapping from feature to values where there are two features.")
    by_name = grid if isinstance(grid, Mapping) else dict.fromkeys(names, grid)
    unknown = [str(name) for name in by_name if name not in names]
    if unknown:
        raise ParameterError(f"grid names {quote(unknown)}, which is not the feature.")
    return [read_grid(by_name.get(info.name), info, x) for info, x in zip(source.infos, source.x, strict=True)]


def checked_points(grid_resolution: Any) -> int:
    if isinstance(grid_resolution, bool) or not isinstance(grid_resolution, int | np.integer) or grid_resolution < 2:
        raise ParameterError(f"grid_resolution must be a whole number >= 2; got {grid_resolution!r}.")
    return int(grid_resolution)


def partition_of(subgroups: Any, infos: Sequence[ColumnInfo]) -> Partition | None:
    """The subgroups of the feature."""
    names = {info.name for info in infos}
    if subgroups is None:
        return None
    if isinstance(subgroups, Partition):
        found = subgroups if set(subgroups.members) == names else None
        there: Sequence[str] = (subgroups.feature,)
    elif isinstance(subgroups, Subgroups):
        found = next((each for each in subgroups.values() if set(each.members) == names), None)
        there = list(subgroups)
    else:
        raise ParameterError(
            f"subgroups must be what find_subgroups returned, or its part for the feature; "
            f"got {type(subgroups).__name__}."
        )
    if found is None:
        title = " + ".join(info.name for info in infos)
        raise ParameterError(
            f"subgroups has none of {title!r}; it has those of {quote(there)}. "
            f"Name it in find_subgroups(..., features=[...])."
        )
    return found


def parts_of(source: FeatureData, partition: Partition | None) -> list[SubgroupRows]:
    """Rows of each subgroup."""
    counted = np.ones(source.frames.n_rows, dtype=np.bool_) if source.weights is None else source.weights > 0
    if partition is None:
        return [SubgroupRows(source, 0, ALL_ROWS, np.flatnonzero(counted))]
    code = partition.assign(source.X)
    return [
        SubgroupRows(source, k, rule, np.flatnonzero(counted & (code == k))) for k, rule in enumerate(partition.rules)
    ]


def is_enough(part: SubgroupRows, partition: Partition | None) -> bool:
    """Whether a curve is drawn: a subgroup of one row has none, and neither have rows without any value."""
    if not len(part.rows) or any(np.isnan(x).all() for x in part.x):
        return False
    return partition is None or len(part.rows) > 1 or part.n >= 2


def group_of(part: SubgroupRows, reason: str) -> EffectGroup:
    supports = zip(part.source.infos, part.x, strict=True)
    return EffectGroup(part.rule, part.n, tuple(support_of(info, x, part.weights) for info, x in supports), reason)
