"""Importance of a model on a device: features are resampled on the host, everything else runs on the device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from subgrove._data.replace_columns import Frames
from subgrove._data.table import fingerprint
from subgrove._data.to_containers import backend_of
from subgrove._importance.result import ImportanceResult
from subgrove._importance.spec import (
    EvaluationRows,
    FittedRows,
    ImportanceSpec,
    read_rows,
    versions,
    warn_of_same_rows,
    warn_of_singletons,
)
from subgrove._models.device_arrays import TensorArrays, on_tensors
from subgrove._models.device_model import DeviceModel
from subgrove._models.device_table import DeviceMatrix, Sender, host_table, is_tensor, matrix_of, on_host
from subgrove._scoring.device import DevicePredictor, score_on_device
from subgrove._scoring.fidelity_check import FidelityChecker
from subgrove._scoring.row_losses import names_of


def runs_on_device(spec: ImportanceSpec) -> bool:
    """Return whether an importance is computed on the device: its losses are, and nothing needs single predictions."""
    if spec.response_method is not None or spec.adaptive is not None or spec.groups is not None:
        return False
    responses = ("value",) if spec.model.output == "value" else ("probability", "label")
    return all(loss.response_method in responses and on_tensors(loss) is not None for loss in spec.losses)


def importance_on_device(spec: ImportanceSpec) -> ImportanceResult:
    """Return the importance of features for a model on a device."""
    model: DeviceModel = spec.model
    host = host_table(spec.X, model.columns)
    probabilities = model.output != "value"
    data = read_rows(
        spec, host, on_host(spec.y), on_host(spec.sample_weight), model.classes or (), probabilities=probabilities
    )
    train = None if spec.train is None else host_table(spec.train, model.columns, "train")
    sampler, table = spec.fit_sampler(data.rows, data.table, train, data.features, data.given)
    frames = Frames(data.rows, table.columns, sampler.train)
    sampled = (sampler, table, data.weights, spec.seed)
    checker = FidelityChecker.of(frames, data.table, *sampled) if spec.check_fidelity else None
    with ThreadPoolExecutor(1) as pool:
        mark = pool.submit(fingerprint, data.table)  # reads the whole table, while the device works
        with model._inference():
            predictor = _predictor(spec, data, frames, host)
            baseline = predictor.baseline_losses()
            results = score_on_device(predictor, sampler, table, data.features, spec.n_repeats, spec.seed, checker)
    fitted = FittedRows(sampler, table, train, mark.result())
    warn_of_same_rows(sampler, fitted.fingerprint, data.table, table, train)
    warn_of_singletons(results)
    settings = spec.settings(
        fitted.settings,
        data.given,
        computed_on=str(model.device),
        batch_rows=predictor.batch,
        n_rows_predicted=predictor.n_predicted,
        n_calls=predictor.n_calls,
        fingerprint=fitted.fingerprint,
        versions={**versions(), "torch": str(predictor.torch.__version__)},
    )
    return ImportanceResult(
        tuple(results),
        names_of(spec.losses),
        tuple(baseline.tolist()),
        settings,
        backend=backend_of(host),
        per_row_losses=(True,) * len(spec.losses),
    )


def _predictor(spec: ImportanceSpec, data: EvaluationRows, frames: Frames, host: Any) -> DevicePredictor:
    model, send = spec.model, Sender(spec.model.device)
    values = _own_matrix(spec.X, host, model)
    if data.row_numbers is not None:
        values = values[send(data.row_numbers)]
    names = frames.names if model.columns is None else model.columns
    matrix = DeviceMatrix(values.contiguous(), names, send, frames.train_column)
    arrays = TensorArrays(frames.n_rows, data.weights, matrix)
    y = data.target.numbers if model.output == "value" else data.target.codes
    assert y is not None
    n_classes = 0 if model.output == "value" else len(data.target.classes)
    losses = [loss for loss in map(on_tensors, spec.losses) if loss is not None]
    return DevicePredictor(model, arrays, send(np.array(y)), losses, n_classes)


def _own_matrix(X: Any, host: Any, model: DeviceModel) -> Any:
    """Return the table on the device, in memory of its own: columns of it are written."""
    source = X if is_tensor(X) or isinstance(X, np.ndarray) else host
    matrix = matrix_of(source, model.columns, model.device, model.dtype)
    shared = is_tensor(X) and matrix.data_ptr() == X.data_ptr()
    return matrix.clone() if shared or (isinstance(X, np.ndarray) and model.device.type == "cpu") else matrix
