"""Importance: the increase of the loss when a feature is resampled, or left out."""

from subgrove._importance.depth_profile import DepthProfile
from subgrove._importance.explanation import Explanation
from subgrove._importance.gap_result import Gap, GapStep
from subgrove._importance.importance import importance
from subgrove._importance.loco import loco
from subgrove._importance.refits import RefitsResult, importance_over_refits
from subgrove._importance.relative import RelativeImportance
from subgrove._importance.result import ImportanceResult

__all__ = [
    "DepthProfile",
    "Explanation",
    "Gap",
    "GapStep",
    "ImportanceResult",
    "RefitsResult",
    "RelativeImportance",
    "importance",
    "importance_over_refits",
    "loco",
]
