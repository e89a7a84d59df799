"""A tree cut back to some columns: pruned, nested, and applied as its own rules say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import subgrove as sg

X = sg.datasets.bike().X
GROUPS = sg.find_subgroups(X, max_depth=4)
FEATURES = [name for name in GROUPS if len(GROUPS[name].conditioning) > 1]


@pytest.mark.parametrize("feature", FEATURES)
def test_all_columns_leave_the_tree_and_none_leave_one_subgroup(feature: str) -> None:
    partition = GROUPS[feature]
    assert partition.restricted_to(X.columns).rules == partition.rules
    assert partition.restricted_to([]).rules == ("all rows",)


@pytest.mark.parametrize("feature", FEATURES)
def test_splits_that_stay_use_the_columns_only_and_more_columns_refine_subgroups(feature: str) -> None:
    partition = GROUPS[feature]
    columns = partition.conditioning
    for size in range(len(columns)):
        for few in list(combinations(columns, size))[:10]:
            small = partition.restricted_to(few)
            assert set(small.conditioning) <= set(few)
            larger = partition.restricted_to((*few, next(name for name in columns if name not in few)))
            code, finer = small.assign(X), larger.assign(X)
            pairs = np.unique(np.column_stack([finer, code]), axis=0)
            assert len(pairs) == len(np.unique(finer))  # each finer subgroup is in one coarser subgroup


def test_a_split_below_one_that_is_cut_goes_too() -> None:
    temp = GROUPS["temp"]
    assert temp.conditioning[0] == "season"
    without_root = [name for name in temp.conditioning if name != "season"]
    assert len(temp.restricted_to(without_root)) == 1
    by_hand = [node.split.column for node in temp.tree.nodes if node.split is not None and node.depth == 0]
    assert by_hand == ["season"]
