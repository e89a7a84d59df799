"""Random forests that foretell one column from others."""

from subgrove._forest.forest import Forest, grow
from subgrove._forest.numbers import forest_numbers

__all__ = ["Forest", "forest_numbers", "grow"]
