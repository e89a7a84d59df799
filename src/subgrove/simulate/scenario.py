"""Scenarios with a known conditional importance of x1.

All features but x1 are independent. In the scenarios of `scenario`, x1 depends on them as follows::

    independent   x1 ~ N(0, 1)
    linear        x1 ~ N(x2, 1)
    nonlinear     x1 ~ N(3, 1) if x2 > 0;  N(-3, sd 2) if x2 <= 0 and x3 > 0;  else N(0, sd 5)
    multilinear   x1 ~ N(x2 + ... + x10, sd 5)
    interaction   x1 ~ N(2 x2 x3, 1)
    mixed         x1 ~ N(m + x3, sd s exp(x3 / 4)), m and s -2, 0.5 if x2 is a;  1, 1 if b;  0, 2 if c

The first four are those of the paper. All other features are standard normal, except for three columns of `mixed`:
x2 (a, b, c), x4 (no, yes) and x5 (p, q, r, s, t) are labels with the numbers -0.5, 0.5, 1; -0.5, 0.5; -1, -0.5, 0, 0.5,
1 in the target. The target is f(x) plus standard normal noise, with f(x) = x1 x2 + x1 + ... + x10 for any number of
features.

In the scenarios of `null_scenario`, x1 has correlation 0.9 with x2, and y is independent of x1 given the other columns.
A fitted model may use x1 nevertheless, as a proxy of x2. But rows with x1 resampled from its true conditional
distribution have the same distribution as the original rows, so the conditional importance of x1 is 0 for every model:
a test that rejects this more often than its level is invalid. ::

    linear      x1 ~ N(0.9 x2, sd 0.44)                  y = x2 + ... + x10 + e
    nonlinear   x1 ~ N(2 x2 or, below 0, x2 / 2, sd 0.40)
                                                         y = x2^2 + x2 x3 + 2 sin(2 x4) + max(x5, 0) + x6 + e
    mixed       x1 ~ N(0.9 x2 + shift of x3, variance by x3)
                                                         y = (1 or, if x3 is c, 2) x2 + 3 shift + x4 + ... + x10 + e

In the null scenario `mixed`, x3 is a, b or c with shifts -0.3, 0, 0.3 and variances 0.04, 0.13, 0.22; x4 and x5 are
labels as above. All other columns, and e, are standard normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from subgrove._core.execution import RandomStateLike, read_seed
from subgrove._core.kinds import Floats
from subgrove.datasets import Dataset
from subgrove.exceptions import ParameterError
from subgrove.simulate.process import (
    NULL,
    PROCESSES,
    Process,
    increase_of_loss,
    names,
    read_name,
    read_rows,
    read_width,
    sampled,
)
from subgrove.simulate.structures import TrueConditional

PAPER = ("independent", "linear", "nonlinear", "multilinear")
"""Names of the scenarios of the paper."""


def scenarios() -> tuple[str, ...]:
    """Return the names of the scenarios; those of the paper (`PAPER`) come first.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.simulate.scenarios()
    ('independent', 'linear', 'nonlinear', 'multilinear', 'interaction', 'mixed')
    >>> sg.simulate.PAPER
    ('independent', 'linear', 'nonlinear', 'multilinear')
    """
    return names(null=False)


def null_scenarios() -> tuple[str, ...]:
    """Return the names of the scenarios in which y is independent of x1 given the other columns.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.simulate.null_scenarios()
    ('linear', 'nonlinear', 'mixed')
    """
    return names(null=True)


def scenario(name: str, *, p: int = 10) -> Scenario:
    """Return a data-generating process with a known conditional importance of x1.

    Parameters
    ----------
    name : {"independent", "linear", "nonlinear", "multilinear", "interaction", "mixed"}
        Dependence of x1 on the other features.
    p : int, default 10
        Number of features, at least 10; features after x10 are irrelevant.

    Returns
    -------
    Scenario
        Draws rows; has the true model, the conditional distribution of x1 and the true importance.

    Examples
    --------
    >>> import subgrove as sg
    >>> linear = sg.simulate.scenario("linear")
    >>> train, test = linear.sample(2000, random_state=1), linear.sample(1000, random_state=2)
    >>> groups = sg.find_subgroups(train.X, features=["x1"], max_depth=3)
    >>> for sampler in ("marginal", groups, linear.sampler):
    ...     imp = sg.importance(
    ...         linear.model, test.X, test.y, sampler=sampler, features=["x1"], loss="squared_error", random_state=1
    ...     )
    ...     print(round(imp.overall["estimate"].iloc[0], 1))
    10.2
    4.7
    4.1
    >>> linear.importance
    4.0
    """
    return Scenario(read_name(name, scenarios()), read_width(p))


def null_scenario(name: str, *, p: int = 10, strength: float = 0.0) -> NullScenario:
    """Return a process in which x1 has correlation 0.9 with x2 and is redundant given the other features.

    Parameters
    ----------
    name : {"linear", "nonlinear", "mixed"}
        Form of the dependence and of the target.
    p : int, default 10
        Number of features, at least 10; features after x10 are irrelevant.
    strength : float, default 0
        Coefficient of x1 that is added to the target; a value other than 0 gives an effect that a test should detect.

    Returns
    -------
    NullScenario
        Draws rows; has the true model, the conditional distribution of x1 and the true importance.

    Examples
    --------
    A forest uses x1 as a proxy of x2, so its marginal importance is positive; its conditional importance is 0.

    >>> import subgrove as sg
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> null = sg.simulate.null_scenario("linear")
    >>> train, test = null.sample(200, random_state=1), null.sample(500, random_state=2)
    >>> model = RandomForestRegressor(50, max_features=3, random_state=1).fit(train.X, train.y)
    >>> for sampler in ("marginal", null.sampler):
    ...     imp = sg.importance(
    ...         model, test.X, test.y, sampler=sampler, features=["x1"], loss="squared_error", random_state=1
    ...     )
    ...     low, high = imp.overall[["conf_low", "conf_high"]].iloc[0]
    ...     print(bool(low > 0))
    True
    False
    >>> null.importance
    0.0
    """
    if isinstance(strength, bool) or not isinstance(strength, int | float | np.number) or not np.isfinite(strength):
        raise ParameterError(f"strength must be a finite number; got {strength!r}.")
    return NullScenario(read_name(name, null_scenarios()), read_width(p), float(strength))


@dataclass(frozen=True)
class _KnownScenario:
    """Members that scenarios share."""

    name: str
    p: int
    _prefix: ClassVar[str] = ""  # of the key of the process

    @property
    def _process(self) -> Process:
        return PROCESSES[self._key]

    @property
    def _key(self) -> str:
        return self._prefix + self.name

    @property
    def _description(self) -> str:
        return f"Simulated: x1 {self.name}, {self.p} features."

    def sample(self, n: int, *, random_state: RandomStateLike = None) -> Dataset:
        """Draw rows with features x1, ..., xp and the target.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState instance or Generator, optional
            Seed of the rows. In null scenarios, features are the same for every strength.
        """
        return sampled(self._process, self._key, self.p, n, random_state, self._description)

    @property
    def model(self) -> Callable[[Any], Floats]:
        """The true model as a function of a table; the first column of an array is x1.

        Scenarios `mixed` have labels, so that their models need a frame.
        """
        return partial(_predict_true_model, self)

    @property
    def sampler(self) -> TrueConditional:
        """Sampler of x1 from its true conditional distribution given the other features."""
        return TrueConditional(self._key)

    @property
    def importance(self) -> float:
        """Exact conditional importance of x1 for the true model and the squared error.

        If x1 is resampled from its conditional distribution, it changes by d with E[d^2] = 2 Var(x1 | rest). In
        `scenario`, f changes by d (1 + x2), so the importance is 2 E[Var(x1 | rest) (1 + x2)^2]. In `null_scenario`,
        the target changes by strength * d, so it is 2 strength^2 E[Var(x1 | rest)]; for strength 0 it is 0 for every
        model.
        """
        return self._process.importance

    def true_importance(self, model: Any = None, *, n: int = 1000, random_state: RandomStateLike = None) -> float:
        """Estimate the conditional importance of x1 for any model, with the true conditional distribution of x1.

        Parameters
        ----------
        model : object with `predict`, or function of a table; optional
            Receives a pandas frame; the true model by default.
        n : int, default 1000
            Number of new rows. Each is resampled once.
        random_state : int, RandomState instance or Generator, optional
            Seed of the rows and the resampled values.

        Returns
        -------
        float
            Mean increase of the squared error.

        Examples
        --------
        >>> import subgrove as sg
        >>> linear = sg.simulate.scenario("linear")
        >>> round(linear.true_importance(n=100_000, random_state=2), 1), linear.importance
        (4.0, 4.0)
        >>> linear.true_importance(lambda X: X["x2"], random_state=1)
        0.0
        """
        seed = read_seed(random_state)
        evaluated = self.model if model is None else model
        return increase_of_loss(evaluated, self.sample(n, random_state=seed), self.sampler, seed)


@dataclass(frozen=True)
class Scenario(_KnownScenario):
    """Data-generating process with a known conditional importance of x1; returned by `scenario`.

    Attributes
    ----------
    name : str
        Dependence of x1 on the other features.
    p : int
        Number of features.

    Examples
    --------
    >>> import subgrove as sg
    >>> scenario = sg.simulate.scenario("linear", p=10)
    >>> scenario.sample(5, random_state=1)
    <Dataset: 5 rows, 10 features, target 'y'>
    >>> scenario.importance > 0
    True
    """


@dataclass(frozen=True)
class NullScenario(_KnownScenario):
    """Data-generating process in which y is independent of x1 given the rest; returned by `null_scenario`.

    Attributes
    ----------
    name : str
        Form of the dependence and of the target.
    p : int
        Number of features.
    strength : float
        Coefficient of x1 that is added to the target; 0 for the null hypothesis.

    Examples
    --------
    >>> import subgrove as sg
    >>> scenario = sg.simulate.null_scenario("linear")
    >>> scenario.name, scenario.strength, scenario.importance
    ('linear', 0.0, 0.0)
    >>> scenario.sample(5, random_state=1)
    <Dataset: 5 rows, 10 features, target 'y'>
    """

    strength: float = 0.0
    _prefix: ClassVar[str] = NULL

    @property
    def _process(self) -> Process:
        null, strength = PROCESSES[self._key], self.strength

        def target(x: Floats) -> Floats:
            return null.target(x) + strength * x[:, 0]

        return Process(null.given_rest, target, strength**2 * null.importance, null.levels)

    @property
    def _description(self) -> str:
        if self.strength:
            return f"Simulated: {self.strength:g} times x1 in the target ({self.name}), {self.p} features."
        return f"Simulated: x1 redundant given the other features ({self.name}), {self.p} features."


def _predict_true_model(scenario: _KnownScenario, X: Any) -> Floats:
    process = scenario._process
    return process.target(read_rows(X, process))
