"""Losses on tensors: what `subgrove.losses` computes on arrays, for those that go by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from subgrove import losses
from subgrove._models.device.torch import Tensor
from subgrove.losses import Loss
from subgrove.losses.named import PinballLoss, TweedieDeviance

TensorLoss = Callable[[Tensor, Tensor], Tensor]
_EPS = float(np.finfo(np.float64).eps)


def on_tensors(loss: Loss) -> TensorLoss | None:
    """The loss on tensors of float64, or None if it is not one of these."""
    for name, function in _LOSSES.items():
        if losses.get(name).function is loss.function:
            return function
    function_of_loss = loss.function
    if isinstance(function_of_loss, PinballLoss):
        return partial(_pinball, level=function_of_loss.level)
    if isinstance(function_of_loss, TweedieDeviance):
        return partial(_tweedie, p=function_of_loss.power)
    return None


def _row_mean(values: Tensor) -> Tensor:
    return values if values.ndim == 1 else values.mean(dim=1)


def _squared_error(y: Tensor, prediction: Tensor) -> Tensor:
    return _row_mean((y - prediction).square())


def _absolute_error(y: Tensor, prediction: Tensor) -> Tensor:
    return _row_mean((y - prediction).abs())


def _poisson(y: Tensor, prediction: Tensor) -> Tensor:
    positive = _positive(prediction)
    return _row_mean(2 * (y.xlogy(y / positive) - y + positive))


def _gamma(y: Tensor, prediction: Tensor) -> Tensor:
    positive = _positive(prediction)
    return _row_mean(2 * ((positive / y).log() + y / positive - 1))


def _tweedie(y: Tensor, prediction: Tensor, p: float) -> Tensor:
    positive = _positive(prediction)
    first = y ** (2 - p) / ((1 - p) * (2 - p))
    return _row_mean(2 * (first - y * positive ** (1 - p) / (1 - p) + positive ** (2 - p) / (2 - p)))


def _pinball(y: Tensor, prediction: Tensor, level: float) -> Tensor:
    difference = y - prediction
    return _row_mean((level * difference).maximum((level - 1) * difference))


def _positive(prediction: Tensor) -> Tensor:
    return prediction.where(prediction > 0, float("nan"))


def _log_loss(y: Tensor, probability: Tensor) -> Tensor:
    return -_of_y(y, probability).clamp(_EPS, 1.0).log()


def _brier(y: Tensor, probability: Tensor) -> Tensor:
    if probability.shape[1] == 2:
        return (probability[:, 1] - y).square()
    return probability.square().sum(dim=1) - 2 * _of_y(y, probability) + 1


def _zero_one(y: Tensor, probability: Tensor) -> Tensor:
    return (probability.argmax(dim=1) != y).to(probability.dtype)


def _of_y(y: Tensor, probability: Tensor) -> Any:
    return probability.gather(1, y[:, None])[:, 0]


_LOSSES: dict[str, TensorLoss] = {
    "squared_error": _squared_error,
    "absolute_error": _absolute_error,
    "poisson": _poisson,
    "gamma": _gamma,
    "log_loss": _log_loss,
    "brier": _brier,
    "zero_one": _zero_one,
}
