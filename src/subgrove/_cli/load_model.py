"""Load fitted models from files: .skops with trusted types, .onnx, and pickles that the user declares as trusted.

Loading a pickle can run any code. So can skops for types that it does not know, so these are listed and must be trusted
one by one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._cli.reading import check_readable
from subgrove._cli.terminal import quoted
from subgrove._models.predictor import is_classifier
from subgrove.exceptions import InputError, ModelError, ParameterError, SubgroveWarning

PICKLES = (".joblib", ".pkl", ".pickle")
_SUFFIXES = (".skops", ".onnx", *PICKLES)


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model from a file. `columns` are its features in order, None if the model does not store them."""

    model: Any
    description: str
    columns: tuple[str, ...] | None
    classifier: bool


def load_model(path: Path, trusted_types: Sequence[str] = (), trust_pickle: bool = False) -> LoadedModel:
    """Load the model in a file."""
    check_readable(path)
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return _load_onnx(path)
    if suffix == ".skops":
        model = _load_skops(path, trusted_types)
    elif suffix in PICKLES:
        model = _load_pickle(path, trust_pickle)
    else:
        raise ParameterError(f"--model {path}: unknown format; the name must end with {', '.join(_SUFFIXES)}.")
    return _describe(model, path)


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
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        self.n_features_in_ = getattr(model, "n_features_in_", None)
        self._estimator_type = "classifier" if is_classifier(model) else "regressor"

    def predict(self, X: Any) -> Any:
        """Predict the rows of a frame."""
        return self.model.predict(_array(X))

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and hasattr(self.__dict__.get("model"), name):
            return self._probabilities
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def _probabilities(self, X: Any) -> Any:
        return self.model.predict_proba(_array(X))


def _array(X: Any) -> Any:
    numeric = all(dtype.kind in "biuf" for dtype in X.dtypes)
    return X.to_numpy(dtype=np.float64) if numeric else X.to_numpy(dtype=object)


def _describe(model: Any, path: Path) -> LoadedModel:
    if not hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"--model {path} holds a {type(model).__name__}, which has no predict. Save a fitted model."
        )
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else tuple(str(name) for name in names)
    usable = model if columns is not None else PositionalModel(model)
    return LoadedModel(usable, f"{_title(model)} from {path.name}", columns, is_classifier(model))


def _title(model: Any) -> str:
    """Return the class of a model, for a pipeline also that of its last step."""
    steps = getattr(model, "steps", None)
    return f"{type(model).__name__} ({type(steps[-1][1]).__name__})" if steps else type(model).__name__


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
        warnings.warn(f"{path}: {one.message}", SubgroveWarning, stacklevel=2)
    return model


def _load_skops(path: Path, trusted_types: Sequence[str]) -> Any:
    if not find_spec("skops"):
        raise ParameterError(f"Loading {path} needs skops. Run: pip install 'subgrove[skops]'")
    from skops.io import get_untrusted_types, load

    try:
        untrusted = [name for name in get_untrusted_types(file=path) if name not in trusted_types]
    except Exception as error:  # the zip archive can have any content
        raise InputError(f"{path} is not a skops file: {type(error).__name__}: {error}") from error
    if untrusted:
        options = " ".join(f"--trust {name}" for name in untrusted)
        raise ParameterError(f"{path} contains types that are not trusted. If you trust them, add {options}")
    try:
        return load(path, trusted=list(trusted_types))
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error


def _load_onnx(path: Path) -> LoadedModel:
    if not find_spec("onnxruntime"):
        raise ParameterError(f"Running {path} needs onnxruntime. Run: pip install 'subgrove[onnx]'")
    from subgrove._cli.onnx_model import OnnxModel

    os.environ.setdefault("ORT_LOGGING_LEVEL", "3")
    model = OnnxModel(path.read_bytes(), str(path))
    return LoadedModel(model, f"ONNX model from {path.name}", model.columns, model.classifier)
