"""Structures that the default sampler was not developed on, in the order in which they were written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.simulate.conditional_draws import (
    LEVEL_RANGE,
    ConditionalDraw,
    Draw,
    Levels,
    Others,
    _additive,
    _cut,
    _exact,
    _labels,
    _logistic,
    _uniform,
)
from subgrove.simulate.conditional_draws import _normal as _noise


def _level_numbers(n: int) -> Floats:
    return np.linspace(-LEVEL_RANGE, LEVEL_RANGE, n)


def _code(x: Floats, column: int, n_levels: int) -> Any:
    return np.round((x[:, column] + LEVEL_RANGE) / (2 * LEVEL_RANGE) * (n_levels - 1)).astype(int)


def _levels_of(n_levels: int, shares: Floats | None = None) -> Others:
    """Return four columns, of which x2 has levels with unequal shares."""

    def others(n: int, rng: np.random.Generator) -> Floats:
        x = rng.standard_normal((n, 4))
        x[:, 0] = _level_numbers(n_levels)[rng.choice(n_levels, n, p=shares)]
        return x

    return others


def _zipf(n_levels: int) -> Floats:
    weights = 1 / np.arange(1, n_levels + 1) ** 0.7
    return np.asarray(weights / weights.sum())


def _nested(n: int, rng: np.random.Generator) -> Floats:
    place = rng.integers(0, 24, n)
    return np.column_stack([_level_numbers(6)[place // 4], _level_numbers(24)[place], rng.standard_normal((n, 2))])


_REGIONS = np.array([-1.5, 0.5, 1.2, -0.3, 2.0, 0.0])
_PLACES = 0.8 * np.cos(np.arange(24) * 1.7)
_FORTY = 1.3 * np.sin(np.arange(40) * 3.1)
_AMP = np.array([2.0, -1.0, 0.3, 1.2, -1.8])


def _month_and_year(n: int, rng: np.random.Generator) -> Floats:
    return np.column_stack([rng.integers(1, 13, n), rng.integers(0, 10, n), rng.standard_normal((n, 2))]).astype(float)


def _hour_and_level(n: int, rng: np.random.Generator) -> Floats:
    hour, level = rng.integers(0, 12, n).astype(float), _level_numbers(5)[rng.integers(0, 5, n)]
    return np.column_stack([hour, level, rng.standard_normal((n, 2))])


def _hour_and_day(n: int, rng: np.random.Generator) -> Floats:
    return np.column_stack([rng.integers(0, 24, n), rng.integers(0, 7, n), rng.standard_normal((n, 2))]).astype(float)


def _log_normal(n: int, rng: np.random.Generator) -> Floats:
    x = rng.standard_normal((n, 4))
    x[:, 0] = np.exp(x[:, 0])
    return x


def _autoregressive(n: int, rng: np.random.Generator) -> Floats:
    x = rng.standard_normal((n, 9))
    for at in range(1, 9):
        x[:, at] = 0.9 * x[:, at - 1] + np.sqrt(0.19) * x[:, at]
    return x


def _softmax(x: Floats, rng: np.random.Generator) -> Floats:
    angle = np.arange(20) / 20 * 2 * np.pi
    logits = 1.5 * (np.outer(x[:, 1], np.cos(angle)) + np.outer(x[:, 3], np.sin(2 * angle)))
    return np.asarray(_level_numbers(20)[(logits + rng.gumbel(size=logits.shape)).argmax(axis=1)])


def _eight(x: Floats, rng: np.random.Generator) -> Floats:
    code = (x[:, 1] > 0) * 4 + (x[:, 2] > 0.3) * 2 + (x[:, 3] > -0.2)
    return np.asarray(_level_numbers(8)[np.where(rng.random(len(x)) < 0.8, code, rng.integers(0, 8, len(x)))])


def _fifteen(x: Floats, rng: np.random.Generator) -> Floats:
    near = _code(x, 1, 5) * 3 + rng.integers(0, 3, len(x))
    return np.asarray(_level_numbers(15)[np.where(rng.random(len(x)) < 0.75, near, rng.integers(0, 15, len(x)))])


def _uniform_score(column: Floats) -> Floats:
    from scipy.special import ndtr

    return np.clip(ndtr(column), 1e-9, 1 - 1e-9)


def _normal_score(level: Floats) -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(level, 1e-9, 1 - 1e-9)))


def _clayton(theta: float) -> Draw:
    def draw(x: Floats, rng: np.random.Generator) -> Floats:
        u, w = _uniform_score(x[:, 1]), np.clip(rng.random(len(x)), 1e-9, 1 - 1e-9)
        return _normal_score((u**-theta * (w ** (-theta / (1 + theta)) - 1) + 1) ** (-1 / theta))

    return draw


def _frank(theta: float) -> Draw:
    def draw(x: Floats, rng: np.random.Generator) -> Floats:
        u, w = _uniform_score(x[:, 1]), np.clip(rng.random(len(x)), 1e-9, 1 - 1e-9)
        return _normal_score(-np.log1p(w * np.expm1(-theta) / (w + (1 - w) * np.exp(-theta * u))) / theta)

    return draw


def _gumbel(theta: float) -> Draw:
    """Return the draw that inverts the conditional distribution function by bisection."""

    def draw(x: Floats, rng: np.random.Generator) -> Floats:
        u, w = _uniform_score(x[:, 1]), rng.random(len(x))
        log_u, low, high = -np.log(u), np.full(len(x), -8.0), np.full(len(x), 8.0)
        for _ in range(40):
            middle = (low + high) / 2
            total = log_u**theta + (-np.log(_uniform_score(middle))) ** theta
            level = np.exp(-(total ** (1 / theta))) / u * total ** (1 / theta - 1) * log_u ** (theta - 1)
            low, high = np.where(level < w, middle, low), np.where(level < w, high, middle)
        return np.asarray((low + high) / 2)

    return draw


def _heaped(x: Floats, rng: np.random.Generator) -> Floats:
    values = 1.5 * x[:, 1] + 0.6 * _noise(x, rng)
    return np.where(rng.random(len(x)) < 0.5, np.round(values), np.round(values, 1))


def _two_signs(
    share: Callable[[Floats], Any], location: Callable[[Floats], Any], distance: Callable[[Floats], Any], noise: float
) -> Draw:
    """Return the draw of two modes at a distance from the location."""

    def draw(x: Floats, rng: np.random.Generator) -> Floats:
        sign = np.where(rng.random(len(x)) < share(x), 1.0, -1.0)
        return np.asarray(location(x) + sign * distance(x) + noise * _noise(x, rng))

    return draw


def _three_modes(x: Floats, rng: np.random.Generator) -> Floats:
    logits = np.outer(x[:, 2], np.array([-1.5, 0.0, 1.5]))
    mode = np.array([-2.0, 0.0, 2.0])[(logits + rng.gumbel(size=logits.shape)).argmax(axis=1)]
    return np.asarray(mode + 0.5 * x[:, 1] + 0.3 * _noise(x, rng))


FIRST: Mapping[str, ConditionalDraw] = {
    "damped wave": ConditionalDraw(
        _additive(lambda x: 3 * np.exp(-0.3 * x[:, 1]) * np.cos(2.5 * x[:, 1]), 0.3), _uniform(0, 6, 1)
    ),
    "logistic growth": ConditionalDraw(
        _additive(lambda x: 4 * _logistic(3 * x[:, 1]) + 0.4 * x[:, 2], 0.3), _uniform(-3, 3, 1)
    ),
    "chirp": ConditionalDraw(_additive(lambda x: 1.5 * np.sin(1.5 * x[:, 1] ** 2), 0.3), _uniform(0, 3, 1)),
    "month and year": ConditionalDraw(
        _additive(lambda x: 1.5 * np.cos(2 * np.pi * x[:, 1] / 12) + 0.2 * x[:, 2], 0.5), _month_and_year
    ),
    "staircase": ConditionalDraw(_additive(lambda x: np.asarray(np.floor(1.5 * x[:, 1]), dtype=np.float64), 0.3)),
    "two thresholds jointly": ConditionalDraw(
        _additive(lambda x: 1.5 * (x[:, 1] > 0) * (x[:, 2] > 0.5) - 1.0 * (x[:, 1] < -1), 0.5)
    ),
    "hinge product": ConditionalDraw(
        _additive(lambda x: 1.2 * np.maximum(x[:, 1], 0) * np.maximum(x[:, 2] + 0.5, 0), 0.4)
    ),
    "sign of product": ConditionalDraw(_additive(lambda x: 1.5 * np.sign(x[:, 1] * x[:, 2]), 0.5)),
    "slope by level": ConditionalDraw(
        _additive(lambda x: np.array([-1.5, 0.0, 1.5])[_code(x, 1, 3)] * x[:, 2], 0.5),
        _levels_of(3),
        {"x2": Levels(_labels(3))},
    ),
    "nested levels": ConditionalDraw(
        _additive(lambda x: _REGIONS[_code(x, 1, 6)] + _PLACES[_code(x, 2, 24)], 0.5),
        _nested,
        {"x2": Levels(_labels(6)), "x3": Levels(_labels(24))},
    ),
    "forty levels, unequal": ConditionalDraw(
        _additive(lambda x: _FORTY[_code(x, 1, 40)], 0.6), _levels_of(40, _zipf(40)), {"x2": Levels(_labels(40))}
    ),
    "twenty levels of x1": ConditionalDraw(_softmax, levels={"x1": Levels(_labels(20))}),
    "eight levels by thresholds": ConditionalDraw(_eight, levels={"x1": Levels(_labels(8))}),
    "two modes, equal": ConditionalDraw(_two_signs(lambda x: 0.5, lambda x: x[:, 1], lambda x: 1.5, 0.4)),
    "two modes by threshold": ConditionalDraw(
        _two_signs(lambda x: np.where(x[:, 2] > 0, 0.9, 0.1), lambda x: 0.5 * x[:, 1], lambda x: 1.5, 0.4)
    ),
    "ellipse": ConditionalDraw(
        _two_signs(
            lambda x: 0.5, lambda x: 0.5 * x[:, 2], lambda x: 1.5 * np.sqrt(np.maximum(1 - (x[:, 1] / 3) ** 2, 0)), 0.15
        ),
        _uniform(-3, 3, 1),
    ),
    "Clayton copula": ConditionalDraw(_clayton(3.0)),
    "Gumbel copula": ConditionalDraw(_gumbel(2.0)),
    "exact maximum": ConditionalDraw(_exact(lambda x: np.maximum(x[:, 1], x[:, 2]))),
    "exact norm": ConditionalDraw(_exact(lambda x: np.sqrt(x[:, 1] ** 2 + x[:, 2] ** 2))),
    "exact ratio": ConditionalDraw(_exact(lambda x: np.exp(x[:, 1] - x[:, 2]))),
    "near duplicate of a sum": ConditionalDraw(_additive(lambda x: 0.7 * (x[:, 1] + x[:, 2]), 0.03)),
    "heaped in part": ConditionalDraw(_heaped),
    "detection limit": ConditionalDraw(lambda x, rng: np.maximum(x[:, 1] - 0.5 * x[:, 2] + 0.7 * _noise(x, rng), -0.5)),
    "zero-inflated gamma": ConditionalDraw(
        lambda x, rng: np.where(
            rng.random(len(x)) < _logistic(1.5 * x[:, 2]), 0.0, rng.gamma(2, 0.5, len(x)) * np.exp(0.4 * x[:, 1])
        )
    ),
    "t noise": ConditionalDraw(lambda x, rng: x[:, 1] + 0.5 * rng.standard_t(3, len(x))),
    "root of log-normal": ConditionalDraw(_additive(lambda x: np.sqrt(x[:, 1]), 0.4), _log_normal),
    "many missing": ConditionalDraw(_additive(lambda x: x[:, 1] + x[:, 2], 0.6), missing={"x2": 0.2, "x3": 0.1}),
    "count": ConditionalDraw(lambda x, rng: rng.poisson(np.exp(0.5 + 0.5 * x[:, 1])).astype(float)),
    "zero-inflated wide count": ConditionalDraw(
        lambda x, rng: np.where(
            rng.random(len(x)) < _logistic(-1 + 1.5 * x[:, 2]),
            0.0,
            1.0 + rng.negative_binomial(2, 1 / (1 + np.exp(0.5 * x[:, 1]))),
        )
    ),
    "skewed noise": ConditionalDraw(
        lambda x, rng: x[:, 1] + (rng.exponential(size=len(x)) - 1) * np.exp(0.5 * x[:, 2])
    ),
    "hour by level": ConditionalDraw(
        _additive(lambda x: _AMP[_code(x, 2, 5)] * np.cos(2 * np.pi * x[:, 1] / 12), 0.5),
        _hour_and_level,
        {"x3": Levels(_labels(5))},
    ),
    "ordered by a wave": ConditionalDraw(
        lambda x, rng: _cut(1.5 * np.sin(2 * x[:, 1]) + x[:, 2] + 0.6 * _noise(x, rng), (-2, -1.2, -0.4, 0.4, 1.2, 2)),
        levels={"x1": Levels(tuple("abcdefg"), ordered=True)},
    ),
    "autoregressive": ConditionalDraw(_additive(lambda x: 0.9 * x[:, 1], np.sqrt(0.19)), _autoregressive),
}

SECOND: Mapping[str, ConditionalDraw] = {
    "two periods": ConditionalDraw(
        _additive(lambda x: 2 * np.sin(2 * np.pi * x[:, 1] / 6) + np.cos(2 * np.pi * x[:, 1] / 2.5), 0.4),
        _uniform(0, 12, 1),
    ),
    "dead zone": ConditionalDraw(_additive(lambda x: 2 * np.sign(x[:, 1]) * np.maximum(np.abs(x[:, 1]) - 0.7, 0), 0.3)),
    "slope by threshold": ConditionalDraw(_additive(lambda x: x[:, 2] * np.where(x[:, 1] > 0.5, 2.0, -0.5), 0.4)),
    "fifteen levels by five": ConditionalDraw(
        _fifteen, _levels_of(5), {"x1": Levels(_labels(15)), "x2": Levels(_labels(5))}
    ),
    "three modes": ConditionalDraw(_three_modes),
    "Frank copula": ConditionalDraw(_frank(6.0)),
    "exact minimum": ConditionalDraw(_exact(lambda x: np.minimum(x[:, 1], 2 * x[:, 2]))),
    "rounded income": ConditionalDraw(lambda x, rng: np.round(2 * np.exp(0.5 * x[:, 1] + 0.4 * _noise(x, rng))) / 2),
    "capped season": ConditionalDraw(
        lambda x, rng: np.minimum(1.5 * np.sin(x[:, 1]) + 0.7 * _noise(x, rng), 1.0), _uniform(-6, 6, 1)
    ),
    "hour by day": ConditionalDraw(
        _additive(lambda x: np.where(x[:, 2] >= 5, 0.5, 1.5) * np.sin(2 * np.pi * x[:, 1] / 24), 0.4), _hour_and_day
    ),
}


def _season(n: int, rng: np.random.Generator) -> Floats:
    return np.column_stack([rng.uniform(0, 12, n), rng.standard_normal((n, 3))])


def _four(x: Floats, rng: np.random.Generator) -> Floats:
    logits = np.outer(x[:, 1], [1.5, -0.5, -1.5, 0.5]) + np.outer(x[:, 2], [-0.5, 1.5, -0.5, -0.5])
    return np.asarray(_level_numbers(4)[(logits + rng.gumbel(size=logits.shape)).argmax(axis=1)])


_SPREADS = np.array([0.2, 0.4, 0.6, 0.9, 1.3, 0.3])
_FIFTEEN = 1.4 * np.cos(np.arange(15) * 2.2)

THIRD: Mapping[str, ConditionalDraw] = {
    "tilted season": ConditionalDraw(_additive(lambda x: 1.5 * np.sin(x[:, 1]) + 0.3 * x[:, 1], 0.5), _season),
    "hour by weekend": ConditionalDraw(
        _additive(lambda x: np.where(x[:, 2] > 0, 0.3, 1.6) * np.cos(2 * np.pi * x[:, 1] / 24), 0.4),
        lambda n, rng: np.column_stack(
            [
                rng.integers(0, 24, n).astype(float),
                _level_numbers(2)[rng.integers(0, 2, n)],
                rng.standard_normal((n, 2)),
            ]
        ),
        {"x3": Levels(_labels(2))},
    ),
    "spread by level": ConditionalDraw(
        lambda x, rng: x[:, 2] + _SPREADS[_code(x, 1, 6)] * _noise(x, rng), _levels_of(6), {"x2": Levels(_labels(6))}
    ),
    "growing spread": ConditionalDraw(lambda x, rng: 0.5 * x[:, 1] + (0.3 + 0.5 * np.abs(x[:, 2])) * _noise(x, rng)),
    "cross": ConditionalDraw(_two_signs(lambda x: 0.5, lambda x: 0.0 * x[:, 1], lambda x: x[:, 1], 0.3)),
    "two clusters": ConditionalDraw(
        _two_signs(lambda x: _logistic(2 * x[:, 1] - x[:, 2]), lambda x: 0.3 * x[:, 3], lambda x: 1.4, 0.5)
    ),
    "four levels": ConditionalDraw(_four, levels={"x1": Levels(_labels(4))}),
    "rare event": ConditionalDraw(lambda x, rng: (rng.random(len(x)) < _logistic(2 * x[:, 1] - 2.5)).astype(float)),
    "rank of a product": ConditionalDraw(
        lambda x, rng: _cut(x[:, 1] * x[:, 2] + 0.4 * _noise(x, rng), (-1.2, -0.4, 0.4, 1.2)),
        levels={"x1": Levels(tuple("abcde"), ordered=True)},
    ),
    "zero or log-normal": ConditionalDraw(
        lambda x, rng: np.where(
            rng.random(len(x)) < _logistic(1.5 * x[:, 1]), 0.0, np.exp(0.4 * x[:, 2] + 0.4 * _noise(x, rng))
        )
    ),
    "whole years": ConditionalDraw(
        lambda x, rng: np.round(5 + 2 * x[:, 1] + x[:, 2] + 1.5 * _noise(x, rng)) / 3,
    ),
    "saturating product": ConditionalDraw(_additive(lambda x: 2 * np.tanh(x[:, 1] * x[:, 2]), 0.4)),
    "exact square": ConditionalDraw(_exact(lambda x: x[:, 1] ** 2 - x[:, 2])),
    "fifteen unequal levels": ConditionalDraw(
        _additive(lambda x: _FIFTEEN[_code(x, 1, 15)] + 0.4 * x[:, 2], 0.5),
        _levels_of(15, _zipf(15)),
        {"x2": Levels(_labels(15))},
    ),
    "three thresholds": ConditionalDraw(
        _additive(lambda x: 1.2 * (x[:, 1] > -0.5) + 1.2 * (x[:, 1] > 0.7) - 1.0 * (x[:, 2] > 0), 0.5)
    ),
    "longitude and latitude": ConditionalDraw(
        _additive(lambda x: np.sin(2 * x[:, 1]) + np.cos(2.5 * x[:, 2]) + 0.5 * x[:, 1] * x[:, 2], 0.4), _uniform(-2, 2)
    ),
}
