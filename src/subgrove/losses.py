"""Losses by name, and how to pass your own.

A loss gives one value for each row; less is better. A score, such as the area under the ROC curve, gives one value
for all rows together: it can be used too, but has no value per row, hence none per subgroup and no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import InputError, ParameterError

__all__ = ["Loss", "custom", "from_metric", "get", "names", "quantile", "tweedie"]

Floats = npt.NDArray[np.float64]
ResponseMethod = Literal["value", "probability", "label", "any"]


@dataclass(frozen=True)
class Loss:
    """How wrong a prediction is.

    Attributes
    ----------
    name : str
        What tables call it.
    function : callable
        From y and predictions, both arrays, to one number for each row (or one for all, if not `per_row`).
    response_method : {"value", "probability", "label", "any"}
        What it compares y with: predicted numbers, probabilities of all classes (y is then the number of the class),
        predicted labels, or whatever the model gives.
    per_row : bool
        Whether it gives a number for each row.
    y_min, y_above : float, optional
        y must be at least, or above, this.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.losses.get("absolute_error")
    <Loss absolute_error>
    """

    name: str
    function: Callable[[npt.NDArray[Any], npt.NDArray[Any]], Any]
    response_method: ResponseMethod = "value"
    per_row: bool = True
    y_min: float | None = None
    y_above: float | None = None

    def __repr__(self) -> str:
        return f"<Loss {self.name}>"

    def check_y(self, y: npt.NDArray[Any]) -> None:
        """Refuse a y that the loss is not defined for.

        Parameters
        ----------
        y : array
            Target.
        """
        low, above = self.y_min, self.y_above
        if low is not None and (y < low).any():
            raise InputError(f"loss {self.name!r} needs y >= {low:g}; y has {y.min():g}. Choose another loss.")
        if above is not None and (y <= above).any():
            raise InputError(f"loss {self.name!r} needs y > {above:g}; y has {y.min():g}. Choose another loss.")


def _row_mean(values: Floats) -> Floats:
    """Mean over outputs, where there are several."""
    return values if values.ndim == 1 else values.mean(axis=1)


def _squared_error(y: Floats, prediction: Floats) -> Floats:
    difference = y - prediction
    difference *= difference
    return _row_mean(difference)


def _absolute_error(y: Floats, prediction: Floats) -> Floats:
    difference = y - prediction
    return _row_mean(np.abs(difference, out=difference))


def _poisson(y: Floats, prediction: Floats) -> Floats:
    from scipy.special import xlogy

    with np.errstate(divide="ignore", invalid="ignore"):
        return _row_mean(2 * (xlogy(y, y / _positive(prediction)) - y + prediction))


def _gamma(y: Floats, prediction: Floats) -> Floats:
    positive = _positive(prediction)
    return _row_mean(2 * (np.log(positive / y) + y / positive - 1))


def _positive(prediction: Floats) -> Floats:
    """Predictions, NaN where a deviance has no value."""
    return np.where(prediction > 0, prediction, np.nan)


def _log_loss(y: npt.NDArray[np.intp], probability: Floats) -> Floats:
    of_y = np.take_along_axis(probability, y[:, None], axis=1)[:, 0]
    return -np.log(np.clip(of_y, np.finfo(np.float64).eps, 1.0))


def _brier(y: npt.NDArray[np.intp], probability: Floats) -> Floats:
    if probability.shape[1] == 2:
        return np.asarray((probability[:, 1] - y) ** 2)
    of_y = np.take_along_axis(probability, y[:, None], axis=1)[:, 0]
    return np.asarray((probability**2).sum(axis=1) - 2 * of_y + 1)


def _zero_one(y: npt.NDArray[Any], label: npt.NDArray[Any]) -> Floats:
    wrong = np.asarray(y != label)
    return _row_mean(wrong.astype(np.float64))


def _auc(y: npt.NDArray[np.intp], probability: Floats) -> float:
    from sklearn.metrics import roc_auc_score

    absent = sorted(set(range(probability.shape[1])) - set(y.tolist()))
    if absent:
        raise InputError(
            f"loss 'auc' tells classes apart, but y has no row of class number {absent[0]} (of "
            f"{probability.shape[1]}, from 0). Use rows of every class, or another loss such as 'log_loss'."
        )
    if probability.shape[1] == 2:
        return 1.0 - float(roc_auc_score(y, probability[:, 1]))
    classes = np.arange(probability.shape[1])
    return 1.0 - float(roc_auc_score(y, probability, multi_class="ovr", labels=classes))


def _root_mean_squared_error(y: Floats, prediction: Floats) -> float:
    return float(np.sqrt(np.mean((y - prediction) ** 2)))


def quantile(level: float = 0.5) -> Loss:
    """Pinball loss of a predicted quantile.

    Parameters
    ----------
    level : float
        Which quantile is predicted, between 0 and 1.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.losses.quantile(0.9)
    <Loss quantile(0.9)>
    """
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise ParameterError(f"level must be a number between 0 and 1; got {level!r}.")
    return Loss(f"quantile({level:g})", _Pinball(float(level)))


@dataclass(frozen=True)
class _Pinball:
    level: float

    def __call__(self, y: Floats, prediction: Floats) -> Floats:
        difference = y - prediction
        return _row_mean(np.maximum(self.level * difference, (self.level - 1) * difference))


def tweedie(power: float) -> Loss:
    """Deviance of the Tweedie family with a variance power between 1 and 2.

    Parameters
    ----------
    power : float
        Variance power, between 1 (Poisson) and 2 (gamma).

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.losses.tweedie(1.5)
    <Loss tweedie(1.5)>
    """
    if isinstance(power, bool) or not isinstance(power, int | float | np.floating) or not 1 < power < 2:
        raise ParameterError(
            f"power must be a number between 1 and 2; got {power!r}. Use 'poisson' for 1 and 'gamma' for 2."
        )
    return Loss(f"tweedie({power:g})", _Tweedie(float(power)), y_min=0.0)


@dataclass(frozen=True)
class _Tweedie:
    power: float

    def __call__(self, y: Floats, prediction: Floats) -> Floats:
        p, positive = self.power, _positive(prediction)
        first = y ** (2 - p) / ((1 - p) * (2 - p))
        return _row_mean(2 * (first - y * positive ** (1 - p) / (1 - p) + positive ** (2 - p) / (2 - p)))


@dataclass(frozen=True)
class _Score:
    function: Callable[[Any, Any], Any]
    sign: float
    takes_probability: bool

    def __call__(self, y: Any, prediction: Any) -> Any:
        if self.takes_probability and prediction.shape[1] == 2:
            prediction = prediction[:, 1]
        return self.sign * np.asarray(self.function(y, prediction), dtype=np.float64)


def from_metric(
    function: Callable[[Any, Any], float],
    *,
    name: str | None = None,
    greater_is_better: bool = True,
    response_method: ResponseMethod = "any",
) -> Loss:
    """A metric of all rows together, such as those of `sklearn.metrics`.

    Parameters
    ----------
    function : callable
        From y and predictions to one number.
    name : str, optional
        What tables call it; the function's own name if not given.
    greater_is_better : bool
        Whether a greater value is a better one; the importance is then how much it falls.
    response_method : {"any", "value", "probability", "label"}
        What it compares y with. "any": what `predict` gives, and y as it is; but metrics of scikit-learn that compare
        with probabilities, such as `roc_auc_score`, get these. "probability": as metrics of scikit-learn take them, of
        two classes that of the second one alone, else a column for each class; and y as the number of the class.

    Notes
    -----
    There is no value per row, so a result has neither `per_row` nor `by_subgroup`, and no interval.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.metrics import r2_score
    >>> sg.losses.from_metric(r2_score)
    <Loss r2_score>
    """
    if not callable(function):
        raise ParameterError(f"function must be a function of (y, prediction); got {type(function).__name__}.")
    title = name or str(getattr(function, "__name__", "from_metric"))
    if response_method == "any" and _compares_probabilities(function):
        response_method = "probability"
    sign = -1.0 if greater_is_better else 1.0
    return Loss(title, _Score(function, sign, response_method == "probability"), response_method, per_row=False)


def custom(
    function: Callable[[Any, Any], Any], *, name: str | None = None, response_method: ResponseMethod = "any"
) -> Loss:
    """A loss of your own: a function of (y, prediction) that gives one number for each row.

    Parameters
    ----------
    function : callable
        From y and predictions, both arrays, to one number for each row; less is better.
    name : str, optional
        What tables call it; the function's own name if not given.
    response_method : {"any", "value", "probability", "label"}
        What it compares y with. "any": what `predict` gives, and y as it is. "probability": an array with a column
        for each class, and y as the number of the class.

    Examples
    --------
    >>> import subgrove as sg
    >>> def too_low(y, prediction):
    ...     return (y - prediction).clip(0)
    >>> sg.losses.custom(too_low)
    <Loss too_low>
    """
    if not callable(function):
        raise ParameterError(f"function must be a function of (y, prediction); got {type(function).__name__}.")
    return Loss(name or str(getattr(function, "__name__", "loss")), function, response_method)


_LOSSES = {
    loss.name: loss
    for loss in (
        Loss("squared_error", _squared_error),
        Loss("absolute_error", _absolute_error),
        Loss("poisson", _poisson, y_min=0.0),
        Loss("gamma", _gamma, y_above=0.0),
        Loss("log_loss", _log_loss, "probability"),
        Loss("brier", _brier, "probability"),
        Loss("zero_one", _zero_one, "label"),
        Loss("auc", _auc, "probability", per_row=False),
        Loss("root_mean_squared_error", _root_mean_squared_error, per_row=False),
    )
}
_OF_PROBABILITIES = ("average_precision_score", "brier_score_loss", "d2_log_loss_score", "log_loss", "roc_auc_score")
_LOSSES["quantile"] = replace(quantile(), name="quantile")  # tables call it what the user called it


def names() -> tuple[str, ...]:
    """Names of the losses that go by name.

    Examples
    --------
    >>> import subgrove as sg
    >>> "log_loss" in sg.losses.names()
    True
    """
    return tuple(sorted(_LOSSES))


def _compares_probabilities(function: Any) -> bool:
    """Whether a function is a metric of scikit-learn that compares classes with their probabilities."""
    return getattr(function, "__module__", "").startswith("sklearn.") and function.__name__ in _OF_PROBABILITIES


def get(loss: str | Loss | Callable[[Any, Any], Any]) -> Loss:
    """The loss of a name; a `Loss` or a function is passed on as a loss.

    Parameters
    ----------
    loss : str, Loss or callable
        A name of `names()`, a loss, or a function of (y, prediction).

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.losses.get("brier")
    <Loss brier>
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss in _LOSSES:
            return _LOSSES[loss]
        raise ParameterError(
            f"loss={loss!r} is not a loss. Known losses: {', '.join(names())}. "
            f"A function of (y, prediction) that gives one number for each row is a loss too."
        )
    if callable(loss):
        if _compares_probabilities(loss):
            more = loss.__name__.endswith("_score")
            return from_metric(loss, greater_is_better=more, response_method="probability")
        return custom(loss)
    raise ParameterError(f"loss must be a name, a Loss or a function of (y, prediction); got {type(loss).__name__}.")


def get_all(loss: Any) -> tuple[Loss, ...]:
    """One loss or several; their names must differ."""
    given: Sequence[Any] = loss if isinstance(loss, list | tuple) else (loss,)
    if not given:
        raise ParameterError("loss is an empty list. Name at least one loss.")
    found = tuple(get(one) for one in given)
    titles = [one.name for one in found]
    if len(set(titles)) < len(titles):
        raise ParameterError(f"Several losses are named alike: {', '.join(titles)}. Give each a name of its own.")
    return found
