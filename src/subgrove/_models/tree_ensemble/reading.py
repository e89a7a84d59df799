"""Read a fitted model into a tree ensemble; a reader is selected by the class of the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from subgrove._models.tree_ensemble.ensemble import NotReadable, TreeEnsemble, require
from subgrove._models.tree_ensemble.inputs import TreeInputs

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
