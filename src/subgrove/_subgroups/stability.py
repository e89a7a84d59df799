"""Stability of subgroups: trees grown again on random halves of the rows, compared with the tree on all rows.

Halves are drawn without replacement. A bootstrap sample contains copies of rows, which the tests of a tree take for
evidence, so it splits too often (Strobl and others 2007). Around the mean of all n rows, the mean of half of them has
variance s^2 / (n / 2) * (1 - 1 / 2) = s^2 / n, the same as the mean of n rows around the population mean. So the range
of a statistic that varies like a mean is its range over other samples of n rows. A split point at a jump varies less
than that in n rows, so its range is conservative. Trees on half the rows have less power, so shares are conservative as
well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams, one_blas_thread, parallel_map, progress_bar
from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import Table
from subgrove._subgroups.partition import Partition, TreeSettings, grow_on_shared_columns
from subgrove._subgroups.stability_result import FeatureStability, RegrownTree, Stability
from subgrove.trees import Node, Split, Tree
from subgrove.trees.training import SortedTable, select_columns

_CHUNK = 10  # resamples per task
_Task = tuple[int, range]  # position of the partition, numbers of the resamples
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TreeRows:
    """A tree and the leaf of each row.

    Attributes
    ----------
    tree : Tree
    leaf : int array (n_rows,)
        Number of the leaf of each row.
    """

    tree: Tree
    leaf: Rows

    @classmethod
    def of(cls, tree: Tree, table: Table) -> TreeRows:
        """Route the rows of a table through a tree."""
        return cls(tree, tree._leaf_numbers(table))

    @cached_property
    def inner(self) -> tuple[tuple[Node, Split], ...]:
        """Nodes with a split, and their splits."""
        return tuple((node, node.split) for node in self.tree.nodes if node.split is not None)

    def rows_of(self, node: Node) -> _Mask:
        """Return which rows pass through a node."""
        later = self.tree.nodes[node.id :]
        end = next((other.id for other in later if other.depth <= node.depth), np.inf)
        # The nodes below a node follow it in pre-order.
        below = [number for number, leaf in enumerate(self.tree.leaves) if node.id <= leaf.id < end]
        return np.isin(self.leaf, below)


def regrow_trees(
    partitions: tuple[Partition, ...],
    table: Table,
    weights: Floats | None,
    parameters: Mapping[str, Any],
    n_resamples: int,
    seed: int,
    n_jobs: int | None,
) -> Stability:
    """Grow the tree of each partition on `n_resamples` halves of the rows and compare it with the original.

    `parameters` are those of `find_subgroups`.
    """
    chunks = [range(first, min(first + _CHUNK, n_resamples)) for first in range(0, n_resamples, _CHUNK)]
    tasks: list[_Task] = list(product(range(len(partitions)), chunks))
    work = partial(_regrow, partitions, table, weights, parameters, Streams(seed, "stability", n_resamples))
    regrown: list[list[RegrownTree]] = [[] for _ in partitions]
    with one_blas_thread(), progress_bar(n_resamples * len(partitions), "Growing trees") as advance:
        for (at, chunk), trees in zip(tasks, parallel_map(work, tasks, n_jobs), strict=True):
            regrown[at] += trees
            advance(len(chunk))
    features = tuple(
        FeatureStability(partition, _levels_present(partition, table), tuple(trees))
        for partition, trees in zip(partitions, regrown, strict=True)
    )
    return Stability(features, n_resamples, seed)


def _regrow(
    partitions: Sequence[Partition],
    table: Table,
    weights: Floats | None,
    parameters: Mapping[str, Any],
    streams: Streams,
    task: _Task,
) -> list[RegrownTree]:
    partition = partitions[task[0]]
    names = tuple(column.name for column in partition.tree.columns)
    min_samples_leaf = max((int(parameters["min_samples_leaf"]) + 1) // 2, 1)
    depth = partition.tree.parameters["max_depth"]
    settings = TreeSettings.checked(parameters["tree"], depth, min_samples_leaf, parameters["alpha"])
    others = select_columns(table, names)
    original = TreeRows.of(partition.tree, others)
    regrown = []
    for number in task[1]:
        rows = np.sort(streams[number].permutation(table.n_rows)[: table.n_rows // 2])
        half = table.rows(rows)
        columns = SortedTable.of(select_columns(half, names), shared=False)
        half_weights = None if weights is None else weights[rows]
        tree = grow_on_shared_columns(columns, half, half_weights, partition.members, settings).tree
        regrown.append(compare(original, TreeRows.of(tree, others)))
    return regrown


def _levels_present(partition: Partition, table: Table) -> tuple[tuple[str, ...], ...]:
    """Return, for each split, the levels of its column present in its node; empty if the column has no levels."""
    rows = TreeRows.of(partition.tree, select_columns(table, [column.name for column in partition.tree.columns]))
    present: list[tuple[str, ...]] = []
    for node, split in rows.inner:
        series = table.series(split.column)
        codes: Iterable[int] = np.unique(series.values[rows.rows_of(node)]).tolist() if series.info.is_nominal else ()
        present.append(tuple(series.info.levels[code] for code in codes if code >= 0))
    return tuple(present)


def compare(original: TreeRows, other: TreeRows) -> RegrownTree:
    """Compare a tree with the original tree; both have the same rows."""
    splits = tuple(_matching_split(original.rows_of(node), node.depth, other) for node, _ in original.inner)
    upwards = sorted(other.inner, key=lambda pair: -pair[0].depth)
    depths = {split.column: node.depth for node, split in upwards}  # the smallest stays
    rand, together = agreement(original.leaf, other.leaf)
    return RegrownTree(splits, tuple(sorted(depths.items())), len(other.tree.leaves), rand, together)


def _matching_split(rows: _Mask, depth: int, other: TreeRows) -> Split | None:
    """Return the split of the node of this depth with the largest overlap (Jaccard index) of rows."""
    best, largest = None, 0.0
    for node in (node for node in other.tree.nodes if node.depth == depth):
        node_rows = other.rows_of(node)
        overlap = float((rows & node_rows).sum() / max((rows | node_rows).sum(), 1))
        if overlap > largest:
            best, largest = node.split, overlap
    return best


def agreement(one: Rows, other: Rows) -> tuple[float, float]:
    """Return the adjusted Rand index (Hubert and Arabie 1985) and the share of pairs in `one` that stay in `other`."""
    counts = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(counts, (one, other), 1.0)
    in_both, in_one, in_other = (float(_pairs(part).sum()) for part in (counts, counts.sum(axis=1), counts.sum(axis=0)))
    expected = in_one * in_other / max(float(_pairs(np.array(float(len(one))))), 1.0)
    maximum = (in_one + in_other) / 2
    rand = 1.0 if maximum == expected else (in_both - expected) / (maximum - expected)
    return rand, in_both / in_one if in_one else 1.0


def _pairs(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return n * (n - 1) / 2
