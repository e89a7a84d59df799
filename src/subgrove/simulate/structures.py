"""Dependence structures: one feature, x1, drawn given the other columns in many different ways.

The true sampler of each structure draws x1 once more given the other columns, so that the importance of x1 for any
model can be computed by simulation, and any sampler can be compared with the true one. Unless stated otherwise, x2 to
x5 are independent standard normal columns; e is standard normal.

Two models are explained: "linear", f = x1 + x2 + x3, and "saturating",
f = 2 tanh(x1) (1 + 0.5 tanh(x2)) + min(x1^2, 4) + x2 + x3. Levels are numbers from -2 to 2 in both. y = f + e.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import RandomStateLike, read_seed, stream
from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove.datasets import Dataset
from subgrove.exceptions import InputError, ParameterError
from subgrove.simulate.conditional_draws import STRUCTURES, ConditionalDraw
from subgrove.simulate.process import FEATURE, PROCESSES, as_dataset, drawn_given_others, read_name

ModelName = Literal["linear", "saturating"]
_TRUTH_ROWS = 2_000_000
_BATCH = 250_000


@dataclass(frozen=True)
class Structure:
    """Columns with a known dependence of x1 on the others, and a model; returned by `structure`.

    Attributes
    ----------
    name : str
        ConditionalDraw of x1 on the other columns.
    model_name : {"linear", "saturating"}
        The model that is explained.

    Examples
    --------
    >>> import subgrove as sg
    >>> hour = sg.simulate.structure("hour")
    >>> train, test = hour.sample(1000, random_state=1), hour.sample(500, random_state=2)
    >>> imp = sg.importance(
    ...     hour.model, test.X, test.y, sampler=hour.sampler, features=["x1"], loss="squared_error", random_state=1
    ... )
    >>> round(imp.overall["estimate"].iloc[0], 2), round(hour.importance, 2)
    (np.float64(0.33), 0.32)
    """

    name: str
    model_name: ModelName = "linear"

    @property
    def _dependence(self) -> ConditionalDraw:
        return STRUCTURES[self.name]

    def sample(self, n: int, *, random_state: RandomStateLike = None) -> Dataset:
        """Draw rows with features x1, x2, ... and the target.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, RandomState instance or Generator, optional
            Seed of the rows.
        """
        rng = stream(read_seed(random_state), f"structure {self.name}")
        x = _numbers_of(self._dependence, whole_number("n", n, least=1), rng)
        y = _predicted(self.model_name, np.nan_to_num(x, nan=0.0)) + rng.standard_normal(n)
        nominal = {}
        for name, levels in self._dependence.levels.items():
            codes = np.searchsorted(levels.numbers, x[:, int(name[1:]) - 1] - 1e-9)
            nominal[name] = codes, levels.labels, levels.ordered
        return as_dataset(x, y, nominal, f"Simulated: x1 by the structure {self.name!r}.")

    @property
    def model(self) -> Callable[[Any], Floats]:
        """The model as a function of a frame; missing values count as 0."""
        return partial(_predict_frame, self)

    @property
    def sampler(self) -> TrueConditional:
        """Sampler of x1 from its true conditional distribution given the other columns."""
        return TrueConditional(self.name)

    @property
    def importance(self) -> float:
        """Conditional importance of x1 for the model and the squared error.

        The mean of (f(x1, ...) - f(x1', ...))^2 over two million rows, x1' being a second draw given the others.
        """
        return _true_importance(self.name, self.model_name)


def structures() -> tuple[str, ...]:
    """Return the names of the dependence structures.

    Examples
    --------
    >>> import subgrove as sg
    >>> len(sg.simulate.structures()), sg.simulate.structures()[:3]
    (37, ('heteroscedastic', 'variance only', 'mixture'))
    """
    return tuple(STRUCTURES)


def structure(name: str, *, model: ModelName = "linear") -> Structure:
    """Return a dependence structure of x1 with its true sampler, and a model to explain.

    Parameters
    ----------
    name : str
        One of `structures()`.
    model : {"linear", "saturating"}, default "linear"
        The model that is explained.

    Examples
    --------
    >>> import subgrove as sg
    >>> one = sg.simulate.structure("exclusive or", model="saturating")
    >>> one.sample(3, random_state=1).X.columns.tolist()
    ['x1', 'x2', 'x3', 'x4', 'x5']
    """
    if model not in ("linear", "saturating"):
        raise ParameterError(f"model must be 'linear' or 'saturating'; got {model!r}.")
    return Structure(read_name(name, structures()), model)


def _numbers_of(dependence: ConditionalDraw, n: int, rng: np.random.Generator) -> Floats:
    others = dependence.others(n, rng)
    x = np.column_stack([np.zeros(n), others])
    x[:, 0] = dependence.draw(x, rng)
    for column, share in dependence.missing.items():
        x[rng.random(n) < share, int(column[1:]) - 1] = np.nan
    return x


def _read(X: Any, dependence: ConditionalDraw) -> Floats:
    """Return the numbers of a frame; levels as numbers, missing values as NaN."""
    if not hasattr(X, "columns"):
        raise InputError(f"X must be a pandas frame of the structure; got {type(X).__name__}.")
    columns = []
    for name in X.columns:
        values, levels = X[name], dependence.levels.get(str(name))
        if levels is None:
            columns.append(values.to_numpy(np.float64))
        else:
            numbers = dict(zip(levels.labels, levels.numbers.tolist(), strict=True))
            columns.append(np.array([numbers.get(str(label), np.nan) for label in values], dtype=np.float64))
    return np.column_stack(columns)


def _predict_frame(structure: Structure, X: Any) -> Floats:
    return _predicted(structure.model_name, np.nan_to_num(_read(X, structure._dependence), nan=0.0))


def _predicted(model: str, x: Floats) -> Floats:
    x1, x2, x3 = x[:, 0], x[:, 1], x[:, 2]
    if model == "linear":
        return np.asarray(x1 + x2 + x3)
    return np.asarray(2 * np.tanh(x1) * (1 + 0.5 * np.tanh(x2)) + np.minimum(x1**2, 4.0) + x2 + x3)


@cache
def _true_importance(name: str, model: str) -> float:
    rng, dependence, total = stream(0, f"true importance of {name}"), STRUCTURES[name], 0.0
    for _ in range(_TRUTH_ROWS // _BATCH):
        x = _numbers_of(dependence, _BATCH, rng)
        again = x.copy()
        again[:, 0] = _drawn_again(dependence, x, rng)
        one, two = (_predicted(model, np.nan_to_num(rows, nan=0.0)) for rows in (x, again))
        total += float(((one - two) ** 2).sum())
    return total / _TRUTH_ROWS


def _drawn_again(dependence: ConditionalDraw, x: Floats, rng: np.random.Generator) -> Floats:
    """Return x1 given the other columns; missing values of these are drawn too, and are independent of the rest."""
    filled = x
    if np.isnan(x[:, 1:]).any():
        fresh = np.column_stack([np.zeros(len(x)), dependence.others(len(x), rng)])
        filled = np.where(np.isnan(x), fresh, x)
    drawn = dependence.draw(filled, rng)
    share = dependence.missing.get(FEATURE, 0.0)
    return np.where(rng.random(len(drawn)) < share, np.nan, drawn) if share else drawn


class TrueConditional:
    """Sampler of x1 from its true conditional distribution, which other samplers approximate.

    It needs no training rows, and can be passed as `sampler=`.

    Parameters
    ----------
    name : str
        Name of a scenario or of a structure; names of null scenarios have the prefix "null ".

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> X = sg.simulate.scenario("linear", p=10).sample(5, random_state=1).X
    >>> fitted = sg.simulate.TrueConditional("linear").fit(X, ["x1"])
    >>> (column,) = fitted.sample(X, "x1", [np.random.default_rng(1)])
    >>> len(column)
    5
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def fit(self, X: Any, features: Any = None) -> TrueConditional:
        """Return the sampler; there is nothing to fit.

        Parameters
        ----------
        X : table
            Ignored.
        features : list of str
            Ignored; x1 is the only feature.
        """
        return self

    def sample(self, X: Any, feature: Any, rngs: Sequence[np.random.Generator]) -> Iterator[npt.NDArray[Any]]:
        """Yield new values of x1 for each row of X, one column per generator.

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
                f"The true sampler resamples {first!r} only; got {feature!r}. Pass features=[{first!r}]."
            )
        if self.name in PROCESSES:
            yield from (drawn_given_others(PROCESSES[self.name], X, rng) for rng in rngs)
            return
        dependence = STRUCTURES[self.name]
        x, levels = _read(X, dependence), dependence.levels.get(FEATURE)
        for rng in rngs:
            drawn = _drawn_again(dependence, x, rng)
            if levels is None:
                yield drawn
            else:
                yield np.array(levels.labels, dtype=object)[np.searchsorted(levels.numbers, drawn - 1e-9)]

    def __repr__(self) -> str:
        return f"TrueConditional({self.name!r})"
