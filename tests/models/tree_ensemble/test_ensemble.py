from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from subgrove._models.tree_ensemble.ensemble import Nodes, NotReadable, Response, TreeEnsemble, build, level_sets
from tests.models.tree_ensemble.reference import margins as margins_of

# Two trees: a split by number with a split by category below it, and a single leaf.
SETS = np.array([[False, True, True]])
MARGINS = Response()


def small(response: Response = MARGINS, **changes: Any) -> TreeEnsemble:
    parts: dict[str, Any] = {
        "sizes": [5, 1],
        "feature": np.array([0, 1, -1, -1, -1, -1]),
        "threshold": np.array([0.5, np.nan, 0, 0, 0, 0]),
        "left": np.array([1, 3, 0, 0, 0, 0]),
        "right": np.array([2, 4, 0, 0, 0, 0]),
        "missing_left": np.array([True, False, False, False, False, False]),
        "value": np.array([9.0, 9.0, 1.0, 2.0, 4.0, 8.0]),
        "category": np.array([-1, 0, -1, -1, -1, -1]),
        "sets": SETS,
        "outside_left": np.array([False, True, False, False, False, False]),
    } | changes
    return build(Nodes(**parts), [0, 0], [100.0], 2, response, name="small")


def by_hand(x: float, level: float) -> float:
    """The same two trees as nested conditions."""
    if x > 0.5:
        return 109.0
    if np.isnan(level):
        return 112.0
    left = SETS[0, int(level)] if 0 <= level < 3 else True
    return 110.0 if left else 112.0


NUMBER = st.one_of(st.sampled_from([0.5, np.nextafter(0.5, 1), np.nan, np.inf, -np.inf]), st.floats())
LEVEL = st.one_of(st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, -0.5, 1.9, np.nan]), st.floats())


@settings(deadline=None)
@example([(0.0, -0.5), (0.0, 1.9), (0.5, 3.0)])
@given(st.lists(st.tuples(NUMBER, LEVEL), min_size=1, max_size=20))
def test_margins_follow_the_conditions(rows: list[tuple[float, float]]) -> None:
    found = margins_of(small(), np.array(rows, dtype=np.float64))
    np.testing.assert_array_equal(found[:, 0], [by_hand(*row) for row in rows])


def test_conditions_are_evaluated_at_any_value() -> None:
    ensemble = small()
    x = np.array([0.5, 0.6, np.nan, 0.0, 1.0, 2.0, 7.0, -2.0, np.nan])
    nodes = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    expected = [True, False, True, False, True, True, True, True, False]
    assert ensemble.goes_left(nodes, x).tolist() == expected
    assert ensemble.goes_left(nodes[:, None], x[:, None]).ravel().tolist() == expected


def test_entries_that_mean_nothing_are_set() -> None:
    ensemble = small()
    leaf = ensemble.feature < 0
    assert ensemble.roots.tolist() == [0, 5]
    assert (ensemble.left[leaf] == -1).all()
    assert (ensemble.right[leaf] == -1).all()
    assert (ensemble.value[~leaf] == 0).all()
    assert (ensemble.threshold[leaf | (ensemble.category >= 0)] == 0).all()


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (Response(), lambda f: f),
        (Response(scale=0.01), lambda f: f / 100),
        (Response("exp", scale=0.01), lambda f: np.exp(f / 100)),
        (Response("logistic", scale=0.01), lambda f: 1 / (1 + np.exp(-f / 100))),
        (Response("logistic", 2, 0.01), lambda f: np.column_stack([p := 1 / (1 + np.exp(f / 100)), 1 - p])),
    ],
)
def test_responses_of_one_margin(response: Response, expected: Any) -> None:
    Z = np.array([[0.0, 0.0], [0.9, 1.0]])
    ensemble = small(response)
    margins = margins_of(small(), Z)[:, 0]
    np.testing.assert_allclose(ensemble.response(margins_of(ensemble, Z)), expected(margins), rtol=1e-14)


def test_large_margins_do_not_overflow() -> None:
    ensemble = small(Response("logistic", 2))
    found = ensemble.response(np.array([[-1e6], [1e6]]))
    np.testing.assert_array_equal(found, [[1.0, 0.0], [0.0, 1.0]])


def test_leaves_may_have_a_value_for_each_margin() -> None:
    vectors = np.arange(12.0).reshape(6, 2)
    nodes = {"sizes": [5, 1], "missing_left": np.zeros(6), "threshold": np.array([0.5, 0.1, 0, 0, 0, 0])}
    tree = {"feature": np.array([0, 1, -1, -1, -1, -1]), "left": np.array([1, 3, 0, 0, 0, 0])}
    right = np.array([2, 4, 0, 0, 0, 0])
    parts = Nodes(**nodes, **tree, right=right, value=vectors)  # type: ignore[arg-type]
    ensemble = build(parts, [-1, -1], [0.0, 0.0], 2, Response("softmax", 2), name="vectors")
    Z = np.array([[0.5, 0.1], [0.5, 0.2], [0.6, 0.0]])
    margins = vectors[[3, 4, 2]] + vectors[5]
    np.testing.assert_array_equal(margins_of(ensemble, Z), margins)
    np.testing.assert_allclose(ensemble.response(margins), np.exp(margins) / np.exp(margins).sum(axis=1)[:, None])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"left": np.array([1, 5, 0, 0, 0, 0])}, "invalid child"),
        ({"left": np.array([1, -1, 0, 0, 0, 0])}, "invalid child"),
        ({"left": np.array([0, 3, 0, 0, 0, 0])}, "invalid child"),
        ({"left": np.array([1, 1, 0, 0, 0, 0])}, "not trees"),
        ({"left": np.array([1, 2, 0, 0, 0, 0])}, "not trees"),
        ({"sizes": []}, "no trees"),
        ({"value": np.array([9.0, 9.0, 1.0, np.inf, 4.0, 8.0])}, "not finite"),
        ({"value": np.zeros((6, 2))}, "do not fit"),
        ({"threshold": np.full(6, np.nan)}, "threshold is missing"),
        ({"feature": np.array([0, 2, -1, -1, -1, -1])}, "unknown feature"),
        ({"category": np.array([-1, 1, -1, -1, -1, -1])}, "unknown set"),
    ],
)
def test_invalid_nodes_are_rejected(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotReadable, match=reason):
        small(**changes)


def test_sets_of_very_many_levels_are_rejected() -> None:
    with pytest.raises(NotReadable, match="too many levels"):
        level_sets(np.array([0]), np.array([0]), 10_000, 1_000_000)
