"""Growth of the tree of one feature or group of features: the tree class, and the cases in which no tree can grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subgrove._core.kinds import MAX_LEVELS
from subgrove._core.text import TOGETHER
from subgrove._data.features import Members
from subgrove._data.table import Floats, Table, TypedColumn
from subgrove._subgroups.depth import select_depth
from subgrove._subgroups.partition import Partition
from subgrove.exceptions import ParameterError
from subgrove.trees import CartTree, ConditionalInferenceTree, JointTree, TransformationTree
from subgrove.trees.base import BaseTree
from subgrove.trees.candidates import SortedTable
from subgrove.trees.growth import StoppingRules
from subgrove.trees.training import Training, has_three_values, training_rows

TREES = ("transformation", "cart")
_CP = 0.01  # complexity of CART, as in the code of the paper


@dataclass(frozen=True)
class TreeSettings:
    """Type of the trees, stopping rules, and whether to select the depth by cross-validation."""

    tree: str
    rules: StoppingRules
    select_depth: bool = False
    tolerance: float = 0.0

    @classmethod
    def checked(
        cls,
        tree: Any,
        max_depth: Any,
        min_samples_leaf: Any,
        alpha: Any,
        *,
        select_depth: bool = False,
        tolerance: float = 0.0,
    ) -> TreeSettings:
        """Validate the arguments and return the settings."""
        if tree not in TREES:
            raise ParameterError(f"tree must be one of {', '.join(map(repr, TREES))}; got {tree!r}.")
        return cls(tree, StoppingRules.checked(max_depth, min_samples_leaf, alpha), select_depth, tolerance)

    def reject_groups(self, features: tuple[Members, ...]) -> None:
        """Raise an error if a group of features is to be grown by CART, which has one target."""
        group = next((members for members in features if len(members) > 1), None)
        if group is not None and self.tree == "cart":
            raise ParameterError(
                f"features has the group {TOGETHER.join(group)!r}, but tree='cart' takes one feature at a time. "
                f"Use tree='transformation' for groups."
            )

    def grower(self, training: Training) -> BaseTree:
        """Return the unfitted tree for a feature of this kind."""
        depth, leaf, alpha = self.rules.max_depth, self.rules.min_samples_leaf, self.rules.alpha
        if self.tree == "cart":
            return CartTree(depth, leaf, cp=_CP)
        if len(training.members) > 1:
            return JointTree(depth, leaf, alpha)
        if training.target.kind == "numeric" and has_three_values(training.values):
            return TransformationTree(depth, leaf, alpha)
        return ConditionalInferenceTree(depth, leaf, alpha)


def grow_on_shared_columns(
    columns: SortedTable, table: Table, weights: Floats | None, members: Members, settings: TreeSettings
) -> Partition:
    """Return the subgroups of a feature or group; `columns` are shared with the trees of other features."""
    features = tuple(table.series(name) for name in members)
    return grow_partition(columns.table.without(members), members, features, weights, settings, columns)


def grow_partition(
    others: Table,
    members: Members,
    features: tuple[TypedColumn, ...],
    weights: Floats | None,
    settings: TreeSettings,
    columns: SortedTable | None = None,
) -> Partition:
    """Return the subgroups of a feature or group.

    Parameters
    ----------
    others : Table
        Columns that rules may use.
    members : tuple of str
        Names of the features.
    features : tuple of TypedColumn
        Target of the tree: the features, or residuals of them.
    weights : float array or None
        Sample weights.
    settings : TreeSettings
    columns : SortedTable, optional
        Sorted orders shared with other trees; it has all columns of `others`.
    """
    training = training_rows(others, features, weights, columns)
    too_many_levels = any(len(feature.info.levels) > MAX_LEVELS for feature in features)
    grower, stop = settings.grower(training), "many levels" if too_many_levels else training.stop
    tree = grower._grow(training) if stop is None else grower._single_leaf(training, stop)
    choice = None
    if settings.select_depth:
        choice = select_depth(training, settings.grower, tree, tolerance=settings.tolerance)
    return Partition(members, tree, choice)
