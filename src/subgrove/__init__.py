"""Feature importance and feature effects for dependent features, overall and by subgroup."""

from subgrove import datasets, exceptions, losses, plots, samplers, simulate, trees
from subgrove._core.weights import FrequencyWeights
from subgrove._dependence import Dependence, FeatureGroups, dependence, find_groups
from subgrove._effects import Effect, Effects, InteractionStrength, ModelFidelity, effect
from subgrove._fidelity import Fidelity, fidelity
from subgrove._importance.conditioning_steps import RelativeImportance
from subgrove._importance.depth_profile import DepthProfile
from subgrove._importance.explanation import Explanation
from subgrove._importance.gap_result import Gap, GapStep
from subgrove._importance.importance import importance
from subgrove._importance.loco import loco
from subgrove._importance.refits import RefitsResult, importance_over_refits
from subgrove._importance.result import ImportanceResult
from subgrove._models.device_model import DeviceModel
from subgrove._native.loader import show_versions
from subgrove._report import Report, report
from subgrove._scale import LargeData
from subgrove._scoring.adaptive_repeats import AdaptiveRepeats
from subgrove._subgroups import DepthChoice, Partition, Stability, Subgroups, find_subgroups
from subgrove._version import __version__

__all__ = [
    "AdaptiveRepeats",
    "Dependence",
    "DepthChoice",
    "DepthProfile",
    "DeviceModel",
    "Effect",
    "Effects",
    "Explanation",
    "FeatureGroups",
    "Fidelity",
    "FrequencyWeights",
    "Gap",
    "GapStep",
    "ImportanceResult",
    "InteractionStrength",
    "LargeData",
    "ModelFidelity",
    "Partition",
    "RefitsResult",
    "RelativeImportance",
    "Report",
    "Stability",
    "Subgroups",
    "__version__",
    "datasets",
    "dependence",
    "effect",
    "exceptions",
    "fidelity",
    "find_groups",
    "find_subgroups",
    "importance",
    "importance_over_refits",
    "loco",
    "losses",
    "plots",
    "report",
    "samplers",
    "show_versions",
    "simulate",
    "trees",
]
