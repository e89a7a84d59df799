"""Sampler of x1 from its true conditional distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove.exceptions import ParameterError
from subgrove.simulate.process import FEATURE, read_rows
from subgrove.simulate.processes import PROCESSES


class TrueConditional:
    """Sampler of x1 from its true conditional distribution, which other samplers approximate.

    It needs no training rows, supports any container, and can be passed as `sampler=`.

    Parameters
    ----------
    name : str
        Name of the scenario; names of null scenarios have the prefix "null ".

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
        """Return the sampler; there is nothing to fit.

        Parameters
        ----------
        X : table
            Ignored.
        features : list of str
            Ignored; x1 is the only feature.
        """
        return FittedTrueConditional(self.name)

    def __repr__(self) -> str:
        return f"TrueConditional({self.name!r})"


@dataclass(frozen=True)
class FittedTrueConditional:
    """Fitted sampler of x1; see `TrueConditional`.

    Attributes
    ----------
    name : str
        Name of the scenario.

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
        """Return new values of x1 for each row of X, one column per generator.

        Parameters
        ----------
        X : table
            Rows to resample.
        feature : str
            "x1"; other features are not supported.
        rngs : list of numpy Generator
            One per repeat.
        """
        first = "x0" if isinstance(X, np.ndarray) else FEATURE  # columns of arrays are counted from 0
        if feature != first:
            raise ParameterError(
                f"The true sampler of a scenario resamples {first!r} only; got {feature!r}. Pass features=[{first!r}]."
            )
        process = PROCESSES[self.name]
        mean, sd = process.given_rest(read_rows(X, process))
        for rng in rngs:
            yield mean + sd * rng.standard_normal(len(mean))
