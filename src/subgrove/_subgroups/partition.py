"""Subgroups of one feature, or of several features that are resampled jointly: growth of their tree, and the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.html_views import HtmlView
from subgrove._core.kinds import MAX_LEVELS
from subgrove._core.text import TOGETHER
from subgrove._core.validate import warn
from subgrove._data.columns import Members, NamedGroup, feature_label
from subgrove._data.table import ColumnInfo, Floats, Table, TypedColumn, read_like
from subgrove._subgroups.depth import DepthChoice, select_depth
from subgrove.exceptions import ColumnError, FormatError, ParameterError, SubgroveError
from subgrove.trees import CartTree, ConditionalInferenceTree, JointTree, TransformationTree, Tree
from subgrove.trees.growth import StoppingRules
from subgrove.trees.inference_trees import BaseTree
from subgrove.trees.nodes import renumber
from subgrove.trees.split_points import shorten_split_points
from subgrove.trees.training import SortedTable, Training, has_three_values, training_rows


@dataclass(frozen=True, repr=False)
class Partition(HtmlView):
    """Subgroups of one feature; `find_subgroups` returns one partition per feature.

    Within a subgroup the feature hardly depends on the other columns. Each subgroup is defined by a rule; every row
    belongs to exactly one subgroup.

    Attributes
    ----------
    members : tuple of str
        Name of the feature, or names of the features of a group.
    tree : Tree
        Tree whose leaves are the subgroups.
    choice : DepthChoice or None
        Scores by depth and selected depth, if `max_depth="auto"`.
    feature : str
        Name of the feature, or the names of a group joined by " + ".
    rules : tuple of str
        Rule of each subgroup, in the order of the leaves.
    sizes : tuple of int or float
        Number of training rows (sum of weights) of each subgroup; rows with a missing value of the feature are not
        counted.
    conditioning : tuple of str
        Columns used in the rules, those nearest to the root first.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> temp = sg.find_subgroups(X, features="temp")["temp"]
    >>> temp
    <Partition of 'temp': 4 subgroups by season, hum>
    >>> for rule, size in zip(temp.rules, temp.sizes):
    ...     print(size, rule)
    181 season in {WINTER}
    362 season in {SPRING, FALL}
    118 season in {SUMMER} and hum <= 67.292
    70 season in {SUMMER} and hum > 67.292
    >>> temp.assign(X)[:5]
    array([0, 0, 0, 0, 0])
    >>> temp.at_depth(1).rules
    ('season in {WINTER, SPRING, FALL}', 'season in {SUMMER}')
    """

    members: tuple[str, ...]
    tree: Tree
    choice: DepthChoice | None = None

    @property
    def feature(self) -> str:
        """Name of the feature or group; a group without a name has the names of its members, joined by " + "."""
        return feature_label(self.members)

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """Rule of each subgroup, in the order of the leaves."""
        return tuple(self.tree.rules.values())

    @cached_property
    def sizes(self) -> tuple[int | float, ...]:
        """Number of training rows (sum of weights) of each subgroup."""
        return tuple(int(leaf.n) if leaf.n.is_integer() else leaf.n for leaf in self.tree.leaves)

    @cached_property
    def conditioning(self) -> tuple[str, ...]:
        """Columns used in the rules, those nearest to the root first."""
        splits = [(node.depth, node.id, node.split.column) for node in self.tree.nodes if node.split is not None]
        return tuple(dict.fromkeys(column for _, _, column in sorted(splits)))

    def __len__(self) -> int:
        return len(self.tree.leaves)

    def __repr__(self) -> str:
        return f"<Partition of {self.feature!r}: {self._summary()}>"

    def _summary(self) -> str:
        """Number of subgroups and their columns, as text."""
        if len(self) == 1:
            return "1 subgroup"
        return f"{len(self)} subgroups by {', '.join(self.conditioning)}"

    def assign(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the subgroup of each row.

        Parameters
        ----------
        X : frame, table or 2-d array
            Rows with the columns of the tree, in any order; other columns, including the feature, are ignored.

        Returns
        -------
        array of int
            Positions in `rules`, from 0. Rows with a missing value of the feature are assigned as well. A level
            that is new, or a missing value in a column without missing values in training, goes to the child with
            more training rows, with a warning.
        """
        return self._assign_table(read_like(X, self.tree.columns))

    def _assign_table(self, table: Table) -> npt.NDArray[np.intp]:
        """Assign rows of a table read with the training columns."""
        return self.tree._leaf_numbers(table)

    def at_depth(self, depth: int) -> Partition:
        """Return the subgroups that `max_depth=depth` gives, by pruning.

        A tree that is not deeper than `depth` is returned unchanged.

        Parameters
        ----------
        depth : int
            Maximum number of splits from the root to a leaf; 0 gives one subgroup.
        """
        return Partition(self.members, self.tree.prune(depth))

    def at_selected_depth(self) -> Partition:
        """Return the subgroups at the depth selected by `choice`; unchanged if there is no choice."""
        return self if self.choice is None else replace(self, tree=self.tree.prune(self.choice.depth))

    def restricted_to(self, columns: Collection[str]) -> Partition:
        """Return the partition pruned to splits on some columns.

        A split is retained if its column and the columns of all splits above it are in `columns`. So additional columns
        never give coarser subgroups, and no columns give a single subgroup.

        Parameters
        ----------
        columns : collection of str
            Names of the columns that rules may use.
        """
        nodes = {
            node.id: node
            if node.split is None or node.split.column in columns
            else replace(node, split=None, children=None, stop="no columns")
            for node in self.tree.nodes
        }
        return Partition(self.members, replace(self.tree, nodes=renumber(nodes)))

    def text(self) -> str:
        """Return the tree as indented lines.

        Examples
        --------
        >>> import subgrove as sg
        >>> print(sg.find_subgroups(sg.datasets.bike().X, features="wind", max_depth=1)["wind"].text())
        wind: transformation tree, 731 rows, 2 leaves
        [1] all rows (n = 731)
          [2] season in {WINTER, SPRING, SUMMER} (n = 553) *
          [3] season in {FALL} (n = 178) *
        """
        return self.tree.text()

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values that JSON can hold."""
        choice = {} if self.choice is None else {"choice": self.choice.to_dict()}
        name = {"name": self.members.name} if isinstance(self.members, NamedGroup) else {}
        return {"members": list(self.members), **name, "tree": self.tree.to_dict()} | choice

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Partition:
        """Restore a partition from `to_dict`.

        Parameters
        ----------
        values : dict
            Output of `to_dict`, possibly after a round trip through JSON.
        """
        try:
            members, tree = tuple(values["members"]), Tree.from_dict(values["tree"])
            members = NamedGroup(values["name"], members) if "name" in values else members
            choice = values.get("choice")
            return cls(members, tree, None if choice is None else DepthChoice.from_dict(choice))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"The dictionary is not one of Partition.to_dict(): {error!r}.") from error


TREES = ("transformation", "cart")
_CP = 0.01  # complexity of CART, as in the code of the paper


@dataclass(frozen=True)
class TreeSettings:
    """Type of the trees, stopping rules, and whether to select the depth by cross-validation.

    A split point with more than `readable` significant digits is shortened: only long ones by default, so that
    subgroups are those of the reference implementation in R for all rows, not only for the training rows.
    """

    tree: str
    rules: StoppingRules
    select_depth: bool = False
    tolerance: float = 0.0
    readable: int = 8

    @classmethod
    def checked(cls, tree: Any, max_depth: Any, min_samples_leaf: Any, alpha: Any) -> TreeSettings:
        """Validate the arguments and return the settings."""
        if not isinstance(tree, str) or tree not in TREES:
            raise ParameterError(f"tree must be one of {', '.join(map(repr, TREES))}; got {tree!r}.")
        return cls(tree, StoppingRules.checked(max_depth, min_samples_leaf, alpha))

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
    choice = select_depth(training, settings.grower, tree, settings.tolerance) if settings.select_depth else None
    return Partition(members, shorten_split_points(tree, training, settings.readable), choice)


def without_unusable(table: Table, allowed: Members, given: Any) -> Members:
    """Return the columns that a tree can split on; warn about the others."""
    unusable = {column.name: why for column in table.columns if (why := why_unusable(table, column)) is not None}
    named = [name for name in allowed if name in unusable]
    if not named:
        return allowed
    listed = ", ".join(f"{name!r} ({unusable[name]})" for name in named[:5]) + (" ..." if len(named) > 5 else "")
    if given is not None:
        raise ColumnError(f"given has columns that cannot define subgroups: {listed}. Remove them from given.")
    warn(
        f"Rules do not use the columns {listed}. Merge rare levels, convert columns that hold numbers or dates, or "
        f"pass the columns to use as given."
    )
    return tuple(name for name in allowed if name not in unusable)


def why_unusable(table: Table, column: ColumnInfo) -> str | None:
    """Return why no tree can split on a column; None if it can."""
    if len(column.levels) > MAX_LEVELS:
        return f"{len(column.levels)} levels, more than the maximum of {MAX_LEVELS}"
    if column.has_missing and bool(table.series(column.name).missing.all()):
        return "all values missing"
    return None


def named_partition(
    columns: SortedTable, table: Table, weights: Floats | None, settings: TreeSettings, members: Members
) -> Partition:
    """Grow the tree of a feature or group; errors name it."""
    try:
        return grow_on_shared_columns(columns, table, weights, members, settings)
    except SubgroveError as error:
        raise type(error)(f"Feature {TOGETHER.join(members)!r}: {error}") from error
    except Exception as error:
        error.add_note(f"Raised while growing the tree of feature {TOGETHER.join(members)!r}.")
        raise
