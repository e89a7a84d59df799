"""The sampler that knows the truth: it redraws x1 from its true distribution given the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.exceptions import ParameterError
from subgrove.simulate.known import PROCESSES
from subgrove.simulate.process import FEATURE, read_rows


class TrueConditional:
    """Redraws x1 from its true distribution given the others: what all samplers try to come close to.

    It needs no training rows, takes any container, and works wherever `sampler=` is an argument.

    Parameters
    ----------
    name : str
        The scenario; one of `null_scenario` has "null " before its name.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> scenario = sg.simulate.scenario("linear", p=10)
    >>> X = scenario.sample(5, random_state=1).X
    >>> fitted = sg.simulate.TrueConditional("linear").fit(X, ["x1"])
    >>> (column,) = fitted.sample(X, "x1", [np.random.default_rng(1)])
    >>> len(column)
    5
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def fit(self, X: Any, features: Any = None) -> FittedTrueConditional:
        """Nothing is learned.

        Parameters
        ----------
        X : table
            Not looked at.
        features : list of str
            Not looked at: x1 is the only one.
        """
        return FittedTrueConditional(self.name)

    def __repr__(self) -> str:
        return f"TrueConditional({self.name!r})"


@dataclass(frozen=True)
class FittedTrueConditional:
    """Redraws x1; see `TrueConditional`.

    Attributes
    ----------
    name : str
        The scenario.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> X = sg.simulate.scenario("linear", p=10).sample(4, random_state=1).X
    >>> fitted = sg.simulate.FittedTrueConditional("linear")
    >>> [len(column) for column in fitted.sample(X, "x1", [np.random.default_rng(1), np.random.default_rng(2)])]
    [4, 4]
    """

    name: str

    def sample(self, X: Any, feature: Any, rngs: Sequence[np.random.Generator]) -> Iterator[Floats]:
        """New values of x1 for each row of X, one column for each generator.

        Parameters
        ----------
        X : table
            Rows to redraw.
        feature : str
            "x1"; no other has a known distribution.
        rngs : list of numpy Generator
            One for each repeat.
        """
        first = "x0" if isinstance(X, np.ndarray) else FEATURE  # columns of arrays are counted from 0
        if feature != first:
            raise ParameterError(
                f"The true sampler of a scenario redraws {first!r} alone; got {feature!r}. Pass features=[{first!r}]."
            )
        process = PROCESSES[self.name]
        mean, sd = process.given_rest(read_rows(X, process))
        for rng in rngs:
            yield mean + sd * rng.standard_normal(len(mean))
