"""Kinds of columns and what describes a column besides its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["numeric", "ordered", "nominal"]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]  # row numbers

KINDS: tuple[Kind, ...] = ("numeric", "ordered", "nominal")
MISSING = -1
UNSEEN = -2
MAX_LEVELS = 1000


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """Name, kind and levels of a column."""

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    has_missing: bool = False
    is_date: bool = False
    is_integer: bool = False
    is_duration: bool = False
    zone: str | None = None  # time zone of dates in results

    @property
    def is_nominal(self) -> bool:
        """Whether the column is in the codes of a table, not in its numbers."""
        return self.kind == "nominal"
