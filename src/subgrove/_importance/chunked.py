"""Importance over large data: a sampler from a sample, then every chunk alone, and sums of them all.

Rows that the sampler is fitted on are not judged: where they are rows of the data themselves, they are left out. What
is chosen, certified or tried out beforehand is so on some hundred rows (`PilotRows`); the rest is `ChunkWork`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from subgrove._core.parallel import working_memory
from subgrove._core.random import Keys, read_seed
from subgrove._core.validate import whole_number
from subgrove._data.features import parse_features
from subgrove._data.table import read_table
from subgrove._importance.result import ImportanceResult
from subgrove._models.device import as_model
from subgrove._models.predictor import default_loss, gives_probabilities, read_model, response_for
from subgrove._scale import LargeData, as_large, is_large
from subgrove._scale.engines import run_chunks
from subgrove._scale.large_data import check_column_name, model_columns
from subgrove._scale.readers import ChunkedData, SampledRows, sample_rows
from subgrove._scoring.chunk_sums import ChunkSums
from subgrove._scoring.chunks import ChunkWork, ColumnRoles
from subgrove._scoring.feature_result import FeatureResult, result_from_sums
from subgrove._scoring.pilot import PilotRows
from subgrove._scoring.row_losses import names_of
from subgrove._subgroups import Partition
from subgrove._version import __version__
from subgrove.exceptions import InputError, ParameterError
from subgrove.losses.get import get_all
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.chosen import choices_of
from subgrove.samplers.conditioning import Given, conditional_on, read_given
from subgrove.samplers.fit import features_of, fitted_sampler, sampler_name, training_rows, with_columns
from subgrove.samplers.row_wise import from_training

PROBED = 400  # rows that fidelity_checks are made of, and that the model is tried out on
_BATCH_ROWS = 50_000
_LEAST_ROWS = 1_000
_COPIES = 6  # how many times the size of a batch it takes to build and predict it
_ASKING = "Asking the model"
_WHY_NOT = {
    "n_repeats": "each round of repeats would read all data again. Pass a number; with many rows, few repeats suffice.",
}


@dataclass(frozen=True)
class SubgroupsOnly:
    """What a result can be asked for beside its numbers: the subgroups that features are told by."""

    told: Mapping[Feature, Partition]


def importance_of_chunks(
    model: Any,
    X: LargeData,
    y: Any,
    *,
    sampler: Any,
    train: Any,
    features: Any,
    given: Any,
    loss: Any,
    n_repeats: Any,
    weights: Any,
    response: str | None,
    check_fidelity: bool,
    seed: int | None,
    n_jobs: int | None,
    progress: bool | None,
) -> ImportanceResult:
    """What `importance` gives for large data; arguments are those of it."""
    repeats = whole_number("n_repeats", n_repeats, least=1)
    size = whole_number("sample_size", X.sample_size, least=2)
    start, row_key = read_seed(seed), X.row_key
    model = as_model(model)
    losses = get_all(default_loss(model) if loss is None else loss)
    needed = response_for(losses, response)
    asked = read_model(model, needed)
    data = X.read()
    names = read_names(data, y, weights, row_key, model)
    sampler = with_columns(sampler)
    method = from_training(sampler)
    chosen = parse_features(features_of(sampler) if features is None else features, names.model)
    sets = None if given is None else read_given(given, chosen, names.model, named=features is not None)

    run = partial(run_chunks, n_jobs=n_jobs, progress=False, what="Drawing the sample")
    drawn = _drawn(data, names, train, method, size, start, run)
    with _about_drawn_rows(data):
        probe = PilotRows.of(
            drawn.probed, drawn.probe_keys, names, asked, losses, gives_probabilities(needed), drawn.all
        )
        samplers = _fitted_samplers(method, sets, chosen, probe, drawn.training, model, start)
    work = ChunkWork(
        asked,
        names,
        samplers,
        probe.scoring.losses,
        probe.scoring.target.classes,
        gives_probabilities(needed),
        repeats,
        start,
        _batch_rows(len(names.model), working_memory()),
        np.sort(drawn.left_out),
    )
    redraws = probe.redraws(work)
    mark = probe.mark(work, redraws, data)
    total = ChunkSums(len(chosen), len(losses), repeats)
    results = run_chunks(
        work, data.chunks, n_jobs=n_jobs, progress=progress, what=_ASKING, checkpoint=X.folder, mark=mark
    )
    for _, sums in results:
        total.add_arrays(sums)
    _reject_no_rows(total, names)
    fidelity_checks = probe.fidelity_checks(work, redraws) if check_fidelity else {}
    scores = []
    for number, feature in enumerate(chosen):
        part, redraw = total.parts[number], redraws[feature]
        assert part is not None
        scores.append(
            result_from_sums(
                feature,
                redraw.groups,
                part.moments,
                part.sums,
                part.spread,
                part.n_drawn,
                redraw.population,
                n_rows=total.n_rows,
                n_exact=part.n_exact,
                fidelity_check=fidelity_checks.get(feature),
                independent=True,
            )
        )
    settings = {
        "method": "importance",
        "sampler": sampler_name(sampler),
        "n_repeats": repeats,
        "random_state": start,
        "trained_on": drawn.trained_on,
        "sample_size": drawn.n_sampled,
        "left_out": total.n_left_out,
        "data": data.description,
        "chunks": len(data.chunks),
        "row_key": row_key,
        "choices": _choices(samplers),
        "given": None if sets is None else {title(one): _listed(own) for one, own in sets.items()},
        "n_rows_predicted": int(total.n_predicted[0]) + asked.n_rows,
        "n_calls": int(total.n_predicted[1]) + asked.n_calls,
        "fingerprint": probe.fingerprint(mark),
    }
    return _result(scores, work, total, settings, data.backend, samplers)


def reject_with_partitions(**given: Any) -> None:
    """Arguments that large data do not take, with the reason."""
    for name, value in given.items():
        if value is not None:
            raise ParameterError(f"{name}={value!r} is not there for large data: {_WHY_NOT[name]}")


def read_names(data: ChunkedData, y: Any, weights: Any, row_key: Any, model: Any) -> ColumnRoles:
    """Which columns are what; the model is given those that it was trained on, or all others if it does not tell."""
    if y is None:
        raise ParameterError(f"y must be the name of a column of {data.description}, the target; got None.")
    target = check_column_name(y, data, "y", "the target")
    counted = check_column_name(weights, data, "weights", "how often each row counts")
    key = check_column_name(row_key, data, "row_key", "which tells rows apart")
    assert target is not None
    return ColumnRoles(tuple(model_columns(data, model, (), (target, counted, key))), target, counted, key)


@dataclass(frozen=True)
class _Drawn:
    """Rows that were drawn from partitions: to fit the sampler on, and to try things out on."""

    training: Any
    probed: Any
    probe_keys: Keys
    left_out: Keys
    all: Any
    trained_on: str
    n_sampled: int


@contextmanager
def _about_drawn_rows(data: ChunkedData) -> Iterator[None]:
    """Numbers of rows in an error about input are those of a sample: say so."""
    try:
        yield
    except InputError as error:
        if str(error).startswith("train "):
            raise
        raise type(error)(f"In rows drawn at random from {data.description}: {error}") from error


def _drawn(data: ChunkedData, names: ColumnRoles, train: Any, method: Any, size: int, seed: int, run: Any) -> _Drawn:
    """Draw what is needed, in one go: the first rows of a sample are a sample."""
    needs = train is None and not isinstance(method, FittedSampler)
    if isinstance(method, FittedSampler) and train is not None:
        raise ParameterError(
            "train has no effect here: the sampler is fitted already. Leave train out, or pass a sampler to be fitted "
            "on it."
        )
    n = min(size, data.n_rows // 2) if needs else 0
    if needs and n < 2:
        raise InputError(
            f"{data.description} has {data.n_rows} row{'s' * (data.n_rows > 1)}, too few to fit the sampler on one "
            f"half and judge the other. "
            f"Pass training rows as train."
        )
    columns = (*names.model, *([names.target] if names.target not in names.model else []))
    found = sample_rows(data, columns, n + PROBED, seed, names.row_key, run)
    first, rest = _parted(found, n)
    training, trained_on, sampled = (first, "sample", n) if needs else (None, "before", 0)
    if train is not None:
        training, trained_on, sampled = _training(train, names, size, seed, run)
    return _Drawn(training, rest, found.keys[n:], found.keys[:n], found.table, trained_on, sampled)


def _parted(found: SampledRows, n: int) -> tuple[Any, Any]:
    if hasattr(found.table, "iloc"):
        return found.table.iloc[:n], found.table.iloc[n:].reset_index(drop=True)
    import narwhals as nw

    table = nw.from_native(found.table, eager_only=True)
    return table[:n].to_native(), table[n:].to_native()


def _training(train: Any, names: ColumnRoles, size: int, seed: int, run: Any) -> tuple[Any, str, int]:
    if not is_large(train):
        return training_rows(train), "train", 0
    data = as_large(train).read("train")
    data.reject_unknown(names.model, "train (the columns of the model)")
    key = names.row_key if names.row_key in (*data.columns, *data.beside) else None
    found = sample_rows(data, names.model, size, seed, key, run)
    return found.table, "train", found.n


def _fitted_samplers(
    method: Any,
    sets: Mapping[Feature, Given] | None,
    features: Sequence[Feature],
    probe: PilotRows,
    training: Any,
    model: Any,
    seed: int,
) -> dict[Feature, FittedSampler]:
    """What redraws each feature, fitted on training rows; features with the same conditioning columns together."""
    rows = None if training is None else probe.only_columns(training)
    table = read_table(probe.rows, lenient=True)
    together: dict[Any, list[Feature]] = {}
    for feature in features:
        together.setdefault(None if sets is None else sets[feature], []).append(feature)
    found: dict[Feature, FittedSampler] = {}
    for given, some in together.items():
        own = from_training(conditional_on(method, given, some[0], table.names))
        fitted, _ = fitted_sampler(own, probe.rows, table, rows, some, model, seed)
        found |= dict.fromkeys(some, fitted)
    return {feature: found[feature] for feature in features}


def _choices(samplers: Mapping[Feature, FittedSampler]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for feature, fitted in samplers.items():
        made = choices_of(fitted).get(title(feature))
        if made is not None:
            found[title(feature)] = [one.to_dict() for one in made]
    return found


def _listed(names: Given) -> list[str] | None:
    return None if names is None else list(names)


def _batch_rows(n_columns: int, memory: float) -> int:
    return int(np.clip(memory * 2**20 / (_COPIES * 8 * n_columns), _LEAST_ROWS, _BATCH_ROWS))


def _reject_no_rows(total: ChunkSums, names: ColumnRoles) -> None:
    if not total.n_rows:
        why = "" if names.weights is None else f": weights ({names.weights!r}) are 0 in all of them"
        raise InputError(f"No row is left to judge{why}.")


def _result(
    scores: Sequence[FeatureResult],
    work: ChunkWork,
    total: ChunkSums,
    settings: dict[str, Any],
    backend: str,
    samplers: Mapping[Feature, FittedSampler],
) -> ImportanceResult:
    assert total.baseline is not None
    versions = {"subgrove": __version__, "numpy": np.__version__, "python": platform.python_version()}
    result = ImportanceResult(
        tuple(scores),
        names_of(work.losses),
        tuple(total.baseline.mean[:, 0].tolist()),
        {**settings, "versions": versions},
        None,
        backend,
        per_row_losses=(True,) * len(work.losses),
    )
    told = {
        feature: groups for feature, one in samplers.items() if (groups := one.reporting_subgroups(feature)) is not None
    }
    return replace(result, _source=SubgroupsOnly(told))
