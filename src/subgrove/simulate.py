"""Data whose truth is known: the scenarios of the paper's ground-truth simulation.

All features but x1 are independent standard normal; x1 depends on them in a way that the scenario says::

    independent   x1 ~ N(0, 1)
    linear        x1 ~ N(x2, 1)
    nonlinear     x1 ~ N(3, 1) if x2 > 0;  N(-3, sd 2) if x2 <= 0 and x3 > 0;  else N(0, sd 5)
    multilinear   x1 ~ N(x2 + ... + x10, sd 5)

The target is f(x) plus standard normal noise, with f(x) = x1 x2 + x1 + ... + x10, whatever the number of features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._kinds import Floats
from subgrove._model import read_model
from subgrove._random import read_seed, stream
from subgrove._table import read_table
from subgrove.datasets import Dataset
from subgrove.exceptions import InputError, ParameterError

__all__ = ["FittedTrueConditional", "Scenario", "TrueConditional", "scenario", "scenarios"]

_USED = 10  # features that f asks for
_FEATURE = "x1"  # the one that depends on others


def _nonlinear(x: Floats) -> tuple[Floats, Floats]:
    regions = [x[:, 1] > 0, x[:, 2] > 0]  # the first that holds
    return np.select(regions, [3.0, -3.0], 0.0), np.select(regions, [1.0, 2.0], 5.0)


# Mean and standard deviation of x1 in each row, given the others (columns x1, x2, ...).
_GIVEN_REST: Mapping[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "independent": lambda x: (np.zeros(len(x)), np.ones(len(x))),
    "linear": lambda x: (x[:, 1], np.ones(len(x))),
    "nonlinear": _nonlinear,
    "multilinear": lambda x: (x[:, 1:_USED].sum(axis=1), np.full(len(x), 5.0)),
}
# 2 E[Var(x1 | rest) (1 + x2)^2]. For a standard normal z, E[(1 + z)^2] is 2, of which 1 + sqrt(2 / pi) comes from
# z > 0; of the rest, half has variance 4 and half 25.
_POSITIVE = 1 + np.sqrt(2 / np.pi)
_IMPORTANCE = {
    "independent": 4.0,
    "linear": 4.0,
    "nonlinear": float(2 * (_POSITIVE + (2 - _POSITIVE) * (4 + 25) / 2)),
    "multilinear": 100.0,
}


def scenarios() -> tuple[str, ...]:
    """Names of the scenarios.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.simulate.scenarios()
    ('independent', 'linear', 'nonlinear', 'multilinear')
    """
    return tuple(_GIVEN_REST)


def scenario(name: str, *, p: int = 10) -> Scenario:
    """A data-generating process in which the conditional importance of `x1` is known.

    Parameters
    ----------
    name : {"independent", "linear", "nonlinear", "multilinear"}
        How x1 depends on the other features.
    p : int, default 10
        Number of features, 10 or more; those after x10 have to do with nothing.

    Returns
    -------
    Scenario
        Draws rows, knows the true model, how x1 is distributed given the others, and the true importance.

    Examples
    --------
    >>> import subgrove as sg
    >>> linear = sg.simulate.scenario("linear")
    >>> train, test = linear.sample(2000, seed=1), linear.sample(1000, seed=2)
    >>> groups = sg.find_subgroups(train.X, features=["x1"], max_depth=3)
    >>> for sampler in ("marginal", groups, linear.sampler):
    ...     imp = sg.importance(linear.model, test.X, test.y, sampler=sampler, features=["x1"], seed=1)
    ...     print(round(imp.overall["estimate"].iloc[0], 1))
    10.2
    4.7
    4.1
    >>> linear.importance
    4.0
    """
    if name not in scenarios():
        raise ParameterError(f"name must be one of {', '.join(map(repr, _GIVEN_REST))}; got {name!r}.")
    if isinstance(p, bool) or not isinstance(p, int | np.integer) or p < _USED:
        raise ParameterError(f"p must be a whole number >= {_USED}, since the target needs x1 to x{_USED}; got {p!r}.")
    return Scenario(name, int(p))


@dataclass(frozen=True)
class Scenario:
    """A data-generating process; made by `scenario`.

    Attributes
    ----------
    name : str
        How x1 depends on the other features.
    p : int
        Number of features.
    """

    name: str
    p: int

    def sample(self, n: int, *, seed: int | None = None) -> Dataset:
        """Draw rows with features x1, ..., xp and the target.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int, optional
            Makes the rows the same each time.
        """
        import pandas as pd

        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ParameterError(f"n must be a whole number >= 1; got {n!r}.")
        rng = stream(read_seed(seed), f"simulate {self.name}")
        x = rng.standard_normal((int(n), self.p))
        mean, sd = _GIVEN_REST[self.name](x)
        x[:, 0] = mean + sd * x[:, 0]
        y = _true_model(x) + rng.standard_normal(int(n))
        frame = pd.DataFrame(x, columns=[f"x{number + 1}" for number in range(self.p)])
        return Dataset(frame, pd.Series(y, name="y"), f"Simulated: x1 {self.name}, {self.p} features.", "simulated")

    @property
    def model(self) -> Callable[[Any], Floats]:
        """The true model f as a function of a table; an array has x1 as its first column."""
        return _ask_true_model

    @property
    def sampler(self) -> TrueConditional:
        """Redraws x1 from its true distribution given the other features."""
        return TrueConditional(self.name)

    @property
    def importance(self) -> float:
        """The conditional importance of x1 for the true model and the squared error, exactly.

        Redrawn from its conditional distribution, x1 differs from what it was by d with E[d^2] = 2 Var(x1 | rest), and
        f by d (1 + x2): the importance is 2 E[Var(x1 | rest) (1 + x2)^2].
        """
        return _IMPORTANCE[self.name]

    def true_importance(self, model: Any = None, *, n: int = 1000, seed: int | None = None) -> float:
        """The conditional importance of x1 for any model, estimated on fresh rows with the true distribution of x1.

        Parameters
        ----------
        model : object with `predict`, or function of a table; optional
            Gets a pandas frame; the true model by default.
        n : int, default 1000
            Number of fresh rows. Each is redrawn once.
        seed : int, optional
            Of the rows and the redraw.

        Returns
        -------
        float
            Mean rise of the squared error.

        Examples
        --------
        >>> import subgrove as sg
        >>> linear = sg.simulate.scenario("linear")
        >>> round(linear.true_importance(n=100_000, seed=2), 1), linear.importance
        (4.0, 4.0)
        >>> linear.true_importance(lambda X: X["x2"], seed=1)
        0.0
        """
        asked = read_model(self.model if model is None else model, "value")
        seed = read_seed(seed)
        data = self.sample(n, seed=seed)
        (drawn,) = self.sampler.fit(data.X).redraw(data.X, _FEATURE, [stream(seed, "true importance")])
        before = asked.ask(data.X, n, lambda row: "rows as drawn")
        after = asked.ask(data.X.assign(**{_FEATURE: drawn}), n, lambda row: "rows with x1 redrawn")
        y = data.y.to_numpy()
        return float(np.mean((after - y) ** 2 - (before - y) ** 2))


class TrueConditional:
    """Redraws x1 from its true distribution given the others: what all samplers try to come close to.

    It needs no training rows, takes any container, and works wherever `sampler=` is an argument.

    Parameters
    ----------
    name : str
        The scenario.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def fit(self, X: Any, features: Any = None) -> FittedTrueConditional:
        """Nothing is learned."""
        return FittedTrueConditional(self.name)

    def __repr__(self) -> str:
        return f"TrueConditional({self.name!r})"


