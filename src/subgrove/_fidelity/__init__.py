"""Fidelity: how close redrawn rows stay to the data, and effect curves to the model."""

from subgrove._fidelity.data import fidelity
from subgrove._fidelity.mmd import squared_mmd
from subgrove._fidelity.model import model_fidelity
from subgrove._fidelity.model_result import ModelFidelity
from subgrove._fidelity.result import Fidelity

__all__ = ["Fidelity", "ModelFidelity", "fidelity", "model_fidelity", "squared_mmd"]
