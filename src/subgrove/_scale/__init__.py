"""Data that do not fit in memory: readers of chunks, and engines that process them."""

from subgrove._scale.large_data import LargeData, as_large, is_large

__all__ = ["LargeData", "as_large", "is_large"]
