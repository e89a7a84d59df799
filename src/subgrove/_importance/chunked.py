"""Importance of large data: a sampler fitted on a sample of rows, then sums over independent chunks.

Rows that the sampler is fitted on are not evaluated: where they are rows of the data themselves, they are left out.
Samplers are selected and checked on a few hundred rows (`PilotRows`); the rest is `ChunkWork`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.execution import Keys, working_memory
from subgrove._core.validate import whole_number
from subgrove._core.weights import FrequencyWeights, unwrapped
from subgrove._data.replace_columns import Frames
from subgrove._data.table import read_table
from subgrove._importance.recompute import reporting_subgroups
from subgrove._importance.result import ImportanceResult
from subgrove._importance.spec import ImportanceSpec, versions
from subgrove._importance.tables import ResultInputs
from subgrove._models.predictor import gives_probabilities, read_model, response_for
from subgrove._models.tree_ensemble.ensemble import NotReadable
from subgrove._models.tree_ensemble.reading import TREE_STEPS, model_predictions
from subgrove._scale import as_large, is_large
from subgrove._scale.engines import run_chunks
from subgrove._scale.large_data import check_column_name, model_columns
from subgrove._scale.readers import ChunkedData, sample_rows
from subgrove._scoring.chunk_sums import ChunkSums
from subgrove._scoring.chunks import ChunkWork, ColumnRoles
from subgrove._scoring.context import why_no_trees
from subgrove._scoring.pilot import PilotRows
from subgrove._scoring.row_losses import names_of
from subgrove._scoring.tree_steps import ChunkTrees
from subgrove.exceptions import InputError, ParameterError
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.fit import fitted_sampler, row_wise_sampler, training_rows
from subgrove.samplers.given import Given, conditional_on

PILOT_ROWS = 400  # for fidelity checks and trial predictions
_BATCH_ROWS = 50_000
_MIN_BATCH_ROWS = 1_000
_COPIES = 6  # memory needed to build and predict a batch, as a multiple of its size


def importance_of_chunks(spec: ImportanceSpec) -> ImportanceResult:
    """Return the importance of large data."""
    large = as_large(spec.X)
    if spec.adaptive is not None:
        raise ParameterError(
            "n_repeats=AdaptiveRepeats(...) is not available for large data: each round of repeats would read all data "
            "again. Pass a number; with many rows, few repeats suffice."
        )
    if spec.groups is not None:
        raise ParameterError(
            "groups is not available for large data, whose sums are not stored by group. Call importance with a table "
            "in memory of all rows of some of the groups."
        )
    sample_size = whole_number("sample_size", large.sample_size, least=2)
    response = response_for(spec.losses, spec.response_method)
    probabilities = gives_probabilities(response)
    predictor = read_model(spec.model, response)
    data = large.read()
    columns = column_roles(data, spec, large.row_key)
    method = row_wise_sampler(spec.sampler)
    features = spec.parse_features(columns.model)
    given = spec.parse_given(features, columns.model)

    run = partial(run_chunks, n_jobs=spec.n_jobs, what="Drawing the sample")
    drawn = _draw_rows(data, columns, spec, method, sample_size, run)
    with _errors_of_sampled_rows(data):
        pilot = PilotRows.of(drawn.pilot, drawn.pilot_keys, columns, predictor, spec.losses, probabilities, drawn.all)
        samplers = _fitted_samplers(spec, method, features, given, pilot, drawn.training)
    batch_rows = working_memory() * 2**20 / (_COPIES * 8 * len(columns.model))
    work = ChunkWork(
        predictor=predictor,
        columns=columns,
        samplers=samplers,
        losses=pilot.losses.losses,
        classes=pilot.losses.target.classes,
        probabilities=probabilities,
        n_repeats=spec.n_repeats,
        seed=spec.seed,
        batch_rows=int(np.clip(batch_rows, _MIN_BATCH_ROWS, _BATCH_ROWS)),
        left_out=np.sort(drawn.left_out),
    )
    evaluation = _read_trees(work, pilot, data.n_rows)
    resampled = pilot.resample(work)
    inputs = f"{pilot.describe_inputs(work, resampled, data)}\nevaluation: {evaluation}"
    total = ChunkSums(len(features), len(spec.losses))
    options: dict[str, Any] = {"n_jobs": spec.n_jobs, "what": "Predicting"}
    for _, sums in run_chunks(work, drawn.chunks, **options, checkpoint=large.folder, mark=inputs):
        total.add_arrays(sums)
    if not total.n_rows:
        reason = "" if columns.weights is None else f": weights ({columns.weights!r}) are 0 in all of them"
        raise InputError(f"No rows left to evaluate{reason}.")
    checks = pilot.fidelity_checks(work, resampled) if spec.check_fidelity else {}
    results = [
        total.result(number, feature, resampled[feature], checks.get(feature))
        for number, feature in enumerate(features)
    ]
    settings = spec.settings(
        {"trained_on": drawn.trained_on, "choices": _choices(samplers)},
        given,
        sample_size=drawn.n_sampled,
        left_out=total.n_left_out,
        data=data.description,
        chunks=len(data.chunks),
        row_key=large.row_key,
        evaluation=evaluation if work.trees is None else _evaluation(*total.n_batches),
        n_rows_predicted=int(total.n_predicted[0]) + predictor.n_rows,
        n_calls=int(total.n_predicted[1]) + predictor.n_calls,
        fingerprint=pilot.fingerprint(inputs),
        versions=versions(),
    )
    return ImportanceResult(
        tuple(results),
        names_of(work.losses),
        tuple(total.baseline.mean[:, 0].tolist()),
        settings,
        None,
        data.backend,
        per_row_losses=(True,) * len(work.losses),
        _source=ResultInputs(reporting_subgroups(samplers)),
    )


def _read_trees(work: ChunkWork, pilot: PilotRows, n_rows: int) -> str:
    """Give the work the trees of the model if they can be used; return how rows are evaluated, for the settings."""
    if reason := why_no_trees(work.predictor.model):
        return model_predictions(reason)
    trees = ChunkTrees(work.predictor, pilot.rows, work.samplers, (n_rows, work.n_repeats))
    try:
        trees.check(work.seed)
    except NotReadable as error:
        return model_predictions(str(error))
    work.trees = trees
    return TREE_STEPS


def _evaluation(n_batches: int, n_by_trees: int) -> str:
    """Return how batches of rows were evaluated, if the trees could be read."""
    if n_by_trees == n_batches:
        return TREE_STEPS
    return model_predictions(f"trees served {n_by_trees} of {n_batches} batches of rows")


def column_roles(data: ChunkedData, spec: ImportanceSpec, row_key: str | None) -> ColumnRoles:
    """Return the roles of columns; the model is given those it was fitted on, or else all others."""
    if spec.y is None:
        raise ParameterError(f"y must be the name of a column of {data.description}, the target; got None.")
    target = check_column_name(spec.y, data, "y", "the target")
    weights = check_column_name(unwrapped(spec.sample_weight), data, "weights", "the weight of each row")
    assert target is not None
    columns = tuple(model_columns(data, spec.model, (), (target, weights, row_key)))
    return ColumnRoles(columns, target, weights, isinstance(spec.sample_weight, FrequencyWeights), row_key)


@dataclass(frozen=True)
class _DrawnRows:
    """Rows drawn at random: training rows of the sampler, and pilot rows."""

    training: Any
    pilot: Any
    pilot_keys: Keys
    left_out: Keys
    all: Any
    trained_on: str
    n_sampled: int
    chunks: Sequence[Any]


@contextmanager
def _errors_of_sampled_rows(data: ChunkedData) -> Iterator[None]:
    """Add to errors about input that their row numbers are those of a sample."""
    try:
        yield
    except InputError as error:
        if str(error).startswith("train "):
            raise
        raise type(error)(f"In rows drawn at random from {data.description}: {error}") from error


def _draw_rows(
    data: ChunkedData, columns: ColumnRoles, spec: ImportanceSpec, method: Any, size: int, run: Any
) -> _DrawnRows:
    """Draw training and pilot rows at once: the first rows of a sample are a sample."""
    train, fits = spec.train, spec.train is None and not isinstance(method, FittedSampler)
    if isinstance(method, FittedSampler) and train is not None:
        raise ParameterError(
            "train has no effect here: the sampler is fitted already. Leave train out, or pass a sampler to be fitted "
            "on it."
        )
    n = min(size, data.n_rows // 2) if fits else 0
    if fits and n < 2:
        raise InputError(
            f"{data.description} has {data.n_rows} row{'s' * (data.n_rows > 1)}, too few to fit the sampler on one "
            f"half and evaluate the other. Pass training rows as train."
        )
    names = (*columns.model, *([columns.target] if columns.target not in columns.model else []))
    sample = sample_rows(data, names, n + PILOT_ROWS, spec.seed, columns.row_key, run)
    frames = Frames(sample.table, ())
    first, others = frames.changed(slice(n), {}), frames.changed(slice(n, None), {})
    training, trained_on, n_sampled = (first, "sample", n) if fits else (None, "before", 0)
    if train is not None:
        training, trained_on, n_sampled = _training_rows(train, columns, size, spec.seed, run)
    keys = (sample.keys[n:], sample.keys[:n])
    return _DrawnRows(training, others, *keys, sample.table, trained_on, n_sampled, sample.chunks)


def _training_rows(train: Any, columns: ColumnRoles, size: int, seed: int, run: Any) -> tuple[Any, str, int]:
    if not is_large(train):
        return training_rows(train), "train", 0
    data = as_large(train).read("train")
    data.reject_unknown(columns.model, "train (the columns of the model)")
    key = columns.row_key if columns.row_key in (*data.columns, *data.beside) else None
    sample = sample_rows(data, columns.model, size, seed, key, run)
    return sample.table, "train", sample.n


def _fitted_samplers(
    spec: ImportanceSpec,
    method: Any,
    features: Sequence[Feature],
    given: Mapping[Feature, Given] | None,
    pilot: PilotRows,
    training: Any,
) -> dict[Feature, FittedSampler]:
    """Return the fitted sampler of each feature; features with the same conditioning columns share one."""
    rows = None if training is None else pilot.only_columns(training)
    table = read_table(pilot.rows, lenient=True)
    by_given: dict[Any, list[Feature]] = {}
    for feature in features:
        by_given.setdefault(None if given is None else given[feature], []).append(feature)
    samplers: dict[Feature, FittedSampler] = {}
    for columns, some in by_given.items():
        own = row_wise_sampler(conditional_on(method, columns, some[0], table.names))
        fitted, _ = fitted_sampler(own, pilot.rows, table, rows, some, spec.model, spec.seed)
        samplers |= dict.fromkeys(some, fitted)
    return {feature: samplers[feature] for feature in features}


def _choices(samplers: Mapping[Feature, FittedSampler]) -> dict[str, Any]:
    choices = {title(feature): fitted.selections().get(title(feature)) for feature, fitted in samplers.items()}
    return {name: [one.to_dict() for one in made] for name, made in choices.items() if made is not None}
