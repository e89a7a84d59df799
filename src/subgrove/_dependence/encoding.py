"""The other columns as the numbers that a forest is given: one column each, whatever its kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Codes, ColumnInfo, Floats, Rows
from subgrove._data.table import Table
from subgrove._regress import forest_numbers

_TIE = 1e-9  # weights that differ by a smaller share are equal


def rank_encoded(table: Table, columns: Sequence[str], outputs: Floats, train: Rows) -> Floats:
    """The columns side by side, for a forest that foretells `outputs` of the rows `train`; NaN where missing.

    Levels of a nominal column are numbered in the order of what they go with in the training rows, so that a cut
    between two numbers parts levels that differ most, as forests in R part them. An indicator for each level would
    need a split for each, and hide the column among the indicators when a few of them are drawn for a split.
    """
    found = np.empty((table.n_rows, len(columns)))
    for at, name in enumerate(columns):
        series = table.series(name)
        if series.info.is_nominal:
            found[:, at] = _ranked(series.info, series.values, outputs, train)
        else:
            found[:, at] = forest_numbers(series.info, series.values)
    return found


def _ranked(info: ColumnInfo, codes: Codes, outputs: Floats, train: Rows) -> Floats:
    """Each row's level as its rank; NaN where it is missing, or training rows do not have it."""
    known = train[codes[train] >= 0]
    n = np.bincount(codes[known], minlength=len(info.levels)).astype(np.float64)
    sums = np.stack([np.bincount(codes[known], weights=column, minlength=len(n)) for column in outputs[known].T], 1)
    there = np.flatnonzero(n)
    if not len(there):
        return np.full(len(codes), np.nan)
    place = first_direction(sums[there] / n[there, None], n[there])
    # Ties by name, for containers differ in the order of levels.
    order = sorted(range(len(there)), key=lambda at: (place[at], info.levels[there[at]]))
    rank = np.full(len(n) + 1, np.nan)  # the last is for missing values, whose code is -1
    rank[there[order]] = np.arange(len(there))
    return np.asarray(rank[np.maximum(codes, -1)])


def first_direction(means: Floats, n: Floats) -> Floats:
    """Where each level lies on the line along which the levels' mean outputs differ most.

    Of a numeric feature this is the order of means, of two classes that of their shares.
    """
    centred = means - n @ means / n.sum()
    if centred.shape[1] == 1:
        return np.asarray(centred[:, 0])
    _, _, directions = np.linalg.svd(centred * np.sqrt(n)[:, None], full_matrices=False)
    first: npt.NDArray[np.float64] = directions[0]
    # Two outputs may weigh the same but for rounding, which is not the same on all machines: the first of them counts.
    sizes = np.abs(first)
    sign = np.sign(first[np.argmax(sizes >= sizes.max() * (1 - _TIE))])
    # Rounded, so that levels that go with the same are tied.
    return np.asarray(np.round(sign * centred @ first, 12))
