"""The user's model; only this module calls it.

Requirements this design meets:

- a model is anything with `predict` or `predict_proba`, or a function of a table;
- losses state what they need (numbers, probabilities, labels); one call of the model serves all of them;
- predictions are checked once: their shape, their number of rows, and that they are finite;
- a model that modifies its input (a scaler with copy=False, say) gets copies;
- rows and calls are counted, so that a result can state its cost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from subgrove._core.validate import warn
from subgrove._data.from_containers import is_missing
from subgrove._data.to_containers import copied
from subgrove.exceptions import InputError, LengthError, ModelError, ParameterError
from subgrove.losses import Loss

Predictions = npt.NDArray[Any]
About = Callable[[int | None], str]  # describes the rows of a call; with a row number, one of them
Method = Literal["function", "predict", "predict_proba", "decision_function"]


@dataclass(eq=False)
class Predictor:
    """The user's model, with counts of rows and calls.

    Attributes
    ----------
    model : object
        The user's model.
    method : str
        Method that is called.
    classes : tuple
        Labels of the classes, in the order of the columns of probabilities; empty for a regression.
        With several outputs, one tuple for each.
    n_rows, n_calls : int
        Rows that have been predicted, and calls of the model.
    writes : bool
        Whether the model has been found to modify its input.
    """

    model: Any
    method: Method
    classes: tuple[Any, ...] = ()
    n_rows: int = 0
    n_calls: int = 0
    writes: bool = False

    def predict(self, table: Any, n_rows: int, about: About) -> Predictions:
        """Return predictions for the rows of a table: (n,) numbers or labels, or (n, k) for several outputs or classes.

        `about` describes the rows in an error message.
        """
        call = self.model if self.method == "function" else getattr(self.model, self.method)
        try:
            predictions = call(copied(table) if self.writes else table)
        except Exception as error:
            raise ModelError(
                f"The model raised {type(error).__name__} on {n_rows} rows ({about(None)}): {error}"
                f"{_remedy(self.model)}"
            ) from error
        self.n_rows += n_rows
        self.n_calls += 1
        return _checked(predictions, n_rows, about, self.method)

    def fresh(self) -> Predictor:
        """Return the same model with its counters at zero, for another worker."""
        return Predictor(self.model, self.method, self.classes, writes=self.writes)


def read_model(model: Any, response: str) -> Predictor:
    """Return the predictor of a model for the predictions that a loss or an effect needs.

    `response` is "value" or "any" (predict), "label" (predict), "probability" (predict_proba), or the name of a method.
    """
    wanted = {"value": "predict", "any": "predict", "label": "predict", "probability": "predict_proba"}
    method = wanted.get(response, response)
    model = as_model(model)
    if isinstance(model, type):
        raise ParameterError(f"model is the class {model.__name__}, not an object of it. Pass a fitted model.")
    if hasattr(model, method):
        return Predictor(model, cast(Method, method), _classes(model))
    if hasattr(model, "predict") or hasattr(model, "predict_proba"):
        raise ParameterError(
            f"model ({type(model).__name__}) has no {method}, which is needed for a {response}. "
            f"Choose another loss or response_method, or pass a function that returns it."
        )
    if callable(model):
        return Predictor(model, "function")
    raise ParameterError(
        f"model must have predict or predict_proba, or be a function of a table; got {type(model).__name__}."
    )


def _remedy(model: Any) -> str:
    """Return what to pass instead of a model whose `predict` takes no table; "" for others."""
    if type(model).__name__ != "Booster" or type(model).__module__.partition(".")[0] != "xgboost":
        return ""
    return (
        ". A Booster of XGBoost predicts a DMatrix only: pass a function as the model, "
        "`lambda X: booster.predict(xgboost.DMatrix(X, enable_categorical=True))`, or an XGBRegressor or XGBClassifier."
    )


def as_model(model: Any) -> Any:
    """Return a `torch.nn.Module` without `predict` as a `DeviceModel`; anything else unchanged."""
    nn = getattr(sys.modules.get("torch"), "nn", None)  # PyTorch is not imported to find out
    if nn is None or not isinstance(model, nn.Module) or hasattr(model, "predict") or hasattr(model, "predict_proba"):
        return model
    from subgrove._models.device_model import DeviceModel

    return DeviceModel(model)


def is_classifier(model: Any) -> bool:
    """Return whether a model is a classifier."""
    if getattr(model, "_estimator_type", None) == "classifier" or hasattr(model, "predict_proba"):
        return True
    tags = getattr(model, "__sklearn_tags__", None)
    try:
        return tags is not None and tags().estimator_type == "classifier"
    except (AttributeError, TypeError):
        return False


def default_loss(model: Any, y: Any) -> str:
    """Return the default loss of a model: absolute error, for classes log loss, or zero-one loss without probabilities.

    If y has only 0 and 1, predictions of a regression or a function may be probabilities. Their absolute error is least
    for 0 or 1, not for the true probability: the default is then squared error, which is the Brier score.
    """
    owner, name = getattr(model, "__self__", None), getattr(model, "__name__", "")
    if name == "predict_proba" and hasattr(owner, name):
        raise ParameterError(
            f"model is the method predict_proba of {type(owner).__name__}. Pass the classifier itself: its classes are "
            f"then known, and the default loss is log loss. Or name a loss, such as loss='log_loss'."
        )
    unread = isinstance(y, str) or type(y).__module__.partition(".")[0] == "torch"  # a column name, or a tensor
    values = None if unread else np.asarray(y)
    if is_classifier(model) or (values is not None and _are_labels(values)):
        probabilities = hasattr(model, "predict_proba") or not (hasattr(model, "predict") or name == "predict")
        return "log_loss" if probabilities else "zero_one"
    if values is None or not _are_zero_and_one(values):
        return "absolute_error"
    warn(
        "y has only the values 0 and 1, but model is not a classifier: predictions are compared with y by squared "
        "error (the Brier score, if they are probabilities). For classes, pass the classifier itself, or name a loss."
    )
    return "squared_error"


def _are_zero_and_one(values: npt.NDArray[Any]) -> bool:
    is_number = values.dtype.kind in "biufO"
    return is_number and bool(np.isin(values, (0, 1)).all()) and bool((values == 0).any() and (values == 1).any())


def _are_labels(values: npt.NDArray[Any]) -> bool:
    if values.dtype.kind == "O":
        try:
            values.astype(np.float64)
        except (TypeError, ValueError):
            return True
    return values.dtype.kind in "US"


def response_for(losses: Sequence[Loss], response: str | None) -> str:
    """Return the response method that serves all losses."""
    if response is not None:
        known = ("value", "label", "probability", "predict", "predict_proba", "decision_function")
        if not isinstance(response, str) or response not in known:
            raise ParameterError(f"response_method must be one of {', '.join(known)} or None; got {response!r}.")
        unserved = [loss for loss in losses if not _serves(response, loss)]
        if unserved:
            raise ParameterError(
                f"response_method={response!r} does not serve loss {unserved[0].name!r}, which needs a "
                f"{unserved[0].response_method}. Omit response_method, or choose another loss."
            )
        return response
    needed = {loss.response_method for loss in losses} - {"any"}
    if "probability" in needed and any(loss.response_method == "any" for loss in losses):
        other = next(loss for loss in losses if loss.response_method == "any")
        raise ParameterError(
            f"loss {other.name!r} needs the output of predict, other losses need probabilities. Pass it as "
            f"subgrove.losses.custom(..., response_method='probability'), or call importance once for each."
        )
    if needed <= {"probability", "label"}:
        return "probability" if "probability" in needed else ("label" if needed else "any")
    if needed == {"value"}:
        return "value"
    listed = ", ".join(f"{loss.name} ({loss.response_method})" for loss in losses)
    raise ParameterError(f"These losses need different predictions: {listed}. Call importance once for each kind.")


def _serves(response: str, loss: Loss) -> bool:
    """Return whether a response method returns the predictions that a loss needs."""
    served = {"probability": ("probability", "label"), "decision_function": ("value",)}
    served["predict_proba"] = served["probability"]
    return loss.response_method in (*served.get(response, ("value", "label")), "any")


def gives_probabilities(response: str) -> bool:
    """Return whether a response method returns the probability of each class."""
    return response in ("probability", "predict_proba")


def _classes(model: Any) -> tuple[Any, ...]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return ()
    if isinstance(classes, list) and classes and isinstance(classes[0], np.ndarray):
        return tuple(tuple(one.tolist()) for one in classes)
    return tuple(np.asarray(classes).tolist())


def _checked(predictions: Any, n_rows: int, about: About, method: str) -> Predictions:
    if isinstance(predictions, list) and predictions and all(np.ndim(one) == 2 for one in predictions):
        predictions = np.hstack([np.asarray(one) for one in predictions])  # probabilities of several outputs
    if np.ma.is_masked(predictions):
        raise ModelError(f"{method} returned masked predictions ({about(None)}). It must predict each row.")
    try:
        values = np.asarray(predictions)
    except ValueError as error:
        raise ModelError(f"{method} returned lines of different lengths ({about(None)}).") from error
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or len(values) != n_rows:
        raise ModelError(
            f"{method} returned predictions of shape {values.shape} for {n_rows} rows ({about(None)}). "
            f"It must return one prediction, or one line of them, for each row."
        )
    if values.dtype.kind in "iub":
        return values
    if values.dtype.kind == "f":
        # A finite sum proves that all are finite, without a temporary array.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                return values
        bad = ~np.isfinite(values)
        if bad.any():
            row = int(np.flatnonzero(bad.reshape(n_rows, -1).any(axis=1))[0])
            raise ModelError(
                f"{method} returned {int(bad.sum())} predictions that are not finite, the first {values[row]} "
                f"({about(row)}). Predictions must be finite; check how the model handles missing values."
            )
    return values


@dataclass(frozen=True, eq=False)
class Target:
    """The target in the forms that losses need.

    Attributes
    ----------
    raw : array
        Values as passed by the user.
    numbers : float array, or None
        (n,) or (n, k); None if no loss needs numbers.
    codes : int array, or None
        Index of the class of each row; (n, k) with several outputs.
    classes : tuple
        Labels of the classes, one tuple for each output if there are several.
    """

    raw: npt.NDArray[Any]
    numbers: npt.NDArray[np.float64] | None
    codes: npt.NDArray[np.intp] | None
    classes: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.raw)

    def taken(self, rows: npt.NDArray[np.intp]) -> Target:
        """Return some rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        codes = None if self.codes is None else self.codes[rows]
        return Target(self.raw[rows], numbers, codes, self.classes)


