"""Simulated data with known importance: the scenarios of the paper, two harder ones, and null scenarios."""

from subgrove.simulate.process import FittedTrueConditional, TrueConditional
from subgrove.simulate.scenario import PAPER, NullScenario, Scenario, null_scenario, null_scenarios, scenario, scenarios

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
