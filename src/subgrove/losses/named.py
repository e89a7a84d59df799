"""What a loss is, and the losses of this package, one function and one line of `LOSSES` each; `get` finds a loss.

The functions take arrays of NumPy. Those of a model on a device take its tensors as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import InputError, ParameterError

Floats = npt.NDArray[np.float64]
Numbers = Any  # floats, or class numbers: an array, or a tensor of PyTorch, which may not be installed
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


def _library(values: Numbers) -> Any:
    """Return the library that computes with these values: NumPy, or PyTorch for tensors."""
    torch = sys.modules.get("torch")
    return np if torch is None or not isinstance(values, torch.Tensor) else torch


def _row_mean(values: Numbers) -> Numbers:
    """Return the mean over outputs, if there are several."""
    return values if values.ndim == 1 else values.mean(axis=1)


def _squared_error(y: Numbers, prediction: Numbers) -> Numbers:
    difference = y - prediction
    difference *= difference
    return _row_mean(difference)


def _absolute_error(y: Numbers, prediction: Numbers) -> Numbers:
    difference = y - prediction
    return _row_mean(_library(difference).abs(difference, out=difference))


def _poisson(y: Numbers, prediction: Numbers) -> Numbers:
    from scipy import special

    library = special if _library(y) is np else _library(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _row_mean(2 * (library.xlogy(y, y / _positive(prediction)) - y + prediction))


def _gamma(y: Numbers, prediction: Numbers) -> Numbers:
    positive = _positive(prediction)
    return _row_mean(2 * (_library(y).log(positive / y) + y / positive - 1))


def _positive(prediction: Numbers) -> Numbers:
    """Return predictions, with NaN where a deviance is not defined."""
    return _library(prediction).where(prediction > 0, prediction, np.nan)


def _of_y(y: Numbers, probability: Numbers) -> Numbers:
    """Return the probability of the class of each row."""
    if _library(probability) is np:
        return np.take_along_axis(probability, y[:, None], axis=1)[:, 0]
    return probability.gather(1, y[:, None])[:, 0]


def _log_loss(y: Numbers, probability: Numbers) -> Numbers:
    library = _library(probability)
    return -library.log(library.clip(_of_y(y, probability), np.finfo(np.float64).eps, 1.0))


def _brier(y: Numbers, probability: Numbers) -> Numbers:
    if probability.shape[1] == 2:
        return (probability[:, 1] - y) ** 2
    return (probability**2).sum(axis=1) - 2 * _of_y(y, probability) + 1


def _zero_one(y: npt.NDArray[Any], label: npt.NDArray[Any]) -> Numbers:
    wrong = np.asarray(y != label)
    return _row_mean(wrong.astype(np.float64))


def _auc(y: npt.NDArray[np.intp], probability: Floats) -> float:
    from sklearn.metrics import roc_auc_score

    absent = sorted(set(range(probability.shape[1])) - set(y.tolist()))
    if absent:
        raise InputError(
            f"loss 'auc' needs rows of every class, but y has no row of class number {absent[0]} (of "
            f"{probability.shape[1]}, from 0). Use rows of every class, or another loss such as 'log_loss'."
        )
    if probability.shape[1] == 2:
        return 1.0 - float(roc_auc_score(y, probability[:, 1]))
    classes = np.arange(probability.shape[1])
    return 1.0 - float(roc_auc_score(y, probability, multi_class="ovr", labels=classes))


def _root_mean_squared_error(y: Floats, prediction: Floats) -> float:
    return float(np.sqrt(np.mean((y - prediction) ** 2)))


def quantile(level: float = 0.5) -> Loss:
    """Return the pinball loss of a predicted quantile.

    Parameters
    ----------
    level : float
        Level of the predicted quantile, between 0 and 1.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.losses.quantile(0.9)
    <Loss quantile(0.9)>
    """
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise ParameterError(f"level must be a number between 0 and 1; got {level!r}.")
    return Loss(f"quantile({level:g})", PinballLoss(float(level)))


@dataclass(frozen=True)
class PinballLoss:
    """Pinball loss of a quantile, as a function that can be pickled."""

    level: float

    def __call__(self, y: Numbers, prediction: Numbers) -> Numbers:
        """Return the loss of each row."""
        difference = y - prediction
        return _row_mean(_library(y).maximum(self.level * difference, (self.level - 1) * difference))


def tweedie(power: float) -> Loss:
    """Return the deviance of a Tweedie distribution with a variance power between 1 and 2.

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
    return Loss(f"tweedie({power:g})", TweedieDeviance(float(power)), y_min=0.0)


@dataclass(frozen=True)
class TweedieDeviance:
    """Deviance of a Tweedie distribution, as a function that can be pickled."""

    power: float

    def __call__(self, y: Numbers, prediction: Numbers) -> Numbers:
        """Return the deviance of each row."""
        p, positive = self.power, _positive(prediction)
        first = y ** (2 - p) / ((1 - p) * (2 - p))
        return _row_mean(2 * (first - y * positive ** (1 - p) / (1 - p) + positive ** (2 - p) / (2 - p)))


