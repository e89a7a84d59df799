"""Data whose truth is known: the paper's four scenarios, two that are harder, and features that have nothing to say."""

from subgrove.simulate.null import NullScenario, null_scenario, null_scenarios
from subgrove.simulate.sampler import FittedTrueConditional, TrueConditional
from subgrove.simulate.scenario import PAPER, Scenario, scenario, scenarios

__all__ = [
    "PAPER",
    "FittedTrueConditional",
    "NullScenario",
    "Scenario",
    "TrueConditional",
    "null_scenario",
    "null_scenarios",
    "scenario",
    "scenarios",
]
