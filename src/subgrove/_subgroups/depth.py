"""The depth that a feature's tree needs, judged on rows that the trees judged have not seen.

Requirements this design meets:

- no bias towards depth: the rows are held out in turn, a tree grows on the others, and its leaves foretell the rows
  held out (`proper_scores`); a deeper tree scores better only if its splits hold in other rows;
- one tree for each part, grown to the greatest depth; the trees of less depth are cut out of it (`Tree.prune`). So the
  cost is that of `N_FOLDS` deep trees on four fifths of the rows, beside the one on all rows;
- depths are compared row by row: the standard error is that of the mean difference, which is much smaller than that of
  either score;
- the same parts whenever they are asked for: they depend on the number of rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.random import stream
from subgrove._data.table import TypedColumn
from subgrove._subgroups.depth_choice import DepthChoice
from subgrove._subgroups.proper_scores import leaf_scores
from subgrove.trees import Tree
from subgrove.trees.single import single_leaf
from subgrove.trees.training import Training

DEEPEST = 6  # greatest depth that max_depth="auto" looks at: 64 subgroups
N_FOLDS = 5
_SEED = 0


class Grower(Protocol):
    """What grows a tree."""

    _method: str

    def plain_params(self) -> dict[str, Any]:
        """Its parameters as plain values."""

    def _grow(self, training: Training) -> Tree: ...


GrowerOf = Callable[[Training], Grower]  # what grows the tree of a feature, which may depend on its values


def choose_depth(training: Training, grower_of: GrowerOf, tree: Tree, *, tolerance: float = 0.0) -> DepthChoice:
    """The scores of a feature's subgroups at each depth, and so the depth that is enough.

    Parameters
    ----------
    training : Training
        The rows that `tree` grew on.
    grower_of : function from Training to Grower
        What grew it, to the greatest depth.
    tree : Tree
        The tree on all rows.
    tolerance : float
        Share of the gain that a smaller depth may give up.
    """
    depths = range(tree.depth + 1)
    n_subgroups = tuple(len(tree.prune(depth).leaves) for depth in depths)
    limit = int(tree.parameters["max_depth"])
    scores, errors = _compared(training, grower_of, len(depths)) if tree.depth else ((), ())
    n_folds = len(_folds(training.n_rows))
    return DepthChoice(
        training.target.name,
        _measure(training),
        scores,
        errors,
        n_subgroups,
        limit,
        training.n_rows,
        n_folds,
        tolerance,
    )


def held_out_scores(training: Training, grower_of: GrowerOf, n_depths: int) -> Floats:
    """The score of each row (depths, rows) by trees that have not seen it, at depth 0, 1, and so on.

    Several features: the mean of their scores, each divided by its mean at depth 0.
    """
    scores = np.empty((len(training.members), n_depths, training.n_rows))
    everyone = np.arange(training.n_rows)
    for held_out in _folds(training.n_rows):
        rows = np.setdiff1d(everyone, held_out)
        tree = _regrown(_some(training, rows), grower_of)
        scores[:, :, held_out] = _scores_by_depth(training, tree, rows, held_out, n_depths)
    if len(scores) == 1:
        return np.asarray(scores[0])
    unit = np.average(scores[:, 0], axis=-1, weights=training.weights)
    return np.asarray((scores / np.where(unit > 0, unit, 1.0)[:, None, None]).mean(axis=0))


def _scores_by_depth(training: Training, tree: Tree, rows: Rows, held_out: Rows, n_depths: int) -> Floats:
    """Scores (members, depths, held-out rows) by a tree that grew on `rows`.

    Rows are sorted out to the leaves of the deepest tree alone; leaves of a tree of less depth are made of these, and a
    leaf that stays from one depth to the next is scored once.
    """
    seen, asked = (tree._leaf_numbers(training.table.rows(part)) for part in (rows, held_out))
    first = np.unique(seen, return_index=True)[1]  # a row of each leaf
    one_of_each = training.table.rows(rows[first])
    scores = np.empty((len(training.members), n_depths, len(held_out)))
    known: dict[bytes, Floats] = {}
    for depth in range(n_depths):
        leaf = tree.prune(depth)._leaf_numbers(one_of_each)
        for number in np.unique(leaf[asked]):
            inside = leaf == number
            mine = inside[asked]
            if inside.tobytes() not in known:
                own, theirs = rows[inside[seen]], held_out[mine]
                together = np.zeros(len(own), dtype=np.intp), np.zeros(len(theirs), dtype=np.intp)
                known[inside.tobytes()] = np.stack(
                    [
                        leaf_scores(member, training.weights, own, together[0], theirs, together[1])
                        for member in training.members
                    ]
                )
            scores[:, depth, mine] = known[inside.tobytes()]
    return scores


def _compared(training: Training, grower_of: GrowerOf, n_depths: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean scores by depth, and standard errors of their differences from the best."""
    scores = held_out_scores(training, grower_of, n_depths)
    weights = np.ones(training.n_rows) if training.weights is None else training.weights
    share = weights / weights.sum()
    means = scores @ share
    differences = scores - scores[int(np.argmin(means))]
    errors = np.sqrt(((differences - (differences @ share)[:, None]) ** 2) @ share**2)
    return tuple(map(float, means)), tuple(map(float, errors))


def _measure(training: Training) -> str:
    if len(training.members) > 1:
        return "relative score"
    return "log score" if training.target.is_nominal else "CRPS"


def _folds(n_rows: int) -> list[Rows]:
    order = stream(_SEED, "depth").permutation(n_rows)
    return [np.sort(part) for part in np.array_split(order, min(N_FOLDS, max(n_rows, 1)))]


def _regrown(training: Training, grower_of: GrowerOf) -> Tree:
    grower = grower_of(training)
    if training.stop is not None:
        return single_leaf(training, grower._method, grower.plain_params(), training.stop)
    return grower._grow(training)


def _some(training: Training, rows: Rows) -> Training:
    members = tuple(TypedColumn(member.info, member.values[rows]) for member in training.members)
    weights = None if training.weights is None else training.weights[rows]
    return Training(training.table.rows(rows), members, weights)
