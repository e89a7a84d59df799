"""Data in partitions: a handful of rows in memory at a time, whatever the number of rows."""

from subgrove._scale.readers.data import Partitioned, Piece, is_partitioned, read_partitioned
from subgrove._scale.readers.keys import row_keys
from subgrove._scale.readers.options import (
    SAMPLE,
    checked_folder,
    checked_name,
    checked_sample,
    model_columns,
    reject_without_partitions,
    selected,
)
from subgrove._scale.readers.sample import Sample, sample_rows

__all__ = [
    "SAMPLE",
    "Partitioned",
    "Piece",
    "Sample",
    "checked_folder",
    "checked_name",
    "checked_sample",
    "is_partitioned",
    "model_columns",
    "read_partitioned",
    "reject_without_partitions",
    "row_keys",
    "sample_rows",
    "selected",
]
