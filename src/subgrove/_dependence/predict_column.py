"""One feature foretold from the other columns by a forest that has not seen the rows it is judged on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.random import Streams
from subgrove._data.encode import rank_encoded
from subgrove._data.table import Table
from subgrove._dependence.result import FeatureDependence
from subgrove._regress import grow_forest

LEAST_ROWS = 10
MOST_LEVELS = 100
_SHUFFLED = 1000  # held-out rows that tell which columns matter; more would only cost time
_NUMERIC_NODE, _LEVELS_NODE = 5, 1  # nodes of at most this many rows are not split, as in R's forests


@dataclass(frozen=True)
class DependenceForests:
    """What the forests of all features have in common."""

    n_trees: int
    n_repeats: int
    n_jobs: int | None


@dataclass(frozen=True, eq=False)
class RegressionTask:
    """A feature, as what a forest is to foretell.

    Attributes
    ----------
    table : Table
        Its rows that have a value of the feature.
    columns : tuple of str
        The other columns.
    outputs : float array
        The feature if it is numeric, else an indicator of each level: its mean is the level's share, and the drop of
        its squares that of Gini's impurity.
    numeric : bool
        Whether it is numeric.
    """

    table: Table
    columns: tuple[str, ...]
    outputs: Floats
    numeric: bool


def feature_dependence(table: Table, name: str, settings: DependenceForests, streams: Streams) -> FeatureDependence:
    """How well a feature is foretold by the other columns, half by half."""
    info = table.columns[table.names.index(name)]
    columns = tuple(each for each in table.names if each != name)
    series = table.series(name)
    rows = np.flatnonzero(~series.missing)
    values = series.values[rows]
    note = _why_not(values, info.kind == "numeric")
    if note:
        nothing = np.full((2 * settings.n_repeats, len(columns) + 1), np.nan)
        return FeatureDependence(name, info.kind, len(rows), columns, nothing, note)
    numeric = info.kind == "numeric"
    outputs = _standardised(values) if numeric else _indicators(values, info.levels)
    question = RegressionTask(table.rows(rows), columns, outputs, numeric)
    found = np.array([judged for rng in streams for judged in _both_halves(question, settings, rng)])
    return FeatureDependence(name, info.kind, len(rows), columns, found, _about(found, len(rows), table.n_rows))


def _why_not(values: Any, numeric: bool) -> str:
    """Why a feature cannot be judged; nothing if it can."""
    if len(values) < LEAST_ROWS:
        return f"only {len(values)} rows have a value; at least {LEAST_ROWS} are needed"
    distinct = len(np.unique(values))
    if distinct == 1:
        return "has one value only"
    if not numeric and distinct > MOST_LEVELS:
        return f"has {distinct} levels; more than {MOST_LEVELS} are not told apart"
    return ""


def _about(found: Floats, n: int, n_rows: int) -> str:
    notes = []
    if n < n_rows:
        notes.append(f"{n_rows - n} rows without a value left out")
    undefined = int(np.isnan(found[:, 0]).sum())
    if undefined:
        notes.append(f"{undefined} of {len(found)} halves have one value only")
    return "; ".join(notes)


def _standardised(values: Floats) -> Floats:
    """Around 0 and at most 1 in size, so that squares of dates and of tiny or huge numbers keep their digits."""
    scaled = values / np.abs(values).max()
    centred = scaled - scaled.mean()
    return np.asarray(centred / np.abs(centred).max())[:, None]


def _indicators(values: Any, levels: Sequence[str]) -> Floats:
    """A column for each level that a row has, by name: containers differ in the order of levels."""
    found, code = np.unique(values.astype(np.intp), return_inverse=True)
    first = 1 if values.dtype.kind == "f" else 0  # numbers of ordered levels start at 1
    names = [levels[level - first] for level in found]
    place = np.argsort(np.argsort(names, kind="stable"), kind="stable")
    return np.asarray(place[code][:, None] == np.arange(len(found)), dtype=np.float64)


def _both_halves(question: RegressionTask, settings: DependenceForests, rng: np.random.Generator) -> Iterator[Floats]:
    order = rng.permutation(len(question.outputs))
    halves = np.array_split(order, 2)
    for train, test in (halves, halves[::-1]):
        yield _judged(question, np.sort(train), np.sort(test), settings, rng)


def _judged(
    question: RegressionTask, train: Rows, test: Rows, settings: DependenceForests, rng: np.random.Generator
) -> Floats:
    """The share of loss explained in the rows `test`, then what is lost of it when each column is shuffled there."""
    predictors = rank_encoded(question.table, question.columns, question.outputs, train)
    forest = grow_forest(
        predictors[train],
        question.outputs[train],
        n_trees=settings.n_trees,
        min_node_size=_NUMERIC_NODE if question.numeric else _LEVELS_NODE,
        seed=int(rng.integers(2**31)),
        n_jobs=settings.n_jobs,
    )
    given = predictors[test]
    said = forest.predict(given)
    found = [_explained(question, train, test)(said)]
    some = slice(None) if len(test) <= _SHUFFLED else np.sort(rng.choice(len(test), _SHUFFLED, replace=False))
    given, said, explained = given[some], said[some], _explained(question, train, test[some])
    whole = explained(said)
    for at in range(given.shape[1]):
        shuffled = given.copy()
        shuffled[:, at] = rng.permutation(given[:, at])
        found.append(whole - explained(forest.predict(shuffled)))
    return np.array(found)


def _explained(question: RegressionTask, train: Rows, test: Rows) -> Callable[[Floats], float]:
    """From what a forest says of the rows `test` to the share of loss that it explains; NaN if there is no loss."""
    wanted = question.outputs[test]
    if question.numeric:
        spread = float(((wanted - wanted.mean()) ** 2).sum())
        return lambda said: 1 - float(((wanted - said) ** 2).sum()) / spread if spread > 0 else np.nan
    level = wanted.argmax(axis=1)
    most_frequent = question.outputs[train].sum(axis=0).argmax()
    wrong = float((level != most_frequent).sum())
    return lambda said: 1 - float((said.argmax(axis=1) != level).sum()) / wrong if wrong else np.nan