def read_target(
    y: Any, n_rows: int, classes: tuple[Any, ...], losses: Sequence[Loss], *, probabilities: bool = False
) -> Target:
    """Check y and convert it to the forms that the losses need; for `probabilities`, the index of the class."""
    raw = _raw(y)
    if len(raw) != n_rows:
        raise LengthError(f"y has {len(raw)} values, but X has {n_rows} rows. Pass one value of y for each row of X.")
    missing = missing_in(raw)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"y has {int(missing.sum())} missing values, the first in row {row}. Drop these rows from X and y."
        )
    if raw.dtype == object and any(isinstance(value, list | dict | set | np.ndarray) for value in raw.ravel()):
        raise InputError("y has lists or other collections as values. Pass one number or label for each row.")
    needs = {loss.response_method for loss in losses}
    numbers = _numbers(raw, losses) if "value" in needs else None
    codes = None
    if needs & {"probability", "label"}:
        if not classes:  # of a model without `classes_`
            try:
                found = tuple(tuple(np.unique(column).tolist()) for column in np.atleast_2d(raw.T))
            except TypeError as error:
                raise InputError("y has values that cannot be sorted. Pass numbers, or labels of one type.") from error
            classes = found[0] if raw.ndim == 1 else found
        if "probability" in needs or probabilities:
            codes = _codes(raw, classes)
        else:
            _reject_unknown_labels(raw, classes)
    for loss in losses:
        if numbers is not None and loss.response_method == "value":
            loss.check_y(numbers)
    for values in (numbers, codes):
        if values is not None:
            values.flags.writeable = False  # so that a loss that modifies it raises an error
    raw = raw.view()  # of the user's own y
    raw.flags.writeable = False
    return Target(raw, numbers, codes, classes)


