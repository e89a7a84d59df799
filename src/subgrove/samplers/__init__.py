"""Samplers: ways to redraw a column. `base.py` is the contract; each has a file of its own."""

from subgrove._frames import Donors
from subgrove.samplers.auto import Auto
from subgrove.samplers.base import Fitted, Method
from subgrove.samplers.choice import CandidateScore, Choice
from subgrove.samplers.forest_nodes import ForestNodes
from subgrove.samplers.imputation import Imputation
from subgrove.samplers.intervals import Intervals
from subgrove.samplers.knockoffs import Knockoffs
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.redraw import Exact, Groups, Redraw, Step
from subgrove.samplers.shifted import ShiftedSubgroups
from subgrove.samplers.subgroup import Subgroups
from subgrove.samplers.unchanged import Unchanged

__all__ = [
    "Auto",
    "CandidateScore",
    "Choice",
    "Donors",
    "Exact",
    "Fitted",
    "ForestNodes",
    "Groups",
    "Imputation",
    "Intervals",
    "Knockoffs",
    "Marginal",
    "Method",
    "Redraw",
    "ShiftedSubgroups",
    "Step",
    "Subgroups",
    "Unchanged",
]
