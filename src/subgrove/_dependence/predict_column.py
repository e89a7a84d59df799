"""Held-out R2 of a random forest that predicts one feature from the other columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import rank_encoded
from subgrove._data.table import Table
from subgrove._dependence.result import FeatureDependence
from subgrove._regress import grow_forest

LEAST_ROWS = 10
MOST_LEVELS = 100
_SHUFFLED = 1000  # held-out rows for permutation importance; more would only cost time
_NUMERIC_NODE, _LEVELS_NODE = 5, 1  # nodes of at most this many rows are not split, as in R's forests


@dataclass(frozen=True)
class DependenceForests:
    """Settings of the forests."""

    n_trees: int
    n_repeats: int
    n_jobs: int | None


@dataclass(frozen=True, eq=False)
class RegressionTask:
    """Regression of one feature on the other columns.

    Attributes
    ----------
    table : Table
        Rows with a value of the feature.
    columns : tuple of str
        Predictors.
    outputs : float array
        The feature if it is numeric, else an indicator of each level: its mean is the level's share, and the decrease
        of squared error that of the Gini impurity.
    numeric : bool
        Whether the feature is numeric.
    """

    table: Table
    columns: tuple[str, ...]
    outputs: Floats
    numeric: bool


def feature_dependence(table: Table, name: str, settings: DependenceForests, streams: Streams) -> FeatureDependence:
    """Return how well a feature is predicted by the other columns, for each half."""
    info = table.columns[table.names.index(name)]
    columns = tuple(each for each in table.names if each != name)
    series = table.series(name)
    rows = np.flatnonzero(~series.missing)
    values = series.values[rows]
    note = _reason_undefined(values, info.kind == "numeric")
    if note:
        undefined = np.full((2 * settings.n_repeats, len(columns) + 1), np.nan)
        return FeatureDependence(name, info.kind, len(rows), columns, undefined, note)
    numeric = info.kind == "numeric"
    outputs = _standardized(values) if numeric else _indicators(values, info.levels)
    task = RegressionTask(table.rows(rows), columns, outputs, numeric)
    folds = np.array([fold for rng in streams for fold in _both_halves(task, settings, rng)])
    return FeatureDependence(name, info.kind, len(rows), columns, folds, _notes(folds, len(rows), table.n_rows))


def _reason_undefined(values: Any, numeric: bool) -> str:
    """Return why the R2 of a feature is undefined; empty if it is defined."""
    if len(values) < LEAST_ROWS:
        return f"only {len(values)} rows have a value; at least {LEAST_ROWS} are needed"
    distinct = len(np.unique(values))
    if distinct == 1:
        return "has one value only"
    if not numeric and distinct > MOST_LEVELS:
        return f"has {distinct} levels; more than {MOST_LEVELS} are not supported"
    return ""


def _notes(folds: Floats, n: int, n_rows: int) -> str:
    notes = []
    if n < n_rows:
        notes.append(f"{n_rows - n} rows with missing values excluded")
    undefined = int(np.isnan(folds[:, 0]).sum())
    if undefined:
        notes.append(f"{undefined} of {len(folds)} halves have one value only")
    return "; ".join(notes)


def _standardized(values: Floats) -> Floats:
    """Return values centred and scaled to at most 1, so that squares of dates and extreme numbers keep their digits."""
    scaled = values / np.abs(values).max()
    centred = scaled - scaled.mean()
    return np.asarray(centred / np.abs(centred).max())[:, None]


def _indicators(values: Any, levels: Sequence[str]) -> Floats:
    """Return an indicator for each level that occurs, sorted by name: containers differ in the order of levels."""
    present, code = np.unique(values.astype(np.intp), return_inverse=True)
    first = 1 if values.dtype.kind == "f" else 0  # numbers of ordered levels start at 1
    names = [levels[level - first] for level in present]
    place = np.argsort(np.argsort(names, kind="stable"), kind="stable")
    return np.asarray(place[code][:, None] == np.arange(len(present)), dtype=np.float64)


def _both_halves(task: RegressionTask, settings: DependenceForests, rng: np.random.Generator) -> Iterator[Floats]:
    order = rng.permutation(len(task.outputs))
    halves = np.array_split(order, 2)
    for train, test in (halves, halves[::-1]):
        yield _fit_and_score(task, np.sort(train), np.sort(test), settings, rng)


def _fit_and_score(
    task: RegressionTask, train: Rows, test: Rows, settings: DependenceForests, rng: np.random.Generator
) -> Floats:
    """Return the share of loss explained in the rows `test`, then its decrease when each column is permuted there."""
    predictors = rank_encoded(task.table, task.columns, task.outputs, train)
    forest = grow_forest(
        predictors[train],
        task.outputs[train],
        n_trees=settings.n_trees,
        min_node_size=_NUMERIC_NODE if task.numeric else _LEVELS_NODE,
        seed=int(rng.integers(2**31)),
        n_jobs=settings.n_jobs,
    )
    held_out = predictors[test]
    predicted = forest.predict(held_out)
    scores = [_explained(task, train, test)(predicted)]
    some = slice(None) if len(test) <= _SHUFFLED else np.sort(rng.choice(len(test), _SHUFFLED, replace=False))
    held_out, predicted, explained = held_out[some], predicted[some], _explained(task, train, test[some])
    full = explained(predicted)
    for at in range(held_out.shape[1]):
        permuted = held_out.copy()
        permuted[:, at] = rng.permutation(held_out[:, at])
        scores.append(full - explained(forest.predict(permuted)))
    return np.array(scores)


def _explained(task: RegressionTask, train: Rows, test: Rows) -> Callable[[Floats], float]:
    """Return the function from predictions of the rows `test` to the explained share of loss; NaN without loss."""
    wanted = task.outputs[test]
    if task.numeric:
        spread = float(((wanted - wanted.mean()) ** 2).sum())
        return lambda predicted: 1 - float(((wanted - predicted) ** 2).sum()) / spread if spread > 0 else np.nan
    level = wanted.argmax(axis=1)
    most_frequent = task.outputs[train].sum(axis=0).argmax()
    wrong = float((level != most_frequent).sum())
    return lambda predicted: 1 - float((predicted.argmax(axis=1) != level).sum()) / wrong if wrong else np.nan
