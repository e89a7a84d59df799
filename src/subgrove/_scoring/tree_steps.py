"""Importance of tree models without predictions: losses at the steps of the model, weighted by their probabilities.

`TreeSteps` has the step functions of a readable model, once it has reproduced predictions of changed rows. A feature
whose new values have a known distribution has an exact expectation, for all features in one pass. Draws of other
samplers are looked up in the step functions; groups of features are predicted by the trees as they were read.
`ChunkTrees` does this for chunks of large data: the trees are read once in each process, for every batch of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Column, Donors, Frames
from subgrove._models.predictor import Predictions, Predictor
from subgrove._models.tree_ensemble.ensemble import NotReadable, TreeEnsemble, require
from subgrove._models.tree_ensemble.inputs import TreeInputs
from subgrove._models.tree_ensemble.places import Places
from subgrove._models.tree_ensemble.reading import CHECK_ROWS, check_margins, read_ensemble, use_tree_steps
from subgrove._models.tree_ensemble.steps import ChangedColumn, StepFunctions
from subgrove._scoring.context import PredictionJob, ScoringContext
from subgrove.samplers.base import Feature, FittedSampler

_LOOK_UPS = 1 << 25  # numbers that are looked up in one pass
_KEPT = 10_000  # encoded rows
_PROBES = (0.1, 0.5, 0.9)  # quantiles


@dataclass(eq=False)
class TreeSteps:
    """Step functions of a model for the rows of a table.

    Attributes
    ----------
    frames : Frames
        The rows, for the model.
    ensemble, inputs : TreeEnsemble, TreeInputs
        The model as it was read.
    rows, train : float arrays
        Encoded rows, of many only some are kept, and encoded training rows (None without any).
    n_threads : int
        Number of threads.
    """

    frames: Frames
    ensemble: TreeEnsemble
    inputs: TreeInputs
    rows: Floats
    train: Floats | None
    n_threads: int = 1
    steps: StepFunctions = field(init=False)

    def __post_init__(self) -> None:
        donors = [] if self.train is None else [self.train]
        self.steps = StepFunctions(self.ensemble, self.inputs, self.rows, donors, self.n_threads)
        self.ensemble, self.rows = self.steps.ensemble, _some(self.rows)
        self.index = {name: at for at, name in enumerate(self.frames.names)}
        self._single: dict[str, bool | None] = {}

    def with_rows(self, frames: Frames) -> TreeSteps:
        """Return the step functions for the rows of another table with the same columns."""
        rows = self.inputs.encode(frames.changed(slice(0, frames.n_rows), {}))
        some = copy(self)
        some.frames, some.rows = frames, _some(rows)
        try:
            some.steps = self.steps.with_rows(rows)
        except NotReadable:  # values that had no place
            some = TreeSteps(frames, self.ensemble, self.inputs, rows, self.train, self.n_threads)
            some._single = self._single
        return some

    @cached_property
    def train_places(self) -> Places:
        """Places of the training rows."""
        assert self.train is not None
        return self.steps.places_of(self.train)

    def single_precision(self, name: str) -> bool | None:
        """Return whether the model rounds a number to float32, or takes it as it is (False); None if it does neither.

        It is found out by encoding a few numbers.
        """
        if name not in self._single:
            self._single[name] = self._probe(name)
        return self._single[name]

    def _probe(self, name: str) -> bool | None:
        column = self.steps.columns[self.index[name]]
        if column.cuts is None or len(column.inputs) != 1:
            return None
        own = self.rows[:, column.inputs[0]]
        own = own[np.isfinite(own)]
        if not len(own):
            return None
        values = np.quantile(own, _PROBES) * (1 + 1.234567e-9)
        try:
            table = self.frames.changed(np.zeros(len(values), dtype=np.intp), {name: values})
            encoded = self.inputs.encode(table)[:, column.inputs[0]]
        except Exception:
            return None
        if np.array_equal(encoded, values):
            return False
        return True if np.array_equal(encoded, values.astype(np.float32)) else None

    def places(self, name: str, column: Column, rows: Rows | None) -> Places:
        """Return the places of the replacement of a column, for all rows or for some."""
        j = self.index[name]
        if isinstance(column, Donors):
            places = self.train_places if column.train else self.steps.places
            return np.asarray(places[column.rows, j])
        own = self.steps.columns[j]
        single = self.single_precision(name)
        if single is not None and column.dtype == np.float64:
            values = column.astype(np.float32).astype(np.float64) if single else column
            return own.of(values[:, None])
        at = np.arange(self.frames.n_rows) if rows is None else rows
        table = self.inputs.encode(self.frames.changed(at, {name: column}))
        return own.of(table[:, list(own.inputs)])

    def predict_jobs(self, jobs: Iterable[PredictionJob]) -> Iterator[tuple[PredictionJob, Predictions]]:
        """Yield the predictions of jobs, in their order."""
        waiting: list[PredictionJob] = []
        size = self.frames.n_rows * self.ensemble.n_outputs
        for job in jobs:
            several = len(job.changes) > 1
            waiting += [] if several else [job]
            if several or len(waiting) * size >= _LOOK_UPS:
                yield from self._look_up(waiting)
                waiting = []
            if several:
                yield job, self._predict(job)
        yield from self._look_up(waiting)

    def _predict(self, job: PredictionJob) -> Predictions:
        places = self.steps.places.copy() if job.rows is None else self.steps.places[job.rows]
        for name, column in job.changes.items():
            places[:, self.index[name]] = self.places(name, column, job.rows)
        return self.ensemble.response(self.steps.predict(places))

    def _look_up(self, jobs: Sequence[PredictionJob]) -> Iterator[tuple[PredictionJob, Predictions]]:
        """Yield the predictions of jobs that replace one column each, from one pass over the trees."""
        by_column: dict[int, list[PredictionJob]] = {}
        for job in jobs:
            by_column.setdefault(self.index[next(iter(job.changes))], []).append(job)
        wanted = []
        for j, own in by_column.items():
            places = np.tile(self.steps.places[:, j], (len(own), 1))
            for line, job in zip(places, own, strict=True):
                ((name, column),) = job.changes.items()
                line[slice(None) if job.rows is None else job.rows] = self.places(name, column, job.rows)
            wanted.append(ChangedColumn(j, np.arange(self.frames.n_rows), places))
        margins = self.steps.changed_margins(wanted) if wanted else []
        found = dict(zip(by_column, map(iter, margins), strict=True))
        for job in jobs:
            of_rows = next(found[self.index[next(iter(job.changes))]])
            some = of_rows if job.rows is None else of_rows[:, job.rows]
            yield job, self.ensemble.response(np.ascontiguousarray(some.T))


def _some(rows: Floats) -> Floats:
    """Return the rows, or some of many."""
    return rows if len(rows) < 2 * _KEPT else rows[:: len(rows) // _KEPT].copy()


def read_tree_steps(context: ScoringContext, features: Sequence[Feature], n_threads: int = 1) -> TreeSteps:
    """Return the step functions of the model of a call.

    Raises
    ------
    NotReadable
        If the model itself has to predict; the message states the reason.
    """
    predictor, frames = context.predictor, context.frames
    steps = unchecked_steps(predictor, frames, features, (frames.n_rows, context.n_repeats), n_threads)
    check_steps(predictor, steps, features, context.seed)
    return steps


def unchecked_steps(
    predictor: Predictor, frames: Frames, features: Sequence[Feature], sizes: tuple[int, int], n_threads: int = 1
) -> TreeSteps:
    """Return the step functions of a model; `sizes` are the numbers of rows and repeats that are to be evaluated."""
    require(use_tree_steps(), "SUBGROVE_TREE_STEPS is 0")
    ensemble, inputs = read_ensemble(predictor.model, predictor.method)
    n_columns = len({name for feature in features for name in feature})
    require(_pays(ensemble, sizes[0], len(features), n_columns, sizes[1]), "predictions are quicker")
    require(len(inputs.columns) == len(frames.names), "the model takes other columns")
    rows = inputs.encode(frames.changed(slice(0, frames.n_rows), {}))
    return TreeSteps(frames, ensemble, inputs, rows, _encoded_training(frames, inputs, features), n_threads)


def _encoded_training(frames: Frames, inputs: TreeInputs, features: Sequence[Feature]) -> Floats | None:
    """Return the training rows as the model would get them: columns of features in the dtypes of the test rows."""
    if frames.train is None:
        return None
    n = len(frames.train) if hasattr(frames.train, "__len__") else frames.train.num_rows
    names = dict.fromkeys(name for feature in features for name in feature)
    donors = Donors(np.arange(n), train=True)
    return inputs.encode(frames.changed(np.zeros(n, dtype=np.intp), dict.fromkeys(names, donors)))


def _pays(ensemble: TreeEnsemble, n_rows: int, n_features: int, n_columns: int, n_repeats: int) -> bool:
    """Return whether steps cost less than predictions, from the numbers of leaves, rows and features.

    In units of the model's own path through a tree: small trees cost about as much as one or two predictions, float32
    boosters, which predict quickest, up to 25; in larger trees more branches part from a path the fewer columns there
    are. Reading the model costs about as much as some predictions for each of its nodes.
    """
    n_leaves = (ensemble.n_nodes / ensemble.n_trees + 1) / 2
    passes = 3.0 if ensemble.tolerance < 1e-7 else 25.0
    if n_leaves > 128:
        depth = np.log2(n_leaves)
        passes = 2.5 * (1 + depth * depth / max(1.0, min(depth, n_columns)))
    predicted = n_features * n_repeats
    return predicted > passes and n_rows * predicted * ensemble.n_trees > 4 * ensemble.n_nodes


def check_steps(predictor: Predictor, tree: TreeSteps, features: Sequence[Feature], seed: int) -> None:
    """Raise unless the trees reproduce the model's predictions of changed rows, half of them with training values."""
    rng = stream(seed, "changed rows that tree steps are checked with")
    n_checked = CHECK_ROWS if tree.train is None else CHECK_ROWS // 2
    n, names = tree.frames.n_rows, list(dict.fromkeys(name for feature in features for name in feature))
    rows, donors = rng.integers(n, size=n_checked), rng.integers(n, size=n_checked)
    picked = rng.integers(len(names), size=n_checked)
    changes = [{name: Donors(np.where(picked == at, donors, rows)) for at, name in enumerate(names)}]
    if tree.train is not None:
        changes.append(dict.fromkeys(names, Donors(rng.integers(len(tree.train), size=n_checked), train=True)))
    for columns in changes:
        places = tree.steps.places[rows]
        for name, column in columns.items():
            places[:, tree.index[name]] = tree.places(name, column, rows)
        check_margins(predictor, tree.ensemble, tree.frames.changed(rows, columns), tree.steps.predict(places))


