"""Data fidelity: how close resampled rows are to the data."""

from subgrove._fidelity.fidelity import fidelity
from subgrove._fidelity.result import Fidelity

__all__ = ["Fidelity", "fidelity"]
