"""Losses of the user: from a function of each row, or from a metric of all rows together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from subgrove.exceptions import ParameterError
from subgrove.losses.named import Loss, ResponseMethod, SignedMetric, compares_probabilities


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
    title = _title(function, name, "from_metric")
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
    return Loss(_title(function, name, "loss"), function, response_method)


def _title(function: Any, name: str | None, default: str) -> str:
    """Return the name of a loss from a function; raise an error if it is not a function."""
    if not callable(function):
        raise ParameterError(f"function must be a function of (y, prediction); got {type(function).__name__}.")
    return name or str(getattr(function, "__name__", default))