Steps = list[tuple[list[Feature], FittedSampler, TreeSteps]]  # of the features that share training rows


@dataclass(eq=False)
class ChunkTrees:
    """Step functions of a model, to be used for batches of rows.

    Attributes
    ----------
    predictor : Predictor
        The model; other processes read its trees anew.
    rows : table
        A few rows. Training rows are encoded in their dtypes.
    samplers : mapping
        Feature -> its sampler.
    sizes : (int, int)
        Numbers of rows, of all chunks together, and of repeats.
    """

    predictor: Predictor
    rows: Any
    samplers: Mapping[Feature, FittedSampler]
    sizes: tuple[int, int]
    _steps: Steps | None = field(init=False, default=None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "predictor": self.predictor.fresh(), "_steps": None}

    def check(self, seed: int) -> None:
        """Raise `NotReadable` unless the trees reproduce predictions of changed rows."""
        for features, _, steps in self.steps():
            check_steps(self.predictor, steps, features, seed)

    def steps(self) -> Steps:
        """Return the step functions of `rows`, for all features that share columns and training rows."""
        if self._steps is None:
            shared: dict[Any, tuple[list[Feature], FittedSampler]] = {}
            for feature, fitted in self.samplers.items():
                shared.setdefault((id(fitted.train), fitted.columns), ([], fitted))[0].append(feature)
            every = [*self.samplers]
            self._steps = [
                (some, fitted, unchecked_steps(self.predictor, self._frames(self.rows, fitted), every, self.sizes))
                for some, fitted in shared.values()
            ]
        return self._steps

    def of_batch(self, table: Any) -> Steps | None:
        """Return the step functions of other rows; None if the model itself has to predict them."""
        try:
            steps = self.steps()
            return [(some, fitted, one.with_rows(self._frames(table, fitted))) for some, fitted, one in steps]
        except NotReadable:
            return None

    def _frames(self, table: Any, fitted: FittedSampler) -> Frames:
        return Frames(table, fitted.columns, fitted.train)
