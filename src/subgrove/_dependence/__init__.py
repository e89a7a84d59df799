"""Dependence: how well each feature is predicted by the other columns, and by which."""

from subgrove._dependence.dependence import dependence
from subgrove._dependence.result import Dependence

__all__ = ["Dependence", "dependence"]
