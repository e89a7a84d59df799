"""Data fidelity: how close resampled rows are to the data."""

from subgrove._fidelity.fidelity import Fidelity, fidelity

__all__ = ["Fidelity", "fidelity"]
