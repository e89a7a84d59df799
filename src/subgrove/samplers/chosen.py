"""What was chosen for each feature, wherever the choosing sampler is: alone, in folds, or beside others."""

from __future__ import annotations

from subgrove.samplers.auto.choice import SamplerChoice
from subgrove.samplers.auto.sampler import FittedAuto
from subgrove.samplers.base import FittedSampler
from subgrove.samplers.conditioning import parts_of
from subgrove.samplers.cross_fit import CrossFitted


def choices_of(fitted: FittedSampler) -> dict[str, list[SamplerChoice]]:
    """What was chosen for each feature, by fold if the sampler was cross-fitted; empty where nothing was chosen."""
    if isinstance(fitted, FittedAuto):
        return {name: [choice] for name, choice in fitted.choices.items()}
    parts = [fold.fitted for fold in fitted.folds] if isinstance(fitted, CrossFitted) else list(parts_of(fitted))
    found: dict[str, list[SamplerChoice]] = {}
    for part in parts if parts != [fitted] else []:
        for name, choices in choices_of(part).items():
            found.setdefault(name, []).extend(choices)
    return found
