"""Reader of scikit-learn's decision trees, forests and GradientBoosting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from subgrove._models.tree_ensemble.ensemble import Floats, Nodes, Response, TreeEnsemble, build, require
from subgrove._models.tree_ensemble.inputs import TreeInputs, one_to_one, single_precision, table_matrix

TREES = {"DecisionTreeRegressor", "DecisionTreeClassifier", "ExtraTreeRegressor", "ExtraTreeClassifier"}
BOOSTING = {"GradientBoostingRegressor", "GradientBoostingClassifier"}
_FIELDS = {
    *("left_child", "right_child", "feature", "threshold", "impurity", "n_node_samples", "weighted_n_node_samples"),
    "missing_go_to_left",
}
_LOSSES = {"HalfBinomialLoss": 1.0, "ExponentialLoss": 2.0}  # binary losses, and the factor of the margin in the link


def read(model: Any, method: str, name: str) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted tree, forest or GradientBoosting model."""
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
