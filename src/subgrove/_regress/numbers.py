"""Numbers as forests are given them."""

from __future__ import annotations

import numpy as np

from subgrove._core.kinds import ColumnInfo, Floats

_DAY = 86_400e6  # microseconds


def forest_numbers(info: ColumnInfo, values: Floats) -> Floats:
    """The values of a column that is not nominal; dates and durations in days.

    Where scikit-learn grows the forest, its trees have single precision, which would blur microseconds.
    """
    return np.asarray(values / _DAY if info.is_date or info.is_duration else values)
