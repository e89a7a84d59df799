"""Random forests that foretell one column from others."""

from subgrove._forest.forest import Forest, grow

__all__ = ["Forest", "grow"]
