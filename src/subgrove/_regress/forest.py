"""A random forest that is grown fast on tables of some thousand rows, to predict one column from others.

Breiman's forest with exact splits: bootstrap samples, a few columns tried at each split, no pruning. Samplers and
`dependence` grow one for each feature, so its speed is theirs. The loops are in `forest.c`; where the package was
installed without a compiler, scikit-learn's forests replace it (`SklearnForest`), and a warning says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import effective_jobs
from subgrove._core.kinds import Floats
from subgrove._native import loader

TREES_AT_ONCE = 16  # grown by one task; fixed, so that sums over trees do not depend on the number of jobs
_NUMBERS_AT_ONCE = 2**15  # of rows predicted by one task: few enough to stay near the processor for all trees
_NODE = np.dtype([("threshold", np.float64), ("column", np.int32), ("child", np.int32)])


@dataclass(frozen=True, eq=False)
class RandomForest:
    """A forest: arrays over the nodes of all trees.

    Attributes
    ----------
    roots : int array
        Node that each tree starts at.
    feature : int array
        Split column of a node; -1 in a leaf.
    child : int array
        Left child of a node; the right one is the next.
    threshold : float array
        Values up to it go left.
    missing_left : int array
        1 where a missing value goes left.
    values : float array
        Prediction of a node, one number for each output.
    out_of_bag : float array
        Out-of-bag prediction of each training row; NaN if it is in the bootstrap samples of all trees.
    seeds : int array
        Seed of each tree.
    n_columns : int
        Number of columns that it was grown on.
    n_jobs : int or None
        Number of threads that predict.
    """

    roots: npt.NDArray[np.int32]
    feature: npt.NDArray[np.int32]
    child: npt.NDArray[np.int32]
    threshold: Floats
    missing_left: npt.NDArray[np.uint8]
    values: Floats
    out_of_bag: Floats
    seeds: npt.NDArray[np.uint64]
    n_columns: int
    n_jobs: int | None = None

    def predict(self, predictors: Floats) -> Floats:
        """Return the mean over trees: a row for each row, a column for each output."""
        rows = np.ascontiguousarray(predictors, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_columns:  # the loops in C would read beyond the rows
            raise ValueError(f"the forest was grown on {self.n_columns} columns; got an array of shape {rows.shape}.")
        sums = np.zeros((len(rows), self.values.shape[1]))
        size = max(64, _NUMBERS_AT_ONCE // rows.shape[1])
        chunks = [slice(at, at + size) for at in range(0, len(rows), size)]
        for _ in _in_threads(lambda chunk: self._add(rows[chunk], sums[chunk]), chunks, self.n_jobs):
            pass
        return sums / len(self.roots)

    def predict_replaced(
        self, predictors: Floats, others: Floats, read: Callable[[Floats], npt.NDArray[Any]]
    ) -> npt.NDArray[Any]:
        """Return the predictions with one column replaced, for each column: (columns, rows).

        They are those of `predict`, bit for bit, but the time hardly grows with the number of columns.

        Parameters
        ----------
        predictors : float array (rows, columns)
            The rows.
        others : float array (rows, columns)
            Values that replace the column.
        read : callable
            Turns predictions, of which the last axis are the outputs, into one number each.
        """
        if loader.forest is None:
            return _one_column_at_a_time(self, predictors, others, read)
        rows, new = (np.ascontiguousarray(array, dtype=np.float64) for array in (predictors, others))
        (n, p), k = rows.shape, self.values.shape[1]
        size = max(1, _NUMBERS_AT_ONCE // (p * k))
        trees = (self.roots, self._nodes, self.values)

        def work(at: int) -> npt.NDArray[Any]:
            assert loader.forest is not None
            some = slice(at, at + size)
            sums = np.zeros((len(rows[some]), p, k))
            sizes = (len(sums), p, k, len(self.roots), len(self.feature))
            loader.forest.predict_replaced(*sizes, rows[some], new[some], *trees, sums)
            return read(sums / len(self.roots))

        return np.concatenate(list(_in_threads(work, list(range(0, n, size)), self.n_jobs))).T.copy()

    def decreases(self) -> Floats:
        """Return for each column the decrease of the squared error by its splits, summed over trees and outputs."""
        found, share = np.zeros(self.n_columns), np.zeros(len(self.feature))
        level = self.roots
        share[level] = 1.0  # of the rows of a tree, in a node
        while len(level := level[self.feature[level] >= 0]):
            left, right = self.child[level], self.child[level] + 1
            apart = self.values[right] - self.values[left]
            squared = (apart**2).sum(axis=1)
            # The mean of a node lies between those of its children, nearer to the one with more rows.
            to_right = ((self.values[level] - self.values[left]) * apart).sum(axis=1) / np.where(
                squared > 0, squared, 1.0
            )
            decrease = share[level] * to_right * (1 - to_right) * squared
            found += np.bincount(self.feature[level], weights=decrease, minlength=self.n_columns)
            share[left], share[right] = share[level] * (1 - to_right), share[level] * to_right
            level = np.concatenate([left, right])
        return found

    def leaves(self, predictors: Floats, trees: Sequence[int] | None = None) -> npt.NDArray[np.intp]:
        """Return the leaf of each row in each tree, or in some trees: (rows, trees)."""
        rows = np.ascontiguousarray(predictors, dtype=np.float64)
        roots = self.roots if trees is None else self.roots[list(trees)]
        numbers = np.arange(len(self.feature), dtype=np.float64)[:, None]
        found = np.empty((len(rows), len(roots)), dtype=np.intp)
        for at, root in enumerate(roots):
            single = replace(self, roots=np.array([root], dtype=np.int32), values=numbers)
            single.__dict__["_nodes"] = self._nodes
            sums = np.zeros((len(rows), 1))
            single._add(rows, sums)
            found[:, at] = sums[:, 0]
        return found

    def _add(self, rows: Floats, sums: Floats) -> None:
        """Add the predictions of each tree."""
        n, p = rows.shape
        if loader.forest is None:
            self._add_in_numpy(rows, sums)
        else:
            trees = (self.roots, self._nodes, self.values)
            loader.forest.predict(n, p, sums.shape[1], len(self.roots), len(self.feature), rows, *trees, sums)

    def _add_in_numpy(self, rows: Floats, sums: Floats) -> None:
        """Add the same numbers in the same order, for a forest that was grown where the compiled part is installed."""
        nodes, row_numbers = self._nodes, np.arange(len(rows))
        for root in self.roots:
            at = np.full(len(rows), root, dtype=np.intp)
            while True:
                node = nodes[at]
                value = rows[row_numbers, node["column"] >> 1]
                left = (value <= node["threshold"]) | (np.isnan(value) & (node["column"] & 1 == 1))
                following = node["child"] + ~left
                if (following == at).all():
                    break
                at = following
            sums += self.values[at]

    @cached_property
    def _nodes(self) -> npt.NDArray[Any]:
        """Nodes for prediction (`PredictNode` in `forest.c`): a leaf is its own left child and sends all rows there."""
        nodes = np.empty(len(self.feature), dtype=_NODE)
        leaf = self.feature < 0
        nodes["threshold"] = np.where(leaf, np.inf, self.threshold)
        nodes["column"] = np.where(leaf, 1, 2 * self.feature + self.missing_left)
        nodes["child"] = np.where(leaf, np.arange(len(leaf)), self.child)
        return nodes

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_nodes"}


@dataclass(frozen=True, eq=False)
class ForestColumns:
    """Predictors of a forest with the ranks of their values, which several forests on the same rows share.

    Attributes
    ----------
    values : float array (rows, columns)
        The predictors.
    """

    values: Floats

    @cached_property
    def ranked(self) -> tuple[npt.NDArray[Any], ...]:
        """Ranks by column, the rank of missing values, which come last, sorted values, and where a column starts."""
        n, p = self.values.shape
        ranks = np.empty((p, n), dtype=np.uint32)
        sizes = np.empty(p, dtype=np.int64)
        values = []
        step = max(1, _NUMBERS_AT_ONCE // max(n, 1))  # columns at once: few rows, many of them
        for start in range(0, p, step):
            part = slice(start, start + step)
            columns = np.ascontiguousarray(self.values[:, part].T)
            order = np.argsort(columns, axis=1)
            columns = np.take_along_axis(columns, order, axis=1)
            known = ~np.isnan(columns)  # missing ones are last
            first = known.copy()
            first[:, 1:] &= columns[:, 1:] != columns[:, :-1]
            sizes[part] = first.sum(axis=1)
            place = np.where(known, np.cumsum(first, axis=1) - 1, sizes[part, None])
            np.put_along_axis(ranks[part], order, place.astype(np.uint32), axis=1)
            values.append(columns[first])
        return ranks, sizes.astype(np.uint32), np.concatenate(values), np.cumsum(sizes) - sizes

    def some(self, columns: npt.NDArray[np.intp]) -> ForestColumns:
        """Return some of the columns."""
        ranks, sizes, values, starts = self.ranked
        selected = ForestColumns(self.values[:, columns])
        ends = np.cumsum(sizes[columns], dtype=np.int64)
        own = [values[starts[at] : starts[at] + int(sizes[at])] for at in columns]
        ranked = ranks[columns], sizes[columns], np.concatenate(own), ends - sizes[columns]
        selected.__dict__["ranked"] = ranked
        return selected


def grow_forest(
    predictors: Floats | ForestColumns,
    outputs: Floats,
    *,
    n_trees: int = 500,
    min_node_size: int = 5,
    tried: int | None = None,
    seed: int = 0,
    codes: npt.NDArray[Any] | None = None,
    max_samples: int | None = None,
    n_jobs: int | None = None,
    grown: dict[int, tuple[Any, ...]] | None = None,
) -> Any:
    """Grow a forest that predicts the outputs (one column for each) from predictors, which may have missing values.

    A node of at most `min_node_size` rows is not split; `tried` columns, drawn at random, compete for a split, the
    rounded-down root of their number if not given. If the outputs are indicators of classes, `codes` are the classes
    of the rows: the forest is then the same up to rounding, and grown faster. `max_samples` is the largest number of
    rows that a tree is grown on. The forest is the same for any `n_jobs`. `grown` keeps trees, `TREES_AT_ONCE` by
    `TREES_AT_ONCE`, for a forest that differs in its number of trees only.
    """
    columns = predictors if isinstance(predictors, ForestColumns) else ForestColumns(predictors)
    n_rows, n_columns = columns.values.shape
    tried = max(1, int(np.sqrt(n_columns))) if tried is None else tried
    if loader.forest is None:
        loader.warn_forest_fallback()
        return grow_sklearn_forest(columns.values, outputs, n_trees, min_node_size, tried, seed, n_jobs, max_samples)
    n_drawn, kept = min(n_rows, max_samples or n_rows), {} if grown is None else grown
    mean = outputs.mean(axis=0)
    classes = None if codes is None else np.ascontiguousarray(codes, dtype=np.int32)
    centred = np.ascontiguousarray(outputs - mean) if codes is None else -mean
    seeds = np.random.default_rng(seed).integers(2**64, size=n_trees, dtype=np.uint64)
    shares = {at: seeds[at : at + TREES_AT_ONCE] for at in range(0, n_trees, TREES_AT_ONCE)}
    missing = [at for at, share in shares.items() if at not in kept or len(kept[at][0]) != len(share)]

    def work(at: int) -> tuple[Any, ...]:
        return _grow_some(columns.ranked, centred, classes, shares[at], n_drawn, min_node_size + 1.0, tried)

    kept |= zip(missing, _in_threads(work, missing, n_jobs), strict=True)
    *arrays, out_of_bag_sums, out_of_bag_counts = zip(*(kept[at] for at in shares), strict=True)
    sizes, feature, child, threshold, missing_left, values = map(np.concatenate, arrays)
    if int(sizes.sum(dtype=np.int64)) >= 2**31:
        raise MemoryError("the forest has more nodes than 32 bits can count; grow fewer trees, or larger leaves.")
    starts = (np.cumsum(sizes) - sizes).astype(np.int32)
    with np.errstate(invalid="ignore"):
        out_of_bag = sum(out_of_bag_sums) / np.asarray(sum(out_of_bag_counts))[:, None] + mean
    return RandomForest(
        roots=starts,
        feature=feature,
        child=np.where(child >= 0, child + np.repeat(starts, sizes), -1).astype(np.int32),
        threshold=threshold,
        missing_left=missing_left,
        values=values + mean,
        out_of_bag=out_of_bag,
        seeds=seeds,
        n_columns=n_columns,
        n_jobs=n_jobs,
    )


def _grow_some(
    ranked: tuple[npt.NDArray[Any], ...],
    outputs: Floats,
    codes: npt.NDArray[np.int32] | None,
    seeds: npt.NDArray[np.uint64],
    n_drawn: int,
    least: float,
    tried: int,
) -> tuple[Any, ...]:
    """Return the arrays of some trees, each with its own node numbers, and the sums of out-of-bag predictions."""
    assert loader.forest is not None
    ranks, _, distinct, _ = ranked
    (p, n), k, trees = ranks.shape, outputs.shape[-1], len(seeds)
    room = (trees, 2 * n)
    feature, child = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    threshold, missing_left, values = np.zeros(room), np.zeros(room, dtype=np.uint8), np.empty((*room, k))
    sizes, unseen, times = np.empty(trees, dtype=np.int32), np.zeros((n, k)), np.zeros(n)
    written = (feature, child, threshold, missing_left, values, sizes, unseen, times)
    loader.forest.grow(n, p, k, n_drawn, tried, least, trees, len(distinct), *ranked, outputs, seeds, *written, codes)
    used = np.arange(2 * n) < sizes[:, None]
    return sizes, feature[used], child[used], threshold[used], missing_left[used], values[used], unseen, times


def _in_threads(work: Any, tasks: list[Any], n_jobs: int | None) -> Iterator[Any]:
    """Yield results in order; threads, because the loops in C release the interpreter lock."""
    workers = min(effective_jobs(n_jobs), len(tasks))
    if workers <= 1:
        yield from map(work, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=workers, backend="threading", return_as="generator")(delayed(work)(t) for t in tasks)


def _one_column_at_a_time(
    forest: Any, predictors: Floats, others: Floats, read: Callable[[Floats], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Return what `RandomForest.predict_replaced` returns, by a prediction of all rows for each column."""
    found = []
    for column, values in enumerate(others.T):
        replaced = predictors.copy()
        replaced[:, column] = values
        found.append(read(forest.predict(replaced)))
    return np.array(found)


