"""Reader of scikit-learn's HistGradientBoosting."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._models.tree_ensemble.ensemble import Bools, Nodes, NotReadable, Response, TreeEnsemble, build, require
from subgrove._models.tree_ensemble.inputs import TreeInputs, check_names

_FIELDS = {
    *("value", "count", "feature_idx", "num_threshold", "missing_go_to_left", "left", "right", "gain", "depth"),
    *("is_leaf", "bin_threshold", "is_categorical", "bitset_idx"),
}
_N_LEVELS = 256  # of the bit sets


def read(model: Any, method: str, name: str) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted HistGradientBoosting model."""
    predictors = [predictor for iteration in model._predictors for predictor in iteration]
    n_outputs = int(model.n_trees_per_iteration_)
    require(all(len(iteration) == n_outputs for iteration in model._predictors), "an iteration lacks a tree")
    require(len(predictors) > 0, "it has no trees")
    kind = predictors[0].nodes.dtype
    nodes = np.concatenate([predictor.nodes for predictor in predictors], dtype=kind, casting="equiv")
    require(set(nodes.dtype.names or ()) == _FIELDS, "this version of scikit-learn has other nodes")
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
    value = nodes["value"]
    collected = Nodes(
        sizes,
        feature,
        nodes["num_threshold"],
        nodes["left"].astype(np.int64),
        nodes["right"].astype(np.int64),
        missing_left,
        value,
        category,
        sets,
        missing_left,
    )
    output = np.tile(np.arange(n_outputs), len(model._predictors))
    response = _response(model, method, n_outputs)
    base = np.broadcast_to(np.ravel(model._baseline_prediction), (n_outputs,))
    ensemble = build(collected, output, base, n_columns, response, name=name)
    place = np.empty(n_columns, dtype=np.intp)
    place[np.argsort(~categorical, kind="stable")] = np.arange(n_columns)  # categorical columns come first
    return ensemble, TreeInputs(tuple((int(one),) for one in place), partial(_encoded, model))


def _encoded(model: Any, frame: Any) -> npt.NDArray[Any]:
    check_names(frame, model)
    return np.asarray(model._preprocess_X(frame, reset=False))


def _response(model: Any, method: str, n_outputs: int) -> Response:
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
