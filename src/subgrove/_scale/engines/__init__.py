"""Work on many pieces of data: here, in processes, on a Dask or Ray cluster."""

from __future__ import annotations

from subgrove._scale.engines.base import PieceLike, Sums
from subgrove._scale.engines.schedule import carry_out

__all__ = ["PieceLike", "Sums", "carry_out"]
