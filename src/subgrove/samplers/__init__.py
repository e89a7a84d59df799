"""Samplers: ways to redraw a column. `base.py` is the contract; each has a file of its own."""

from subgrove._data.replace_columns import Donors
from subgrove.samplers.auto.choice import CandidateScore, Choice
from subgrove.samplers.auto.sampler import Auto
from subgrove.samplers.base import Fitted, Method
from subgrove.samplers.forest_nodes import ForestNodes
from subgrove.samplers.imputation import Imputation
from subgrove.samplers.intervals import Intervals
from subgrove.samplers.knockoffs import Knockoffs
from subgrove.samplers.location_shift import ShiftedSubgroups
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.redraw import Exact, Groups, Redraw, Step
from subgrove.samplers.subgroups import Subgroups
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
