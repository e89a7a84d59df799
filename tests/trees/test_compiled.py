"""The compiled fits and those in NumPy are the same fits."""

from __future__ import annotations

import numpy as np
import pytest

from subgrove._data.table import Floats, read_table
from subgrove._native import loader
from subgrove.trees import TransformationTree
from subgrove.trees.column_tests import column_sums
from subgrove.trees.split_points import best_splits
from subgrove.trees.target_scores import NodeScores, fit_density, linear_start
from subgrove.trees.training import Block, Candidates, SortedTable, ascending

needs_compiler = pytest.mark.skipif(
    loader.tree_fit is None or loader.tree_sums is None, reason="the package was installed without a compiler"
)


def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tree_fit", "tree_sums"):
        monkeypatch.setattr(loader, name, None)


SHAPES = ["normal", "skewed", "two peaks", "heavy tails", "ties", "small part of the support"]


def sample(shape: str, rng: np.random.Generator, n: int) -> Floats:
    if shape == "normal":
        return rng.normal(size=n)
    if shape == "skewed":
        return rng.gamma(0.5, size=n)
    if shape == "two peaks":
        return np.where(rng.uniform(size=n) < 0.5, rng.normal(-4, 1, n), rng.normal(4, 0.5, n))
    if shape == "heavy tails":
        return rng.standard_t(2, size=n)
    if shape == "ties":
        return rng.poisson(3, size=n).astype(float)
    return np.append(rng.normal(0, 0.01, n - 2), [-1.0, 1.0])


def both(monkeypatch: pytest.MonkeyPatch, shape: str, weighted: bool, order: int = 5) -> tuple[NodeScores, NodeScores]:
    rng = np.random.default_rng(7)
    x = sample(shape, rng, 400)
    u = (x - x.min()) / (x.max() - x.min())
    nodes = [np.arange(400), np.arange(50, 180), np.arange(380, 400), np.flatnonzero(u > np.median(u))]
    block = Block.of(nodes, rng.uniform(0.5, 3.0, 400) if weighted else None, 400)
    rows = u[block.rows]
    arguments = (block.roots, block.sizes, order, 0.3, linear_start(len(rows), order))
    fast = fit_density(rows, *arguments)
    monkeypatch.setattr(loader, "tree_fit", None)
    return fast, fit_density(rows, *arguments)


@needs_compiler
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_compiled_fit_equals_the_fit_in_numpy(monkeypatch: pytest.MonkeyPatch, shape: str, weighted: bool) -> None:
    fast, plain = both(monkeypatch, shape, weighted)
    assert fast.fitted.all()
    assert plain.fitted.all()
    assert fast.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-8)
    scale = np.abs(plain.scores).max(axis=(1, 2), keepdims=True)
    assert np.abs((fast.scores - plain.scores) / scale).max() < 1e-6


@needs_compiler
@pytest.mark.parametrize("order", [1, 2, 3, 8])
def test_compiled_fit_equals_the_fit_in_numpy_at_other_orders(monkeypatch: pytest.MonkeyPatch, order: int) -> None:
    fast, plain = both(monkeypatch, "skewed", False, order)
    assert fast.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-8)


@needs_compiler
def test_trees_are_the_same_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 6))
    x = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=1500) * np.exp(X[:, 3] / 2)
    fast = TransformationTree().fit(X, x)
    without_compiler(monkeypatch)
    plain = TransformationTree().fit(X, x)
    assert fast.rules == plain.rules
    assert len(fast.leaves) > 8


def test_pruning_gives_the_smaller_tree_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(800, 4))
    x = X[:, 0] + X[:, 1] + rng.normal(size=800)
    full = TransformationTree().fit(X, x)
    for depth in range(full.depth + 1):
        smaller = TransformationTree(max_depth=depth).fit(X, x)
        assert full.prune(depth).rules == smaller.rules
        for pruned, grown in zip(full.prune(depth).nodes, smaller.nodes, strict=True):
            # Sums of a block of one node may be formed in another order than those of a larger block.
            assert (pruned.log_likelihood or 0) == pytest.approx(grown.log_likelihood or 0, rel=1e-12)


def test_order_beyond_the_compiled_ones_is_fitted_all_the_same() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    tree = TransformationTree(order=34, max_depth=1).fit(rng.normal(size=(300, 2)), x)
    assert len(tree.nodes[0].theta or ()) == 35


@needs_compiler
@pytest.mark.parametrize("ties", [False, True])
def test_compiled_search_finds_the_cuts_found_in_numpy(monkeypatch: pytest.MonkeyPatch, ties: bool) -> None:
    rng = np.random.default_rng(6)
    sizes = np.array([200, 150, 61, 60, 59])
    inside = np.arange(200) < sizes[:, None]
    values = np.where(inside, rng.integers(0, 12, (5, 200)) if ties else rng.normal(size=(5, 200)), np.inf)
    stacked = rng.normal(size=(5, 4, 200)) * inside[:, None, :]
    stacked[:, -1] = inside
    arguments = (values, ascending(values), stacked, sizes, sizes.astype(float), np.full(5, 30.0))
    fast = best_splits(*arguments)
    monkeypatch.setattr(loader, "tree_fit", None)
    plain = best_splits(*arguments)
    assert [cut is None for cut in fast] == [cut is None for cut in plain]
    assert fast[4] is None
    assert fast[0] is not None
    for one, other in zip(fast, plain, strict=True):
        if one is not None and other is not None:
            assert one.threshold == other.threshold
            assert one.statistic == pytest.approx(other.statistic, rel=1e-12)


@needs_compiler
@pytest.mark.parametrize("scores", [1, 3, 6, 7, 11])
@pytest.mark.parametrize("order", ["C", "F"])
def test_compiled_sums_are_those_in_numpy(monkeypatch: pytest.MonkeyPatch, order: str, scores: int) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(900, 11))
    X[:, 2] += 1e6  # far from 0
    X[:, 5] *= 1e-120  # squares would vanish
    table = read_table(np.array(X, order=order))  # type: ignore[call-overload]
    candidates = Candidates.of(table.without(["x4"]), SortedTable.of(table, shared=True))
    block = Block.of([np.arange(600), np.arange(300, 900, 2), np.arange(5)], rng.uniform(size=900), 900)
    assert block.weights is not None
    stacked = rng.normal(size=(3, scores + 1, 600)) * (block.weights > 0)[:, None, :]
    stacked[:, -1] = block.weights
    fast = column_sums(candidates, block, stacked)
    without_compiler(monkeypatch)
    for one, other in zip(fast, column_sums(candidates, block, stacked), strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() < 1e-12 * np.abs(other).max()


@needs_compiler
def test_sums_of_a_column_are_the_same_whatever_the_other_columns() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(700, 9))
    block = Block.of([np.arange(700)], None, 700)
    stacked = rng.normal(size=(1, 7, 700))
    whole, squares = column_sums(Candidates.of(read_table(X)), block, stacked)
    for at in range(9):
        alone, square = column_sums(Candidates.of(read_table(X[:, [at]])), block, stacked)
        assert np.array_equal(alone[:, :, 0], whole[:, :, at])
        assert np.array_equal(square[:, 0], squares[:, at])
