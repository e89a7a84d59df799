"""How x1 is drawn given the other columns, in each of the dependence structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from subgrove._core.kinds import Floats

Draw = Callable[[Floats, np.random.Generator], Floats]
Others = Callable[[int, np.random.Generator], Floats]
LEVEL_RANGE = 2.0


@dataclass(frozen=True)
class Levels:
    """Levels of a column, of which the table holds numbers internally and labels for the user."""

    labels: tuple[str, ...]
    ordered: bool = False

    @property
    def numbers(self) -> Floats:
        """Number of each level in the models."""
        return np.linspace(-LEVEL_RANGE, LEVEL_RANGE, len(self.labels))


@dataclass(frozen=True)
class ConditionalDraw:
    """A distribution of columns.

    Attributes
    ----------
    draw : callable
        x1 given the matrix of all columns, of which the first is ignored; numbers of levels where it has levels.
    others : callable
        Columns x2, x3, ...; four standard normal ones by default.
    levels : mapping
        Column -> its levels.
    missing : mapping
        Column -> share of values that are missing at random.
    """

    draw: Draw
    others: Others = lambda n, rng: rng.standard_normal((n, 4))
    levels: Mapping[str, Levels] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)


def _logistic(z: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


def _normal(x: Floats, rng: np.random.Generator) -> Floats:
    return rng.standard_normal(len(x))


def _additive(mean: Callable[[Floats], Floats], noise: float) -> Draw:
    """Return the draw of a mean plus normal noise."""
    return lambda x, rng: mean(x) + noise * _normal(x, rng)


def _exact(values: Callable[[Floats], Floats]) -> Draw:
    """Return a relation without noise."""
    return lambda x, rng: values(x)


def _with_normal(first: Floats, rng: np.random.Generator) -> Floats:
    """Return four columns: the first ones, and standard normal ones."""
    return np.column_stack([first, rng.standard_normal((len(first), 4 - first.shape[1]))])


def _uniform(low: float, high: float, n_uniform: int = 2) -> Others:
    """Return four columns, of which the first are uniform and the others standard normal."""
    return lambda n, rng: _with_normal(rng.uniform(low, high, (n, n_uniform)), rng)


def _whole(n_values: int, n_columns: int = 1) -> Others:
    """Return four columns, of which the first have whole numbers from 0."""
    return lambda n, rng: _with_normal(rng.integers(0, n_values, (n, n_columns)).astype(np.float64), rng)


def _first_level(n_levels: int) -> Others:
    """Return four columns, of which x2 has the numbers of levels."""
    numbers = np.linspace(-LEVEL_RANGE, LEVEL_RANGE, n_levels)
    return lambda n, rng: _with_normal(numbers[rng.integers(0, n_levels, (n, 1))], rng)


def _labels(n: int) -> tuple[str, ...]:
    return tuple(f"level {at + 1:02d}" for at in range(n))


def _cut(values: Floats, borders: Sequence[float]) -> Floats:
    """Return the number of the level that each value falls into."""
    return np.asarray(np.linspace(-LEVEL_RANGE, LEVEL_RANGE, len(borders) + 1)[np.searchsorted(borders, values)])


def _mixture(x: Floats, rng: np.random.Generator) -> Floats:
    sign = np.where(rng.random(len(x)) < _logistic(2 * x[:, 2]), 1.0, -1.0)
    return np.asarray(sign * (2 + 0.5 * x[:, 1]) + 0.3 * _normal(x, rng))


def _t_copula(x: Floats, rng: np.random.Generator) -> Floats:
    """Return x1 of a t copula with 2 degrees of freedom and correlation 0.6; x1 and x2 are standard normal."""
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    nu, rho = 2.0, 0.6
    t2 = stdtrit(nu, np.clip(ndtr(x[:, 1]), 1e-12, 1 - 1e-12))
    spread = np.sqrt((nu + t2**2) / (nu + 1) * (1 - rho**2))
    t1 = rho * t2 + spread * rng.standard_t(nu + 1, len(x))
    return np.asarray(ndtri(np.clip(stdtr(nu, t1), 1e-12, 1 - 1e-12)))


_TEN_MEANS = np.array([-2.0, -1.4, 0.9, 0.1, 1.8, -0.6, 0.4, 2.2, -1.0, 1.3])
_TEN_SPREADS = np.array([0.3, 0.6, 1.0, 0.4, 0.8, 1.2, 0.5, 0.7, 0.9, 0.35])


def _ten_levels(x: Floats, rng: np.random.Generator) -> Floats:
    code = np.round((x[:, 1] + LEVEL_RANGE) / (2 * LEVEL_RANGE) * 9).astype(int)
    return np.asarray(_TEN_MEANS[code] + x[:, 2] + _TEN_SPREADS[code] * _normal(x, rng))


def _zero_inflated(x: Floats, rng: np.random.Generator) -> Floats:
    zero = rng.random(len(x)) < _logistic(-2 * x[:, 1])
    return np.where(zero, 0.0, rng.poisson(np.exp(1 + 0.6 * x[:, 2])))


def _two_bumps(x: Floats) -> Floats:
    def bump(a: float, b: float) -> Floats:
        return np.asarray(np.exp(-((x[:, 1] - a) ** 2 + (x[:, 2] - b) ** 2) / (2 * 0.16**2)))

    return np.asarray(2 * bump(0.3, 0.3) - 2 * bump(0.7, 0.7))


def _xor(x: Floats, rng: np.random.Generator) -> Floats:
    either = (x[:, 1] != x[:, 2]).astype(np.float64)
    return np.asarray(np.where(rng.random(len(x)) < 0.9, either, 1.0 - either))


def _equicorrelated(n: int, rng: np.random.Generator) -> Floats:
    return np.asarray(np.sqrt(0.8) * rng.standard_normal((n, 1)) + np.sqrt(0.2) * rng.standard_normal((n, 19)))


def _from_equicorrelated(x: Floats, rng: np.random.Generator) -> Floats:
    """Return x1 given 19 columns, all correlations being 0.8."""
    q, rho = x.shape[1] - 1, 0.8
    slope = rho / (1 + (q - 1) * rho)
    return np.asarray(slope * x[:, 1:].sum(axis=1) + np.sqrt(1 - rho * slope * q) * _normal(x, rng))


def _annulus(x: Floats, rng: np.random.Generator) -> Floats:
    """Return x1 on an annulus of radius 2 around the origin of x1 and x2, x2 being uniform on (-2, 2)."""
    height = np.sqrt(np.maximum(4.0 - x[:, 1] ** 2, 0.0))
    return np.asarray(np.where(rng.random(len(x)) < 0.5, height, -height) + 0.2 * _normal(x, rng))


def _nominal_by_two(x: Floats, rng: np.random.Generator) -> Floats:
    """Return one of twelve levels: the softmax of slopes of x2 and x3."""
    angle = np.arange(12) / 12 * 2 * np.pi
    logits = 2.0 * (np.outer(x[:, 1], np.cos(angle)) + np.outer(x[:, 2], np.sin(angle)))
    best = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return np.asarray(np.linspace(-LEVEL_RANGE, LEVEL_RANGE, 12)[best])


_HUNDRED_MEANS = 1.5 * np.sin(np.arange(100) * 2.4)


def _hundred_levels(x: Floats) -> Floats:
    code = np.round((x[:, 1] + LEVEL_RANGE) / (2 * LEVEL_RANGE) * 99).astype(int)
    return np.asarray(_HUNDRED_MEANS[code] + 0.5 * x[:, 2])


STRUCTURES: Mapping[str, ConditionalDraw] = {
    "heteroscedastic": ConditionalDraw(lambda x, rng: x[:, 1] + np.exp(0.8 * x[:, 2]) * _normal(x, rng)),
    "variance only": ConditionalDraw(lambda x, rng: x[:, 1] * _normal(x, rng)),
    "mixture": ConditionalDraw(_mixture),
    "t copula": ConditionalDraw(_t_copula),
    "ten levels": ConditionalDraw(_ten_levels, _first_level(10), {"x2": Levels(_labels(10))}),
    "ordinal": ConditionalDraw(
        lambda x, rng: _cut(x[:, 1] + x[:, 2] + 0.7 * _normal(x, rng), (-1.5, -0.5, 0.5, 1.5)),
        levels={"x1": Levels(("very low", "low", "medium", "high", "very high"), ordered=True)},
    ),
    "hump of levels": ConditionalDraw(
        lambda x, rng: _cut(np.abs(x[:, 1]) + 0.2 * _normal(x, rng), (0.4, 0.8, 1.4)), levels={"x1": Levels(_labels(4))}
    ),
    "trend and season": ConditionalDraw(
        _additive(lambda x: 0.5 * x[:, 1] + 2 * np.sin(np.pi * x[:, 1]), 0.5), _uniform(0, 10, 1)
    ),
    "hour": ConditionalDraw(_additive(lambda x: 2 * np.sin(2 * np.pi * x[:, 1] / 24), 0.4), _whole(24)),
    "zero-inflated count": ConditionalDraw(_zero_inflated),
    "Cauchy": ConditionalDraw(lambda x, rng: 2 * x[:, 1] + 0.5 * rng.standard_cauchy(len(x))),
    "exact exp": ConditionalDraw(_exact(lambda x: np.exp(x[:, 1]))),
    "three-way product": ConditionalDraw(_additive(lambda x: x[:, 1] * x[:, 2] * x[:, 3], 0.5)),
    "sine times cosine": ConditionalDraw(
        _additive(lambda x: 2 * np.sin(3 * x[:, 1]) * np.cos(3 * x[:, 2]), 0.3), _uniform(-1, 1)
    ),
    "two bumps": ConditionalDraw(_additive(_two_bumps, 0.3), _uniform(0, 1)),
    "quadratic": ConditionalDraw(_additive(lambda x: x[:, 1] ** 2, 0.3)),
    "exclusive or": ConditionalDraw(_xor, _whole(2, 2)),
    "equicorrelated": ConditionalDraw(_from_equicorrelated, _equicorrelated),
    "skewed, independent": ConditionalDraw(lambda x, rng: np.exp(_normal(x, rng))),
    # Further ones, of the same kinds.
    "saturating curve": ConditionalDraw(_additive(lambda x: 3 * np.tanh(2 * x[:, 1]) + 0.5 * x[:, 2], 0.4)),
    "threshold": ConditionalDraw(_additive(lambda x: 2.0 * (x[:, 1] > 0.6) - 1.5 * (x[:, 2] > -0.4), 0.4)),
    "kink": ConditionalDraw(_additive(lambda x: 2 * np.abs(x[:, 1] - 0.3) + np.maximum(x[:, 2], 0), 0.3)),
    "sign interaction": ConditionalDraw(_additive(lambda x: np.sign(x[:, 1]) * x[:, 2] * 1.5, 0.4)),
    "weekday and hour": ConditionalDraw(
        _additive(lambda x: np.where(x[:, 2] % 7 < 5, 2.0, 0.5) * np.cos(2 * np.pi * x[:, 1] / 24), 0.4), _whole(24, 2)
    ),
    "sum of curves": ConditionalDraw(
        _additive(lambda x: np.sin(2 * x[:, 1]) + x[:, 2] ** 2 + np.exp(x[:, 3] / 2), 0.4)
    ),
    "annulus": ConditionalDraw(_annulus, _uniform(-2, 2, 1)),
    "log-normal": ConditionalDraw(lambda x, rng: np.exp(0.6 * x[:, 1] + 0.3 * x[:, 2] + 0.3 * _normal(x, rng))),
    "exact product": ConditionalDraw(_exact(lambda x: x[:, 1] * x[:, 2])),
    "exact sum": ConditionalDraw(_exact(lambda x: x[:, 1] - 2 * x[:, 2] + 0.5 * x[:, 3])),
    "near duplicate": ConditionalDraw(_additive(lambda x: x[:, 1], 0.05)),
    "heaped": ConditionalDraw(lambda x, rng: np.round((x[:, 1] + x[:, 2] + 0.7 * _normal(x, rng)) * 2) / 2),
    "censored": ConditionalDraw(lambda x, rng: np.clip(x[:, 1] + x[:, 2] + 0.6 * _normal(x, rng), -1.0, 1.0)),
    "zero-inflated amount": ConditionalDraw(
        lambda x, rng: np.where(
            rng.random(len(x)) < _logistic(-1 - 2 * x[:, 1]), 0.0, np.exp(0.5 * x[:, 2] + 0.4 * _normal(x, rng))
        )
    ),
    "twelve levels": ConditionalDraw(_nominal_by_two, levels={"x1": Levels(_labels(12))}),
    "hundred levels": ConditionalDraw(_additive(_hundred_levels, 0.5), _first_level(100), {"x2": Levels(_labels(100))}),
    "heavy-tailed columns": ConditionalDraw(
        _additive(lambda x: x[:, 1] + 0.5 * x[:, 2], 0.7), lambda n, rng: _with_normal(rng.standard_t(2, (n, 2)), rng)
    ),
    "missing values": ConditionalDraw(
        _additive(lambda x: x[:, 1:5].sum(axis=1), 0.5), missing={"x1": 0.05, "x2": 0.05}
    ),
}
"""Dependence structures by name."""
