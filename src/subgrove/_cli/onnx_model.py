"""A model in the ONNX format, as one with `predict` and, for classes, `predict_proba`.

Two shapes of input are known, those that converters write: one matrix with a column for each feature, or one input of
shape (rows, 1) for each feature, by its name. A classifier gives labels and probabilities, these as a matrix or as a
dictionary for each row; which column of a matrix is which label is learned from the labels that it gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import InputError, ModelError

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


class OnnxModel:
    """A model run by onnxruntime; it can be pickled, for its bytes are kept."""

    def __init__(self, content: bytes, path: str) -> None:
        self.content, self.path = content, path
        self._session = _session(content, path)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        strange = [one.type for one in inputs if one.type not in _TYPES]
        if strange:
            raise InputError(f"{path} takes an input of type {strange[0]}; numbers, text and booleans are known here.")
        single = len(inputs) == 1 and _width(inputs[0]) != 1
        self.columns: tuple[str, ...] | None = None if single else tuple(one.name for one in inputs)
        self.n_features_in_ = _width(inputs[0]) if single else len(inputs)
        self.classifier = len(outputs) >= 2
        self._estimator_type = "classifier" if self.classifier else "regressor"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._session = _session(self.content, self.path)

    def learn_classes(self, X: Any, labels: Any) -> OnnxModel:
        """Find out which column of probabilities is which class, from rows and the labels of their target."""
        given, chances = self._run(X)[:2]
        if isinstance(chances, list):
            self.classes_ = np.array(sorted(chances[0]))
            return self
        best, seen = np.argmax(chances, axis=1), np.asarray(given).ravel()
        found = {int(column): seen[best == column][0] for column in np.unique(best)}
        kind = type(next(iter(found.values())).item() if hasattr(seen[0], "item") else seen[0])
        rest = sorted({kind(label) for label in labels} - {kind(label) for label in found.values()})
        free = [column for column in range(chances.shape[1]) if column not in found]
        if len(rest) != len(free):
            raise InputError(
                f"{self.path} gives {chances.shape[1]} probabilities, and which is which class cannot be told from "
                f"{len(found)} labels seen. Convert the model with its labels (skl2onnx: zipmap='columns' or a ZipMap)."
            )
        found |= dict(zip(free, rest, strict=True))
        self.classes_ = np.array([found[column] for column in range(chances.shape[1])])
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Numbers, or labels."""
        return np.asarray(self._run(X)[0]).ravel()

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and self.__dict__.get("classifier"):
            return self._probabilities
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def _probabilities(self, X: Any) -> npt.NDArray[np.float64]:
        chances = self._run(X)[1]
        if isinstance(chances, list):
            chances = [[row[label] for label in self.classes_.tolist()] for row in chances]
        matrix = np.asarray(chances, dtype=np.float64)
        # Single precision adds up to 1 only roughly.
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
    if _TYPES[kind] is object:
        return np.asarray(X.astype(object).where(X.notna(), "").astype(str), dtype=object)
    texts = [str(name) for name, dtype in X.dtypes.items() if dtype.kind not in "biuf"]
    if texts:
        raise InputError(
            f"{path} takes numbers, but column {texts[0]!r} holds levels or dates. Convert the model with an input for "
            f"each column, or pass a file in which the column is coded as in training."
        )
    return np.asarray(X, dtype=_TYPES[kind])


def _width(one: Any) -> int | None:
    """Number of columns of an input, None where it is open."""
    shape = one.shape or []
    return int(shape[1]) if len(shape) == 2 and isinstance(shape[1], int) else None


def _session(content: bytes, path: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the same sums in the same order
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no class in common but this
        raise ModelError(f"{path} cannot be loaded by onnxruntime: {str(error).splitlines()[0]}") from error
