"""Pictures of results: a result in, axes out. No picture asks the model for anything."""

from subgrove.plots.tree import tree

__all__ = ["tree"]
