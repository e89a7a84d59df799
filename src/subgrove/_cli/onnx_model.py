"""A model in the ONNX format with `predict` and, for classifiers, `predict_proba`.

Two shapes of input are supported, as converters write them: one matrix with a column for each feature, or one named
input of shape (rows, 1) for each feature. A classifier returns labels and probabilities, the latter as a matrix or as a
dictionary for each row; the labels of the columns of a matrix are learned from predicted labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import InputError, ModelError

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


class OnnxModel:
    """A model run by onnxruntime; it can be pickled, because it stores the content of its file."""

    def __init__(self, content: bytes, path: str) -> None:
        self.content, self.path = content, path
        self._session = _session(content, path)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        unsupported = [one.type for one in inputs if one.type not in _DTYPES]
        if unsupported:
            raise InputError(f"{path} has an input of type {unsupported[0]}; supported are numbers, text and booleans.")
        matrix = len(inputs) == 1 and _width(inputs[0]) != 1
        self.columns: tuple[str, ...] | None = None if matrix else tuple(one.name for one in inputs)
        self.n_features_in_ = _width(inputs[0]) if matrix else len(inputs)
        self.classifier = len(outputs) >= 2
        self._estimator_type = "classifier" if self.classifier else "regressor"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._session = _session(self.content, self.path)

    def learn_classes(self, X: Any, labels: Any) -> OnnxModel:
        """Find the class of each column of probabilities, from rows and the labels of the target."""
        predicted, probabilities = self._run(X)[:2]
        if isinstance(probabilities, list):
            self.classes_ = np.array(sorted(probabilities[0]))
            return self
        best, predicted = np.argmax(probabilities, axis=1), np.asarray(predicted).ravel()
        label_of = {int(column): predicted[best == column][0] for column in np.unique(best)}
        kind = type(predicted[0].item() if hasattr(predicted[0], "item") else predicted[0])
        unassigned = sorted({kind(label) for label in labels} - {kind(label) for label in label_of.values()})
        free = [column for column in range(probabilities.shape[1]) if column not in label_of]
        if len(unassigned) != len(free):
            raise InputError(
                f"{self.path} returns {probabilities.shape[1]} probabilities but predicts {len(label_of)} labels, so "
                f"their order is unknown. Convert the model with its labels (skl2onnx: zipmap='columns' or a ZipMap)."
            )
        label_of |= dict(zip(free, unassigned, strict=True))
        self.classes_ = np.array([label_of[column] for column in range(probabilities.shape[1])])
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict numbers or labels."""
        return np.asarray(self._run(X)[0]).ravel()

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and self.__dict__.get("classifier"):
            return self._probabilities
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def _probabilities(self, X: Any) -> npt.NDArray[np.float64]:
        probabilities = self._run(X)[1]
        if isinstance(probabilities, list):
            probabilities = [[row[label] for label in self.classes_.tolist()] for row in probabilities]
        matrix = np.asarray(probabilities, dtype=np.float64)
        # In single precision the sum is 1 only approximately.
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True), dtype=np.float64)

    def _run(self, X: Any) -> list[Any]:
        inputs = self._session.get_inputs()
        if self.columns is None:
            feed = {inputs[0].name: _tensor(X, inputs[0].type, self.path)}
        else:
            feed = {one.name: _tensor(X[[one.name]], one.type, self.path) for one in inputs}
        outputs: list[Any] = self._session.run(None, feed)
        return outputs


def _tensor(X: Any, kind: str, path: str) -> npt.NDArray[Any]:
    if _DTYPES[kind] is object:
        return np.asarray(X.astype(object).where(X.notna(), "").astype(str), dtype=object)
    other = [str(name) for name, dtype in X.dtypes.items() if dtype.kind not in "biuf"]
    if other:
        raise InputError(
            f"{path} takes numbers, but column {other[0]!r} holds levels or dates. Convert the model with an input for "
            f"each column, or encode the column in the file as in training."
        )
    return np.asarray(X, dtype=_DTYPES[kind])


def _width(one: Any) -> int | None:
    """Return the number of columns of an input, None if it is not fixed."""
    shape = one.shape or []
    return int(shape[1]) if len(shape) == 2 and isinstance(shape[1], int) else None


def _session(content: bytes, path: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # for the same order of sums
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no other common class
        raise ModelError(f"{path} cannot be loaded by onnxruntime: {str(error).splitlines()[0]}") from error
