"""Trees that share the preparation of a table are the trees that grow alone, to the last digit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.table import read_table
from subgrove._native import loader
from subgrove.trees import training
from subgrove.trees.training import SortedTable, ascending


def mixed(n: int, seed: int = 3) -> pd.DataFrame:
    """Columns of every kind that depend on each other."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    gappy = z + rng.normal(size=n)
    gappy[rng.uniform(size=n) < 0.2] = np.nan
    town = pd.Series(np.array(["a", "b", "c", "d"])[np.clip(np.floor(z + 2), 0, 3).astype(int)])
    town[rng.uniform(size=n) < 0.1] = None
    return pd.DataFrame(
        {
            "plain": z + rng.normal(size=n) / 2,
            "tied": np.round(z, 1),
            "count": rng.poisson(np.exp(z / 2)),
            "distant": 1e9 + z**2 + rng.normal(size=n),
            "tiny": (z + rng.normal(size=n)) * 1e-150,
            "gappy": gappy,
            "town": pd.Categorical(town),
            "size": pd.Categorical(np.where(z > 0, "big", "small"), ["small", "big", "huge"], ordered=True),
            "constant": 1.0,
            "again": np.round(z, 1),
        }
    )


def dictionaries(groups: sg.Subgroups) -> dict[str, dict[str, Any]]:
    return {partition.feature: partition.tree.to_dict() for partition in groups.partitions}


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "deep": {"max_depth": 5, "min_samples_leaf": 10},
    "given": {"given": ["tied", "gappy", "town", "size"]},
    "cart": {"tree": "cart", "max_depth": 4},
    "weights": {"sample_weight": np.arange(700) % 4 / 2},
    "cart, weights": {"tree": "cart", "sample_weight": np.arange(700) % 4 / 2},
    "kinds": {"kinds": {"tied": "ordered", "count": "nominal"}},
}


@pytest.mark.parametrize("way", WAYS)
def test_trees_found_together_are_those_found_one_by_one(way: str) -> None:
    X, options = mixed(700), WAYS[way]
    together = sg.find_subgroups(X, **options)
    assert sum(len(partition.rules) > 1 for partition in together.partitions) >= 7
    alone: dict[str, Any] = {}
    for name in X.columns:
        alone |= dictionaries(sg.find_subgroups(X, features=name, **options))
    assert dictionaries(together) == alone


def test_groups_of_features_have_the_tree_they_have_alone() -> None:
    X = mixed(700)
    features = ["plain", ("tied", "town"), "gappy"]
    together = dictionaries(sg.find_subgroups(X, features=features))
    for one in features:
        found = dictionaries(sg.find_subgroups(X, features=[one]))
        assert found.items() <= together.items()


@pytest.mark.skipif(loader.tree_sums is None, reason="matrix products of other shapes may differ in the last digit")
@pytest.mark.parametrize("n", [700, 5000])
def test_trees_found_together_are_those_that_fit_gives(n: int) -> None:
    """5000 rows: nodes so large that they are first fitted to binned values."""
    X = mixed(n)
    groups = dictionaries(sg.find_subgroups(X, features=["plain", "tied", "distant", "tiny", "gappy"]))
    for name, found in groups.items():
        assert found == sg.trees.TransformationTree(max_depth=2).fit(X.drop(columns=name), X[name]).to_dict()
    town = sg.trees.ConditionalInferenceTree(max_depth=2).fit(X.drop(columns="town"), X["town"]).to_dict()
    assert town == sg.find_subgroups(X)["town"].tree.to_dict()


def test_orders_that_are_too_large_to_keep_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = mixed(700)
    for tree in ("transformation", "cart"):
        kept = dictionaries(sg.find_subgroups(X, tree=tree))
        with monkeypatch.context() as patched:
            patched.setattr(training, "MAX_ORDER_BYTES", 0)
            assert dictionaries(sg.find_subgroups(X, tree=tree)) == kept


def test_a_column_is_sorted_once_for_all_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 6)) + rng.normal(size=(5000, 1))
    sizes: list[int] = []

    def counted(values: Any) -> Any:
        sizes.append(values.size)
        return ascending(values)

    monkeypatch.setattr(training, "ascending", counted)
    groups = sg.find_subgroups(X)
    assert sum(len(partition.rules) > 1 for partition in groups.partitions) == 6
    assert sizes.count(5000) == len(sizes) == 6


def test_the_callers_table_is_as_it_was() -> None:
    X = mixed(300)
    before = X.copy(deep=True)
    sg.find_subgroups(X)
    pd.testing.assert_frame_equal(X, before)
    array = np.asfortranarray(np.random.default_rng(0).normal(size=(300, 3)))
    array.flags.writeable = False
    sg.find_subgroups(array)


def test_equal_values_stand_in_the_order_of_their_rows() -> None:
    values = np.array([2.0, 1.0, 2.0, 1.0, 0.0, 2.0])
    assert ascending(values).tolist() == [4, 1, 3, 0, 2, 5]
    both = np.array([[3.0, 3.0, 1.0, np.inf], [1.0, 0.0, 5.0, 2.0]])
    assert ascending(both).tolist() == [[2, 0, 1, 3], [1, 0, 3, 2]]


def test_rows_of_a_node_keep_the_order_of_the_column() -> None:
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(size=200), 1)
    table = SortedTable.of(read_table(x[:, None]), shared=True)
    rows = np.sort(rng.permutation(200)[:90])
    places = table.order_within(0, rows)
    assert places is not None
    assert places.tolist() == ascending(x[rows]).tolist()
    assert table.order_within(0, rows[:10]) is None  # sorted quicker than looked for
