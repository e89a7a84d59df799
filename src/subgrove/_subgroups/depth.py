"""Selection of the depth of a feature's tree by cross-validation, and the proper scores it compares.

Requirements this design meets:

- no bias towards depth: each fold is held out in turn, a tree grows on the other folds, and its leaves predict the
  held-out rows. A deeper tree scores better only if its splits generalize;
- one tree per fold, grown to the maximum depth; shallower trees are pruned from it (`Tree.prune`). The cost is that of
  `N_FOLDS` deep trees on four fifths of the rows, in addition to the tree on all rows;
- depths are compared row by row: the standard error is that of the mean difference, which is much smaller than that
  of either score;
- reproducible folds: they depend on the number of rows only.

The expected value of a proper score is minimal for the true distribution, so it rewards neither too narrow nor too
wide a distribution; lower is better:

- numeric features: the continuous ranked probability score of the subgroup's empirical distribution F at the row's
  value y, CRPS = E|X - y| - E|X - X'| / 2, with X and X' drawn from F; in units of the feature. With one donor it is
  the absolute error. Ordered levels count as 1, 2, and so on;
- nominal features: the log score, -log of the share of the row's level in its subgroup, with half a row added to each
  level, so that a level absent from the subgroup has a large but finite score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from subgrove._core.execution import stream
from subgrove._core.html_views import HtmlView
from subgrove._core.kinds import Floats, Rows
from subgrove._data.table import TypedColumn
from subgrove.trees import Tree
from subgrove.trees.inference_trees import BaseTree
from subgrove.trees.training import Training, ascending

if TYPE_CHECKING:
    import pandas as pd


AUTO_MAX_DEPTH = 6  # largest depth that max_depth="auto" considers: 64 subgroups
N_FOLDS = 5
_SEED = 0

TreeFactory = Callable[[Training], BaseTree]  # the tree class of a feature may depend on its values


@dataclass(frozen=True, repr=False)
class DepthChoice(HtmlView):
    """Held-out score of a feature's subgroups at each depth, and the selected depth.

    The selected depth is the smallest one whose score is within one standard error of the best, or that gives up at
    most the share `tolerance` of the improvement of the best depth over a single subgroup.

    Attributes
    ----------
    feature : str
        Name of the feature, or the names of a group joined by " + ".
    measure : str
        "CRPS" (numeric and ordered features, in units of the feature), "log score" (nominal features) or "relative
        score" (a group of features: the mean over its features of the score divided by that of a single subgroup).
        Lower is better.
    scores : tuple of float
        Mean score at depth 0, 1, and so on, in held-out rows; empty if the tree did not split, so that there was
        nothing to compare.
    std_errors : tuple of float
        Standard error of the difference from the best depth, over rows.
    n_subgroups : tuple of int
        Number of subgroups at each depth, in the tree grown on all rows.
    max_depth : int
        Largest depth considered.
    n_rows : int
        Number of scored rows.
    n_folds : int
        Number of cross-validation folds.
    tolerance : float
        Share of the improvement that a smaller depth may give up.

    Examples
    --------
    >>> import subgrove as sg
    >>> temp = sg.find_subgroups(sg.datasets.bike().X, features="temp", max_depth="auto")["temp"]
    >>> print(temp.choice.reason)
    temp: depth 4 of at most 6 (8 subgroups) has the best CRPS in held-out rows, 2.637; one subgroup has 4.965.
    """

    feature: str
    measure: str
    scores: tuple[float, ...]
    std_errors: tuple[float, ...]
    n_subgroups: tuple[int, ...]
    max_depth: int
    n_rows: int
    n_folds: int
    tolerance: float = 0.0

    @property
    def best(self) -> int:
        """Depth with the lowest score; the smaller one in case of a tie."""
        return self.scores.index(min(self.scores)) if self.scores else 0

    @property
    def depth(self) -> int:
        """Selected depth: the smallest one that is sufficient."""
        if not self.scores:
            return 0
        lowest = min(self.scores)
        allowed = self.tolerance * (self.scores[0] - lowest)
        both = enumerate(zip(self.scores, self.std_errors, strict=True))
        return next(depth for depth, (score, error) in both if score - lowest <= max(error, allowed))

    @property
    def reason(self) -> str:
        """Sentence that explains the selected depth."""
        if not self.scores:
            return f"{self.feature}: depth 0, one subgroup, since its tree does not split."
        selected, best = self.depth, self.best
        count, score, lowest = self.n_subgroups[selected], self.scores[selected], self.scores[best]
        subject = f"{self.feature}: depth {selected} of at most {self.max_depth} ({count} subgroup{'s' * (count != 1)})"
        baseline = f"; one subgroup has {self.scores[0]:.4g}." if selected else "."
        if selected == best:
            return f"{subject} has the best {self.measure} in held-out rows, {score:.4g}{baseline}"
        margin = f"one standard error ({self.std_errors[selected]:.2g})"
        if score - lowest > self.std_errors[selected]:
            margin = f"{self.tolerance:.3g} of the gain"
        near = f"within {margin} of the best, {lowest:.4g} at depth {best}"
        return f"{subject} has a {self.measure} of {score:.4g} in held-out rows, {near}{baseline}"

    @property
    def table(self) -> pd.DataFrame:
        """One row per depth: n_subgroups, score, difference (from the best) and its std_error, selected."""
        import pandas as pd

        n = len(self.n_subgroups)
        scores = self.scores or (float("nan"),) * n
        errors = self.std_errors or (float("nan"),) * n
        columns = {
            "feature": [self.feature] * n,
            "depth": range(n),
            "n_subgroups": self.n_subgroups,
            "score": scores,
            "difference": [score - min(scores) for score in scores],
            "std_error": errors,
            "selected": [depth == self.depth for depth in range(n)],
        }
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        return f"<DepthChoice of {self.reason}>"

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values that JSON can hold."""
        return dict(msgspec.to_builtins(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DepthChoice:
        """Restore a choice from `to_dict`.

        Parameters
        ----------
        values : dict
            Output of `to_dict`, possibly after a round trip through JSON.
        """
        return msgspec.convert(values, cls)


def select_depth(training: Training, factory: TreeFactory, tree: Tree, tolerance: float) -> DepthChoice:
    """Score a feature's subgroups at each depth and select the smallest sufficient depth.

    Parameters
    ----------
    training : Training
        Rows that `tree` was grown on.
    factory : function from Training to BaseTree
        Constructor that `tree` was grown with, at the maximum depth.
    tree : Tree
        Tree grown on all rows.
    tolerance : float
        Share of the improvement that a smaller depth may give up.
    """
    depths, measure = range(tree.depth + 1), "log score" if training.target.is_nominal else "CRPS"
    scores, errors = _compare_depths(training, factory, len(depths)) if tree.depth else ((), ())
    return DepthChoice(
        feature=training.target.name,
        measure=measure if len(training.members) == 1 else "relative score",
        scores=scores,
        std_errors=errors,
        n_subgroups=tuple(len(tree.prune(depth).leaves) for depth in depths),
        max_depth=int(tree.parameters["max_depth"]),
        n_rows=training.n_rows,
        n_folds=len(_folds(training.n_rows)),
        tolerance=tolerance,
    )


def _scores_by_depth(training: Training, tree: Tree, rows: Rows, held_out: Rows, n_depths: int) -> Floats:
    """Return scores (members, depths, held-out rows) of a tree that was grown on `rows`.

    Rows are routed through the deepest tree only: a leaf of a shallower tree is a union of its leaves, and a leaf that
    stays from one depth to the next is scored once.
    """
    train_leaf, test_leaf = (tree._leaf_numbers(training.table.rows(part)) for part in (rows, held_out))
    first = np.unique(train_leaf, return_index=True)[1]  # one row of each leaf
    representatives = training.table.rows(rows[first])
    scores = np.empty((len(training.members), n_depths, len(held_out)))
    cache: dict[bytes, Floats] = {}
    for depth in range(n_depths):
        leaf = tree.prune(depth)._leaf_numbers(representatives)
        for number in np.unique(leaf[test_leaf]):
            inside = leaf == number
            test_rows = inside[test_leaf]
            key = inside.tobytes()
            if key not in cache:
                donors, scored = rows[inside[train_leaf]], held_out[test_rows]
                each = [donor_scores(member, training.weights, donors, scored) for member in training.members]
                cache[key] = np.stack(each)
            scores[:, depth, test_rows] = cache[key]
    return scores


def _compare_depths(
    training: Training, factory: TreeFactory, n_depths: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean held-out scores at depth 0, 1, and so on, and standard errors of their differences from the best.

    Several features: the mean of their scores, each divided by its mean at depth 0.
    """
    by_member = np.empty((len(training.members), n_depths, training.n_rows))
    for held_out in _folds(training.n_rows):
        rows = np.setdiff1d(np.arange(training.n_rows), held_out)
        subset = training.rows(rows)
        tree = factory(subset)._grow_or_stop(subset)
        by_member[:, :, held_out] = _scores_by_depth(training, tree, rows, held_out, n_depths)
    scores = by_member[0]
    if len(by_member) > 1:
        unit = np.average(by_member[:, 0], axis=-1, weights=training.weights)
        scores = np.asarray((by_member / np.where(unit > 0, unit, 1.0)[:, None, None]).mean(axis=0))
    weights = np.ones(training.n_rows) if training.weights is None else training.weights
    share = weights / weights.sum()
    means = scores @ share
    differences = scores - scores[int(np.argmin(means))]
    errors = np.sqrt(((differences - (differences @ share)[:, None]) ** 2) @ share**2)
    return tuple(map(float, means)), tuple(map(float, errors))


def _folds(n_rows: int) -> list[Rows]:
    order = stream(_SEED, "depth").permutation(n_rows)
    return [np.sort(part) for part in np.array_split(order, min(N_FOLDS, max(n_rows, 1)))]


def crps(values: Floats, weights: Floats | None, y: Floats) -> Floats:
    """Return the CRPS of the empirical distribution of `values` at each of `y`."""
    # Distances from the median, halved so that none overflows; then in units of the largest, so that no sum does.
    order = ascending(values)
    x, at = (part / 2 - values[order[len(order) // 2]] / 2 for part in (values[order], y))
    unit = float(max(np.abs(x).max(), np.abs(at).max())) or 1.0
    x, at = x / unit, at / unit
    share = np.full(len(x), 1 / len(x)) if weights is None else weights[order] / weights.sum()
    below = np.concatenate([[0.0], np.cumsum(share)])
    summed = np.concatenate([[0.0], np.cumsum(share * x)])
    place = np.searchsorted(x, at, side="right")
    distance = at * (2 * below[place] - below[-1]) + summed[-1] - 2 * summed[place]
    # E|X - X'| / 2 is the integral of F (1 - F).
    spread = float((np.diff(x) * below[1:-1] * (1 - below[1:-1])).sum())
    return np.asarray((distance - spread) * unit * 2)


def log_score(codes: Rows, weights: Floats | None, y: Rows, n_levels: int) -> Floats:
    """Return minus the logarithm of the share of each level `y` among `codes`, half a row added to each level."""
    counts = np.bincount(codes, weights=weights, minlength=n_levels) + 0.5
    return np.asarray(-np.log(counts[y] / counts.sum()))


def donor_scores(feature: TypedColumn, weights: Floats | None, donors: Rows, scored: Rows) -> Floats:
    """Return the score of the rows `scored` under the distribution of the feature in the rows `donors`."""
    donor_weights = None if weights is None else weights[donors]
    values, y = feature.values[donors], feature.values[scored]
    if feature.info.is_nominal:
        levels = max(len(feature.info.levels), 1)
        return log_score(values.astype(np.intp), donor_weights, y.astype(np.intp), levels)
    return crps(values, donor_weights, y)


def leaf_scores(feature: TypedColumn, rows: Rows, leaf: Rows, held_out: Rows, held_out_leaf: Rows) -> Floats:
    """Return the score of each held-out row under the distribution of the feature in the same leaf.

    Parameters
    ----------
    feature : TypedColumn
        The feature in all rows, without missing values.
    rows, held_out : int arrays
        Numbers of the rows that the tree was grown on, and of the rows to score.
    leaf, held_out_leaf : int arrays
        Their leaves. The leaf of a held-out row contains rows that the tree was grown on.
    """
    scores = np.empty(len(held_out))
    for number in np.unique(held_out_leaf):
        scored = held_out_leaf == number
        scores[scored] = donor_scores(feature, None, rows[leaf == number], held_out[scored])
    return scores


def leave_one_out_scores(feature: TypedColumn, leaf: Rows) -> Floats:
    """Return the leave-one-out score of each row in its leaf; a singleton leaf is scored by all other rows."""
    scores = np.empty(len(leaf))
    n_leaves = int(leaf.max(initial=0)) + 1
    for number in range(n_leaves):
        rows = np.flatnonzero(leaf == number) if n_leaves > 1 else np.arange(len(leaf))
        if len(rows) == 1:
            others = np.flatnonzero(leaf != number)
            scores[rows] = donor_scores(feature, None, others, rows) if len(others) else 0.0
        elif feature.info.is_nominal:
            n_levels = max(len(feature.info.levels), 1)
            scores[rows] = _leave_one_out_log_score(feature.values[rows].astype(np.intp), n_levels)
        elif len(rows):
            scores[rows] = _leave_one_out_crps(feature.values[rows])
    return scores


def _leave_one_out_log_score(codes: Rows, n_levels: int) -> Floats:
    counts = np.bincount(codes, minlength=n_levels) - 0.5  # half a row added, the row itself removed
    return np.asarray(-np.log(np.maximum(counts[codes], 0.5) / (len(codes) - 1 + 0.5 * n_levels)))


def _leave_one_out_crps(values: Floats) -> Floats:
    """Return E|X - y| - E|X - X'| / 2 for each value y, with X and X' drawn from the other values."""
    n = len(values)
    order = ascending(values)
    x = values[order] / 2 - values[order[n // 2]] / 2
    unit = float(np.abs(x).max()) or 1.0
    x = x / unit
    summed = np.cumsum(x)
    # For the value at place i: values below it add i x - their sum, values above it their sum - (n - 1 - i) x.
    to_others = np.arange(2 - n, n + 1, 2) * x + (summed[-1] - 2 * summed)
    # X and X' are drawn with replacement, hence (n - 1)^2 pairs. The sum over these is that over all pairs less twice
    # the contribution of the value itself.
    pairs = max((n - 1) ** 2, 1)
    scores = np.empty(n)
    scores[order] = (to_others * (1 / max(n - 1, 1) + 1 / pairs) - float(to_others.sum()) / (2 * pairs)) * unit * 2
    return scores