_MOST = 1e30


@dataclass(frozen=True, eq=False)
class SklearnForest:
    """Forest of scikit-learn with the interface of `RandomForest`, for installations without a compiler."""

    forest: Any
    out_of_bag: Floats
    n_columns: int

    def predict(self, predictors: Floats) -> Floats:
        """Return the mean over trees: a row for each row, a column for each output."""
        predicted: Floats = np.asarray(self.forest.predict(_single(predictors)), dtype=np.float64)
        return predicted.reshape(len(predictors), self.out_of_bag.shape[1])

    predict_replaced = _one_column_at_a_time

    def decreases(self) -> Floats:
        """Return for each column the decrease of the squared error by its splits, relative to all."""
        return np.asarray(self.forest.feature_importances_)

    def leaves(self, predictors: Floats, trees: Sequence[int] | None = None) -> npt.NDArray[np.intp]:
        """Return the leaf of each row in each tree, or in some trees: (rows, trees)."""
        found: npt.NDArray[np.intp] = np.asarray(self.forest.apply(_single(predictors)), dtype=np.intp)
        return found if trees is None else found[:, list(trees)]


def grow_sklearn_forest(
    predictors: Floats,
    outputs: Floats,
    n_trees: int,
    min_node_size: int,
    tried: int,
    seed: int,
    n_jobs: int | None,
    max_samples: int | None = None,
) -> SklearnForest:
    """Grow a forest with scikit-learn."""
    from sklearn.ensemble import RandomForestRegressor

    settings = {"min_samples_split": min_node_size + 1, "max_features": tried, "n_jobs": n_jobs}
    start = int(np.random.default_rng(seed).integers(2**31))
    if max_samples is not None and max_samples < len(predictors):
        settings["max_samples"] = max_samples
    forest = RandomForestRegressor(n_trees, **settings, random_state=start)
    rows = _single(predictors)
    forest.fit(rows, outputs if outputs.shape[1] > 1 else outputs[:, 0])
    # Trees then predict one after the other: sums over them depend on the order in the last digit.
    forest.set_params(n_jobs=None)
    return SklearnForest(forest, _out_of_bag(forest, rows, outputs.shape[1]), predictors.shape[1])


def _single(predictors: Floats) -> npt.NDArray[np.float32]:
    """Return single-precision numbers, as trees take them; numbers too large for sums are clipped."""
    return np.clip(predictors, -_MOST, _MOST).astype(np.float32)


def _out_of_bag(forest: Any, predictors: npt.NDArray[np.float32], n_outputs: int) -> Floats:
    total, count = np.zeros((len(predictors), n_outputs)), np.zeros(len(predictors))
    for tree, seen in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        unseen = np.ones(len(predictors), dtype=np.bool_)
        unseen[seen] = False
        if unseen.any():
            predicted = tree.predict(predictors[unseen], check_input=False)
            total[unseen] += np.asarray(predicted).reshape(-1, n_outputs)
        count += unseen
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)