@dataclass(frozen=True)
class FittedTrueConditional:
    """Redraws x1; see `TrueConditional`."""

    name: str

    def redraw(self, X: Any, feature: Any, rngs: Sequence[np.random.Generator]) -> Iterator[Floats]:
        """New values of x1 for each row of X, one column for each generator."""
        first = "x0" if isinstance(X, np.ndarray) else _FEATURE  # columns of arrays are counted from 0
        if feature != first:
            raise ParameterError(
                f"The true sampler of a scenario redraws {first!r} alone; got {feature!r}. Pass features=[{first!r}]."
            )
        mean, sd = _GIVEN_REST[self.name](_first_columns(X))
        for rng in rngs:
            yield mean + sd * rng.standard_normal(len(mean))


def _ask_true_model(X: Any) -> Floats:
    return _true_model(_first_columns(X))


def _true_model(x: Floats) -> Floats:
    prediction: Floats = x[:, 0] * x[:, 1] + x[:, :_USED].sum(axis=1)
    return prediction


def _first_columns(X: Any) -> Floats:
    """Columns x1 to x10, of whatever container; of an array, the first ten."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.shape[1] < _USED:
            raise InputError(f"X must have x1 to x{_USED} as its first columns; got an array of shape {X.shape}.")
        return np.asarray(X[:, :_USED], dtype=np.float64)
    table = read_table(X, lenient=True)
    wanted = [f"x{number + 1}" for number in range(_USED)]
    absent = [name for name in wanted if name not in table.names]
    if absent:
        raise InputError(f"X lacks {', '.join(map(repr, absent))}, which the scenario needs.")
    labels = [column.name for column in table.columns if column.name in wanted and column.is_nominal]
    if labels:
        raise InputError(f"X holds labels in {labels[0]!r}; the scenario needs numbers there.")
    return np.column_stack([table.values(name) for name in wanted])
