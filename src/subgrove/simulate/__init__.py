"""Simulated data with known importance: scenarios of the paper and others, null scenarios, dependence structures."""

from subgrove.simulate.process import FittedTrueConditional, TrueConditional
from subgrove.simulate.scenario import PAPER, NullScenario, Scenario, null_scenario, null_scenarios, scenario, scenarios
from subgrove.simulate.structures import Structure, TrueSampler, structure, structures

__all__ = [
    "PAPER",
    "FittedTrueConditional",
    "NullScenario",
    "Scenario",
    "Structure",
    "TrueConditional",
    "TrueSampler",
    "null_scenario",
    "null_scenarios",
    "scenario",
    "scenarios",
    "structure",
    "structures",
]
