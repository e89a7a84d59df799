"""Fidelity: how close redrawn rows stay to the data, and effect curves to the model."""

from subgrove._fidelity.mmd import squared_mmd
from subgrove._fidelity.model import ModelFidelity, model_fidelity

__all__ = ["ModelFidelity", "model_fidelity", "squared_mmd"]
