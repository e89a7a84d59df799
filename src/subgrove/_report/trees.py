"""The tree whose leaves are a feature's subgroups, as plain nodes."""

from __future__ import annotations

from subgrove._report.summary import TreeNode
from subgrove._subgroups import Partition


def nodes_of(partition: Partition | None, n_train: int) -> tuple[TreeNode, ...]:
    """Nodes in the order of depth first; one, where there is no tree."""
    if partition is None:
        return (TreeNode(None, "", "", n_train, None, 0),)
    tree = partition.tree
    parent = {child: node.id - 1 for node in tree.nodes for child in node.children or ()}
    leaf = {node.id: place for place, node in enumerate(tree.leaves)}
    branches = tree.branches
    return tuple(
        TreeNode(
            parent.get(node.id),
            branches[node.id].column.name if node.id in branches else "",
            str(branches[node.id]) if node.id in branches else "",
            round(node.n),
            None if node.is_leaf or node.p_value is None else float(node.p_value),
            leaf.get(node.id),
        )
        for node in tree.nodes
    )
