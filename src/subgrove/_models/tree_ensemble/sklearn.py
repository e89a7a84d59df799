"""Reader of scikit-learn's decision trees, forests, GradientBoosting and HistGradientBoosting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._models.tree_ensemble.ensemble import (
    Bools,
    Floats,
    Nodes,
    NotReadable,
    Response,
    TreeEnsemble,
    build,
    require,
)
from subgrove._models.tree_ensemble.inputs import TreeInputs, check_names, one_to_one, single_precision, table_matrix

TREES = {"DecisionTreeRegressor", "DecisionTreeClassifier", "ExtraTreeRegressor", "ExtraTreeClassifier"}
BOOSTING = {"GradientBoostingRegressor", "GradientBoostingClassifier"}
_FIELDS = {
    *("left_child", "right_child", "feature", "threshold", "impurity", "n_node_samples", "weighted_n_node_samples"),
    "missing_go_to_left",
}
_LOSSES = {"HalfBinomialLoss": 1.0, "ExponentialLoss": 2.0}  # binary losses, and the factor of the margin in the link
_HIST_FIELDS = {
    *("value", "count", "feature_idx", "num_threshold", "missing_go_to_left", "left", "right", "gain", "depth"),
    *("is_leaf", "bin_threshold", "is_categorical", "bitset_idx"),
}
_N_LEVELS = 256  # of the bit sets


def read(model: Any, method: str, name: str) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted tree, forest or boosting model."""
    if name.startswith("Hist"):
        return _hist_gradient_boosting(model, method, name)
    classifier = name.endswith("Classifier")
    n_inputs = int(model.n_features_in_)
    if name in BOOSTING:
        ensemble = _boosting(model, method, name)
        inputs = TreeInputs(one_to_one(n_inputs), partial(_encoded, None))
        return ensemble, inputs
    require(method != "decision_function", "it has no decision_function")
    require(int(model.n_outputs_) == 1, "it has several outputs")
    trees = [model] if name in TREES else list(model.estimators_)
    n_classes = int(model.n_classes_) if classifier else 0
    require(n_classes != 1, "it has one class")
    nodes = _nodes([tree.tree_ for tree in trees], n_classes or 1, 1 / len(trees))
    output = np.full(len(trees), -1 if classifier else 0)
    base = np.zeros(n_classes or 1)
    ensemble = build(nodes, output, base, n_inputs, Response("identity", n_classes), name=name)
    return ensemble, TreeInputs(one_to_one(n_inputs), partial(_encoded, trees[0]))


def _boosting(model: Any, method: str, name: str) -> TreeEnsemble:
    require(model.init is None or (isinstance(model.init, str) and model.init == "zero"), "it has an init estimator")
    stages = np.asarray(model.estimators_)
    n_outputs = stages.shape[1]
    trees = [tree.tree_ for tree in stages.ravel()]
    nodes = _nodes(trees, 1, float(model.learning_rate))
    base = model._raw_predict_init(np.zeros((1, int(model.n_features_in_)), dtype=np.float32))
    require(np.shape(base) == (1, n_outputs), "its baseline does not fit its outputs")
    loss = type(model._loss).__name__
    if method == "predict" or method == "decision_function":
        response = Response()
    elif n_outputs == 1:
        require(loss in _LOSSES, f"its loss is {loss}")
        response = Response("logistic", 2, _LOSSES[loss])
    else:
        require(loss == "HalfMultinomialLoss", f"its loss is {loss}")
        response = Response("softmax", n_outputs)
    output = np.tile(np.arange(n_outputs), len(stages))
    return build(nodes, output, base, int(model.n_features_in_), response, name=name)


def _nodes(trees: Sequence[Any], n_values: int, scale: float) -> Nodes:
    """Return the nodes of trees, with their values multiplied by `scale`."""
    known = set(trees[0].__getstate__()["nodes"].dtype.names)
    require(known == _FIELDS, "this version of scikit-learn has other nodes")
    require(trees[0].value.shape[1:] == (1, n_values), "its leaves do not fit its outputs")
    return Nodes(
        [tree.node_count for tree in trees],
        np.concatenate([tree.feature for tree in trees]),
        np.concatenate([tree.threshold for tree in trees]),
        np.concatenate([tree.children_left for tree in trees]),
        np.concatenate([tree.children_right for tree in trees]),
        np.concatenate([tree.missing_go_to_left for tree in trees]),
        np.concatenate([tree.value for tree in trees]).reshape(-1, n_values) * scale,
    )


def _encoded(tree: Any, frame: Any) -> Floats:
    """Return a table in single precision; `tree` says whether missing values are allowed, None: they are not."""
    matrix = single_precision(table_matrix(frame))
    if not np.isfinite(matrix.sum()):
        allowed = tree is not None and bool(tree._support_missing_values(matrix))
        require(not np.isinf(matrix).any(), "the table has infinite values, which the model rejects")
        require(allowed or not np.isnan(matrix).any(), "the table has missing values, which the model rejects")
    return matrix


