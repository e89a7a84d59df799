"""Reader of LightGBM, from its text format: full precision, and the same for all versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._models.tree_ensemble.ensemble import (
    Bools,
    Floats,
    Link,
    Nodes,
    Response,
    TreeEnsemble,
    build,
    level_sets,
    require,
)
from subgrove._models.tree_ensemble.inputs import TreeInputs, one_to_one, single_precision, table_matrix

_LINKS: dict[str, Link] = {
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "identity"),
    **dict.fromkeys(("lambdarank", "rank_xendcg"), "identity"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "exp"),
    **dict.fromkeys(("binary", "cross_entropy"), "logistic"),
    "multiclass": "softmax",
}
_ZERO = float(np.float32(1e-35))  # numbers up to this are zero
_OF_SPLITS = ("split_feature", "threshold", "decision_type", "left_child", "right_child")


def read(model: Any, method: str, name: str) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted LightGBM model."""
    booster = model if name == "Booster" else model.booster_
    parameters = {**booster.params, **(model.get_params() if hasattr(model, "get_params") else {})}
    require(not any("pred" in key for key in parameters), "it has parameters of its predictions")
    head, *blocks = booster.model_to_string().split("\nTree=")
    entries = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    n_outputs, n_inputs = int(entries["num_tree_per_iteration"]), int(entries["max_feature_idx"]) + 1
    require(len(blocks) > 0 and len(blocks) % n_outputs == 0, "it has no trees")
    blocks[-1] = blocks[-1].partition("\nend of trees")[0]
    scale = n_outputs / len(blocks) if "average_output" in head.splitlines() else 1.0
    nodes, categorical, zero_missing = _nodes(blocks, n_inputs, scale)
    response = _response(model, name, entries.get("objective", "custom"), n_outputs)
    output = np.tile(np.arange(n_outputs), len(blocks) // n_outputs)
    ensemble = build(nodes, output, np.zeros(n_outputs), n_inputs, response, name=name)
    levels = booster.pandas_categorical or ()
    return ensemble, TreeInputs(one_to_one(n_inputs), partial(_encoded, levels, categorical, zero_missing))


def _response(model: Any, name: str, objective: str, n_outputs: int) -> Response:
    kind, *options = objective.split()
    require(kind in _LINKS, f"its objective is {kind}")
    require("sqrt" not in options, "its objective takes the root of the target")
    link = _LINKS[kind]
    require((link == "softmax") == (n_outputs > 1), "its objective does not fit its outputs")
    sigmoid = [float(option.partition(":")[2]) for option in options if option.startswith("sigmoid:")]
    scale = sigmoid[0] if sigmoid else 1.0
    if name != "LGBMClassifier":
        return Response(link, 0, scale)
    n_classes = max(2, n_outputs)
    require(kind in ("binary", "multiclass") and int(model.n_classes_) == n_classes, "its classes do not fit")
    return Response(link, n_classes, scale)


def _nodes(blocks: Sequence[str], n_inputs: int, scale: float) -> tuple[Nodes, Bools, Bools]:
    """Return nodes (splits of a tree, then its leaves), and which inputs are categorical, or missing where zero."""
    texts = defaultdict(list)
    for block in blocks:
        for line in block.splitlines()[1:]:
            key, _, text = line.partition("=")
            texts[key].append(text)
    require(not any(text.strip() not in ("", "0") for text in texts["is_linear"]), "it has linear trees")
    n_leaves = np.array(texts["num_leaves"], dtype=np.int64)
    require(len(n_leaves) == len(blocks), "its trees are incomplete")
    column = {key: _numbers(texts[key]) for key in (*_OF_SPLITS, "leaf_value")}
    n_splits = n_leaves - 1
    require(all(len(column[key]) == n_splits.sum() for key in _OF_SPLITS), "its trees are incomplete")
    require(len(column["leaf_value"]) == n_leaves.sum(), "its trees are incomplete")
    sizes = n_leaves + n_splits
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    of_tree = np.repeat(np.arange(len(sizes)), n_splits)
    split = np.arange(n_splits.sum()) + np.repeat(roots - np.concatenate([[0], np.cumsum(n_splits)[:-1]]), n_splits)
    leaf = np.ones(sizes.sum(), dtype=np.bool_)
    leaf[split] = False

    def spread(values: npt.NDArray[Any], of_leaves: int = 0) -> npt.NDArray[Any]:
        full = np.full(len(leaf), of_leaves, dtype=values.dtype)
        full[split] = values
        return full

    def child(key: str) -> npt.NDArray[Any]:
        number = column[key].astype(np.int64)
        return spread(np.where(number < 0, n_splits[of_tree] + ~number, number))

    feature, threshold = column["split_feature"].astype(np.int64), column["threshold"]
    require(bool(((feature >= 0) & (feature < n_inputs)).all()), "a split is on an unknown feature")
    kind = column["decision_type"].astype(np.int64)  # bits: category, default left, type of missing values (two)
    by_category, default_left, missing_type = (kind & 1) > 0, (kind & 2) > 0, kind >> 2 & 3
    require(bool((kind >> 4 == 0).all() and (missing_type < 3).all()), "it has splits of an unknown kind")
    # Type 0: a missing value is zero. Type 1: zero is missing. Type 2: missing values have their own direction.
    missing_left = np.where(missing_type == 0, threshold >= 0.0, default_left) & ~by_category
    zero_missing = _marked(feature[~by_category & (missing_type == 1)], n_inputs)
    mixed = zero_missing & _marked(feature[by_category | (missing_type != 1)], n_inputs)
    require(not mixed.any(), "zero is missing in some splits of a feature, but not in others")
    categorical = _marked(feature[by_category], n_inputs)
    require(not (categorical & _marked(feature[~by_category], n_inputs)).any(), "a feature is numeric and categorical")
    value = np.zeros(len(leaf))
    value[leaf] = column["leaf_value"] * scale
    category, sets = None, None
    if by_category.any():
        sets = _sets(texts, np.flatnonzero(by_category), threshold, of_tree)
        category = np.full(len(leaf), -1)
        category[split[by_category]] = np.arange(len(sets))
    left, right = child("left_child"), child("right_child")
    features, missing = spread(feature, -1), spread(missing_left)
    nodes = Nodes(sizes, features, spread(threshold), left, right, missing, value, category, sets)
    return nodes, categorical, zero_missing


def _sets(texts: Any, splits: npt.NDArray[np.intp], threshold: Floats, of_tree: npt.NDArray[np.intp]) -> Bools:
    """Return the levels that go left at splits by category: bits of words of 32, stored by tree."""
    with_sets = np.unique(of_tree[splits])
    boundaries = [_numbers([text]).astype(np.int64) for text in texts["cat_boundaries"]]
    words = [_numbers([text]).astype(np.int64) for text in texts["cat_threshold"]]
    require(len(words) == len(boundaries) == len(with_sets), "its sets of levels are incomplete")
    place = {int(tree): index for index, tree in enumerate(with_sets)}
    rows, levels = [], []
    for row, split in enumerate(splits):
        tree, index = place[int(of_tree[split])], int(threshold[split])
        part = words[tree][boundaries[tree][index] : boundaries[tree][index + 1]]
        found = np.flatnonzero(part[:, None] >> np.arange(32) & 1)
        rows.append(np.full(len(found), row))
        levels.append(found)
    level = np.concatenate(levels)
    return level_sets(np.concatenate(rows), level, len(splits), int(level.max(initial=0)) + 1)


def _numbers(texts: Sequence[str]) -> Floats:
    return np.fromstring(" ".join(texts), dtype=np.float64, sep=" ")


def _marked(features: npt.NDArray[Any], n_inputs: int) -> Bools:
    marked = np.zeros(n_inputs, dtype=np.bool_)
    marked[features] = True
    return marked


def _encoded(levels: Sequence[Any], categorical: Bools, zero_missing: Bools, frame: Any) -> Floats:
    matrix = table_matrix(frame, levels)
    rounded = isinstance(frame, np.ndarray) and matrix.dtype.kind != "f"
    matrix = single_precision(matrix) if rounded else matrix.astype(np.float64)
    if categorical.any():
        matrix[:, categorical] = np.trunc(matrix[:, categorical])
    zero = np.abs(matrix) <= _ZERO
    matrix[zero] = 0.0
    if zero_missing.any():
        matrix[zero & zero_missing] = np.nan
    return matrix
