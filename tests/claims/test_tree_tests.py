"""What the tests of the trees promise: their size under independence, and what they see."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._data.table import Floats
from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationTree

RUNS = 2000


def share_of_splits(x_of: str, runs: int, seed: int) -> float:
    """How often the root of a tree splits though x is independent of all columns (n = 200, p = 10)."""
    rng = np.random.default_rng(seed)
    grower = TransformationTree(max_depth=1)
    splits = 0
    for _ in range(runs):
        X = rng.normal(size=(200, 10))
        x = rng.normal(size=200) if x_of == "normal" else rng.gamma(0.7, size=200)
        splits += not grower.fit(X, x).nodes[0].is_leaf
    return splits / runs


# 1.5 % is three standard errors of a share of 5 % in 2000 runs: 3 sqrt(0.05 * 0.95 / 2000) = 1.46 %.
@pytest.mark.parametrize("x_of", ["normal", "skewed"])
def test_root_splits_in_5_percent_of_runs_under_independence(x_of: str) -> None:
    assert share_of_splits(x_of, RUNS, seed=20) == pytest.approx(0.05, abs=0.015)


def test_conditional_inference_keeps_its_size_for_nominal_x() -> None:
    rng = np.random.default_rng(21)
    splits = 0
    for _ in range(RUNS):
        X = rng.normal(size=(200, 10))
        x = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
        splits += not ConditionalInferenceTree(max_depth=1).fit(X, x).nodes[0].is_leaf
    assert splits / RUNS == pytest.approx(0.05, abs=0.015)


def changes(kind: str, rng: np.random.Generator, n: int = 600) -> tuple[Floats, Floats]:
    """x whose mean is the same everywhere, and whose spread or shape changes with the first column."""
    X = rng.normal(size=(n, 4))
    above = X[:, 0] > 0
    if kind == "variance":
        return X, rng.normal(size=n) * np.where(above, 3.0, 1.0)
    # Mean 0 and variance 1 on both sides: a normal, and a shifted exponential.
    return X, np.where(above, rng.exponential(size=n) - 1.0, rng.normal(size=n))


@pytest.mark.parametrize("kind", ["variance", "shape"])
def test_transformation_tree_sees_what_cart_cannot(kind: str) -> None:
    """In 20 of 20 samples the root is split at the change; a CART tree of the same data finds the column by chance."""
    found = by_cart = 0
    for seed in range(20):
        X, x = changes(kind, np.random.default_rng(seed))
        split = TransformationTree(max_depth=1).fit(X, x).nodes[0].split
        assert split is not None
        assert split.threshold is not None
        found += split.column == "x0" and abs(split.threshold) < 0.4
        cart = CartTree(max_depth=1).fit(X, x).nodes[0].split
        by_cart += cart is not None and cart.column == "x0" and abs(cart.threshold or 9) < 0.4
    assert found == 20
    assert by_cart <= 5


def test_dependence_through_missingness_alone_is_seen() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    missing = rng.uniform(size=400) < 0.4
    X[missing, 1] = np.nan
    tree = TransformationTree(max_depth=1).fit(X, rng.normal(size=400) + 1.5 * missing)
    assert set(tree.rules.values()) == {"x1 is missing", "x1 is not missing"}
