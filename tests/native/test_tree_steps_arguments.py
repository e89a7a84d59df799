"""The kernel of tree ensembles checks its arguments: a wrong one raises, and never reads or writes elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subgrove._native.loader import tree_steps

pytestmark = pytest.mark.skipif(tree_steps is None, reason="the compiled part is not installed")
kernel: Any = tree_steps

# One tree: x0 <= cut 1, then x1 by a set of levels.
NODES: dict[str, Any] = {
    "column": np.array([0, 2, -1, -1, -1], dtype=np.int32),
    "cut": np.array([1, 0, 0, 0, 0], dtype=np.int32),
    "child": np.array([1, 3, 0, 1, 2], dtype=np.int32),
    "root": np.array([0], dtype=np.int32),
    "output": np.array([0], dtype=np.int32),
    "n_places": np.array([2, 3], dtype=np.int32),
    "is_level": np.array([0, 1], dtype=np.uint8),
    "value": np.array([4, 1, 2], dtype=np.int64),
    "sets": np.array([1, 0, 1], dtype=np.uint8),
}
SIZES: dict[str, Any] = {
    "nodes": 5,
    "trees": 1,
    "columns": 2,
    "leaves": 3,
    "width": 1,
    "outputs": 1,
    "n_sets": 1,
    "set_width": 3,
    "scale": 0.5,
    "any_missing": True,
    "masks": True,
}
TOTAL = 9  # slots of both columns, and one beyond


def made(**changes: Any) -> Any:
    return kernel.ensemble(*(NODES | SIZES | changes).values())


def dense(ensemble: Any, places: Any) -> tuple[Any, Any]:
    own, steps = np.empty(len(places)), np.empty((len(places), TOTAL + 1))
    kernel.dense(ensemble, places, len(places), own, steps)
    return own, steps


def listed(ensemble: Any, places: Any, room: int = 50) -> tuple[int, Any]:
    n = len(places)
    arrays = (np.empty(n), np.empty(2 * n + 1, np.int64), np.empty(room, np.int32), np.empty(room), np.empty(2 * n))
    return kernel.lists(ensemble, places, n, room, *arrays), arrays


def test_steps_are_those_of_the_tree() -> None:
    places = np.array([[0, 1], [1, 2], [3, 0]], dtype=np.int32)  # the last row has a missing number, which goes right
    own, steps = dense(made(), places)
    assert own.tolist() == [1.0, 2.0, 2.0]  # leaves 2, 4, 4 in units of a half
    assert steps[0, [0, 1, 3]].tolist() == [0.0, 1.0, 1.0]  # the first column at its places, and missing
    assert steps[0, [4, 5, 6]].tolist() == [-0.5, 0.0, -0.5]  # the levels of the second
    n, (margins, pointers, starts, values, missing) = listed(made(), places)
    assert margins.tolist() == own.tolist()
    assert n == pointers[-1]
    assert missing.reshape(3, 2)[:, 0].tolist() == steps[:, 3].tolist()
    assert [starts[0], values[0]] == [1, 1.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"column": np.array([0, 4, -1, -1, -1], dtype=np.int32)},
        {"column": np.array([-2, 2, -1, -1, -1], dtype=np.int32)},
        {"cut": np.array([9, 0, 0, 0, 0], dtype=np.int32)},
        {"cut": np.array([1, 1, 0, 0, 0], dtype=np.int32)},
        {"child": np.array([0, 3, 0, 1, 2], dtype=np.int32)},
        {"child": np.array([4, 3, 0, 1, 2], dtype=np.int32)},
        {"child": np.array([1, 3, 3, 1, 2], dtype=np.int32)},
        {"root": np.array([5], dtype=np.int32)},
        {"output": np.array([1], dtype=np.int32)},
        {"output": np.array([-1], dtype=np.int32), "outputs": 2},
        {"n_places": np.array([0, 3], dtype=np.int32)},
        {"n_places": np.array([2, 4], dtype=np.int32)},
        {"nodes": 6},
        {"leaves": 4},
        {"trees": 0},
        {"columns": 70_000},
        {"set_width": -1},
    ],
)
def test_an_ensemble_with_an_index_out_of_range_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        made(**changes)


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_arrays_of_another_dtype_are_an_error(dtype: Any) -> None:
    with pytest.raises(TypeError):
        made(column=NODES["column"].astype(dtype))
    with pytest.raises(TypeError):
        dense(made(), np.zeros((1, 2), dtype=dtype))


@pytest.mark.parametrize("row", [[2, 0], [4, 0], [-1, 0], [0, 3], [0, 4]])
def test_places_outside_their_columns_are_an_error(row: list[int]) -> None:
    places = np.array([row], dtype=np.int32)
    for function in (dense, listed):
        with pytest.raises(ValueError, match="places"):
            function(made(), places)
    with pytest.raises(ValueError, match="places"):
        kernel.margins(made(), places, 1, np.empty(1))


def test_too_little_room_is_reported_and_nothing_is_written_beyond() -> None:
    places = np.array([[0, 1]], dtype=np.int32)
    needed, _ = listed(made(), places, room=0)
    assert needed > 0
    assert listed(made(), places, room=needed)[0] == needed


def test_means_reject_donors_and_steps_out_of_range() -> None:
    ensemble = made()
    kind, groups, first = np.array([1, 0], np.uint8), np.array([1, 1]), np.array([0, 0])
    slots, pointers = np.zeros(TOTAL + 1), np.zeros(1, dtype=np.int64)
    rest = (slots, slots, pointers, 0, np.zeros(0), 0)
    donors = kernel.donors(ensemble, kind, groups, first, np.array([0.0, 1.0, 2.0, 0.0]), 4, *rest)
    with pytest.raises(ValueError, match="donors of column 0"):
        kernel.donors(ensemble, kind, groups, first + 1, np.zeros(4), 4, *rest)
    with pytest.raises(ValueError, match="donors of column 0"):
        kernel.donors(ensemble, kind + np.uint8(2), groups, first, np.zeros(4), 4, *rest)
    steps, mean = np.zeros(TOTAL + 1), np.empty(2)
    steps[1] = 4.0

    def means(group: Any, starts: Any = None) -> None:
        listed = [None] * 2 if starts is None else [np.array([0, 1, 1]), starts]
        missing = [None] * 2 if starts is None else [np.zeros(2), np.zeros(2)]
        entries = steps if starts is None else steps[:1]
        arrays = (*listed, len(entries), entries, entries, *missing, mean, np.empty(2), None, None)
        kernel.means(donors, 1, group, None, None, None, None, None, *arrays)

    means(np.zeros((1, 2), dtype=np.int32))
    assert mean.tolist() == [4.0, 0.0]
    with pytest.raises(ValueError, match="group"):
        means(np.ones((1, 2), dtype=np.int32))
    with pytest.raises(ValueError, match="starts"):
        means(np.zeros((1, 2), dtype=np.int32), np.array([2], dtype=np.int32))


def test_a_capsule_of_another_kind_is_an_error() -> None:
    with pytest.raises((TypeError, ValueError)):
        kernel.has_masks(3)
    with pytest.raises((TypeError, ValueError)):
        kernel.means(made(), 1, *([None] * 17))
