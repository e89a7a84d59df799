"""The target as numbers that curves can be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove import losses
from subgrove._core.kinds import Floats
from subgrove._core.validate import reject_another_index
from subgrove._data.from_containers import names_and_rows
from subgrove._models.predictor import Predictor, Target, read_target
from subgrove.exceptions import InputError, ParameterError


def targets_of(y: Any, X: Any, model: Predictor, labels: Sequence[Any]) -> Floats:
    """y for each output of the model: (rows, outputs). Of a class it is 1 where y is the class, else 0."""
    reject_another_index(X, y=y)
    n_rows = names_and_rows(X)[1]
    if model.method == "decision_function":
        raise ParameterError(
            "y cannot be compared with decision_function, which is on a scale of its own. "
            "Leave y out, or use response_method='predict_proba'."
        )
    if model.method == "predict_proba":
        return _indicators(read_target(y, n_rows, model.classes, [losses.get("log_loss")]), labels)
    numbers = read_target(y, n_rows, (), [losses.get("squared_error")]).numbers
    assert numbers is not None
    table = numbers.reshape(n_rows, -1)
    if table.shape[1] != len(labels):
        raise InputError(
            f"y has {_columns(table.shape[1])}, but the model has {len(labels)} outputs. Pass a column for each output."
        )
    return table


def _indicators(target: Target, labels: Sequence[Any]) -> Floats:
    assert target.codes is not None
    if target.codes.ndim > 1:
        raise InputError("y has several columns of classes. Leave y out, or pass a function that gives one output.")
    if len(target.classes) != len(labels):
        raise InputError(
            f"y has {len(target.classes)} classes, but the model gives {len(labels)} probabilities and does not "
            f"say of which classes (it has no classes_). Leave y out, or pass a model that has classes_."
        )
    return np.asarray(target.codes[:, None] == np.arange(len(labels)), dtype=np.float64)


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