def _hist_gradient_boosting(model: Any, method: str, name: str) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted HistGradientBoosting model."""
    predictors = [predictor for iteration in model._predictors for predictor in iteration]
    n_outputs = int(model.n_trees_per_iteration_)
    require(all(len(iteration) == n_outputs for iteration in model._predictors), "an iteration lacks a tree")
    require(len(predictors) > 0, "it has no trees")
    kind = predictors[0].nodes.dtype
    nodes = np.concatenate([predictor.nodes for predictor in predictors], dtype=kind, casting="equiv")
    require(set(nodes.dtype.names or ()) == _HIST_FIELDS, "this version of scikit-learn has other nodes")
    leaf = nodes["is_leaf"] != 0
    n_columns = int(model.n_features_in_)
    categorical = np.zeros(n_columns, dtype=np.bool_)
    if model._preprocessor is not None:
        categorical[:] = model.is_categorical_
    sizes = [len(predictor.nodes) for predictor in predictors]
    feature = np.where(leaf, -1, nodes["feature_idx"].astype(np.int64))
    missing_left = nodes["missing_go_to_left"] != 0
    by_category = (nodes["is_categorical"] != 0) & ~leaf
    sets, category = None, None
    if by_category.any():
        category = np.where(by_category, np.cumsum(by_category) - 1, -1)
        words = np.concatenate([predictor.raw_left_cat_bitsets for predictor in predictors])
        starts = np.cumsum([0, *(len(predictor.raw_left_cat_bitsets) for predictor in predictors[:-1])])
        rows = nodes["bitset_idx"].astype(np.int64) + np.repeat(starts, sizes)
        sets = _bits(words[rows[by_category]])
        bitsets, position = model._bin_mapper.make_known_categories_bitsets()
        known = _bits(bitsets)[position[feature[by_category]]]
        sets |= ~known & missing_left[by_category][:, None]  # unknown levels go as missing values do
    left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
    collected = Nodes(
        sizes, feature, nodes["num_threshold"], left, right, missing_left, nodes["value"], category, sets, missing_left
    )
    output = np.tile(np.arange(n_outputs), len(model._predictors))
    response = _hist_response(model, method, n_outputs)
    base = np.broadcast_to(np.ravel(model._baseline_prediction), (n_outputs,))
    ensemble = build(collected, output, base, n_columns, response, name=name)
    place = np.empty(n_columns, dtype=np.intp)
    place[np.argsort(~categorical, kind="stable")] = np.arange(n_columns)  # categorical columns come first
    return ensemble, TreeInputs(tuple((int(one),) for one in place), partial(_preprocessed, model))


def _preprocessed(model: Any, frame: Any) -> npt.NDArray[Any]:
    """Return the inputs of the trees; levels that are numbers are encoded here, which takes a tenth of the time."""
    check_names(frame, model)
    known_matrix = isinstance(frame, np.ndarray) and frame.shape[1:] == (model.n_features_in_,)
    parts = {} if model._preprocessor is None else model._preprocessor.named_transformers_
    every = parts["encoder"].categories_ if "encoder" in parts else []
    if not (known_matrix and every) or {frame.dtype, *(levels.dtype for levels in every)} != {np.dtype(np.float64)}:
        return np.asarray(model._preprocess_X(frame, reset=False))
    categorical, columns = np.asarray(model.is_categorical_), []
    for column, levels in zip(frame[:, categorical].T, every, strict=True):
        known = levels[~np.isnan(levels)]
        place = np.searchsorted(known, column)
        columns.append(np.where(np.append(known, np.nan)[place] == column, place, np.nan))
    return np.ascontiguousarray(np.column_stack([*columns, frame[:, ~categorical]]))


def _hist_response(model: Any, method: str, n_outputs: int) -> Response:
    loss = type(model._loss).__name__
    if method == "predict":
        link = type(model._loss.link).__name__
        if link == "IdentityLink":
            return Response()
        require(link == "LogLink", f"its link is {link}")
        return Response("exp")
    require(loss in ("HalfBinomialLoss", "HalfMultinomialLoss"), f"its loss is {loss}")
    require((loss == "HalfBinomialLoss") == (n_outputs == 1), "its loss does not fit its outputs")
    if method == "decision_function":
        return Response()
    n_classes = max(2, n_outputs)
    if len(model.classes_) != n_classes:
        raise NotReadable("its classes do not fit its outputs")
    return Response("logistic" if n_outputs == 1 else "softmax", n_classes)


def _bits(words: npt.NDArray[Any]) -> Bools:
    """Return the bits of sets of 8 words of 32 bits as (n, 256)."""
    little = np.ascontiguousarray(words).astype("<u4").view(np.uint8).reshape(len(words), -1)
    bits = np.unpackbits(little, axis=1, bitorder="little").astype(np.bool_)
    require(bits.shape[1] == _N_LEVELS, "this version of scikit-learn has other sets of levels")
    return bits
