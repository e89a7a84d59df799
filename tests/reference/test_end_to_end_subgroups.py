"""Subgroups of the bike data against the paper's own R functions: trees of 511 training rows, 220 test rows."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from subgrove._subgroups import Partition, Subgroups, find_subgroups

from .cases import FOLDER, frame

END_TO_END = FOLDER.parent / "end_to_end"
pytestmark = pytest.mark.skipif(
    not END_TO_END.exists(), reason="the reference outputs of R are not beside the repository (end_to_end)"
)
FEATURES = ["season", "yr", "holiday", "weekday", "temp", "hum", "work", "weather", "wind"]
each_feature = pytest.mark.parametrize("feature", FEATURES)
each_depth = pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])


@cache
def rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows."""
    schema = json.loads((FOLDER / "data" / "bike_full.schema.json").read_text())
    X = frame("bike_full")[FEATURES]
    train = np.isin(np.arange(1, len(X) + 1), schema["train_index_1based"])
    return X[train], X[~train]


@cache
def found(depth: int) -> Subgroups:
    return find_subgroups(rows()[0], max_depth=depth)


@cache
def of_r(table: str) -> pd.DataFrame:
    return pd.read_csv(END_TO_END / table)


def part_of_r(table: str, feature: str, depth: int) -> pd.DataFrame:
    whole = of_r(table)
    return whole[(whole["feature"] == feature) & (whole["maxdepth"] == depth)]


def nodes(partition: Partition, X: pd.DataFrame) -> npt.NDArray[Any]:
    """R's number of the subgroup of each row: its node."""
    return np.array([leaf.id for leaf in partition.tree.leaves])[partition.assign(X)]


def test_rows_are_those_of_r() -> None:
    train, test = rows()
    assert (len(train), len(test)) == (511, 220)
    assert sorted(of_r("test_assignment.csv.gz")["row"].unique()) == [row + 1 for row in test.index]


@each_feature
@each_depth
def test_sizes_of_subgroups_are_those_of_r(feature: str, depth: int) -> None:
    partition, rules = found(depth)[feature], part_of_r("tree_rules.csv", feature, depth)
    n_test = np.bincount(partition.assign(rows()[1]), minlength=len(partition))
    ours = zip((leaf.id for leaf in partition.tree.leaves), partition.sizes, n_test.tolist(), strict=True)
    assert list(ours) == list(zip(rules["node"], rules["n_train"], rules["n_test"], strict=True))


@each_feature
@each_depth
def test_test_rows_are_in_the_subgroups_of_r(feature: str, depth: int) -> None:
    expected = part_of_r("test_assignment.csv.gz", feature, depth).set_index("row")["node"]
    test = rows()[1]
    np.testing.assert_array_equal(nodes(found(depth)[feature], test), expected.loc[test.index + 1])


@each_feature
def test_pruned_subgroups_are_those_of_the_smaller_depth(feature: str) -> None:
    for depth in range(1, 5):
        assert found(5)[feature].at_depth(depth).rules == found(depth)[feature].rules
