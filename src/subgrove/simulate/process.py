"""Data-generating processes: all columns but x1 are independent, and x1 is normal given them.

Each process has the distribution of x1 given the other columns, the target, and the importance in closed form. Rows are
drawn from it.

Labels are numbers internally: a nominal column is stored as the number that each level has in the target, so that one
formula serves all scenarios. Users see the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgrove._core.execution import read_seed, stream
from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._data.table import read_table
from subgrove._models.predictor import read_model
from subgrove.datasets import Dataset
from subgrove.exceptions import InputError, ParameterError

USED = 10  # number of features that a target depends on
FEATURE = "x1"  # the feature that depends on the others


@dataclass(frozen=True)
class Process:
    """A data-generating process.

    Attributes
    ----------
    given_rest : callable
        Mean and standard deviation of x1 in each row, given the others (columns x1, x2, ...).
    target : callable
        Conditional mean of y; the noise is standard normal.
    importance : float
        Conditional importance of x1 for the target function and the squared error.
    levels : mapping
        Nominal column -> its equally frequent levels, each with its number in the target.
    """

    given_rest: Callable[[Floats], tuple[Floats, Floats]]
    target: Callable[[Floats], Floats]
    importance: float
    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def sampled(process: Process, title: str, p: int, n: Any, seed: Any, about: str) -> Dataset:
    """Draw rows of a process and their target."""
    n = whole_number("n", n, least=1)
    rng = stream(read_seed(seed), f"simulate {title}")
    x = rng.standard_normal((n, p))
    names = column_names(p)
    codes = {name: rng.integers(len(levels), size=n) for name, levels in process.levels.items()}
    for name, code in codes.items():
        x[:, names.index(name)] = np.array(list(process.levels[name].values()))[code]
    mean, sd = process.given_rest(x)
    x[:, 0] = mean + sd * x[:, 0]
    y = process.target(x) + rng.standard_normal(n)
    columns = {name: (code, tuple(process.levels[name]), False) for name, code in codes.items()}
    return as_dataset(x, y, columns, about)


def as_dataset(x: Floats, y: Floats, nominal: Mapping[str, tuple[Any, tuple[str, ...], bool]], about: str) -> Dataset:
    """Return a data set; `nominal` has the codes, the labels and whether these are ordered, by column."""
    import pandas as pd

    frame = pd.DataFrame(x, columns=column_names(x.shape[1]))
    for name, (code, labels, ordered) in nominal.items():
        frame[name] = pd.Categorical.from_codes(code, dtype=pd.CategoricalDtype(list(labels), ordered))
    return Dataset(frame, pd.Series(y, name="y"), about, "simulated")


def column_names(p: int) -> list[str]:
    """Return x1, ..., xp."""
    return [f"x{number + 1}" for number in range(p)]


def read_rows(X: Any, process: Process) -> Floats:
    """Return columns x1 to x10 as numbers, from any container; the first ten columns of an array."""
    if isinstance(X, np.ndarray):
        if process.levels:
            raise InputError(f"X must be a frame, since {', '.join(process.levels)} hold labels; got an array.")
        if X.ndim != 2 or X.shape[1] < USED:
            raise InputError(f"X must have x1 to x{USED} as its first columns; got an array of shape {X.shape}.")
        return np.asarray(X[:, :USED], dtype=np.float64)
    table = read_table(X, lenient=True)
    names = column_names(USED)
    absent = [name for name in names if name not in table.names]
    if absent:
        raise InputError(f"X lacks the columns {', '.join(map(repr, absent))} of the scenario.")
    info = {column.name: column for column in table.columns}
    return np.column_stack([_numbers(table.values(name), info[name], process.levels.get(name)) for name in names])


def _numbers(values: Any, info: Any, levels: Mapping[str, float] | None) -> Floats:
    if levels is None:
        if info.is_nominal:
            raise InputError(f"X has labels in {info.name!r}; the scenario has numbers there.")
        return np.asarray(values, dtype=np.float64)
    known = ", ".join(map(repr, levels))
    if not info.is_nominal:
        raise InputError(f"X has numbers in {info.name!r}; the scenario has the labels {known} there.")
    present = set(values[values >= 0].tolist())
    unknown = [level for code, level in enumerate(info.levels) if code in present and level not in levels]
    if unknown or (values < 0).any():
        got = repr(unknown[0]) if unknown else "missing values"
        raise InputError(f"X has {got} in {info.name!r}; the scenario has the labels {known} there.")
    return np.asarray(np.array([levels.get(level, np.nan) for level in info.levels], dtype=np.float64)[values])


def drawn_given_others(process: Process, X: Any, rng: np.random.Generator) -> Floats:
    """Return x1 once more, given the other columns."""
    mean, sd = process.given_rest(read_rows(X, process))
    return np.asarray(mean + sd * rng.standard_normal(len(mean)))


def increase_of_loss(model: Any, data: Dataset, sampler: Any, seed: int) -> float:
    """Return the mean increase of the squared error of a model when x1 is resampled once in each row."""
    predictor = read_model(model, "value")
    n = len(data.X)
    (drawn,) = sampler.fit(data.X).sample(data.X, FEATURE, [stream(seed, "true importance")])
    baseline = predictor.predict(data.X, n, lambda row: "baseline rows")
    resampled = predictor.predict(data.X.assign(**{FEATURE: drawn}), n, lambda row: "rows with x1 resampled")
    y = data.y.to_numpy()
    return float(np.mean((resampled - y) ** 2 - (baseline - y) ** 2))


def read_width(p: Any) -> int:
    """Validate the number of features."""
    if isinstance(p, bool) or not isinstance(p, int | np.integer) or p < USED:
        raise ParameterError(f"p must be a whole number >= {USED}, since the target needs x1 to x{USED}; got {p!r}.")
    return int(p)


def read_name(name: Any, known: Sequence[str]) -> str:
    """Validate the name of a scenario."""
    if not isinstance(name, str) or name not in known:
        raise ParameterError(f"name must be one of {', '.join(map(repr, known))}; got {name!r}.")
    return name


NULL = "null "  # prefix of processes in which y does not depend on x1 given the other columns


def names(*, null: bool) -> tuple[str, ...]:
    """Return the names of the scenarios, or of the null scenarios."""
    return tuple(name.removeprefix(NULL) for name in PROCESSES if name.startswith(NULL) == null)


# Scenarios of the paper.


def _product_and_sum(x: Floats) -> Floats:
    """f(x) = x1 x2 + x1 + ... + x10."""
    return np.asarray(x[:, 0] * x[:, 1] + x[:, :USED].sum(axis=1))


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
    return np.asarray(x[:, 1:USED].sum(axis=1))


def _curved(x: Floats) -> Floats:
    return np.asarray(x[:, 1] ** 2 + x[:, 1] * x[:, 2] + 2 * np.sin(2 * x[:, 3]) + np.maximum(x[:, 4], 0) + x[:, 5])


def _by_label(x: Floats) -> Floats:
    return np.asarray(x[:, 1] * np.where(x[:, 2] > 0, 2.0, 1.0) + 3 * x[:, 2] + x[:, 3:USED].sum(axis=1))


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
        _mixed, _product_and_sum, float(2 * np.exp(1 / 8) * np.mean(_GROUP_SPREADS**2 * _GROUP_WEIGHTS)), _MIXED_LEVELS
    ),
    f"{NULL}linear": Process(
        lambda x: (CORRELATION * x[:, 1], np.full(len(x), np.sqrt(1 - CORRELATION**2))), _sum, 2 * (1 - CORRELATION**2)
    ),
    f"{NULL}nonlinear": Process(_bent, _curved, float(2 * _BENT_NOISE)),
    f"{NULL}mixed": Process(
        _shifted,
        _by_label,
        float(2 * _SHIFT_NOISE.mean()),
        {"x3": _SHIFTS, "x4": {"no": -0.5, "yes": 0.5}, "x5": _MIXED_LEVELS["x5"]},
    ),
}
