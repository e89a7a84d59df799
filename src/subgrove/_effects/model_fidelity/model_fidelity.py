"""How well an effect curve alone stands in for the model: Equation (9) of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import TOGETHER, quote
from subgrove._core.validate import reject_another_index
from subgrove._data.from_containers import names_and_rows
from subgrove._data.replace_columns import Frames
from subgrove._data.result_tables import backend_of
from subgrove._data.table import read_weights
from subgrove._effects import Effect
from subgrove._effects.model_fidelity.result import CurveLoss, ModelFidelity
from subgrove._effects.model_fidelity.target import targets_of
from subgrove._effects.outputs import ModelOutputs, model_for_effect
from subgrove._effects.predict import batch_rows
from subgrove._models.predictor import Predictions, Predictor
from subgrove.exceptions import InputError, ParameterError

_MEMORY = 512  # MiB that the tables given to the model may take


def model_fidelity(
    model: Any,
    X: Any,
    effects: Effect | Sequence[Effect] | Mapping[str, Effect | Sequence[Effect]],
    *,
    y: Any = None,
    response_method: str | None = None,
    sample_weight: Any = None,
) -> ModelFidelity:
    """How well effect curves alone stand in for the model: the mean squared difference of the two.

    For each row, a curve is read at the row's value of the feature; this is what one would foretell who knew the curve
    and that value only. Smaller is better.

    Parameters
    ----------
    model : object with predict or predict_proba, or function
        The model that the curves are of.
    X : pandas or polars frame, pyarrow table or 2-d array
        Rows to compare at, best others than the curves were computed on. Each is asked for once, however many curves
        there are.
    effects : Effect, list of Effect, or mapping
        What `effect` returned. A mapping from names to effects, or to lists of them, names the methods in the tables.
    y : column, optional
        What the model foretells. If given, curves are compared with it as well, which is how the paper's table was
        made. Of a class it is 1 in the rows that have the class and 0 elsewhere.
    response_method : {"predict", "predict_proba", "decision_function"}, optional
        What the model is asked for; the same as the effects were computed with.
    weights : 1-d array, optional
        How often each row counts.

    Returns
    -------
    ModelFidelity
        `table` has a row for each curve, `overall` one for each method.

    Notes
    -----
    How to read it: a feature alone seldom says much about a prediction, so that no curve comes near 0; compare
    methods, and compare with the variance of the predictions, which is what a flat line would give. Against the
    target, the noise of the target is added to every method alike. That a method with several curves a feature, such
    as PDPs in subgroups, is closer than one with a single curve is to be expected: its reader knows the subgroup, too.

    Curves are linear between their points and level beyond the ends; a level has its own value. With subgroups a row
    has its own subgroup's curve. Curves of kind "ale", whose mean is 0, are lifted by the mean prediction of the rows
    of X, in subgroups by that of the subgroup. A row that has no value on a curve, since the feature is missing in it,
    or has a level without a value, or lies in a subgroup without a curve, is given the mean prediction of X instead:
    this is what one would say who knows nothing of the feature, and all methods are judged by the same rows. The
    column `off_curve` counts such rows.

    `std_error` is over rows, as if these were drawn at random.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> groups = sg.find_subgroups(train.X, features="temp")
    >>> def model(X):
    ...     return 100 * X["temp"] - 2 * X["hum"] + 900 * (X["season"] == "SUMMER")
    >>> effects = {
    ...     "PDP": sg.effect(model, train.X, "temp"),
    ...     "ALE": sg.effect(model, train.X, "temp", kind="ale"),
    ...     "cs-PDP": sg.effect(model, train.X, "temp", subgroups=groups["temp"]),
    ... }
    >>> found = sg.model_fidelity(model, test.X, effects)
    >>> found.table[["feature", "method", "subgroups", "n", "estimate"]].round(1)
      feature  method  subgroups    n  estimate
    0    temp     PDP          1  219  147621.2
    1    temp     ALE          1  219  151285.5
    2    temp  cs-PDP          4  219    1669.0
    """
    curves = list(_named(effects))
    names, n_rows = names_and_rows(X)
    if not n_rows:
        raise InputError("X has no rows; fidelity is a mean over rows. Pass at least one.")
    reject_another_index(X, sample_weight=sample_weight)
    counted = read_weights(sample_weight, n_rows)
    asked = model_for_effect(model, response_method)
    answer = _answers(asked, Frames(X, ()), batch_rows(_MEMORY, len(names)))
    outputs = ModelOutputs.of(asked, None)
    labels = outputs.labels(1 if answer.ndim == 1 else answer.shape[1])
    predicted = _numbers(answer, asked.method)
    targets = None if y is None else targets_of(y, X, asked, labels)
    losses: list[CurveLoss] = []
    for method, effect in curves:
        columns = [_column_of(label, labels, effect) for label in effect.outputs]
        wanted = {"prediction": predicted[:, columns]}
        if targets is not None:
            wanted["target"] = targets[:, columns]
        losses += _losses_of(effect, method, X, wanted, counted)
    # All that is compared with the prediction first, so that methods stand below each other.
    ordered = tuple(sorted(losses, key=lambda loss: loss.against))
    return ModelFidelity(ordered, asked.n_rows, asked.n_calls, backend_of(X))


def _named(effects: Any) -> Iterator[tuple[str, Effect]]:
    """Each effect and what tables call its method."""
    if isinstance(effects, Effect):
        effects = [effects]
    named = isinstance(effects, Mapping)
    if not named and not isinstance(effects, list | tuple):
        raise ParameterError(
            f"effects must be what effect returned, a list of these or a mapping from names to them; "
            f"got {type(effects).__name__}."
        )
    pairs = effects.items() if named else [(None, effects)]
    found = 0
    for name, some in pairs:
        for effect in [some] if isinstance(some, Effect) else _checked_list(some):
            if not isinstance(effect, Effect):
                raise ParameterError(f"effects must hold what effect returned; got {type(effect).__name__}.")
            _reject_centred(effect)
            found += 1
            yield (_method(effect) if name is None else str(name)), effect
    if not found:
        raise ParameterError("effects is empty. Give at least one that effect returned.")


def _checked_list(some: Any) -> Sequence[Any]:
    if not isinstance(some, list | tuple):
        raise ParameterError(f"effects must hold what effect returned; got {type(some).__name__}.")
    return some


def _reject_centred(effect: Effect) -> None:
    if any(curve.ice is not None and curve.ice.centred for curve in effect.lines):
        raise ParameterError(
            f"The effect of {effect.feature!r} was centred, so its height says nothing about predictions. "
            f"Pass it as effect returned it."
        )


def _method(effect: Effect) -> str:
    """What tables call a method that the user did not name."""
    if effect.subgroups is None:
        return effect.kind
    tree = effect.subgroups.tree
    return f"{effect.kind}, {tree.method} tree of depth {tree.parameters['max_depth']}"


def _answers(model: Predictor, frames: Frames, batch: int) -> Predictions:
    """What the model says of each row, asked once."""
    parts = []
    for start in range(0, frames.n_rows, batch):
        piece = slice(start, min(start + batch, frames.n_rows))
        table = frames.changed(piece, {})
        parts.append(model.predict(table, piece.stop - piece.start, lambda row: "rows as they are"))
        model.writes = model.writes or not frames.holds(table, piece)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _numbers(answer: Predictions, method: str) -> Floats:
    """Predictions of all outputs: (rows, outputs)."""
    try:
        return np.asarray(answer, dtype=np.float64).reshape(len(answer), -1)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{method} gave {answer.dtype}, such as {answer.ravel()[0]!r}, which is no number that a curve could be "
            f"compared with. Pass the response that the effects were computed with."
        ) from None


def _column_of(label: Any, labels: Sequence[Any], effect: Effect) -> int:
    for at, known in enumerate(labels):
        if known == label and isinstance(known, bool) == isinstance(label, bool):
            return at
    raise ParameterError(
        f"The effect of {effect.feature!r} is of output {label!r}, but the model has the outputs {quote(labels[:20])}. "
        f"Pass the model and the response that it was computed with."
    )


def _losses_of(
    effect: Effect, method: str, X: Any, wanted: Mapping[str, Floats], weights: Floats | None
) -> Iterator[CurveLoss]:
    """Losses of an effect against the prediction, and against the target if there is one; one for each output."""
    predicted = wanted["prediction"]
    w = np.ones(len(predicted)) if weights is None else weights
    curve, off = _read(effect, X, predicted, w)
    name = effect.feature if isinstance(effect.feature, str) else TOGETHER.join(effect.feature)
    several = 1 if effect.subgroups is None else len(effect.subgroups)
    n, n_off = float(w.sum()), float(w[off].sum())
    for against, values in wanted.items():
        for at, output in enumerate(effect.outputs):
            squares = (values[:, at] - curve[:, at]) ** 2
            mean = float(squares @ w / n)
            error = float(np.sqrt((squares - mean) ** 2 @ w / (n - 1) / n)) if n > 1 else float("nan")
            yield CurveLoss(name, method, several, output, against, n, mean, error, n_off)


def _read(effect: Effect, X: Any, predicted: Floats, weights: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The curve of each row at the row's own value: (rows, outputs); and which rows have no value on it."""
    lone_column = isinstance(X, np.ndarray) and X.shape[1] == 1
    curve = effect.predict(X[:, 0] if lone_column else X).reshape(len(predicted), -1)
    if effect.kind == "ale":
        group = np.zeros(len(predicted), dtype=np.intp) if effect.subgroups is None else effect.subgroups.assign(X)
        curve = curve + _group_means(predicted, weights, group)[group]
    off = np.asarray(np.isnan(curve).any(axis=1))
    return np.where(off[:, None], predicted.T @ weights / weights.sum(), curve), off


def _group_means(values: Floats, weights: Floats, group: Rows) -> Floats:
    """Mean of each output in each subgroup; those without rows have none to lift."""
    mass = np.bincount(group, weights=weights)
    sums = np.stack([np.bincount(group, weights=weights * column) for column in values.T], axis=1)
    return np.asarray(sums / np.where(mass > 0, mass, 1.0)[:, None])
