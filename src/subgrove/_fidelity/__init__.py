"""Data fidelity: how close redrawn rows stay to the data."""

from subgrove._fidelity.fidelity import fidelity
from subgrove._fidelity.mmd import squared_mmd
from subgrove._fidelity.result import Fidelity

__all__ = ["Fidelity", "fidelity", "squared_mmd"]
