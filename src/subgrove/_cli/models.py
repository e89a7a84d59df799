"""Models from files: .skops of trusted types, .onnx, and pickles where the user says that they are trusted.

Loading a pickle runs whatever its author put in it. So does skops for types that it does not know, which is why those
are listed and refused until each is named.
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

from subgrove._cli.open_file import reject_unreadable
from subgrove._models.predictor import is_classifier
from subgrove.exceptions import InputError, ModelError, ParameterError, SubgroveWarning

PICKLES = (".joblib", ".pkl", ".pickle")
_SUFFIXES = (".skops", ".onnx", *PICKLES)


@dataclass(frozen=True)
class Trust:
    """What a user says may be loaded."""

    pickle: bool = False
    types: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model from a file. `columns` are those it asks for, in its order; None where it does not say."""

    model: Any
    description: str
    columns: tuple[str, ...] | None
    classifier: bool


def load_model(path: Path, trust: Trust) -> Loaded:
    """The model in a file; what is not trusted is refused with what to do."""
    reject_unreadable(path)
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return _onnx(path)
    if suffix == ".skops":
        model = _skops(path, trust.types)
    elif suffix in PICKLES:
        model = _pickle(path, trust.pickle)
    else:
        raise ParameterError(
            f"--model {path}: the name must end with {', '.join(_SUFFIXES)}, which says how to load it."
        )
    return _described(model, path)


def fit_columns(loaded: Loaded, names: Sequence[str], path: Path) -> tuple[str, ...]:
    """The columns to hand over, in the model's order; refused if some are not there."""
    if loaded.columns is None:
        wanted = getattr(loaded.model, "n_features_in_", None)
        if wanted is not None and int(wanted) != len(names):
            raise InputError(
                f"The model takes {int(wanted)} columns and does not say which; {path} has {len(names)} besides the "
                f"target. Choose them, in the model's order, with --columns."
            )
        return tuple(names)
    lacking = [name for name in loaded.columns if name not in names]
    if lacking:
        listed = ", ".join(repr(name) for name in lacking[:5]) + (" and others" if len(lacking) > 5 else "")
        raise InputError(
            f"The model asks for {listed}, which {path} lacks. Rename the columns as they were called in training."
        )
    return loaded.columns


def labels_like(loaded: Loaded, y: Any, target: str) -> Any:
    """Classes of the target as the model calls them: a file may hold 1 where the model says '1'."""
    if not loaded.classifier:
        return y
    known = {str(label): label for label in getattr(loaded.model, "classes_", ())}
    strange = sorted({str(label) for label in y} - set(known)) if known else []
    if strange:
        raise InputError(
            f"The target {target!r} has the class {strange[0]!r}, which the model does not know. "
            f"Its classes are {', '.join(map(repr, list(known)[:8]))}. Is this the target it was trained for?"
        )
    return y.map(lambda label: known[str(label)]) if known else y


class ByPosition:
    """A model that was trained without column names, asked with a plain array."""

    def __init__(self, model: Any) -> None:
        self.model = model
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        self.n_features_in_ = getattr(model, "n_features_in_", None)
        self._estimator_type = "classifier" if is_classifier(model) else "regressor"

    def predict(self, X: Any) -> Any:
        """Predictions of the rows of a frame."""
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


def _described(model: Any, path: Path) -> Loaded:
    if not hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"--model {path} holds a {type(model).__name__}, which has no predict. Save a fitted model."
        )
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else tuple(str(name) for name in names)
    asked = model if columns is not None else ByPosition(model)
    return Loaded(asked, f"{_title(model)} from {path.name}", columns, is_classifier(model))


def _title(model: Any) -> str:
    """The class of a model; of a pipeline that of its last step too."""
    steps = getattr(model, "steps", None)
    return f"{type(model).__name__} ({type(steps[-1][1]).__name__})" if steps else type(model).__name__


def _pickle(path: Path, trusted: bool) -> Any:
    if not trusted:
        raise ParameterError(
            f"{path} is a pickle, and loading one runs whatever its author put in it. If you trust its origin, "
            f"add --trust-pickle; better save models with skops (.skops)."
        )
    import joblib

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = joblib.load(path)
        for one in caught:  # above all that another version of scikit-learn wrote it
            warnings.warn(f"{path}: {one.message}", SubgroveWarning, stacklevel=2)
        return model
    except Exception as error:  # a pickle can fail in any way
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error


def _skops(path: Path, types: Sequence[str]) -> Any:
    if not find_spec("skops"):
        raise ParameterError(f"{path} needs skops to be loaded. Run: pip install 'subgrove[skops]'")
    from skops.io import get_untrusted_types, load

    try:
        untrusted = [name for name in get_untrusted_types(file=path) if name not in types]
    except Exception as error:  # a zip archive of anyone's making
        raise InputError(f"{path} is no file of skops: {type(error).__name__}: {error}") from error
    if untrusted:
        options = " ".join(f"--trust {name}" for name in untrusted)
        raise ParameterError(f"{path} holds types that are not trusted. If you trust them, add {options}")
    try:
        return load(path, trusted=list(types))
    except Exception as error:
        raise ModelError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error


def _onnx(path: Path) -> Loaded:
    if not find_spec("onnxruntime"):
        raise ParameterError(f"{path} needs onnxruntime to be run. Run: pip install 'subgrove[onnx]'")
    from subgrove._cli.onnx_model import OnnxModel

    os.environ.setdefault("ORT_LOGGING_LEVEL", "3")
    model = OnnxModel(path.read_bytes(), str(path))
    return Loaded(model, f"ONNX model from {path.name}", model.columns, model.classifier)
