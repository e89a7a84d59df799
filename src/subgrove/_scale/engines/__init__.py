"""Work on many chunks of data: here, in processes, on a Dask or Ray cluster."""

from __future__ import annotations

from subgrove._scale.engines.base import ChunkArrays, SupportsChunk
from subgrove._scale.engines.schedule import run_chunks

__all__ = ["ChunkArrays", "SupportsChunk", "run_chunks"]
