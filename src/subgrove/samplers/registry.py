"""Samplers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from subgrove.samplers.auto.sampler import Auto
from subgrove.samplers.base import Sampler
from subgrove.samplers.forest_nodes import ForestNodes
from subgrove.samplers.imputation import Imputation
from subgrove.samplers.intervals import Intervals
from subgrove.samplers.knockoffs import Knockoffs
from subgrove.samplers.location_shift import ShiftedSubgroups
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.subgroups import SubgroupSampler
from subgrove.samplers.unchanged import Unchanged

NAMES: Mapping[str, Callable[[], Sampler]] = {
    "auto": Auto,
    "cart": partial(SubgroupSampler, tree="cart"),
    "forest_nodes": ForestNodes,
    "imputation": Imputation,
    "intervals": Intervals,
    "knockoffs": Knockoffs,
    "marginal": Marginal,
    "shifted_subgroups": ShiftedSubgroups,
    "subgroups": SubgroupSampler,
    "unchanged": Unchanged,
}