def _raw(y: Any) -> npt.NDArray[Any]:
    if isinstance(y, str) or not hasattr(y, "__len__") or np.ma.is_masked(y):
        given = "masked values" if np.ma.is_masked(y) else type(y).__name__
        raise InputError(f"y must be a column with one value for each row; got {given}.")
    if type(y).__module__.startswith("pyarrow") and hasattr(y, "to_numpy"):
        y = y.to_numpy(zero_copy_only=False)
    raw = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim not in (1, 2):
        raise InputError(f"y must be one column, or one for each output; got an array of shape {raw.shape}.")
    return raw


def missing_in(raw: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows of y are missing."""
    if raw.dtype.kind == "f":
        missing = np.isnan(raw)
    elif raw.dtype == object:
        missing = np.array([is_missing(value) for value in raw.ravel().tolist()], dtype=np.bool_).reshape(raw.shape)
    else:
        missing = np.zeros(raw.shape, dtype=np.bool_)
    return missing if missing.ndim == 1 else np.asarray(missing.any(axis=1))


def _numbers(raw: npt.NDArray[Any], losses: Sequence[Loss]) -> npt.NDArray[np.float64]:
    names = ", ".join(loss.name for loss in losses if loss.response_method == "value")
    if raw.dtype.kind not in "iufbO":
        raise InputError(f"loss {names} needs numbers, but y holds {raw.dtype}. For classes use loss='log_loss'.")
    try:
        numbers = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"loss {names} needs numbers, but y holds other values: {error}. For classes use loss='log_loss'."
        ) from error
    if not np.isfinite(numbers).all():
        raise InputError("y has infinite values. Replace them by finite ones, or drop these rows.")
    return numbers


def _codes(raw: npt.NDArray[Any], classes: tuple[Any, ...]) -> npt.NDArray[np.intp]:
    if raw.ndim == 2:
        columns = [_codes(raw[:, k], classes[k]) for k in range(raw.shape[1])]
        return np.column_stack(columns)
    place = {label: code for code, label in enumerate(classes)}
    codes = np.array([place.get(label, -1) for label in raw.tolist()], dtype=np.intp)
    if (codes < 0).any():
        _reject_unknown_labels(raw, classes)
    return codes


def _reject_unknown_labels(raw: npt.NDArray[Any], classes: tuple[Any, ...]) -> None:
    if raw.ndim == 2 or not classes:
        return
    known = set(classes)
    labels = {*raw.tolist()}
    unknown = sorted({repr(label) for label in labels if label not in known})
    if unknown:
        other_coding = labels.isdisjoint(known)
        remedy = (
            "Pass y in the coding that the model was trained with"
            if other_coding
            else "Drop these rows, or train it on them"
        )
        raise InputError(
            f"y has classes that the model was not trained on: {', '.join(unknown[:5])}. "
            f"It knows {', '.join(repr(label) for label in classes[:20])}. {remedy}."
        )
