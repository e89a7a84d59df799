"""Data in partitions: a handful of rows in memory at a time, whatever the number of rows."""

from subgrove._partitions.data import Partitioned, Piece, is_partitioned, read_partitioned
from subgrove._partitions.keys import row_keys
from subgrove._partitions.sample import Sample, sample_rows

__all__ = ["Partitioned", "Piece", "Sample", "is_partitioned", "read_partitioned", "row_keys", "sample_rows"]
