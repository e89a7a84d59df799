"""Every kernel raises an exception that names the argument, where it would else read or write beyond an array."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from subgrove._native import loader

pytestmark = pytest.mark.skipif(not all(loader.kernels_in_use().values()), reason="installed without a compiler")

NODE = np.dtype([("threshold", np.float64), ("column", np.int32), ("child", np.int32)])


@dataclass(frozen=True)
class Call:
    """A valid call of a kernel: arguments by name, in their order; `optional` ones may be None."""

    kernel: str
    function: str
    arguments: dict[str, Any]
    written: tuple[str, ...]
    optional: tuple[str, ...] = ()
    strided: tuple[str, ...] = ()

    def run(self, **changed: Any) -> Any:
        function: Callable[..., Any] = getattr(getattr(loader, self.kernel), self.function)
        return function(*(self.arguments | changed).values())


def tree_fit() -> Call:
    nodes, m, order = 2, 6, 5
    u = np.random.default_rng(0).uniform(size=(nodes, m))
    arguments = {
        "u": u,
        "roots": np.ones((nodes, m)),
        "sizes": np.array([6.0, 4.0]),
        "order": order,
        "nodes": nodes,
        "m": m,
        "gamma": np.ones((nodes, order + 1)),
        "log_likelihood": np.empty(nodes),
        "scores": np.empty((nodes, order + 1, m)),
        "converged": np.empty(nodes),
    }
    return Call("tree_fit", "fit", arguments, ("gamma", "log_likelihood", "scores", "converged"), ("roots",))


def tree_scan() -> Call:
    nodes, m, q = 2, 5, 3
    values = np.random.default_rng(0).normal(size=(nodes, m))
    arguments = {
        "order": np.argsort(values, axis=1),
        "values": values,
        "stacked": np.ones((nodes, q + 1, m)),
        "sizes": np.array([5.0, 3.0]),
        "n": np.array([5.0, 3.0]),
        "min_weight": np.ones(nodes),
        "q": q,
        "nodes": nodes,
        "m": m,
        "best": np.empty(nodes),
        "at": np.empty(nodes),
    }
    return Call("tree_fit", "scan", arguments, ("best", "at"))


def tree_sums() -> Call:
    nodes, m, lines, count = 2, 4, 3, 2
    arguments = {
        "numbers": np.random.default_rng(0).normal(size=(7, 3)),
        "rows": np.array([[0, 2, 4, 6], [1, 3, 5, 0]]),
        "stacked": np.ones((nodes, lines, m)),
        "sizes": np.array([4.0, 3.0]),
        "columns": np.array([0, 2]),
        "scale": np.ones(count),
        "shift": np.zeros(count),
        "nodes": nodes,
        "lines": lines,
        "m": m,
        "count": count,
        "out": np.empty((nodes, lines, count)),
        "squares": np.empty((nodes, count)),
    }
    return Call("tree_sums", "sums", arguments, ("out", "squares"), strided=("numbers",))


def tree_pairs() -> Call:
    """A tree of two splits: column 0, then levels of column 1."""
    arguments = {
        "column": np.array([0, 2, -1, -1, -1], dtype=np.int32),
        "cut": np.array([1, 0, 0, 0, 0], dtype=np.int32),
        "child": np.array([1, 3, 0, 1, 2], dtype=np.int32),
        "root": np.zeros(1, dtype=np.int32),
        "n_places": np.array([2, 2], dtype=np.int32),
        "is_level": np.array([0, 1], dtype=np.uint8),
        "sets": np.array([[1, 0]], dtype=np.uint8),
        "places": np.array([[0, 0], [1, 1], [3, 0]], dtype=np.int32),
        "path_start": np.array([0, 1, 3, 5]),
        "path": np.array([0, 0, 1, 0, 1], dtype=np.int32),
        "slot": np.array([0, 2, 6, 10]),
        "counts": np.zeros(10, dtype=np.int32),
        "nodes": 5,
        "trees": 1,
        "columns": 2,
        "leaves": 3,
        "entries": 5,
        "slots": 10,
        "n_sets": 1,
        "set_width": 2,
        "rows": 3,
    }
    return Call("tree_pairs", "count", arguments, ("counts",))


def forest_grow() -> Call:
    n, p, k, trees = 6, 2, 1, 2
    arguments = {
        "n": n,
        "p": p,
        "k": k,
        "n_drawn": n,
        "max_features": 1,
        "min_node_weight": 2.0,
        "trees": trees,
        "distinct": 2 * n,
        "ranks": np.array([range(n), range(n)], dtype=np.uint32),
        "missing": np.full(p, n, dtype=np.uint32),
        "values": np.arange(2.0 * n),
        "starts": np.array([0, n]),
        "outputs": np.arange(-2.5, 3.0)[:, None],
        "seeds": np.arange(trees, dtype=np.uint64),
        "feature": np.empty((trees, 2 * n), dtype=np.int32),
        "child": np.empty((trees, 2 * n), dtype=np.int32),
        "threshold": np.empty((trees, 2 * n)),
        "missing_left": np.empty((trees, 2 * n), dtype=np.uint8),
        "predictions": np.empty((trees, 2 * n, k)),
        "counts": np.empty(trees, dtype=np.int32),
        "oob_sum": np.zeros((n, k)),
        "oob_count": np.zeros(n),
    }
    written = tuple(list(arguments)[list(arguments).index("feature") :])
    return Call("forest", "grow", arguments | {"codes": None}, written)


def forest_grow_classes() -> Call:
    call = forest_grow()
    codes = np.zeros(6, dtype=np.int32)
    return Call("forest", "grow", call.arguments | {"outputs": np.zeros(1), "codes": codes}, call.written)


def forest_predict() -> Call:
    nodes = np.array([(0.0, 0, 1), (np.inf, 1, 1), (np.inf, 1, 2)], dtype=NODE)
    arguments = {
        "n": 3,
        "p": 2,
        "k": 1,
        "trees": 1,
        "count": 3,
        "x": np.ones((3, 2)),
        "roots": np.zeros(1, dtype=np.int32),
        "nodes": nodes,
        "values": np.arange(3.0)[:, None],
        "sums": np.zeros((3, 1)),
    }
    return Call("forest", "predict", arguments, ("sums",))


def forest_predict_replaced() -> Call:
    given = forest_predict().arguments
    order = ("n", "p", "k", "trees", "count", "x", "others", "roots", "nodes", "values", "sums")
    arguments = given | {"others": np.zeros((3, 2)), "sums": np.zeros((3, 2, 1))}
    return Call("forest", "predict_replaced", {name: arguments[name] for name in order}, ("sums",))


def lasso_paths() -> Call:
    arguments = {
        "gram": np.eye(3)[None],
        "with_target": np.ones((1, 3)),
        "penalties": np.array([0.5, 0.1]),
        "out": np.empty((1, 2, 3)),
        "problems": 1,
        "p": 3,
        "n_penalties": 2,
        "tolerance": 1e-7,
    }
    return Call("lasso_path", "paths", arguments, ("out",))


def pairs(function: str, extra: dict[str, Any]) -> Call:
    base = {} if function == "squared_distances" else {"base": np.zeros(6)}
    sizes = {"rows": 2, "others": 3, "columns": 2, "triangle": False}
    arguments = base | {"left": np.ones((2, 2)), "right": np.ones((2, 3))} | sizes | extra
    return Call("mmd_pairs", function, arguments, ("out",) if "out" in extra else (), tuple(base))


CALLS: dict[str, Callable[[], Call]] = {
    "tree_fit.fit": tree_fit,
    "tree_fit.scan": tree_scan,
    "tree_sums.sums": tree_sums,
    "tree_pairs.count": tree_pairs,
    "forest.grow": forest_grow,
    "forest.grow of classes": forest_grow_classes,
    "forest.predict": forest_predict,
    "forest.predict_replaced": forest_predict_replaced,
    "lasso_path.paths": lasso_paths,
    "mmd_pairs.kernel_sum": lambda: pairs("kernel_sum", {"gamma": 1.0}),
    "mmd_pairs.between": lambda: pairs("between", {"low": 0.0, "high": 1.0, "max_inside": 4, "out": np.empty(4)}),
    "mmd_pairs.squared_distances": lambda: pairs("squared_distances", {"out": np.empty(6)}),
}
ARRAYS = [
    (name, argument)
    for name, make in CALLS.items()
    for argument, value in make().arguments.items()
    if isinstance(value, np.ndarray)
]


def test_rows_are_counted_by_the_columns_that_keep_them_from_a_leaf() -> None:
    call = tree_pairs()
    call.run()
    right, left_first, left_second = np.split(call.arguments["counts"], [2, 6])
    assert right.tolist() == [2, 1]  # column 0 keeps the first row from it
    assert left_first.tolist() == [1, 1, 0, 1]  # none, column 0, column 1, both
    assert left_second.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("name", CALLS)
def test_valid_call_runs(name: str) -> None:
    CALLS[name]().run()


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_wrong_dtype_raises(name: str, argument: str) -> None:
    call = CALLS[name]()
    array = call.arguments[argument]
    wrong = (
        np.zeros(array.shape, dtype=np.float64) if array.dtype == np.int64 else np.zeros(array.shape, dtype=np.int64)
    )
    with pytest.raises(TypeError, match=rf"^{argument} must be an? (array|2-d array) of"):
        call.run(**{argument: wrong})


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_other_byte_order_raises(name: str, argument: str) -> None:
    call = CALLS[name]()
    array = call.arguments[argument]
    if array.dtype.itemsize == 1 or array.dtype.names:
        pytest.skip("has no byte order")
    with pytest.raises(TypeError, match=rf"^{argument} must be"):
        call.run(**{argument: array.astype(array.dtype.newbyteorder())})


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_wrong_size_raises(name: str, argument: str) -> None:
    call = CALLS[name]()
    if argument in call.strided:
        pytest.skip("may have any number of rows and columns")
    for wrong in (np.resize(call.arguments[argument], call.arguments[argument].size + 1), call.arguments[argument][:0]):
        with pytest.raises(ValueError, match=rf"^{argument} must have \d+ items"):
            call.run(**{argument: wrong})


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_object_that_is_not_an_array_raises(name: str, argument: str) -> None:
    call = CALLS[name]()
    with pytest.raises(TypeError, match=rf"^{argument} must be an array"):
        call.run(**{argument: [1.0, 2.0]})


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_missing_array_raises(name: str, argument: str) -> None:
    call = CALLS[name]()
    if argument in call.optional:
        call.run(**{argument: None})
        return
    # Without codes, outputs must have an item for each row.
    with pytest.raises((TypeError, ValueError), match="outputs" if argument == "codes" else argument):
        call.run(**{argument: None})


@pytest.mark.parametrize(("name", "argument"), ARRAYS)
def test_array_that_is_not_contiguous_raises(name: str, argument: str) -> None:
    call = CALLS[name]()
    if argument in call.strided:
        pytest.skip("may have any strides")
    strided = np.repeat(call.arguments[argument].ravel(), 2)[::2]
    if strided.size < 2:
        pytest.skip("one number is contiguous")
    with pytest.raises(ValueError, match=rf"^{argument} must be a C-contiguous"):
        call.run(**{argument: strided})


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, argument in ARRAYS if argument in CALLS[name]().written]
)
def test_array_that_cannot_be_written_raises(name: str, argument: str) -> None:
    call = CALLS[name]()
    call.arguments[argument].flags.writeable = False
    with pytest.raises(ValueError, match=rf"^{argument} must be a C-contiguous, writeable"):
        call.run()


def nodes(*lines: tuple[float, int, int]) -> Any:
    return np.array(list(lines), dtype=NODE)


LEAF = (np.inf, 1, 2)
OUTSIDE = [
    ("tree_fit.fit", "sizes", np.array([7.0, 4.0])),
    ("tree_fit.fit", "sizes", np.array([6.0, -1.0])),
    ("tree_fit.fit", "sizes", np.array([6.0, np.nan])),
    ("tree_fit.fit", "sizes", np.array([6.0, 1e300])),
    ("tree_fit.fit", "sizes", np.array([6.0, 2.5])),
    ("tree_fit.scan", "sizes", np.array([6.0, 3.0])),
    ("tree_fit.scan", "order", np.array([[0, 1, 2, 3, 5], [0, 1, 2, 3, 4]])),
    ("tree_fit.scan", "order", np.array([[0, 1, 2, 3, 4], [-1, 1, 2, 3, 4]])),
    ("tree_sums.sums", "sizes", np.array([5.0, 3.0])),
    ("tree_sums.sums", "rows", np.array([[0, 2, 4, 7], [1, 3, 5, 0]])),
    ("tree_sums.sums", "rows", np.array([[0, 2, 4, 6], [1, -3, 5, 0]])),
    ("tree_sums.sums", "columns", np.array([0, 3])),
    ("tree_sums.sums", "columns", np.array([-1, 0])),
    ("tree_pairs.count", "column", np.array([0, 4, -1, -1, -1], dtype=np.int32)),
    ("tree_pairs.count", "column", np.array([0, -2, -1, -1, -1], dtype=np.int32)),
    ("tree_pairs.count", "cut", np.array([1, 1, 0, 0, 0], dtype=np.int32)),
    ("tree_pairs.count", "child", np.array([1, 4, 0, 1, 2], dtype=np.int32)),
    ("tree_pairs.count", "child", np.array([0, 3, 0, 1, 2], dtype=np.int32)),
    ("tree_pairs.count", "child", np.array([1, 3, 3, 1, 2], dtype=np.int32)),
    ("tree_pairs.count", "root", np.array([5], dtype=np.int32)),
    ("tree_pairs.count", "places", np.array([[0, 0], [1, 2], [3, 0]], dtype=np.int32)),
    ("tree_pairs.count", "places", np.array([[0, 0], [1, 1], [4, 0]], dtype=np.int32)),
    ("tree_pairs.count", "path", np.array([0, 0, 0, 0, 0], dtype=np.int32)),
    ("tree_pairs.count", "path_start", np.array([0, 1, 2, 5])),
    ("tree_pairs.count", "slot", np.array([0, 2, 5, 10])),
    ("forest.grow", "ranks", np.full((2, 6), 7, dtype=np.uint32)),
    ("forest.grow", "missing", np.full(2, 7, dtype=np.uint32)),
    ("forest.grow", "starts", np.array([0, 7])),
    ("forest.grow", "starts", np.array([-1, 6])),
    ("forest.grow", "starts", np.array([0, np.iinfo(np.int64).max])),
    ("forest.grow of classes", "codes", np.array([0, 0, 0, 0, 0, 1], dtype=np.int32)),
    ("forest.grow of classes", "codes", np.array([0, 0, 0, 0, 0, -1], dtype=np.int32)),
    ("forest.predict", "roots", np.array([3], dtype=np.int32)),
    ("forest.predict_replaced", "roots", np.array([3], dtype=np.int32)),
    ("forest.predict_replaced", "nodes", nodes((0.0, 0, 0), (np.inf, 1, 1), LEAF)),
    ("forest.predict_replaced", "nodes", nodes((0.0, 4, 1), (np.inf, 1, 1), LEAF)),
    ("forest.predict", "roots", np.array([-1], dtype=np.int32)),
    ("forest.predict", "nodes", nodes((0.0, 0, 2), (np.inf, 1, 1), LEAF)),
    ("forest.predict", "nodes", nodes((0.0, 0, 0), (np.inf, 1, 1), LEAF)),
    ("forest.predict", "nodes", nodes((0.0, 4, 1), (np.inf, 1, 1), LEAF)),
    ("forest.predict", "nodes", nodes((0.0, -2, 1), (np.inf, 1, 1), LEAF)),
    ("forest.predict", "nodes", nodes((0.0, 0, 1), (1.0, 1, 1), LEAF)),
    ("forest.predict", "nodes", nodes((0.0, 0, 1), (np.inf, 0, 1), LEAF)),
]


@pytest.mark.parametrize(("name", "argument", "value"), OUTSIDE)
def test_index_out_of_range_raises(name: str, argument: str, value: Any) -> None:
    with pytest.raises(ValueError, match=argument):
        CALLS[name]().run(**{argument: value})


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("tree_fit.fit", {"order": 33}),
        ("tree_fit.fit", {"order": 0}),
        ("tree_fit.fit", {"m": -6}),
        ("tree_fit.scan", {"q": 33}),
        ("tree_sums.sums", {"lines": 34}),
        ("tree_sums.sums", {"scale": None}),
        ("tree_sums.sums", {"count": -1}),
        ("forest.grow", {"n": 0}),
        ("forest.grow", {"n": 2**26}),
        ("forest.grow", {"trees": -1}),
        ("forest.grow", {"max_features": 0}),
        ("forest.grow", {"n_drawn": 0}),
        ("forest.grow", {"n_drawn": 7}),
        ("forest.grow", {"k": 2**62}),
        ("forest.predict", {"n": 2**62}),
        ("forest.predict_replaced", {"n": 2**62}),
        ("forest.predict_replaced", {"k": 2**61}),
        ("lasso_path.paths", {"p": 2**32}),
        ("lasso_path.paths", {"problems": -1}),
        ("mmd_pairs.kernel_sum", {"rows": -2}),
        ("mmd_pairs.kernel_sum", {"triangle": True}),
        ("mmd_pairs.between", {"max_inside": -1}),
        ("mmd_pairs.squared_distances", {"columns": -1}),
    ],
)
def test_size_out_of_range_raises(name: str, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"out of range|must be from|must have|must both be"):
        CALLS[name]().run(**changed)


def test_labels_beyond_the_columns_raise() -> None:
    call = CALLS["mmd_pairs.kernel_sum"]()
    with pytest.raises(ValueError, match="labels"):
        call.run(labels=3)


def test_sizes_beyond_the_rows_do_not_crash_the_process() -> None:
    """This was a segmentation fault: a negative number of bytes was set to 0."""
    code = """
import numpy as np
from subgrove._native import loader
one = np.ones((1, 10))
try:
    written = (np.ones((1, 6)), np.ones(1), np.ones((1, 6, 10)), np.ones(1))
    loader.tree_fit.fit(one, None, np.array([99.0]), 5, 1, 10, *written)
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "sizes must have whole numbers from 0 to m = 10.\n"


def test_coefficients_that_do_not_converge_are_counted() -> None:
    """No decrease is below a negative tolerance."""
    call = CALLS["lasso_path.paths"]()
    assert call.run() == 0
    assert call.run(tolerance=-1.0) == 2
