"""Large data: a handful of rows in memory at a time, whatever the number of rows."""

from subgrove._scale.readers.data import Chunk, ChunkedData, is_large, read_chunks
from subgrove._scale.readers.keys import row_keys
from subgrove._scale.readers.options import (
    SAMPLE_SIZE,
    check_checkpoint,
    check_column_name,
    check_sample_size,
    model_columns,
    reject_large_data_options,
    select_columns,
)
from subgrove._scale.readers.sample import SampledRows, sample_rows

__all__ = [
    "SAMPLE_SIZE",
    "Chunk",
    "ChunkedData",
    "SampledRows",
    "check_checkpoint",
    "check_column_name",
    "check_sample_size",
    "is_large",
    "model_columns",
    "read_chunks",
    "reject_large_data_options",
    "row_keys",
    "sample_rows",
    "select_columns",
]
