"""Dependence: how well each feature is predicted by the other columns, and groups of redundant features."""

from subgrove._dependence.dependence import dependence
from subgrove._dependence.groups import FeatureGroups, find_groups
from subgrove._dependence.result import Dependence

__all__ = ["Dependence", "FeatureGroups", "dependence", "find_groups"]
