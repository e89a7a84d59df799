"""What a loss is, and how to make one from a function or a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import InputError, ParameterError

ResponseMethod = Literal["value", "probability", "label", "any"]
_OF_PROBABILITIES = ("average_precision_score", "brier_score_loss", "d2_log_loss_score", "log_loss", "roc_auc_score")


@dataclass(frozen=True)
class Loss:
    """A loss function with what it needs from the model.

    Attributes
    ----------
    name : str
        Name in the tables of a result.
    function : callable
        Function of y and predictions, both arrays, that returns one number per row, or one number for all rows if not
        `per_row`.
    response_method : {"value", "probability", "label", "any"}
        Kind of predictions: numbers, probabilities of all classes (y is then the index of the class), labels, or
        whatever the model predicts.
    per_row : bool
        Whether it returns a number per row.
    y_min, y_above : float, optional
        Lower bound of y, inclusive and exclusive.

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
        """Raise an error if the loss is not defined for y.

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


@dataclass(frozen=True)
class SignedMetric:
    """A metric with the sign of a loss."""

    function: Callable[..., Any]
    sign: float
    takes_probability: bool
    options: tuple[tuple[str, Any], ...] = ()  # keyword arguments of the function

    def __call__(self, y: Any, prediction: Any) -> Any:
        """Return the metric of all rows, lower is better."""
        if self.takes_probability and prediction.shape[1] == 2:
            prediction = prediction[:, 1]
        return self.sign * np.asarray(self.function(y, prediction, **dict(self.options)), dtype=np.float64)


def from_metric(
    function: Callable[[Any, Any], float],
    *,
    name: str | None = None,
    greater_is_better: bool = True,
    response_method: ResponseMethod = "any",
) -> Loss:
    """Return a loss from a metric of all rows together, such as those of `sklearn.metrics`.

    Parameters
    ----------
    function : callable
        Function of y and predictions that returns one number.
    name : str, optional
        Name in the tables of a result; the name of the function if not given.
    greater_is_better : bool
        Whether a greater value is better; the importance is then the decrease of the metric.
    response_method : {"any", "value", "probability", "label"}
        Kind of predictions. "any": what `predict` returns, and y unchanged; but metrics of scikit-learn that compare
        with probabilities, such as `roc_auc_score`, get these. "probability": as metrics of scikit-learn take them, for
        two classes the column of the second one, else one column per class; y is the index of the class.

    Notes
    -----
    There is no value per row, so a result has no `per_row`, no `by_subgroup` and no interval.

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
    if response_method == "any" and compares_probabilities(function):
        response_method = "probability"
    sign = -1.0 if greater_is_better else 1.0
    return Loss(title, SignedMetric(function, sign, response_method == "probability"), response_method, per_row=False)


def custom(
    function: Callable[[Any, Any], Any], *, name: str | None = None, response_method: ResponseMethod = "any"
) -> Loss:
    """Return a loss from a function of (y, prediction) that returns one number per row.

    Parameters
    ----------
    function : callable
        Function of y and predictions, both arrays, that returns one number per row; lower is better.
    name : str, optional
        Name in the tables of a result; the name of the function if not given.
    response_method : {"any", "value", "probability", "label"}
        Kind of predictions. "any": what `predict` returns, and y unchanged. "probability": an array with one column
        per class, and y as the index of the class.

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


def compares_probabilities(function: Any) -> bool:
    """Return whether a function is a metric of scikit-learn that compares classes with their probabilities."""
    return getattr(function, "__module__", "").startswith("sklearn.") and function.__name__ in _OF_PROBABILITIES
