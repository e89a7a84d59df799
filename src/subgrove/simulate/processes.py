"""Processes by name: distribution of x1 given the other columns, target, and importance in closed form."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.simulate.process import USED, Process

_NULL = "null "  # prefix of processes in which y does not depend on x1 given the other columns


def key_of_null(name: str) -> str:
    """Return the key of the process of a null scenario."""
    return _NULL + name


def names(*, null: bool) -> tuple[str, ...]:
    """Return the names of the scenarios, or of the null scenarios."""
    return tuple(name.removeprefix(_NULL) for name in PROCESSES if name.startswith(_NULL) == null)


# Scenarios of the paper.


def _product_and_sum(x: Floats) -> Floats:
    """f(x) = x1 x2 + x1 + ... + x10."""
    target: Floats = x[:, 0] * x[:, 1] + x[:, :USED].sum(axis=1)
    return target


def _nonlinear(x: Floats) -> tuple[Floats, Floats]:
    regions = [x[:, 1] > 0, x[:, 2] > 0]  # the first true one applies
    return np.select(regions, [3.0, -3.0], 0.0), np.select(regions, [1.0, 2.0], 5.0)


# Of a standard normal z, E[(1 + z)^2] is 2, of which 1 + sqrt(2 / pi) comes from z > 0.
_POSITIVE = 1 + np.sqrt(2 / np.pi)


# Further scenarios.

# A level of x2 has a number in the target, and a mean and a standard deviation of x1.
_GROUPS = {"a": -0.5, "b": 0.5, "c": 1.0}
_GROUP_MEANS = np.array([-2.0, 1.0, 0.0])
_GROUP_SPREADS = np.array([0.5, 1.0, 2.0])
_MIXED_LEVELS = {
    "x2": _GROUPS,
    "x4": {"no": -0.5, "yes": 0.5},
    "x5": {"p": -1.0, "q": -0.5, "r": 0.0, "s": 0.5, "t": 1.0},
}


def _level(column: Floats, levels: Mapping[str, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return the position of the level of each row."""
    return np.searchsorted(np.array(list(levels.values())), column)


def _mixed(x: Floats) -> tuple[Floats, Floats]:
    group = _level(x[:, 1], _GROUPS)
    return _GROUP_MEANS[group] + x[:, 2], _GROUP_SPREADS[group] * np.exp(x[:, 2] / 4)


_GROUP_WEIGHTS = (1 + np.array(list(_GROUPS.values()))) ** 2

# Null scenarios: x1 has correlation 0.9 with x2.
CORRELATION = 0.9
_RISING, _FLAT = 2.0, 0.5  # slopes of a piecewise linear mean with a kink at 0
_BENT_VARIANCE = (_RISING**2 + _FLAT**2) / 2 - (_RISING - _FLAT) ** 2 / (2 * np.pi)
_BENT_NOISE = ((_RISING + _FLAT) / 2 / CORRELATION) ** 2 - _BENT_VARIANCE
_SHIFTS = {"a": -0.3, "b": 0.0, "c": 0.3}
_SHIFT_NOISE = np.array([0.04, 0.13, 0.22])  # variances; with 0.06 of the shifts they leave 0.81 to x2


def _sum(x: Floats) -> Floats:
    target: Floats = x[:, 1:USED].sum(axis=1)
    return target


def _curved(x: Floats) -> Floats:
    target: Floats = x[:, 1] ** 2 + x[:, 1] * x[:, 2] + 2 * np.sin(2 * x[:, 3]) + np.maximum(x[:, 4], 0) + x[:, 5]
    return target


def _by_label(x: Floats) -> Floats:
    target: Floats = x[:, 1] * np.where(x[:, 2] > 0, 2.0, 1.0) + 3 * x[:, 2] + x[:, 3:USED].sum(axis=1)
    return target


def _bent(x: Floats) -> tuple[Floats, Floats]:
    mean = np.where(x[:, 1] > 0, _RISING, _FLAT) * x[:, 1]
    return mean, np.full(len(x), np.sqrt(_BENT_NOISE))


def _shifted(x: Floats) -> tuple[Floats, Floats]:
    return CORRELATION * x[:, 1] + x[:, 2], np.sqrt(_SHIFT_NOISE[_level(x[:, 2], _SHIFTS)])


# The importance of x1 for f is 2 E[Var(x1 | rest) (1 + x2)^2]. In a null process it is that of x1 for the target plus
# x1 itself: 2 E[Var(x1 | rest)].
PROCESSES: Mapping[str, Process] = {
    "independent": Process(lambda x: (np.zeros(len(x)), np.ones(len(x))), _product_and_sum, 4.0),
    "linear": Process(lambda x: (x[:, 1], np.ones(len(x))), _product_and_sum, 4.0),
    # Where x2 <= 0, half of the rows have variance 4 and half 25.
    "nonlinear": Process(_nonlinear, _product_and_sum, float(2 * (_POSITIVE + (2 - _POSITIVE) * (4 + 25) / 2))),
    "multilinear": Process(lambda x: (x[:, 1:USED].sum(axis=1), np.full(len(x), 5.0)), _product_and_sum, 100.0),
    "interaction": Process(lambda x: (2 * x[:, 1] * x[:, 2], np.ones(len(x))), _product_and_sum, 4.0),
    # The variance is that of the level times exp(x3 / 2), whose mean is exp(1 / 8).
    "mixed": Process(
        _mixed,
        _product_and_sum,
        float(2 * np.exp(1 / 8) * np.mean(_GROUP_SPREADS**2 * _GROUP_WEIGHTS)),
        _MIXED_LEVELS,
    ),
    key_of_null("linear"): Process(
        lambda x: (CORRELATION * x[:, 1], np.full(len(x), np.sqrt(1 - CORRELATION**2))),
        _sum,
        2 * (1 - CORRELATION**2),
    ),
    key_of_null("nonlinear"): Process(_bent, _curved, float(2 * _BENT_NOISE)),
    key_of_null("mixed"): Process(
        _shifted,
        _by_label,
        float(2 * _SHIFT_NOISE.mean()),
        {"x3": _SHIFTS, "x4": {"no": -0.5, "yes": 0.5}, "x5": _MIXED_LEVELS["x5"]},
    ),
}
