"""The losses of this package: one function and one line of `LOSSES` each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import InputError, ParameterError
from subgrove.losses.base import Loss

Floats = npt.NDArray[np.float64]


def _row_mean(values: Floats) -> Floats:
    """Return the mean over outputs, if there are several."""
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
    """Return predictions, with NaN where a deviance is not defined."""
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

    def __call__(self, y: Floats, prediction: Floats) -> Floats:
        """Return the loss of each row."""
        difference = y - prediction
        return _row_mean(np.maximum(self.level * difference, (self.level - 1) * difference))


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

    def __call__(self, y: Floats, prediction: Floats) -> Floats:
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
