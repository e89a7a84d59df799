"""Tables in chunks: a limited number of rows in memory at a time, whatever the number of rows."""

from subgrove._scale.readers.data import Chunk, ChunkedData, row_keys
from subgrove._scale.readers.sample import SampledRows, sample_rows

__all__ = ["Chunk", "ChunkedData", "SampledRows", "row_keys", "sample_rows"]
