"""What other columns foretell of a feature in rows that it was not learned from, and how far values are off it.

Redrawn rows have the same distribution in every single column as real ones; only how the feature goes with the others
may differ. What they foretell of it turns that into one number, which is what the fidelity check looks at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._regress import grow_forest
from subgrove._scoring.fidelity_check.pairs import Points

_TREES, _NODE = 20, 5
_MOST_TRIED = 20  # columns that compete for a split, so that wide tables stay cheap
_RIDGE = 0.02  # penalty, as a share of the number of rows
_LEVELS = 8  # labels that are foretold one by one; others count as one
_MOST_LEVERAGE = 0.99

Halves = tuple[Rows, Rows]
"""Numbers of the rows of each half."""


@dataclass(frozen=True, eq=False)
class TargetColumns:
    """Values of a feature as numbers to be foretold: its numbers, and an indicator of each frequent label.

    Attributes
    ----------
    levels : tuple of float array
        For each column of labels those that have an indicator; all others share a further one.
    """

    levels: tuple[Floats, ...]

    @classmethod
    def of(cls, real: Points) -> TargetColumns:
        """The labels that are frequent in real rows."""
        return cls(tuple(_frequent(column) for column in real.labels.T))

    def matrix(self, points: Points) -> Floats:
        """A column for each number, then one for each indicator."""
        return np.hstack([points.numbers, *self._indicators(points)])

    def residuals(self, points: Points, predicted: Floats) -> Floats:
        """Return the residual and absolute residual of numbers, and the predicted probability of each label."""
        n_numbers = points.numbers.shape[1]
        gap = points.numbers - predicted[:, :n_numbers]
        columns, at = [gap, np.abs(gap)], n_numbers
        for indicators in self._indicators(points):
            width = indicators.shape[1]
            columns.append((indicators * predicted[:, at : at + width]).sum(axis=1, keepdims=True))
            at += width
        return np.hstack(columns)

    def _indicators(self, points: Points) -> list[Floats]:
        found = []
        for levels, column in zip(self.levels, points.labels.T, strict=True):
            own = (column[:, None] == levels).astype(np.float64)
            found.append(np.hstack([own, 1.0 - own.sum(axis=1, keepdims=True)]))
        return found


def predict_held_out(others: Points, outputs: Floats, seed: int) -> list[Floats]:
    """What a forest and a line say of the outputs of each row, neither of them having seen the row's own outputs."""
    mean = np.broadcast_to(outputs.mean(axis=0), outputs.shape)
    given = others.matrix
    if not given.shape[1] or not np.ptp(outputs, axis=0).any():
        return [np.array(mean)]
    tried = max(1, min(given.shape[1] // 3, _MOST_TRIED))
    forest = grow_forest(given, outputs, n_trees=_TREES, min_node_size=_NODE, tried=tried, seed=seed, n_jobs=1)
    unseen = np.isnan(forest.out_of_bag)
    return [np.where(unseen, mean, forest.out_of_bag), ridge_leave_one_out(_with_indicators(others), outputs)]


def predict_by_halves(others: Points, outputs: Floats, halves: Halves, seed: int) -> list[Floats]:
    """The same, each half of the rows foretold by the other one.

    Labels need it. Leaving out a row lowers what is foretold of its own label, in all rows of that label alike, and
    raises it for no redrawn one: a classifier that learned this from some rows would know the others by it.
    """
    if not others.matrix.shape[1] or not np.ptp(outputs, axis=0).any():
        return predict_held_out(others, outputs, seed)
    given, line = others.matrix, _with_indicators(others)
    tried = max(1, min(given.shape[1] // 3, _MOST_TRIED))
    said = [np.empty_like(outputs), np.empty_like(outputs)]
    for judged, learned in (halves, halves[::-1]):
        forest = grow_forest(
            given[learned],
            outputs[learned],
            n_trees=_TREES,
            min_node_size=_NODE,
            tried=tried,
            seed=seed,
            n_jobs=1,
        )
        said[0][judged] = forest.predict(given[judged])
        said[1][judged] = _line_from(line[learned], outputs[learned], line[judged])
    return said


def _line_from(given: Floats, outputs: Floats, asked: Floats) -> Floats:
    """A ridge regression as `ridge_leave_one_out` fits it, for other rows."""
    mean, scale = given.mean(axis=0), given.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    centred, level = (given - mean) / scale, outputs.mean(axis=0)
    n, p = centred.shape
    if p <= n:
        weights = np.linalg.solve(centred.T @ centred + _RIDGE * n * np.eye(p), centred.T @ (outputs - level))
    else:
        weights = centred.T @ np.linalg.solve(centred @ centred.T + _RIDGE * n * np.eye(n), outputs - level)
    said: Floats = level + (asked - mean) / scale @ weights
    return said


def ridge_leave_one_out(given: Floats, outputs: Floats) -> Floats:
    """A ridge regression that leaves each row out in turn: what it says of the row that it has not seen.

    Leaving out a row changes what is said of it by leverage / (1 - leverage) times what the fit is off.
    """
    n, p = given.shape
    centred, mean = given - given.mean(axis=0), outputs.mean(axis=0)
    scale = np.sqrt((centred**2).mean(axis=0))
    centred = centred / np.where(scale > 0, scale, 1.0)
    penalty = _RIDGE * n
    if p <= n:
        weights = np.linalg.solve(centred.T @ centred + penalty * np.eye(p), centred.T)
        hat = centred @ weights
    else:  # the same, by a system of as many equations as there are rows
        inner = centred @ centred.T
        hat = np.linalg.solve(inner + penalty * np.eye(n), inner).T
    hat += 1.0 / n
    leverage = np.minimum(np.diag(hat), _MOST_LEVERAGE)[:, None]
    said = mean + (hat - 1.0 / n) @ (outputs - mean)
    left_out: Floats = outputs - (outputs - said) / (1.0 - leverage)
    return left_out


def _with_indicators(points: Points) -> Floats:
    """Columns for a line: numbers, and an indicator of each frequent label."""
    columns = [points.numbers]
    columns += [(column[:, None] == _frequent(column)).astype(np.float64) for column in points.labels.T]
    return np.hstack(columns)


def _frequent(labels: Floats) -> Floats:
    found, counts = np.unique(labels, return_counts=True)
    chosen: Floats = np.sort(found[np.argsort(-counts, kind="stable")[:_LEVELS]])
    return chosen
