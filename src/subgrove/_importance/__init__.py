"""Importance: what the loss grows by when a feature is redrawn, or left out."""

from subgrove._importance.depth_profile import DepthProfile, depth_profile
from subgrove._importance.gap_result import Gap, GapStep
from subgrove._importance.importance import importance
from subgrove._importance.loco import loco
from subgrove._importance.relative import relative_importance
from subgrove._importance.relative_result import RelativeImportance
from subgrove._importance.result import ImportanceResult

__all__ = [
    "DepthProfile",
    "Gap",
    "GapStep",
    "ImportanceResult",
    "RelativeImportance",
    "depth_profile",
    "importance",
    "loco",
    "relative_importance",
]
