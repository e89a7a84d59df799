"""An order of levels without one: levels stand side by side whose rows are alike in the other columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.table import Table, read_table
from subgrove._effects.subgroup_rows import SubgroupRows

_POINTS = 1000  # distribution functions of longer columns are compared at this many quantiles


def by_similarity(part: SubgroupRows, levels: Floats) -> Floats:
    """The levels, ordered along the line that keeps their distances best (classical scaling to one dimension).

    The distance of two levels is the sum over the other columns of how far their distributions are apart: the
    Kolmogorov-Smirnov distance of numbers, and the total variation distance of levels (Apley and Zhu 2020).
    A line has two directions; the one is taken that puts the first level into the first half.
    """
    if len(levels) < 3:
        return levels
    table = read_table(part.source.X, lenient=True)
    code = np.searchsorted(levels, part.x[0])
    weights = np.ones(len(part.rows)) if part.weights is None else part.weights
    names = [column.name for column in table.columns if column.name != part.source.infos[0].name]
    distances = sum((_distances(table, name, part, code, weights, len(levels)) for name in names), np.zeros(()))
    if not distances.any():
        return levels
    return levels[np.argsort(_line(distances), kind="stable")]


def _distances(table: Table, name: str, part: SubgroupRows, code: Any, weights: Floats, n_levels: int) -> Floats:
    """How far the distributions of one column are apart, for each pair of levels."""
    column = table.series(name)
    values = column.values[part.rows]
    if column.info.is_nominal:
        return _pairs(_shares(values, code, weights, n_levels), lambda apart: apart.sum(axis=1) / 2)
    present = ~np.isnan(values)
    shares = _shares(values[present], code[present], weights[present], n_levels)
    return _pairs(np.cumsum(shares, axis=1), lambda apart: apart.max(axis=1, initial=0.0))


def _shares(values: Any, code: Any, weights: Floats, n_levels: int) -> Floats:
    """For each level the shares of the distinct values; of many, those up to a quantile count together."""
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) > _POINTS:
        place = place * _POINTS // len(distinct)
    n = int(place.max(initial=-1)) + 1
    counts = np.bincount(code * n + place, weights=weights, minlength=n_levels * n).reshape(n_levels, n)
    shares: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return shares


def _pairs(of_level: Floats, distance: Callable[[Floats], Floats]) -> Floats:
    return np.stack([distance(np.abs(of_level - one)) for one in of_level])


def _line(distances: Floats) -> Floats:
    """Coordinates of the levels on one line."""
    centre = np.eye(len(distances)) - 1 / len(distances)
    _, vectors = np.linalg.eigh(-centre @ distances**2 @ centre / 2)
    line: Floats = vectors[:, -1]
    return line if line[0] <= 0 else -line
