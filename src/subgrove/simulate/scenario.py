"""Scenarios in which the conditional importance of x1 is known.

All features but x1 are independent; x1 depends on them in a way that the scenario says::

    independent   x1 ~ N(0, 1)
    linear        x1 ~ N(x2, 1)
    nonlinear     x1 ~ N(3, 1) if x2 > 0;  N(-3, sd 2) if x2 <= 0 and x3 > 0;  else N(0, sd 5)
    multilinear   x1 ~ N(x2 + ... + x10, sd 5)
    interaction   x1 ~ N(2 x2 x3, 1)
    mixed         x1 ~ N(m + x3, sd s exp(x3 / 4)), m and s -2, 0.5 if x2 is a;  1, 1 if b;  0, 2 if c

The first four are the paper's. The others are standard normal, but for three columns of `mixed`: x2 (a, b, c), x4 (no,
yes) and x5 (p, q, r, s, t) are labels, which stand for the numbers -0.5, 0.5, 1; -0.5, 0.5; -1, -0.5, 0, 0.5, 1 in the
target. That is f(x) plus standard normal noise, with f(x) = x1 x2 + x1 + ... + x10, whatever the number of features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from subgrove._core.kinds import Floats
from subgrove._core.random import read_seed
from subgrove.datasets import Dataset
from subgrove.simulate.known import PROCESSES, names
from subgrove.simulate.process import read_name, read_rows, read_width, rise_of, sampled
from subgrove.simulate.sampler import TrueConditional

PAPER = ("independent", "linear", "nonlinear", "multilinear")
"""Names of the scenarios that the paper has."""


def scenarios() -> tuple[str, ...]:
    """Names of the scenarios; the paper's come first, and alone they are `PAPER`.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.simulate.scenarios()
    ('independent', 'linear', 'nonlinear', 'multilinear', 'interaction', 'mixed')
    >>> sg.simulate.PAPER
    ('independent', 'linear', 'nonlinear', 'multilinear')
    """
    return names(null=False)


def scenario(name: str, *, p: int = 10) -> Scenario:
    """A data-generating process in which the conditional importance of `x1` is known.

    Parameters
    ----------
    name : {"independent", "linear", "nonlinear", "multilinear", "interaction", "mixed"}
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
    >>> train, test = linear.sample(2000, random_state=1), linear.sample(1000, random_state=2)
    >>> groups = sg.find_subgroups(train.X, features=["x1"], max_depth=3)
    >>> for sampler in ("marginal", groups, linear.sampler):
    ...     imp = sg.importance(linear.model, test.X, test.y, sampler=sampler, features=["x1"], random_state=1)
    ...     print(round(imp.overall["estimate"].iloc[0], 1))
    10.2
    4.7
    4.1
    >>> linear.importance
    4.0
    """
    return Scenario(read_name(name, scenarios()), read_width(p))


@dataclass(frozen=True)
class Scenario:
    """A data-generating process; made by `scenario`.

    Attributes
    ----------
    name : str
        How x1 depends on the other features.
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

    name: str
    p: int

    def sample(self, n: int, *, random_state: int | None = None) -> Dataset:
        """Draw rows with features x1, ..., xp and the target.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState instance or Generator, optional
            Makes the rows the same each time.
        """
        about = f"Simulated: x1 {self.name}, {self.p} features."
        return sampled(PROCESSES[self.name], self.name, self.p, n, random_state, about)

    @property
    def model(self) -> Callable[[Any], Floats]:
        """The true model f as a function of a table; an array has x1 as its first column.

        The scenario `mixed` has labels, so that its model takes frames alone.
        """
        return partial(_ask_true_model, self.name)

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
        return PROCESSES[self.name].importance

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

        Examples
        --------
        >>> import subgrove as sg
        >>> linear = sg.simulate.scenario("linear")
        >>> round(linear.true_importance(n=100_000, random_state=2), 1), linear.importance
        (4.0, 4.0)
        >>> linear.true_importance(lambda X: X["x2"], random_state=1)
        0.0
        """
        random_state = read_seed(random_state)
        return rise_of(
            self.model if model is None else model,
            self.sample(n, random_state=random_state),
            self.sampler,
            random_state,
        )


def _ask_true_model(name: str, X: Any) -> Floats:
    process = PROCESSES[name]
    return process.target(read_rows(X, process))
