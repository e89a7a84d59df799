"""Feature importance and effects that stay honest when features depend on each other."""

from subgrove import datasets, exceptions, plots, trees
from subgrove._version import __version__

__all__ = ["__version__", "datasets", "exceptions", "plots", "trees"]
