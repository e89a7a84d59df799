"""Parts for scikit-learn: a feature selector for pipelines, and displays of importance and effects."""

from subgrove.sklearn.displays import EffectDisplay, ImportanceDisplay
from subgrove.sklearn.selector import SubgroupImportanceSelector

__all__ = ["EffectDisplay", "ImportanceDisplay", "SubgroupImportanceSelector"]
