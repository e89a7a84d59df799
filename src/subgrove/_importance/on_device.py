"""`importance` of a model on a device: the sampler works on the host, everything else where the model is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.moments import Moments
from subgrove._core.parallel import one_blas_thread, progress_bar
from subgrove._core.random import Streams
from subgrove._core.validate import reject_another_index
from subgrove._data.features import parse_features
from subgrove._data.fingerprint import fingerprint
from subgrove._data.replace_columns import Changes, Frames
from subgrove._data.table import Table, read_table
from subgrove._data.to_containers import backend_of
from subgrove._importance.build_result import read_counts, versions
from subgrove._importance.result import ImportanceResult
from subgrove._models.device.host import host_table, on_host
from subgrove._models.device.losses import on_tensors
from subgrove._models.device.matrix import DeviceMatrix, Sender, matrix_of
from subgrove._models.device.model import DeviceModel
from subgrove._models.device.torch import is_tensor
from subgrove._models.predictor import Target, read_target
from subgrove._scoring.device_accumulate import DeviceContext
from subgrove._scoring.device_predict import (
    DevicePredictor,
    DrawnFeature,
    PendingSums,
    ahead,
    prepared,
    reject_not_finite,
)
from subgrove._scoring.feature_result import FeatureResult, result_from_sums
from subgrove._scoring.fidelity_check.check import FidelityCheck, FidelityChecker
from subgrove._scoring.row_losses import names_of
from subgrove._scoring.score import resample
from subgrove.losses import Loss
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.chosen import choices_of
from subgrove.samplers.conditioning import fitted_given, parts_of, read_given
from subgrove.samplers.fit import features_of, fitted_sampler, sampler_name, with_columns
from subgrove.samplers.redraw import ResampledFeature
from subgrove.samplers.user_defined import UserSampler

_MOST_WORKERS = 4  # threads that draw while a GPU works


@dataclass(frozen=True, eq=False)
class ImportanceSpec:
    """What the user asked for, read: see `importance`."""

    sampler: Any
    train: Any
    features: Any
    given: Any
    losses: tuple[Loss, ...]
    n_repeats: int
    weights: Any
    check_fidelity: bool
    seed: int
    progress: bool | None


def goes_on_device(model: Any, losses: Sequence[Loss], response: Any, *others: Any) -> bool:
    """Whether an importance is computed on the device: losses are known there, and nothing needs each prediction."""
    if not isinstance(model, DeviceModel) or response is not None or any(other is not None for other in others):
        return False
    answers = ("value",) if model.gives == "value" else ("probability", "label")
    return all(loss.response_method in answers and on_tensors(loss) is not None for loss in losses)


def importance_on_device(model: DeviceModel, X: Any, y: Any, asked: ImportanceSpec) -> ImportanceResult:
    """The importance of features for a model on a device."""
    from subgrove._importance.checks import trained_on, warn_of_same_rows, warn_of_singletons

    host = host_table(X, model.columns)
    table = read_table(host, lenient=True)
    sampler = with_columns(asked.sampler)
    features = parse_features(features_of(sampler) if asked.features is None else asked.features, table.names)
    y, weights = on_host(y), on_host(asked.weights)
    reject_another_index(host, y=y, sample_weight=weights)
    probabilities = model.gives != "value"
    target = read_target(y, table.n_rows, model.classes or (), asked.losses, probabilities=probabilities)
    counted = read_counts(weights, table.n_rows)
    matrix = _own_matrix(X, host, model)
    rows, kept = host, None
    if counted is not None and not (counted > 0).all():
        kept = np.flatnonzero(counted > 0)
        rows = Frames(host, table.columns).changed(kept, {})
        table, counted, target = read_table(rows, lenient=True), counted[kept], target.taken(kept)
        matrix = matrix[Sender(model.device)(kept)]
    sets = None
    if asked.given is not None:
        sets = read_given(asked.given, features, table.names, named=asked.features is not None)
    train = host_table(asked.train, model.columns, "train") if asked.train is not None else None
    if sets is None:
        fitted, redrawn = fitted_sampler(sampler, rows, table, train, features, model, asked.seed)
    else:
        fitted, redrawn = fitted_given(sampler, sets, rows, table, train, model, asked.seed)
    frames = Frames(rows, redrawn.columns, fitted.train)
    checker = FidelityChecker.of(frames, table, counted, asked.seed) if asked.check_fidelity else None
    with ThreadPoolExecutor(1) as aside:
        mark = aside.submit(fingerprint, table)  # reads the whole table, while the device works
        with model._asked():
            asker = _asker(model, matrix, frames, target, counted, asked.losses)
            baseline = asker.ask_originals()
            scores = _scored(asker, fitted, redrawn, features, asked, checker)
    warn_of_same_rows(fitted, mark.result(), redrawn, train, level=4)
    warn_of_singletons(scores, level=4)
    settings = {
        "method": "importance",
        "sampler": sampler_name(sampler),
        "n_repeats": asked.n_repeats,
        "random_state": asked.seed,
        "trained_on": trained_on(fitted, train),
        "choices": {name: [one.to_dict() for one in made] for name, made in choices_of(fitted).items()},
        "given": None if sets is None else {title(one): names and list(names) for one, names in sets.items()},
        "computed_on": str(model.device),
        "batch_rows": asker.batch,
        "n_rows_predicted": asker.n_predicted,
        "n_calls": asker.n_calls,
        "fingerprint": mark.result(),
        "versions": {**versions(), "torch": str(asker.torch.__version__)},
    }
    return ImportanceResult(
        tuple(scores),
        names_of(asked.losses),
        tuple(baseline.tolist()),
        settings,
        backend=backend_of(host),
        per_row_losses=(True,) * len(asked.losses),
    )


def _own_matrix(X: Any, host: Any, model: DeviceModel) -> Any:
    """The table on the device, in memory of our own: columns of it are written."""
    matrix = matrix_of(
        X if is_tensor(X) or isinstance(X, np.ndarray) else host, model.columns, model.device, model.dtype
    )
    shared = is_tensor(X) and matrix.data_ptr() == X.data_ptr()
    return matrix.clone() if shared or (isinstance(X, np.ndarray) and model.device.type == "cpu") else matrix


def _asker(
    model: DeviceModel, matrix: Any, frames: Frames, target: Target, counted: Floats | None, losses: Sequence[Loss]
) -> DevicePredictor:
    send = Sender(model.device)
    names = frames.names if model.columns is None else model.columns
    table = DeviceMatrix(matrix.contiguous(), names, send, frames.train_column)
    weights = None if counted is None else send(np.append(counted, 0.0))
    ground = DeviceContext(table, weights, counted, len(losses), frames.n_rows)
    answers = target.numbers if model.gives == "value" else target.codes
    assert answers is not None
    n_classes = 0 if model.gives == "value" else len(target.classes)
    known = [loss for loss in map(on_tensors, losses) if loss is not None]
    return DevicePredictor(model, ground, send(np.array(answers)), known, n_classes)


def _scored(
    asker: DevicePredictor,
    fitted: FittedSampler,
    table: Table,
    features: tuple[Feature, ...],
    asked: ImportanceSpec,
    checker: FidelityChecker | None,
) -> list[FeatureResult]:
    """Scores of features: each is asked for before those of the last one are read."""
    counted, n = asker.ground.counted, asker.ground.n_rows

    def ready(feature: Feature) -> DrawnFeature:
        rngs = Streams(asked.seed, title(feature), asked.n_repeats)
        return prepared(feature, resample(fitted, table, feature, rngs, counted), n)

    scores: list[FeatureResult] = []
    waiting: tuple[DrawnFeature, PendingSums, _Look] | None = None
    with progress_bar(asked.progress, len(features), "Asking the model") as done:
        for one in ahead(ready, features, _workers(asker.model, fitted)):
            look = _Look(one, checker)
            pending = asker.ask(one, asked.n_repeats, look)
            if waiting is not None:
                scores.append(_read(*waiting, counted))
                done(1)
            waiting = (one, pending, look)
        if waiting is not None:
            scores.append(_read(*waiting, counted))
            done(1)
    return scores


class _Look:
    """Sees the first draw of a feature, if a fidelity_check is asked for."""

    def __init__(self, one: DrawnFeature, checker: FidelityChecker | None) -> None:
        self.one, self.checker = one, checker
        self.seen: Table | str | None = None

    def __call__(self, changes: Changes) -> None:
        if self.checker is not None:
            self.seen = self.checker.read_draw(changes)

    def fidelity_check(self) -> FidelityCheck | None:
        """What is judged of it; where all is exact, of a draw that is made for it."""
        if self.checker is None:
            return None
        seen = self.checker.first_draw(self.one.redraw) if self.seen is None else self.seen
        with one_blas_thread():
            return self.checker.check(self.one.feature, seen)


def _workers(model: DeviceModel, fitted: FittedSampler) -> int:
    """Threads that draw: one where the processor is needed for the model, or where the sampler is the user's own."""
    if model.device.type == "cpu" or any(isinstance(part, UserSampler) for part in parts_of(fitted)):
        return 1
    return min(_MOST_WORKERS, os.cpu_count() or 1)


