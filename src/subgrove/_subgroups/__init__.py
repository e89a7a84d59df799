"""Subgroups of features, as rules that a person can read."""

from subgrove._subgroups.depth import DepthChoice
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.stability_result import Stability
from subgrove._subgroups.subgroups import Subgroups, find_subgroups

__all__ = ["DepthChoice", "Partition", "Stability", "Subgroups", "find_subgroups"]
