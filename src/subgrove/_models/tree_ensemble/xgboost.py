"""Reader of XGBoost, from its JSON format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from subgrove._models.tree_ensemble.ensemble import (
    Bools,
    Floats,
    Link,
    Nodes,
    NotReadable,
    Response,
    TreeEnsemble,
    build,
    level_sets,
    require,
)
from subgrove._models.tree_ensemble.inputs import TreeInputs, one_to_one, single_precision, table_matrix

_LINKS: dict[str, Link] = {
    **dict.fromkeys(("reg:squarederror", "reg:squaredlogerror", "reg:absoluteerror"), "identity"),
    **dict.fromkeys(("reg:pseudohubererror", "reg:quantileerror"), "identity"),
    **dict.fromkeys(("rank:pairwise", "rank:ndcg", "rank:map"), "identity"),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), "exp"),
    **dict.fromkeys(("reg:logistic", "binary:logistic"), "logistic"),
    **dict.fromkeys(("multi:softprob", "multi:softmax"), "softmax"),
}


class _StoredTree(msgspec.Struct):
    """Lists of the nodes of a tree, in the names of the format."""

    left_children: list[int]
    right_children: list[int]
    split_indices: list[int]
    split_conditions: list[float]
    split_type: list[int]
    default_left: list[int]
    categories_nodes: list[int]
    categories_segments: list[int]
    categories_sizes: list[int]
    categories: list[int]
    tree_param: dict[str, str]


class _StoredTrees(msgspec.Struct):
    """Trees, the margin of each, and the first tree of each iteration."""

    trees: list[_StoredTree]
    tree_info: list[int]
    iteration_indptr: list[int]
    cats: Any = None


class _StoredBooster(msgspec.Struct):
    """A booster; with dart, weights of trees and the booster that it wraps."""

    name: str
    model: _StoredTrees | None = None
    gbtree: _StoredBooster | None = None
    weight_drop: list[float] | None = None


class _StoredLearner(msgspec.Struct):
    """Booster, objective and parameters."""

    gradient_booster: _StoredBooster
    objective: dict[str, Any]
    learner_model_param: dict[str, str]


class _StoredModel(msgspec.Struct):
    """The document."""

    learner: _StoredLearner


def read(model: Any, method: str, name: str) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted model of XGBoost's scikit-learn interface."""
    require(not callable(model.objective), "its objective is a function")
    require(model.booster in (None, "gbtree", "dart"), f"its booster is {model.booster}")
    learner = msgspec.json.decode(bytes(model.get_booster().save_raw("json")), type=_StoredModel).learner
    parameters, booster = learner.learner_model_param, learner.gradient_booster
    require(int(parameters.get("num_target", "1")) == 1, "it has several outputs")
    n_outputs, n_inputs = max(1, int(parameters["num_class"])), int(parameters["num_feature"])
    weights = None
    if booster.name == "dart" and booster.gbtree is not None:
        weights, booster = booster.weight_drop, booster.gbtree
    stored = booster.model
    if booster.name != "gbtree" or stored is None:
        raise NotReadable(f"its booster is {booster.name}")
    n_trees = stored.iteration_indptr[_n_iterations(model, len(stored.iteration_indptr) - 1)]
    trees = stored.trees[:n_trees]
    factors = np.ones(n_trees) if weights is None else np.asarray(weights, dtype=np.float64)[:n_trees]
    objective = str(learner.objective["name"])
    require(objective in _LINKS, f"its objective is {objective}")
    response = _response(model, name, _LINKS[objective], n_outputs)
    base = _margin(_LINKS[objective], parameters["base_score"])
    ensemble = build(
        _nodes(trees, factors),
        stored.tree_info[:n_trees],
        np.broadcast_to(base, (n_outputs,)),
        n_inputs,
        response,
        name=name,
        tolerance=1e-5,
    )
    missing = math.nan if model.missing is None else float(model.missing)
    return ensemble, TreeInputs(one_to_one(n_inputs), partial(_encoded, missing, _levels(stored.cats)))


def _n_iterations(model: Any, n_iterations: int) -> int:
    """Return how many iterations predictions use: after early stopping, those up to the best."""
    try:
        return min(int(model.best_iteration) + 1, n_iterations)
    except AttributeError:
        return n_iterations


def _response(model: Any, name: str, link: Link, n_outputs: int) -> Response:
    require((link == "softmax") == (n_outputs > 1), "its objective does not fit its outputs")
    if not name.endswith("Classifier"):
        require(link != "softmax", "it has several outputs")
        return Response(link)
    n_classes = max(2, n_outputs)
    require(link in ("logistic", "softmax") and int(model.n_classes_) == n_classes, "its classes do not fit")
    return Response(link, n_classes)


