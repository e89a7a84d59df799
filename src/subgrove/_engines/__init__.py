"""Work on many pieces of data: here, in processes, on a Dask or Ray cluster."""

from __future__ import annotations

from subgrove._engines.base import PieceLike, Sums
from subgrove._engines.run import carry_out

__all__ = ["PieceLike", "Sums", "carry_out"]
