"""Model fidelity: how much of a model its effect curves tell."""

from subgrove._effects.model_fidelity.model_fidelity import model_fidelity
from subgrove._effects.model_fidelity.result import ModelFidelity

__all__ = ["ModelFidelity", "model_fidelity"]
