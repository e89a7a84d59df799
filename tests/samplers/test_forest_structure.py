"""Splits of a tree as cells: the grid of all cuts, or the nodes that rows get to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Rows
from subgrove.samplers.forest_reading import TreeSplits, associated_columns, grid_cells, node_cells

#        x0 <= 0
#       /       \
#   x1 <= 1    x1 <= -1
#                   \
#                  x0 <= 2
TREE = TreeSplits(
    left=np.array([1, 2, -1, -1, 5, -1, 7, -1, -1]),
    right=np.array([4, 3, -1, -1, 6, -1, 8, -1, -1]),
    column=np.array([0, 1, -2, -2, 1, -2, 0, -2, -2]),
    cut=np.array([0.0, 1.0, -2.0, -2.0, -1.0, -2.0, 2.0, -2.0, -2.0]),
    missing_left=np.array([True, False, False, False, True, False, False, False, False]),
)


def grouped(cells: Rows) -> list[list[int]]:
    """Rows by cell, in the order of their first row."""
    groups: dict[int, list[int]] = {}
    for row, cell in enumerate(cells.tolist()):
        groups.setdefault(cell, []).append(row)
    return list(groups.values())


def rows(*pairs: tuple[float, float]) -> Floats:
    return np.array(pairs, dtype=np.float64)


def test_cuts_of_a_column_are_those_of_all_its_nodes() -> None:
    assert TREE.cuts[0].tolist() == [0.0, 2.0]
    assert TREE.cuts[1].tolist() == [-1.0, 1.0]
    assert 2 not in TREE.cuts


def test_value_on_a_cut_is_left_of_it() -> None:
    values = rows((0.0, 0), (0.1, 0), (2.0, 0), (2.1, 0), (np.nan, 0))
    assert TREE.intervals(0, values).tolist() == [0, 1, 1, 2, 3]


def test_grid_cuts_a_column_wherever_any_node_does() -> None:
    values = rows((-1, -2), (-1, 0), (-1, 2), (3, -2), (3, 0), (3, 2))
    assert grouped(grid_cells(TREE, values, [1])) == [[0, 3], [1, 4], [2, 5]]
    assert grouped(grid_cells(TREE, values, [0, 1])) == [[0], [1], [2], [3], [4], [5]]


def test_without_a_column_all_rows_share_a_cell() -> None:
    values = rows((-1, -2), (3, 2))
    assert grouped(grid_cells(TREE, values, [])) == [[0, 1]]
    assert grouped(node_cells(TREE, values, [])) == [[0, 1]]


def test_nodes_of_all_columns_are_the_leaves() -> None:
    # Below x0 <= 0 only the cut at 1 counts, above it only that at -1.
    values = rows((-1, -2), (-1, 0), (-1, 2), (3, -2), (3, 0), (3, 2), (1, 2))
    assert grouped(node_cells(TREE, values, [0, 1])) == [[0, 1], [2], [3], [4, 5], [6]]


def test_node_that_splits_on_another_column_sends_rows_both_ways() -> None:
    # Given x1 alone, both of its splits can be met by any row.
    values = rows((-1, -2), (3, -3), (-1, 0), (3, 0.5), (-1, 2), (3, 5))
    assert grouped(node_cells(TREE, values, [1])) == [[0, 1], [2, 3], [4, 5]]
    # Given x0 alone, the cut at 2 is met above 0 only, but there by all rows.
    values = rows((-1, 9), (0, -9), (1, 9), (2, -9), (3, 9))
    assert grouped(node_cells(TREE, values, [0])) == [[0, 1], [2, 3], [4]]


def test_missing_values_are_a_cell_of_the_grid_and_follow_the_nodes() -> None:
    values = rows((np.nan, 0), (-1, 0), (3, 0))
    assert grouped(grid_cells(TREE, values, [0])) == [[0], [1], [2]]
    assert grouped(node_cells(TREE, values, [0])) == [[0, 1], [2]]


@pytest.mark.parametrize("threshold", [0.5, 0.95])
@pytest.mark.parametrize("seed", range(6))
def test_association_is_pearsons_test_of_the_intervals(threshold: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=60)
    values = np.column_stack([x, 0.3 * x + rng.normal(size=60)])
    counts = np.zeros((3, 3))
    np.add.at(counts, (TREE.intervals(0, values), TREE.intervals(1, values)), 1)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    p = chi2_contingency(counts, correction=False).pvalue
    assert associated_columns(TREE, values, 0, threshold) == ((1,) if 1 - p > threshold else ())


def test_threshold_of_zero_takes_every_column_that_is_split_and_one_takes_none() -> None:
    values = np.random.default_rng(0).normal(size=(50, 3))
    values[:, 1] = values[:, 0]
    assert associated_columns(TREE, values, 0, 0.0) == (1,)
    assert associated_columns(TREE, values, 2, 0.0) == (0, 1)
    assert associated_columns(TREE, values, 0, 1.0) == ()


def test_feature_that_the_tree_does_not_split_depends_on_none() -> None:
    values = np.tile(np.linspace(-3, 3, 50)[:, None], (1, 3))
    assert associated_columns(TREE, values, 2, 0.95) == ()
    assert associated_columns(TREE, values, 0, 0.95) == (1,)


def test_single_row_has_no_association() -> None:
    assert associated_columns(TREE, rows((1, 1)), 0, 0.95) == ()


def test_a_tree_that_is_a_single_leaf_has_no_cuts() -> None:
    leaf = TreeSplits(np.array([-1]), np.array([-1]), np.array([-2]), np.array([-2.0]), np.array([False]))
    assert leaf.cuts == {}
    assert grouped(grid_cells(leaf, rows((1, 2), (3, 4)), [0, 1])) == [[0, 1]]
