"""How the rows are spread over a feature: counts between edges, or at levels, for all rows and for each subgroup."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.table import TypedColumn
from subgrove._report.summary import Distribution

BINS = 20
MOST_LEVELS = 30
"""Levels that are shown, the most frequent ones; the others are counted together."""
OTHERS = "other levels"


def distribution(series: TypedColumn, code: npt.NDArray[np.integer], n_groups: int) -> Distribution:
    """Of one column; `code` is the subgroup of each row."""
    if series.info.kind == "numeric":
        return _of_numbers(np.asarray(series.values, dtype=np.float64), code, n_groups)
    values = np.asarray(series.values, dtype=np.float64) - (series.info.kind == "ordered")
    known = np.isfinite(values) & (values >= 0)
    counts = np.bincount(values[known].astype(np.intp), minlength=len(series.info.levels))
    kept = shown_levels(counts)
    place = np.full(len(counts), len(kept), dtype=np.intp)
    place[kept] = np.arange(len(kept))
    rest = int((counts > 0).sum()) > len(kept)
    names = tuple(series.info.levels[at] for at in kept) + ((OTHERS,) if rest else ())
    cells = place[values[known].astype(np.intp)]
    return Distribution((), names, *_counted(cells, code[known], len(names), n_groups), int((~known).sum()))


def shown_levels(counts: npt.NDArray[np.integer]) -> list[int]:
    """Places of the levels that are shown, in their order: all that occur, or the most frequent."""
    present = [at for at in range(len(counts)) if counts[at] > 0]
    if len(present) > MOST_LEVELS:
        present = sorted(sorted(present, key=lambda at: (-int(counts[at]), at))[: MOST_LEVELS - 1])
    return present


def _of_numbers(values: Floats, code: npt.NDArray[np.integer], n_groups: int) -> Distribution:
    known = np.isfinite(values)
    edges = _edges(values[known])
    cells = np.clip(np.searchsorted(edges, values[known], side="right") - 1, 0, max(len(edges) - 2, 0))
    counts = _counted(cells, code[known], max(len(edges) - 1, 0), n_groups)
    return Distribution(tuple(edges.tolist()), (), *counts, int((~known).sum()))


def _edges(values: Floats) -> Floats:
    """Equal steps; a step for each of few whole numbers."""
    if not len(values):
        return np.empty(0)
    low, high = float(values.min()), float(values.max())
    if low == high:
        width = max(abs(low) * 0.01, 0.5)
        return np.array([low - width, high + width])
    if high - low < BINS and not (values % 1).any():
        return np.arange(low - 0.5, high + 1)
    return 2 * np.linspace(low / 2, high / 2, BINS + 1)  # the range may be wider than a float holds


def _counted(
    cells: npt.NDArray[np.intp], code: npt.NDArray[np.integer], n_cells: int, n_groups: int
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    each = np.zeros((n_groups, n_cells), dtype=np.int64)
    np.add.at(each, (code.astype(np.intp), cells), 1)
    return tuple(each.sum(axis=0).tolist()), tuple(tuple(row) for row in each.tolist())