def _read(one: DrawnFeature, pending: PendingSums, look: _Look, counted: Floats | None) -> FeatureResult:
    """The scores of a feature, once its sums are there."""
    fidelity_check = look.fidelity_check()  # while the device works
    sums = pending.arrays()
    reject_not_finite(sums["bad"], f"feature {title(one.feature)!r}")
    return replace(_score(one.feature, one.redraw, sums, counted), fidelity_check=fidelity_check)


def _score(
    feature: Feature, redraw: ResampledFeature, sums: dict[str, Floats], counted: Floats | None
) -> FeatureResult:
    groups, m = redraw.groups, sums["sums"].shape[1]
    sizes = np.bincount(groups.code, weights=counted, minlength=len(groups)).astype(np.float64)
    moments = sums["moments"]
    n = np.broadcast_to(sizes, moments[:, 0].shape).copy()
    spread = np.maximum(sums["squares"] - m * sums["squares_of_means"][0], 0.0)
    if len(sums["squares_of_means"]) > 1:
        of_donors = sums["squares_of_means"][1]
        if counted is not None:
            # Such draws also vary in how many rows a donor gives its value to.
            spread += of_donors * (m - 1) / m
        else:
            spread += np.maximum(sums["squares"] - m * of_donors, 0.0)
        if sums["among"]:
            spread *= np.where(sizes > 2, (sizes - 1) / np.maximum(sizes - 2, 1.0), 1.0) ** 2
    exact = None if redraw.exact is None else redraw.exact.rows
    drawn = np.bincount(groups.code if exact is None else groups.code[~exact], minlength=len(groups))
    return result_from_sums(
        feature,
        groups,
        Moments(n, *(moments[:, at] for at in range(4))),
        sums["sums"],
        spread,
        drawn.astype(np.float64),
        redraw.population,
        n_rows=len(groups.code),
        n_exact=0 if exact is None else int(exact.sum()),
        singletons=tuple(np.flatnonzero((redraw.population == 0) & (sizes > 0)).tolist()),
    )
