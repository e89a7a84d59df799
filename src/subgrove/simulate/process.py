"""Sampling from a data-generating process: all columns but x1 are independent, and x1 is normal given them.

Labels are numbers internally: a nominal column is stored as the number that each level has in the target, so that one
formula serves all scenarios. Users see the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.random import read_seed, stream
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
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(f"n must be a whole number >= 1; got {n!r}.")
    rng = stream(read_seed(seed), f"simulate {title}")
    x = rng.standard_normal((int(n), p))
    names = column_names(p)
    codes = {name: rng.integers(len(levels), size=int(n)) for name, levels in process.levels.items()}
    for name, code in codes.items():
        x[:, names.index(name)] = np.array(list(process.levels[name].values()))[code]
    mean, sd = process.given_rest(x)
    x[:, 0] = mean + sd * x[:, 0]
    y = process.target(x) + rng.standard_normal(int(n))
    return _as_dataset(x, y, process, codes, about)


def _as_dataset(x: Floats, y: Floats, process: Process, codes: Mapping[str, Any], about: str) -> Dataset:
    import pandas as pd

    frame = pd.DataFrame(x, columns=column_names(x.shape[1]))
    for name, code in codes.items():
        frame[name] = pd.Categorical.from_codes(code, dtype=pd.CategoricalDtype(list(process.levels[name])))
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
    numbers: Floats = np.array([levels.get(level, np.nan) for level in info.levels], dtype=np.float64)[values]
    return numbers


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
