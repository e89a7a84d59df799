"""Dependence: how well each feature can be foretold from the other columns, and from which."""

from subgrove._dependence.dependence import dependence
from subgrove._dependence.result import Dependence

__all__ = ["Dependence", "dependence"]
