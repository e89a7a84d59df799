"""Plots of results: a result in, matplotlib axes out. No plot calls the model."""

from subgrove.plots.dependence import dependence
from subgrove.plots.effects import effect, effects, interaction_strength
from subgrove.plots.fidelity import fidelity
from subgrove.plots.gap import gap, relative_importance
from subgrove.plots.importance import importance, importance_by_depth, subgroup_importance
from subgrove.plots.tree import tree

__all__ = [
    "dependence",
    "effect",
    "effects",
    "fidelity",
    "gap",
    "importance",
    "importance_by_depth",
    "interaction_strength",
    "relative_importance",
    "subgroup_importance",
    "tree",
]
