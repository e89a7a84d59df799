"""A tree cut back to its splits on some columns: what is left of the subgroups if only these columns were known."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from subgrove._subgroups.partition import Partition
from subgrove.trees.nodes import renumber


def restricted(partition: Partition, columns: Collection[str]) -> Partition:
    """The partition by the splits whose column, and the columns of all splits above, are among some columns.

    So it is the same tree, pruned: more columns never give coarser subgroups, none give one subgroup.
    """
    nodes = {
        node.id: node
        if node.split is None or node.split.column in columns
        else replace(node, split=None, children=None, stop="no columns")
        for node in partition.tree.nodes
    }
    return Partition(partition.members, replace(partition.tree, nodes=renumber(nodes)))
