"""Load fitted models from files: .skops with trusted types, .onnx, and pickles that the user declares as trusted.

Loading a pickle can run any code. So can skops for types that it does not know, so these are listed and must be trusted
one by one.

Two shapes of input of an ONNX model are supported, as converters write them: one matrix with a column for each feature,
or one named input of shape (rows, 1) for each feature. A classifier returns labels and probabilities, the latter as a
matrix or as a dictionary for each row; the labels of the columns of a matrix are learned from predicted labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._cli.learning_task import TaskKind
from subgrove._cli.reading import check_readable
from subgrove._cli.terminal import quoted
from subgrove._core.files import check_unpacked_size
from subgrove._core.validate import warn
from subgrove._models.predictor import is_classifier
from subgrove.exceptions import InputError, ModelError, ParameterError

PICKLES = (".joblib", ".pkl", ".pickle")
_ONNX_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model from a file. `columns` are its features in order, None if the model does not store them."""

    model: Any
    description: str
    columns: tuple[str, ...] | None
    classifier: bool

    @property
    def kind(self) -> TaskKind:
        """Task that the model was trained for."""
        return "classification" if self.classifier else "regression"


def load_model(path: Path, trusted_types: Sequence[str] = (), trust_pickle: bool = False) -> LoadedModel:
    """Load the model in a file."""
    check_readable(path)
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        if not find_spec("onnxruntime"):
            raise ParameterError(f"Running {path} needs onnxruntime. Run: pip install 'subgrove[onnx]'")
        onnx = OnnxModel(path.read_bytes(), str(path))
        return LoadedModel(onnx, f"ONNX model from {path.name}", onnx.columns, onnx.classifier)
    if suffix == ".skops":
        model = _load_skops(path, trusted_types)
    elif suffix in PICKLES:
        model = _load_pickle(path, trust_pickle)
    else:
        formats = ", ".join((".skops", ".onnx", *PICKLES))
        raise ParameterError(f"--model {path}: unknown format; the name must end with {formats}.")
    if not hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"--model {path} holds a {type(model).__name__}, which has no predict. Save a fitted model."
        )
    names, steps = getattr(model, "feature_names_in_", None), getattr(model, "steps", None)
    columns = None if names is None else tuple(str(name) for name in names)
    usable = model if columns is not None else PositionalModel(model)
    last_step = f" ({type(steps[-1][1]).__name__})" if steps else ""
    description = f"{type(model).__name__}{last_step} from {path.name}"
    return LoadedModel(usable, description, columns, is_classifier(model))


