"""Effects: how the prediction changes with a feature, subgroup by subgroup."""

from subgrove._effects.effect import effect
from subgrove._effects.result import Effect

__all__ = ["Effect", "effect"]
