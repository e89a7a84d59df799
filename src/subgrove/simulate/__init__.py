"""Simulated data with known importance: scenarios of the paper and others, null scenarios, dependence structures."""

from subgrove.simulate.scenario import PAPER, NullScenario, Scenario, null_scenario, null_scenarios, scenario, scenarios
from subgrove.simulate.structures import Structure, TrueConditional, structure, structures

__all__ = [
    "PAPER",
    "NullScenario",
    "Scenario",
    "Structure",
    "TrueConditional",
    "null_scenario",
    "null_scenarios",
    "scenario",
    "scenarios",
    "structure",
    "structures",
]
