"""Automatic selection of a sampler for each feature."""

from subgrove.samplers.auto.choice import CandidateScore, SamplerChoice
from subgrove.samplers.auto.selector import Auto, FittedAuto

__all__ = ["Auto", "CandidateScore", "FittedAuto", "SamplerChoice"]