def _margin(link: Link, text: str) -> Floats:
    """Return the margin of a base score, which is stored as a response."""
    score = np.atleast_1d(np.asarray(msgspec.json.decode(text.replace("E", "e")), dtype=np.float64))
    if link == "logistic":
        return np.asarray(np.log(score / (1 - score)))
    return np.asarray(np.log(score)) if link == "exp" else score


def _nodes(trees: list[_StoredTree], factors: Floats) -> Nodes:
    require(all(tree.tree_param.get("size_leaf_vector", "1") in ("0", "1") for tree in trees), "it has several outputs")
    sizes = np.array([len(tree.left_children) for tree in trees])

    def column(name: str, dtype: Any) -> npt.NDArray[Any]:
        return np.array(list(chain.from_iterable(getattr(tree, name) for tree in trees)), dtype=dtype)

    left, right = column("left_children", np.int64), column("right_children", np.int64)
    condition = column("split_conditions", np.float32)
    leaf = left < 0
    by_category = (column("split_type", np.int64) != 0) & ~leaf
    category, sets = _sets(trees, sizes, by_category)
    columns = {
        "feature": np.where(leaf, -1, column("split_indices", np.int64)),
        "threshold": np.nextafter(condition, np.float32(-np.inf)).astype(
            np.float64
        ),  # x < t is x <= the number below t
        "missing_left": column("default_left", np.int64) != 0,
        "value": np.where(leaf, condition, 0).astype(np.float64) * np.repeat(factors, sizes),
    }
    if any(tree.tree_param.get("num_deleted", "0") != "0" for tree in trees):
        used, shift = np.zeros(len(leaf), dtype=np.bool_), np.repeat(np.cumsum(sizes) - sizes, sizes)
        used[(left + shift)[~leaf]] = used[(right + shift)[~leaf]] = used[np.cumsum(sizes) - sizes] = True
        number = np.cumsum(used) - 1  # new number of a node that is not deleted
        sizes = np.add.reduceat(used, np.cumsum(sizes) - sizes)
        new_shift = np.repeat(np.cumsum(sizes) - sizes, sizes)
        left, right = ((number[np.where(leaf, 0, child + shift)])[used] - new_shift for child in (left, right))
        columns = {name: values[used] for name, values in columns.items()}
        category = None if category is None else category[used]
        leaf = leaf[used]
    return Nodes(sizes, left=left, right=right, **columns, category=category, sets=sets, outside_left=~leaf)


def _sets(
    trees: list[_StoredTree], sizes: npt.NDArray[np.int64], by_category: Bools
) -> tuple[npt.NDArray[Any] | None, Bools | None]:
    """Return the row of each node in the sets of levels that go left: stored are those that go right."""
    if not by_category.any():
        return None, None
    starts = np.cumsum(sizes) - sizes
    rows, levels, count = [], [], 0
    category = np.full(len(by_category), -1)
    for start, tree in zip(starts, trees, strict=True):
        for node, first, size in zip(
            tree.categories_nodes, tree.categories_segments, tree.categories_sizes, strict=True
        ):
            category[start + node] = count
            levels.extend(tree.categories[first : first + size])
            rows.extend([count] * size)
            count += 1
    require(bool(((category >= 0) == by_category).all()), "its sets of levels are incomplete")
    level = np.array(levels, dtype=np.intp)
    require(level.min(initial=0) >= 0, "its sets of levels are invalid")
    return category, ~level_sets(np.array(rows, dtype=np.intp), level, count, int(level.max(initial=0)) + 1)


def _levels(stored: Any) -> dict[int, list[Any]]:
    """Return the levels of categorical columns of a data frame, by column."""
    levels: dict[int, list[Any]] = {}
    for column, entry in enumerate((stored or {}).get("enc", ())):
        if not entry["values"]:
            continue
        if "offsets" in entry:
            text, ends = bytes(value % 256 for value in entry["values"]), entry["offsets"]
            levels[column] = [text[a:b].decode() for a, b in pairwise(ends)]
        else:
            levels[column] = list(entry["values"])
    return levels


def _encoded(missing: float, levels: Mapping[int, list[Any]], frame: Any) -> Floats:
    if hasattr(frame, "iloc"):
        categorical = [column for column, dtype in enumerate(frame.dtypes) if dtype.name == "category"]
        require(categorical == list(levels), "the table has other categorical columns than the model")
        for column, known in levels.items():
            unknown = set(frame.iloc[:, column].cat.categories) - set(known)
            require(not unknown, "the table has levels that the model rejects")
    else:
        require(not levels, "categories are supported in pandas tables only")
    matrix = single_precision(table_matrix(frame, list(levels.values())))
    if not math.isnan(missing):
        matrix[matrix == np.float64(np.float32(missing))] = np.nan
    return matrix
