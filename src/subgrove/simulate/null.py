"""Features that have nothing to say: x1 has correlation 0.9 with x2 and, given the others, nothing to do with y.

A model that was fitted to such rows may use x1 all the same, since x2 is nearly the same. Yet x1 redrawn from its
true distribution given the others makes rows as likely as those that are there, so that no model has a conditional
importance of x1 but zero: a test that rejects that more often than it says is wrong. ::

    linear      x1 ~ N(0.9 x2, sd 0.44)                  y = x2 + ... + x10 + e
    nonlinear   x1 ~ N(2 x2 or, below 0, x2 / 2, sd 0.40)
                                                         y = x2^2 + x2 x3 + 2 sin(2 x4) + max(x5, 0) + x6 + e
    mixed       x1 ~ N(0.9 x2 + shift of x3, variance by x3)
                                                         y = (1 or, if x3 is c, 2) x2 + 3 shift + x4 + ... + x10 + e

In `mixed`, x3 is a, b or c with shifts -0.3, 0, 0.3 and variances 0.04, 0.13, 0.22; x4 and x5 are labels as in the
scenario of that name. All other columns, and e, are standard normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.random import read_seed
from subgrove.datasets import Dataset
from subgrove.exceptions import ParameterError
from subgrove.simulate.known import PROCESSES, key_of_null, names
from subgrove.simulate.process import Process, read_name, read_rows, read_width, rise_of, sampled
from subgrove.simulate.sampler import TrueConditional


def null_scenarios() -> tuple[str, ...]:
    """Names of the scenarios in which x1 has nothing to do with the target.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.simulate.null_scenarios()
    ('linear', 'nonlinear', 'mixed')
    """
    return names(null=True)


def null_scenario(name: str, *, p: int = 10, strength: float = 0.0) -> NullScenario:
    """A data-generating process in which `x1` has correlation 0.9 with x2 and is of no use beside the others.

    Parameters
    ----------
    name : {"linear", "nonlinear", "mixed"}
        The form of the dependence and of the target.
    p : int, default 10
        Number of features, 10 or more; those after x10 have to do with nothing.
    strength : float, default 0
        With another number than 0, so many times x1 is added to the target: what a test should find.

    Returns
    -------
    NullScenario
        Draws rows, knows the true model, how x1 is distributed given the others, and the true importance.

    Examples
    --------
    A forest takes x1 for x2, and shuffling x1 shows that; redrawn as it is given the others, it is worth nothing.

    >>> import subgrove as sg
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> null = sg.simulate.null_scenario("linear")
    >>> train, test = null.sample(200, random_state=1), null.sample(500, random_state=2)
    >>> model = RandomForestRegressor(50, max_features=3, random_state=1).fit(train.X, train.y)
    >>> for sampler in ("marginal", null.sampler):
    ...     imp = sg.importance(model, test.X, test.y, sampler=sampler, features=["x1"], random_state=1)
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
class NullScenario:
    """A data-generating process; made by `null_scenario`.

    Attributes
    ----------
    name : str
        The form of the dependence and of the target.
    p : int
        Number of features.
    strength : float
        How many times x1 is added to the target; 0 for a feature that is of no use.

    Examples
    --------
    >>> import subgrove as sg
    >>> scenario = sg.simulate.null_scenario("linear")
    >>> scenario.name, scenario.strength, scenario.importance
    ('linear', 0.0, 0.0)
    >>> scenario.sample(5, random_state=1)
    <Dataset: 5 rows, 10 features, target 'y'>
    """

    name: str
    p: int
    strength: float = 0.0

    @property
    def _process(self) -> Process:
        base, strength = PROCESSES[key_of_null(self.name)], self.strength

        def target(x: Floats) -> Floats:
            return base.target(x) + strength * x[:, 0]

        return Process(base.given_rest, target, strength**2 * base.importance, base.levels)

    def sample(self, n: int, *, random_state: int | None = None) -> Dataset:
        """Draw rows with features x1, ..., xp and the target.

        Features are the same for every strength.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState instance or Generator, optional
            Makes the rows the same each time.
        """
        about = f"Simulated: x1 of no use beside the others ({self.name}), {self.p} features."
        if self.strength:
            about = f"Simulated: {self.strength:g} times x1 in the target ({self.name}), {self.p} features."
        return sampled(self._process, key_of_null(self.name), self.p, n, random_state, about)

    @property
    def model(self) -> Callable[[Any], Floats]:
        """The true model as a function of a table; of strength 0, it does not look at x1."""
        return partial(_ask_true_model, self)

    @property
    def sampler(self) -> TrueConditional:
        """Redraws x1 from its true distribution given the other features."""
        return TrueConditional(key_of_null(self.name))

    @property
    def importance(self) -> float:
        """The conditional importance of x1 for the true model: 2 strength^2 E[Var(x1 | rest)].

        Of strength 0 it is 0, for any other model too.
        """
        return self._process.importance

    def true_importance(self, model: Any = None, *, n: int = 1000, random_state: int | None = None) -> float:
        """The conditional importance of x1 for any model, estimated on fresh rows with the true distribution of x1.

        Parameters
        ----------
        model : object with `predict`, or function of a table; optional
            Gets a pandas frame; the true model by default.
        n : int, default 1000
            Number of fresh rows. Each is redrawn once.
        random_state : int, RandomState instance or Generator, optional
            Of the rows and the redraw.

        Returns
        -------
        float
            Mean rise of the squared error.
        """
        random_state = read_seed(random_state)
        return rise_of(
            self.model if model is None else model,
            self.sample(n, random_state=random_state),
            self.sampler,
            random_state,
        )


def _ask_true_model(null: NullScenario, X: Any) -> Floats:
    return null._process.target(read_rows(X, null._process))