LOSSES = {
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
LOSSES["quantile"] = replace(quantile(), name="quantile")  # the name that the user gave


def names() -> tuple[str, ...]:
    """Return the names of the losses of this package; scorer names of scikit-learn are accepted too.

    Examples
    --------
    >>> import subgrove as sg
    >>> "log_loss" in sg.losses.names()
    True
    """
    return tuple(sorted(LOSSES))


def get(loss: str | Loss | Callable[..., Any]) -> Loss:
    """Return the loss of a name, a scikit-learn scorer or a function.

    Parameters
    ----------
    loss : str, Loss, scorer or callable
        A name of `names()`, the name of a scikit-learn scorer ("r2", "roc_auc", "neg_mean_absolute_error", ...), a
        scorer (`make_scorer(...)`), a loss, or a function of (y, prediction).

    Notes
    -----
    A scorer that is the mean of a loss per row is replaced by that loss, so that there are values per row:
    "neg_mean_squared_error" is "squared_error", "accuracy" is "zero_one". Other scorers are metrics of all rows
    together, and the importance is the decrease of the score.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.losses.get("brier")
    <Loss brier>
    >>> sg.losses.get("neg_mean_squared_error")
    <Loss squared_error>
    >>> sg.losses.get("r2")
    <Loss r2>
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return LOSSES[loss] if loss in LOSSES else _from_scorer(_named_scorer(loss), loss)
    if hasattr(loss, "_score_func"):
        return _from_scorer(loss, None)
    if callable(loss):
        if compares_probabilities(loss):
            metric = SignedMetric(loss, -1.0 if loss.__name__.endswith("_score") else 1.0, takes_probability=True)
            return Loss(loss.__name__, metric, "probability", per_row=False)
        return Loss(str(getattr(loss, "__name__", "loss")), loss, "any")
    raise ParameterError(
        f"loss must be a name, a Loss, a scikit-learn scorer or a function of (y, prediction); got "
        f"{type(loss).__name__}."
    )


def get_all(loss: Any) -> tuple[Loss, ...]:
    """Return one loss or several as a tuple; their names must differ."""
    each: Sequence[Any] = loss if isinstance(loss, list | tuple) else (loss,)
    if not each:
        raise ParameterError("loss is an empty list. Name at least one loss.")
    losses = tuple(get(one) for one in each)
    titles = [one.name for one in losses]
    if len(set(titles)) < len(titles):
        raise ParameterError(f"Several losses have the same name: {', '.join(titles)}. Give each its own name.")
    return losses


def _named_scorer(name: str) -> Any:
    from difflib import get_close_matches

    from sklearn.metrics import get_scorer, get_scorer_names

    scorers = get_scorer_names()
    if name in scorers:
        return get_scorer(name)
    near = get_close_matches(name, [*names(), *scorers], n=3)
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ParameterError(
        f"loss={name!r} is not a loss.{meant} Losses are {', '.join(names())}, and the scorer names of scikit-learn "
        f"(sklearn.metrics.get_scorer_names()). A function of (y, prediction) that returns one number per row is a "
        f"loss too."
    )


# Metrics of scikit-learn that are the mean of a loss per row, or that are here in the same form.
_METRICS = {
    ("mean_squared_error", -1): "squared_error",
    ("mean_absolute_error", -1): "absolute_error",
    ("mean_poisson_deviance", -1): "poisson",
    ("mean_gamma_deviance", -1): "gamma",
    ("root_mean_squared_error", -1): "root_mean_squared_error",
    ("log_loss", -1): "log_loss",
    ("brier_score_loss", -1): "brier",
    ("accuracy_score", 1): "zero_one",
    ("roc_auc_score", 1): "auc",
}


def _from_scorer(scorer: Any, name: str | None) -> Loss:
    """Return the loss of a scikit-learn scorer.

    Scorers have no public attributes for their metric, sign, options and response method; `_score_func`, `_sign`,
    `_kwargs` and `_response_method` have been the same since scikit-learn 1.4, the oldest version that is supported.
    """
    metric, sign, options = scorer._score_func, scorer._sign, scorer._kwargs
    is_sklearn = getattr(metric, "__module__", "").startswith("sklearn.")
    own = _METRICS.get((getattr(metric, "__name__", ""), sign)) if is_sklearn and not options else None
    if own is not None:
        return LOSSES[own]
    response_method = _predictions_of(scorer)
    function = SignedMetric(metric, -sign, response_method == "probability", tuple(options.items()))
    return Loss(name or str(getattr(metric, "__name__", "score")), function, response_method, per_row=False)


def _predictions_of(scorer: Any) -> ResponseMethod:
    """Return the kind of predictions of a scorer; where it takes decision values or probabilities, probabilities."""
    if scorer._response_method != "predict":
        return "probability"
    kinds: dict[str, ResponseMethod] = {"_regression": "value", "_classification": "label"}
    return kinds.get(getattr(scorer._score_func, "__module__", "").removeprefix("sklearn.metrics."), "any")


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


def compares_probabilities(function: Any) -> bool:
    """Return whether a function is a metric of scikit-learn that compares classes with their probabilities."""
    return getattr(function, "__module__", "").startswith("sklearn.") and function.__name__ in _OF_PROBABILITIES
