"""Effects: how the prediction changes with a feature, overall and in subgroups."""

from subgrove._effects.effect import Effects, effect
from subgrove._effects.interaction_strength import InteractionStrength
from subgrove._effects.model_fidelity import ModelFidelity
from subgrove._effects.result import Effect

__all__ = ["Effect", "Effects", "InteractionStrength", "ModelFidelity", "effect"]
