"""Name and fit the samplers that are compared, one feature at a time where one fit cannot serve all features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from subgrove._data.table import Table
from subgrove._fidelity.result import MARGINAL, UNCHANGED
from subgrove.exceptions import ParameterError, SubgroveError
from subgrove.samplers.base import Feature, FittedSampler, Sampler
from subgrove.samplers.fit import fitted_sampler, read_sampler, sampler_name, with_columns
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.unchanged import Unchanged
from subgrove.samplers.user_defined import check_user_sampler

Fit = FittedSampler | str  # a fitted sampler, or the reason why fitting failed


def name_samplers(samplers: Any) -> dict[str, Any]:
    """Return a dict from name to sampler, from the upper bound "unchanged" to the lower bound "marginal"."""
    if isinstance(samplers, Mapping):
        pairs = [(str(name), _read(sampler)) for name, sampler in samplers.items()]
    else:
        read = [_read(sampler) for sampler in _listed(samplers)]
        pairs = [(sampler_name(sampler), sampler) for sampler in read]
    named: dict[str, Any] = {UNCHANGED: Unchanged()}
    for name, sampler in pairs:
        if isinstance(sampler, Unchanged) or (isinstance(sampler, Marginal) and not sampler.fixed_points):
            continue  # the bounds are always included
        named[_unique_name(name, {*named, MARGINAL})] = sampler
    return {**named, MARGINAL: Marginal()}


def fit_each(
    sampler: Any, rows: Any, table: Table, train: Any, features: Sequence[Feature], model: Any, seed: int
) -> dict[Feature, Fit]:
    """Return the fitted sampler for each feature, or the reason why it cannot resample that feature."""
    try:
        training = None if _needs_no_training(sampler) else train
        fitted, _ = fitted_sampler(sampler, rows, table, training, features, model, seed)
    except SubgroveError as error:
        if len(features) == 1:
            return {features[0]: str(error)}
        # A feature that the sampler does not support must not exclude the other features.
        parts = [fit_each(sampler, rows, table, train, [feature], model, seed) for feature in features]
        return {feature: fit for part in parts for feature, fit in part.items()}
    return dict.fromkeys(features, fitted)


def _listed(samplers: Any) -> list[Any]:
    if isinstance(samplers, str) or not isinstance(samplers, Iterable) or hasattr(samplers, "partitions"):
        samplers = [samplers]
    return list(samplers)


def _read(sampler: Any) -> Any:
    """Return a sampler of this package, or the user's object if it meets the sampler contract."""
    sampler = with_columns(sampler)
    if isinstance(sampler, FittedSampler | Sampler):
        return sampler
    if isinstance(sampler, str) or hasattr(sampler, "partitions"):
        return read_sampler(sampler)
    try:
        check_user_sampler(sampler)
    except ParameterError as error:
        raise ParameterError(f"samplers: {error}") from None
    return sampler


def _needs_no_training(sampler: Any) -> bool:
    """Whether the sampler is already fitted, on rows of the user's choice."""
    return isinstance(sampler, FittedSampler) or (
        isinstance(sampler, Sampler) and sampler.prefitted and sampler.ignores_train
    )


def _unique_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number appended if it is already taken."""
    label, number = name, 1
    while label in taken:
        number += 1
        label = f"{name} ({number})"
    return label
