"""Reader of CatBoost models of numeric features, from its JSON format."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from subgrove._models.tree_ensemble.ensemble import Floats, Nodes, Response, TreeEnsemble, build, require
from subgrove._models.tree_ensemble.inputs import TreeInputs, one_to_one, single_precision, table_matrix

_MISSING_LEFT = {"AsFalse": True, "AsIs": True, "AsTrue": False}


def read(model: Any, method: str, name: str) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted CatBoost model."""
    others = (model.get_cat_feature_indices(), model.get_text_feature_indices(), model.get_embedding_feature_indices())
    require(not any(others), "it has features that are not numeric")
    stored = _stored(model)
    info = stored["features_info"]
    require(set(info) == {"float_features"} and not stored.get("ctrs"), "it has features that are not numeric")
    require("oblivious_trees" in stored, "its trees are not symmetric")
    scale, bias = stored["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    n_inputs, n_outputs, trees = len(model.feature_names_), len(base), stored["oblivious_trees"]
    inputs = {one["feature_index"]: one["flat_feature_index"] for one in info["float_features"]}
    missing = {one["feature_index"]: _MISSING_LEFT[one["nan_value_treatment"]] for one in info["float_features"]}
    parts: list[Floats] = []  # of each tree: feature, threshold, missing_left, then values, one line a node
    for tree in trees:
        splits = list(reversed(tree["splits"] or ()))  # the first split is the lowest bit of the number of a leaf
        require(all(split["split_type"] == "FloatFeature" for split in splits), "it has features that are not numeric")
        of_level = [
            (inputs[index], np.float32(split["border"]), missing[index])
            for split in splits
            for index in (split["float_feature_index"],)
        ]
        part = np.zeros((2 ** (len(splits) + 1) - 1, 3 + n_outputs))
        part[:, 0] = -1
        n_splits = 2 ** len(splits) - 1
        if n_splits:
            part[:n_splits, :3] = np.repeat(np.array(of_level, dtype=np.float64), 2 ** np.arange(len(splits)), axis=0)
        part[n_splits:, 3:] = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(-1, n_outputs) * scale
        parts.append(part)
    joined = np.concatenate(parts)
    sizes = [len(part) for part in parts]
    number = np.concatenate([np.arange(size) for size in sizes])  # children of node k are 2 k + 1 and 2 k + 2
    nodes = Nodes(
        sizes, joined[:, 0].astype(np.int64), joined[:, 1], 2 * number + 1, 2 * number + 2, joined[:, 2], joined[:, 3:]
    )
    output = np.full(len(parts), 0 if n_outputs == 1 else -1)
    response = _response(model, name, stored, n_outputs)
    inputs_of = partial(_encoded, list(model.feature_names_))
    return build(nodes, output, base, n_inputs, response, name=name), TreeInputs(one_to_one(n_inputs), inputs_of)


def _stored(model: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        stored: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    return stored


def _response(model: Any, name: str, stored: dict[str, Any], n_outputs: int) -> Response:
    if name == "CatBoostRegressor":
        require(n_outputs == 1, "it has several outputs")
        kind = model._get_default_prediction_type()
        require(kind in ("RawFormulaVal", "Exponent"), f"its predictions are of type {kind}")
        return Response("exp" if kind == "Exponent" else "identity")
    loss = stored["model_info"]["params"]["loss_function"]["type"]
    n_classes = len(model.classes_)
    if n_outputs == 1:
        require(loss in ("Logloss", "CrossEntropy") and n_classes == 2, f"its loss is {loss}")
        return Response("logistic", 2)
    require(loss == "MultiClass" and n_classes == n_outputs, f"its loss is {loss}")
    return Response("softmax", n_outputs)


def _encoded(names: list[str], frame: Any) -> Floats:
    given = [str(name) for name in getattr(frame, "columns", names)]
    require(given == names or set(given) != set(names), "the table has another order of columns than the model")
    return single_precision(table_matrix(frame))
