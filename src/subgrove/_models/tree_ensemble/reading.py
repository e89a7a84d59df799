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
import numpy.typing as npt

from subgrove._core.kinds import Floats
from subgrove._data.to_containers import copied
from subgrove._models.predictor import Predictor
from subgrove._models.tree_ensemble.ensemble import NotReadable, TreeEnsemble, require
from subgrove._models.tree_ensemble.inputs import TreeInputs, check_names
from subgrove._models.tree_ensemble.steps import StepFunctions
from subgrove._native.loader import tree_steps

CHECK_ROWS = 256  # changed rows whose predictions must be reproduced
TREE_STEPS = "tree steps"  # evaluation of a result that was computed from step functions
_ROUNDING = 1e-14  # of predictions in double precision, relative to their size

Encode = Callable[[Any], Floats]

Read = tuple[TreeEnsemble, TreeInputs]
_METHODS = ("predict", "predict_proba", "decision_function")
_READERS = {  # library -> its classes that the module of its name, in this folder, reads
    "sklearn": (
        *("DecisionTreeRegressor", "DecisionTreeClassifier", "ExtraTreeRegressor", "ExtraTreeClassifier"),
        *("RandomForestRegressor", "RandomForestClassifier", "ExtraTreesRegressor", "ExtraTreesClassifier"),
        *("GradientBoostingRegressor", "GradientBoostingClassifier"),
        *("HistGradientBoostingRegressor", "HistGradientBoostingClassifier"),
    ),
    "lightgbm": ("LGBMRegressor", "LGBMClassifier", "LGBMRanker", "Booster"),
    "xgboost": ("XGBRegressor", "XGBClassifier", "XGBRFRegressor", "XGBRFClassifier", "XGBRanker"),
    "catboost": ("CatBoostRegressor", "CatBoostClassifier"),
}
_COLUMNWISE = {  # each output column is a function of the input column at the same place
    *("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "OrdinalEncoder"),
    *("PowerTransformer", "QuantileTransformer"),
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
        return _read_pipeline(model, method)
    if root == "sklearn" and name in _SEARCHES:
        return _read(model.best_estimator_, method)
    require(name in _READERS.get(root, ()), f"{name} is not a supported tree ensemble")
    classifier = name.endswith("Classifier")
    require(not (classifier and method == "predict"), "labels of classes are predicted")
    require(classifier or method == "predict", f"{name} has no {method}")
    reader: Callable[[Any, str, str], Read] = import_module(f"{__package__}.{root}").read
    return reader(model, method, name)


def library_class(model: Any) -> type:
    """Return the first class of a model that a library defines.

    A subclass that defines a method of the library's class anew is rejected, as is an object with such an attribute.
    """
    order = type(model).__mro__
    found = next((cls for cls in order if cls.__module__.partition(".")[0] in _READERS), None)
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


def _read_pipeline(model: Any, method: str) -> Read:
    """Return the ensemble and the inputs of a fitted pipeline of scikit-learn, whose last step is a tree ensemble.

    Which inputs are computed from which column follows from the kinds of the steps; a step of another kind is rejected.
    The values are those of the fitted steps themselves.
    """
    *steps, last = [step for _, step in model.steps]
    ensemble, inputs = _read(last, method)
    steps = [step for step in steps if not _passes_through(step)]
    if not steps:
        return ensemble, inputs
    n_columns = int(steps[0].n_features_in_)
    sources = _sources_of_steps(steps, n_columns)  # of the columns that the last step gets
    require(len(sources) == len(inputs.columns), "its last step has another number of columns")
    columns: list[list[int]] = [[] for _ in range(n_columns)]
    for source, found in zip(sources, inputs.columns, strict=True):
        columns[source].extend(found)
    densely = type(last).__module__.partition(".")[0] in ("sklearn", "lightgbm")  # zeros left out are no missing values
    return ensemble, TreeInputs(
        tuple(tuple(sorted(found)) for found in columns), partial(_pipeline_inputs, steps, inputs, densely)
    )


def _pipeline_inputs(steps: Sequence[Any], inputs: TreeInputs, densely: bool, frame: Any) -> npt.NDArray[Any]:
    check_names(frame, steps[0])
    values = copied(frame)  # steps may write to their input
    for step in steps:
        values = step.transform(values)
    if hasattr(values, "toarray"):
        require(densely, "its last step gets a sparse matrix")
        values = values.toarray()
    return inputs.encode(values)


def _passes_through(step: Any) -> bool:
    if step is None or isinstance(step, str):
        return step in (None, "passthrough")
    return _sklearn_name(step) == "FunctionTransformer" and step.func is None and not step.validate


def _sklearn_name(step: Any) -> str:
    """Return the name of a class of scikit-learn itself, not of a subclass; "" for others."""
    return type(step).__name__ if type(step).__module__.partition(".")[0] == "sklearn" else ""


def _sources_of_steps(steps: Sequence[Any], n_columns: int) -> list[int]:
    sources = list(range(n_columns))
    for step in steps:
        sources = [sources[place] for place in _sources(step, len(sources))]
    return sources


def _sources(step: Any, n_columns: int) -> list[int]:
    """Return, for each output column of a fitted step, the input column from which it is computed."""
    if _passes_through(step):
        return list(range(n_columns))
    require("transform" not in getattr(step, "__dict__", {}), "the method of a step has been replaced")
    require(int(step.n_features_in_) == n_columns, "a step has another number of columns")
    name = _sklearn_name(step)
    if name in _COLUMNWISE:
        return list(range(n_columns))
    if name == "SimpleImputer":
        require(not step.add_indicator, "an imputer adds indicators")
        kept = step.keep_empty_features or step.strategy == "constant"
        empty = np.array([value is None or value != value for value in step.statistics_])
        require(not empty.any() or bool(kept), "an imputer drops columns")
        return list(range(n_columns))
    if name == "OneHotEncoder":
        counts = [int(count) for count in step._n_features_outs]
        require(len(counts) == n_columns, "an encoder has another number of columns")
        return [column for column, count in enumerate(counts) for _ in range(count)]
    if name == "Pipeline":
        return _sources_of_steps([one for _, one in step.steps if not _passes_through(one)], n_columns)
    if name == "ColumnTransformer":
        return _sources_of_parts(step)
    raise NotReadable(f"the step {type(step).__name__} is not supported")


def _sources_of_parts(step: Any) -> list[int]:
    """Return the sources of the output columns of a ColumnTransformer."""
    found: dict[int, int] = {}
    for name, transformer, _ in step.transformers_:
        places = [int(place) for place in step._transformer_to_input_indices[name]]
        if (isinstance(transformer, str) and transformer == "drop") or not places:
            continue
        sources = [places[source] for source in _sources(transformer, len(places))]
        outputs = range(10**9)[step.output_indices_[name]]
        require(len(outputs) == len(sources), "a step has another number of columns")
        found.update(zip(outputs, sources, strict=True))
    require(sorted(found) == list(range(len(found))), "a step has another number of columns")
    return [found[output] for output in range(len(found))]


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