def columns_for(loaded: LoadedModel, names: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the columns to pass to the model, in its order."""
    if loaded.columns is None:
        n_features = getattr(loaded.model, "n_features_in_", None)
        if n_features is not None and int(n_features) != len(names):
            raise InputError(
                f"The model takes {int(n_features)} columns and does not store their names; {path} has {len(names)} "
                f"besides the target. Select them, in the order of the model, with --columns."
            )
        return tuple(names)
    missing = [name for name in loaded.columns if name not in names]
    if missing:
        raise InputError(
            f"The model needs {quoted(missing)}, which {path} does not have. Use the column names of the training data."
        )
    return loaded.columns


def labels_for(loaded: LoadedModel, y: Any, target: str) -> Any:
    """Return the classes of the target as labels of the model: a file may have 1 where the model has '1'."""
    if not loaded.classifier:
        return y
    known = {str(label): label for label in getattr(loaded.model, "classes_", ())}
    unknown = sorted({str(label) for label in y} - set(known)) if known else []
    if unknown:
        raise InputError(
            f"The target {target!r} has the class {unknown[0]!r}, which is not a class of the model "
            f"({', '.join(map(repr, list(known)[:8]))}). Is this the target it was trained for?"
        )
    return y.map(lambda label: known[str(label)]) if known else y


class PositionalModel:
    """A model that was trained without column names and is called with a plain array."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.n_features_in_ = getattr(model, "n_features_in_", None)
        self._estimator_type = "classifier" if is_classifier(model) else "regressor"
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        if hasattr(model, "predict_proba"):
            self.predict_proba = self._probabilities

    def predict(self, X: Any) -> Any:
        """Predict the rows of a frame."""
        return self.model.predict(_array(X))

    def _probabilities(self, X: Any) -> Any:
        return self.model.predict_proba(_array(X))


def _array(X: Any) -> Any:
    numeric = all(dtype.kind in "biuf" for dtype in X.dtypes)
    return X.to_numpy(dtype=np.float64 if numeric else object)


def _load_pickle(path: Path, trusted: bool) -> Any:
    if not trusted:
        raise ParameterError(
            f"{path} is a pickle, and loading a pickle can run any code. If you trust its origin, add --trust-pickle; "
            f"skops files (.skops) are safer."
        )
    import joblib

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = joblib.load(path)
    except Exception as error:  # a pickle can fail in any way
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    for one in caught:  # mostly that the file was written by another version of scikit-learn
        warn(f"{path}: {one.message}")
    return model


def _load_skops(path: Path, trusted_types: Sequence[str]) -> Any:
    if not find_spec("skops"):
        raise ParameterError(f"Loading {path} needs skops. Run: pip install 'subgrove[skops]'")
    from skops.io import get_untrusted_types, load

    try:
        check_unpacked_size(path)
        untrusted = [name for name in get_untrusted_types(file=path) if name not in trusted_types]
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:  # the zip archive can have any content
        raise InputError(f"{path} is not a skops file: {type(error).__name__}: {error}") from error
    if untrusted:
        options = " ".join(f"--trust {name}" for name in untrusted)
        raise ParameterError(f"{path} contains types that are not trusted. If you trust them, add {options}")
    try:
        return load(path, trusted=list(trusted_types))
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error


class OnnxModel:
    """A model run by onnxruntime; it can be pickled, because it stores the content of its file."""

    def __init__(self, content: bytes, path: str) -> None:
        self.content, self.path = content, path
        self._session = _session(content, path)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        unsupported = [one.type for one in inputs if one.type not in _ONNX_DTYPES]
        if unsupported:
            raise InputError(f"{path} has an input of type {unsupported[0]}; supported are numbers, text and booleans.")
        matrix = len(inputs) == 1 and _width(inputs[0]) != 1
        self.columns: tuple[str, ...] | None = None if matrix else tuple(one.name for one in inputs)
        self.n_features_in_ = _width(inputs[0]) if matrix else len(inputs)
        self.classifier = len(outputs) >= 2
        self._estimator_type = "classifier" if self.classifier else "regressor"
        if self.classifier:
            self.predict_proba = self._probabilities

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

    def _probabilities(self, X: Any) -> npt.NDArray[np.float64]:
        probabilities = self._run(X)[1]
        if isinstance(probabilities, list):
            probabilities = [[row[label] for label in self.classes_.tolist()] for row in probabilities]
        matrix = np.asarray(probabilities, dtype=np.float64)
        # In single precision the sum is 1 only approximately.
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))

    def _run(self, X: Any) -> list[Any]:
        inputs = self._session.get_inputs()
        if self.columns is None:
            feed = {inputs[0].name: _tensor(X, inputs[0].type, self.path)}
        else:
            feed = {one.name: _tensor(X[[one.name]], one.type, self.path) for one in inputs}
        return list(self._session.run(None, feed))


def _tensor(X: Any, kind: str, path: str) -> npt.NDArray[Any]:
    if _ONNX_DTYPES[kind] is object:
        return np.asarray(X.astype(object).where(X.notna(), "").astype(str), dtype=object)
    other = [str(name) for name, dtype in X.dtypes.items() if dtype.kind not in "biuf"]
    if other:
        raise InputError(
            f"{path} takes numbers, but column {other[0]!r} holds levels or dates. Convert the model with an input for "
            f"each column, or encode the column in the file as in training."
        )
    return np.asarray(X, dtype=_ONNX_DTYPES[kind])


def _width(one: Any) -> int | None:
    """Return the number of columns of an input, None if it is not fixed."""
    shape = one.shape or []
    return int(shape[1]) if len(shape) == 2 and isinstance(shape[1], int) else None


def _session(content: bytes, path: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # for the same order of sums
    options.log_severity_level = 3
    # Weights in files of their own are beside the model, not in the working folder.
    folder = str(Path(path).resolve().parent)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no other common class
        raise ModelError(f"{path} cannot be loaded by onnxruntime: {str(error).splitlines()[0]}") from error
