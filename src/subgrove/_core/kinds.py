"""Types of arrays, and kinds and codes of columns."""

from __future__ import annotations

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
