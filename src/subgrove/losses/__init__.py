"""Losses by name, from scikit-learn scorers, and custom ones.

A loss has one value per row; lower is better. A metric such as the area under the ROC curve has one value for all rows
together: it has no value per row or subgroup, and its importance has no interval.
"""

from subgrove.losses.named import Loss, get, names, quantile, tweedie
from subgrove.losses.user_defined import custom, from_metric

__all__ = ["Loss", "custom", "from_metric", "get", "names", "quantile", "tweedie"]
