"""CartTree against R's rpart 4.1.19 on the same rows, at each depth: the files of `reference/trees`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from subgrove.trees.cart import CartTree
from subgrove.trees.structure import Tree

TREES = Path(__file__).parents[3] / "shared" / "reference" / "trees"
CASES = sorted(path.stem for path in TREES.glob("*.json"))

pytestmark = pytest.mark.skipif(not CASES, reason=f"the reference results of R are not at {TREES}")


@cache
def read_case(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((TREES / f"{name}.json").read_text())
    return case


@cache
def read_data(dataset: str) -> pd.DataFrame:
    schema = json.loads((TREES / "data" / f"{dataset}.schema.json").read_text())["columns"]
    raw = pd.read_csv(
        TREES / "data" / f"{dataset}.csv.gz",
        dtype={name: str if "levels" in column else float for name, column in schema.items()},
    )
    for name, column in schema.items():
        if "levels" in column:
            raw[name] = pd.Categorical(raw[name], categories=column["levels"], ordered=column["type"] == "ordered")
    return raw


CASES_AND_DEPTHS = [
    pytest.param(name, depth, id=f"{name}-{depth}") for name in CASES for depth in read_case(name)["fits"]
]


def fitted(name: str, depth: str) -> tuple[Tree, dict[str, Any], pd.DataFrame]:
    case = read_case(name)
    if case["dataset"] == "missing":
        pytest.skip("rpart sends missing values by surrogate splits, CartTree treats them as a value")
    data = read_data(case["dataset"])
    fit = case["fits"][depth]
    X = data[case["covariates"]]
    tree = CartTree(max_depth=min(fit["maxdepth"], 30)).fit(X, data[case["target"]])
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
