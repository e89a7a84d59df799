"""The tree of one feature: which kind it has, and when none can grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subgrove._core.kinds import MAX_LEVELS
from subgrove._core.text import TOGETHER
from subgrove._data.features import Members
from subgrove._data.table import Floats, Table, TypedColumn
from subgrove._subgroups.depth import choose_depth
from subgrove._subgroups.partition import Partition
from subgrove.exceptions import ParameterError
from subgrove.trees import CartTree, ConditionalInferenceTree, JointTree, TransformationTree
from subgrove.trees.growth import StoppingRules
from subgrove.trees.single import single_leaf
from subgrove.trees.sorted_table import SortedTable
from subgrove.trees.training import Training, has_three_values, select_columns, training_rows

TREES = ("transformation", "cart")
_CP = 0.01  # complexity of CART, as in the code of the paper


@dataclass(frozen=True)
class TreeSettings:
    """Which tree to grow, and how far."""

    tree: str
    rules: StoppingRules
    judged: bool = False  # whether depths are compared on held-out rows
    tolerance: float = 0.0

    @classmethod
    def checked(
        cls, tree: Any, max_depth: Any, min_samples_leaf: Any, alpha: Any, judged: bool = False, tolerance: float = 0.0
    ) -> TreeSettings:
        """The settings, if they are what they may be."""
        if tree not in TREES:
            raise ParameterError(f"tree must be one of {', '.join(map(repr, TREES))}; got {tree!r}.")
        return cls(tree, StoppingRules.checked(max_depth, min_samples_leaf, alpha), judged, tolerance)

    def reject_groups(self, asked: tuple[Members, ...]) -> None:
        """CART splits by one mean or one set of frequencies."""
        group = next((members for members in asked if len(members) > 1), None)
        if group is not None and self.tree == "cart":
            raise ParameterError(
                f"features has the group {TOGETHER.join(group)!r}, but tree='cart' takes one feature at a time. "
                f"Use tree='transformation' for groups."
            )

    def grower(self, training: Training) -> TransformationTree | ConditionalInferenceTree | CartTree | JointTree:
        """The tree for a feature of this kind."""
        depth, leaf, alpha = self.rules.max_depth, self.rules.min_samples_leaf, self.rules.alpha
        if self.tree == "cart":
            return CartTree(depth, leaf, cp=_CP)
        if len(training.members) > 1:
            return JointTree(depth, leaf, alpha)
        if training.target.kind == "numeric" and has_three_values(training.values):
            return TransformationTree(depth, leaf, alpha)
        return ConditionalInferenceTree(depth, leaf, alpha)


def grown_partition(
    table: Table, weights: Floats | None, members: Members, allowed: Members, settings: TreeSettings
) -> Partition:
    """The subgroups of a feature, or of a group, in a table; `allowed` are the columns that rules may ask for."""
    return grow_on_shared_columns(
        SortedTable.of(select_columns(table, allowed), shared=False), table, weights, members, settings
    )


def grow_on_shared_columns(
    prepared: SortedTable, table: Table, weights: Floats | None, members: Members, settings: TreeSettings
) -> Partition:
    """The same from columns that trees of other features use as well; it leaves its own out."""
    features = tuple(table.series(name) for name in members)
    return grow_partition(prepared.table.without(members), members, features, weights, settings, prepared)


def grow_partition(
    others: Table,
    members: Members,
    features: tuple[TypedColumn, ...],
    weights: Floats | None,
    settings: TreeSettings,
    prepared: SortedTable | None = None,
) -> Partition:
    """The same from the columns that rules may ask for, and what the tree is for: features, or something of them."""
    training = training_rows(others, features, weights, prepared)
    many = any(len(feature.info.levels) > MAX_LEVELS for feature in features)
    grower, stop = settings.grower(training), "many levels" if many else training.stop
    grown = (
        grower._grow(training) if stop is None else single_leaf(training, grower._method, grower.plain_params(), stop)
    )
    choice = None
    if settings.judged:
        choice = choose_depth(training, settings.grower, grown, tolerance=settings.tolerance)
    return Partition(members, grown, choice)
