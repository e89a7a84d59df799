"""From trees to subgroups that a person can read."""

from subgrove._subgroups.depth_choice import DepthChoice
from subgrove._subgroups.find import find_subgroups
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.stability import stability
from subgrove._subgroups.stability_result import Stability
from subgrove._subgroups.subgroups import Subgroups

__all__ = ["DepthChoice", "Partition", "Stability", "Subgroups", "find_subgroups", "stability"]
