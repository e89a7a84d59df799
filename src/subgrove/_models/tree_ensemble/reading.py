"""Read a fitted model into a tree ensemble, which is used after it reproduced predictions of changed rows.

A reader is selected by the class of the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._models.predictor import Predictor
from subgrove._models.tree_ensemble.ensemble import NotReadable, TreeEnsemble, require
from subgrove._models.tree_ensemble.inputs import TreeInputs
from subgrove._models.tree_ensemble.steps import StepFunctions
from subgrove._native.loader import tree_steps

CHECK_ROWS = 256  # changed rows whose predictions must be reproduced
TREE_STEPS = "tree steps"  # evaluation of a result that was computed from step functions
_ROUNDING = 1e-14  # of predictions in double precision, relative to their size

Encode = Callable[[Any], Floats]

Read = tuple[TreeEnsemble, TreeInputs]
_METHODS = ("predict", "predict_proba", "decision_function")
_READERS = {  # library and class -> module of this folder with its reader
    ("sklearn", "hist_gradient_boosting"): ("HistGradientBoostingRegressor", "HistGradientBoostingClassifier"),
    ("sklearn", "sklearn_trees"): (
        *("DecisionTreeRegressor", "DecisionTreeClassifier", "ExtraTreeRegressor", "ExtraTreeClassifier"),
        *("RandomForestRegressor", "RandomForestClassifier", "ExtraTreesRegressor", "ExtraTreesClassifier"),
        *("GradientBoostingRegressor", "GradientBoostingClassifier"),
    ),
    ("lightgbm", "lightgbm"): ("LGBMRegressor", "LGBMClassifier", "LGBMRanker", "Booster"),
    ("xgboost", "xgboost"): ("XGBRegressor", "XGBClassifier", "XGBRFRegressor", "XGBRFClassifier", "XGBRanker"),
    ("catboost", "catboost"): ("CatBoostRegressor", "CatBoostClassifier"),
}
_SELECTED_BY = {  # library and class name -> module
    (library, name): module for (library, module), names in _READERS.items() for name in names
}
_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")


def read_ensemble(model: Any, response_method: str) -> Read:
    """Return the tree ensemble of a fitted model, and how a table becomes its inputs.

    Parameters
    ----------
    model : object
        Fitted model, or a method of it.
    response_method : str
        Method that is called: "predict", "predict_proba" or "decision_function"; "function" if the model is a function.

    Raises
    ------
    NotReadable
        If anything of the model is not known here; the message states the reason.
    """
    try:
        return _read(model, response_method)
    except NotReadable:
        raise
    except Exception as error:  # a model of another version, or one that has been changed
        raise NotReadable(f"{type(model).__name__} could not be read: {type(error).__name__}") from error


def _read(model: Any, method: str) -> Read:
    if method == "function":
        owner, method = getattr(model, "__self__", None), str(getattr(model, "__name__", ""))
        require(owner is not None and model == getattr(owner, method, None), "the model is a function")
        model = owner
    require(method in _METHODS, f"{method} is not supported")
    if type(model).__module__.startswith("subgrove.") and hasattr(model, "read_trees"):  # the model of the command
        read: Read = model.read_trees(partial(_read, method=method))
        return read
    library = library_class(model)
    root, name = library.__module__.partition(".")[0], library.__name__
    if (root, name) == ("sklearn", "Pipeline"):
        from subgrove._models.tree_ensemble.pipelines import read_pipeline

        return read_pipeline(model, partial(_read, method=method))
    if root == "sklearn" and name in _SEARCHES:
        return _read(model.best_estimator_, method)
    module = _SELECTED_BY.get((root, name))
    require(module is not None, f"{name} is not a supported tree ensemble")
    classifier = name.endswith("Classifier")
    require(not (classifier and method == "predict"), "labels of classes are predicted")
    require(classifier or method == "predict", f"{name} has no {method}")
    reader: Callable[[Any, str, str], Read] = import_module(f"{__package__}.{module}").read
    return reader(model, method, name)


def library_class(model: Any) -> type:
    """Return the first class of a model that a library defines.

    A subclass that defines a method of the library's class anew is rejected, as is an object with such an attribute.
    """
    libraries = {library for library, _ in _READERS}
    order = type(model).__mro__
    found = next((cls for cls in order if cls.__module__.partition(".")[0] in libraries), None)
    if found is None:
        raise NotReadable(f"{type(model).__name__} is not a supported tree ensemble")
    for cls in order[: order.index(found)]:
        for name in vars(cls):
            changed = hasattr(found, name) and not (name.startswith("__") and name.endswith("__"))
            harmless = name in ("fit", "_abc_impl") or (name.startswith("set_") and name.endswith("_request"))
            require(harmless or not changed, f"{cls.__name__} defines its own {name}")
    require(not any(hook in vars(cls) for cls in order[: order.index(found)] for hook in _HOOKS), "it has hooks")
    require(not set(_METHODS) & set(getattr(model, "__dict__", {})), "its method has been replaced")
    return found


_HOOKS = ("__getattribute__", "__getattr__", "__getitem__", "__len__", "__class__")


def use_tree_steps() -> bool:
    """Return whether step functions may replace predictions: unless the variable SUBGROVE_TREE_STEPS is 0."""
    return os.environ.get("SUBGROVE_TREE_STEPS", "1") != "0"


@dataclass(frozen=True, eq=False)
class TrustedSteps:
    """Step functions that reproduced the model, or the reason why there are none.

    Attributes
    ----------
    steps : StepFunctions or None
        Step functions of the rows.
    encode : function or None
        Returns the inputs of the trees for a table like the user's.
    reason : str
        Why the model itself must predict; empty with step functions.
    """

    steps: StepFunctions | None
    encode: Encode | None
    reason: str = ""

    @property
    def evaluation(self) -> str:
        """Which predictions a result uses, for its settings."""
        return model_predictions(self.reason) if self.steps is None else TREE_STEPS


def model_predictions(reason: str) -> str:
    """Return the evaluation of a result that uses predictions of the model, with the reason."""
    return f"model predictions: {reason}"


def trusted_steps(
    predictor: Predictor,
    rows: Any,
    donors: Sequence[Any],
    changed: Callable[[StepFunctions, Encode], tuple[Any, Floats]],
) -> TrustedSteps:
    """Return the step functions of a model, after a check of predictions of changed rows.

    Parameters
    ----------
    predictor : Predictor
        The model; it predicts the changed rows, which are counted.
    rows : table
        The rows, as the model gets them.
    donors : sequence of tables
        Rows whose values the rows may receive.
    changed : function
        Of the step functions and of the encoding of tables: returns a table of `CHECK_ROWS` changed rows, as the model
        gets them, and their margins according to the step functions.
    """
    try:
        require(use_tree_steps(), "SUBGROVE_TREE_STEPS is 0")
        require(tree_steps is not None, "the compiled part is not installed")
        ensemble, inputs = read_ensemble(predictor.model, predictor.method)
        steps = StepFunctions(ensemble, inputs, inputs.encode(rows), [inputs.encode(table) for table in donors])
        table, margins = changed(steps, inputs.encode)
        check_margins(predictor, steps.ensemble, table, margins)
    except NotReadable as error:
        return TrustedSteps(None, None, str(error))
    return TrustedSteps(steps, inputs.encode)


def check_margins(predictor: Predictor, ensemble: TreeEnsemble, table: Any, margins: Floats) -> None:
    """Raise `NotReadable` unless margins reproduce the predictions of a table, up to rounding.

    The difference may be `ensemble.tolerance` times the range of the predictions.
    """
    ours = ensemble.response(margins)
    theirs = predictor.predict(table, len(margins), lambda row: "rows that compare the model with its trees")
    theirs = np.asarray(theirs, dtype=np.float64)
    require(ours.shape == theirs.shape, "the model returns predictions of another shape than its trees")
    allowed = ensemble.tolerance * np.ptp(theirs, axis=0).max() + _ROUNDING * np.abs(theirs).max()
    require(bool(np.abs(ours - theirs).max() <= allowed), "its trees do not reproduce its predictions")
