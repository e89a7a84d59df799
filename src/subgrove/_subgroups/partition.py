"""The subgroups of one feature, or of several that are redrawn together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.html_views import html_of
from subgrove._data.features import NamedGroup, feature_label
from subgrove._data.table import Table, read_like
from subgrove._subgroups.depth_choice import DepthChoice
from subgrove.exceptions import FormatError
from subgrove.trees import Tree


@dataclass(frozen=True, repr=False)
class Partition:
    """Subgroups of a feature: what `find_subgroups(...)` holds for each feature.

    Within a subgroup the feature hardly depends on the other columns. A rule says which rows belong to it; every row
    belongs to one subgroup.

    Attributes
    ----------
    members : tuple of str
        The feature, or the features of a group.
    tree : Tree
        The tree whose leaves are the subgroups.
    choice : DepthChoice or None
        Why the tree has its depth, if that was chosen (`max_depth="auto"`).
    feature : str
        The name of the feature, or the names of a group joined by " + ".
    rules : tuple of str
        The rule of each subgroup, in the order of the leaves.
    sizes : tuple of int or float
        Training rows (weight) of each subgroup. Rows without a value of the feature are not among them.
    conditioning : tuple of str
        The columns that rules ask for, those nearest to the root first.

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
        """The name of the feature or group; a group without a name is called by its members, joined by " + "."""
        return feature_label(self.members)

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The rule of each subgroup, in the order of the leaves."""
        return tuple(self.tree.rules.values())

    @cached_property
    def sizes(self) -> tuple[int | float, ...]:
        """Training rows (weight) of each subgroup."""
        return tuple(int(leaf.n) if leaf.n.is_integer() else leaf.n for leaf in self.tree.leaves)

    @cached_property
    def conditioning(self) -> tuple[str, ...]:
        """The columns that rules ask for, those nearest to the root first."""
        splits = [(node.depth, node.id, node.split.column) for node in self.tree.nodes if node.split is not None]
        return tuple(dict.fromkeys(column for _, _, column in sorted(splits)))

    def __len__(self) -> int:
        return len(self.tree.leaves)

    def __repr__(self) -> str:
        return f"<Partition of {self.feature!r}: {self._summary()}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    def _summary(self) -> str:
        """How many subgroups there are, and by which columns."""
        if len(self) == 1:
            return "1 subgroup"
        return f"{len(self)} subgroups by {', '.join(self.conditioning)}"

    def assign(self, X: Any) -> npt.NDArray[np.intp]:
        """Which subgroup each row is in.

        Parameters
        ----------
        X : frame, table or 2-d array
            Rows with the columns that the tree was given (in any order; others, also the feature, are ignored).

        Returns
        -------
        array of int
            Positions in `rules`, from 0. Rows that lack a value of the feature have a subgroup too.
            A level that training did not have goes with the larger side, with a warning; so do missing values in a
            column that had none in training.
        """
        return self._assign_table(read_like(X, self.tree.columns), stacklevel=4)

    def _assign_table(self, table: Table, stacklevel: int = 3) -> npt.NDArray[np.intp]:
        """The same for a table that was read with the columns of training; `stacklevel` is where a warning points."""
        return self.tree._leaf_numbers(table, stacklevel)

    def at_depth(self, depth: int) -> Partition:
        """The subgroups that `max_depth=depth` would have given, at no cost.

        Deeper than it was grown, a tree stays as it is.

        Parameters
        ----------
        depth : int
            Splits from the root to the deepest leaf, at most; 0 leaves one subgroup.
        """
        return Partition(self.members, self.tree.prune(depth))

    def at_selected_depth(self) -> Partition:
        """The subgroups of the depth that `choice` says is enough; the same where none was chosen."""
        return self if self.choice is None else replace(self, tree=self.tree.prune(self.choice.depth))

    def text(self) -> str:
        """The tree as indented lines.

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
        """A dictionary of plain values that JSON can hold."""
        chosen = {} if self.choice is None else {"choice": self.choice.to_dict()}
        name = {"name": self.members.name} if isinstance(self.members, NamedGroup) else {}
        return {"members": list(self.members), **name, "tree": self.tree.to_dict()} | chosen

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Partition:
        """The partition that `to_dict` wrote.

        Parameters
        ----------
        values : dict
            What `to_dict` of a partition gave, also after a way through JSON.
        """
        try:
            members, tree = tuple(values["members"]), Tree.from_dict(values["tree"])
            members = NamedGroup(values["name"], members) if "name" in values else members
            choice = values.get("choice")
            return cls(members, tree, None if choice is None else DepthChoice.from_dict(choice))
        except (KeyError, TypeError) as error:
            raise FormatError(f"The dictionary is not one of Partition.to_dict(): {error!r}.") from error
