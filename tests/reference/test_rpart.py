"""CartTree against R's rpart 4.1.19 on the same rows, at each depth: the files of `reference/trees`."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from subgrove.trees import CartTree, Tree

from .cases import ABSENT, case, inputs, names

CASES = names("trafotree") + names("ctree")

pytestmark = pytest.mark.skipif(not CASES, reason=ABSENT)

CASES_AND_DEPTHS = [pytest.param(name, depth, id=f"{name}-{depth}") for name in CASES for depth in case(name)["fits"]]


def fitted(name: str, depth: str) -> tuple[Tree, dict[str, Any], pd.DataFrame]:
    if case(name)["dataset"] == "missing":
        pytest.skip("rpart sends missing values by surrogate splits, CartTree treats them as a value")
    fit = case(name)["fits"][depth]
    X, x = inputs(name)
    tree = CartTree(max_depth=min(fit["maxdepth"], 30)).fit(X, x)
    return tree, fit["rpart"], X


@pytest.mark.parametrize(("name", "depth"), CASES_AND_DEPTHS)
def test_every_row_is_in_the_leaf_of_rpart(name: str, depth: str) -> None:
    tree, rpart, X = fitted(name, depth)
    assert tree.apply(X).tolist() == rpart["assignment"]


@pytest.mark.parametrize(("name", "depth"), CASES_AND_DEPTHS)
def test_splits_are_those_of_rpart(name: str, depth: str) -> None:
    tree, rpart, _ = fitted(name, depth)
    # A tree without a split has no party nodes in the file.
    expected = {node["id"]: node["split"] for node in rpart.get("party_nodes", []) if not node["terminal"]}
    splits = {node.id: node.split for node in tree.nodes if node.split is not None}
    assert splits.keys() == expected.keys()
    for id_, split in splits.items():
        wanted = expected[id_]
        assert split.column == wanted["var"]
        if wanted["kind"] == "factor":
            absent = set(wanted["levels_absent"])
            found = [sorted(set(levels) - absent) for levels in split.levels]
            assert found == [sorted(wanted["levels_kid1"]), sorted(wanted["levels_kid2"])]
        else:
            assert split.threshold == float(wanted["break_str"])
            assert split.below == ("left" if wanted["kid_below"] == 1 else "right")


@pytest.mark.parametrize(("name", "depth"), CASES_AND_DEPTHS)
def test_sizes_and_risks_are_those_of_rpart(name: str, depth: str) -> None:
    tree, rpart, _ = fitted(name, depth)
    assert [node.n for node in tree.nodes] == rpart["frame"]["n"]
    # The file has 15 digits.
    assert [node.risk for node in tree.nodes] == pytest.approx(rpart["frame"]["dev"], rel=1e-9)
