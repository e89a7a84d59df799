"""The samplers that are compared: read, named, and fitted feature by feature where they do not take all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from subgrove._data.table import Table
from subgrove._fidelity.result import MARGINAL, UNCHANGED
from subgrove.exceptions import ParameterError, SubgroveError
from subgrove.samplers.base import Feature, FittedSampler, Sampler
from subgrove.samplers.fit import fitted_sampler, read_sampler, sampler_name, with_columns
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.subgroups import SubgroupSampler
from subgrove.samplers.unchanged import Unchanged
from subgrove.samplers.user_defined import reject_what_is_no_sampler

Fit = FittedSampler | str  # a fitted sampler, or why there is none


def name_samplers(samplers: Any) -> dict[str, Any]:
    """Name -> sampler, between the two bounds."""
    if isinstance(samplers, Mapping):
        pairs = [(str(name), _read(sampler)) for name, sampler in samplers.items()]
    else:
        read = [_read(sampler) for sampler in _listed(samplers)]
        pairs = [(sampler_name(sampler), sampler) for sampler in read]
    found: dict[str, Any] = {UNCHANGED: Unchanged()}
    for name, sampler in pairs:
        if isinstance(sampler, Unchanged) or (isinstance(sampler, Marginal) and not sampler.fixed_points):
            continue  # they are there anyway
        found[_another(name, {*found, MARGINAL})] = sampler
    return {**found, MARGINAL: Marginal()}


def fit_each(
    sampler: Any, rows: Any, table: Table, train: Any, features: Sequence[Feature], model: Any, seed: int
) -> dict[Feature, Fit]:
    """The fitted sampler for each feature, or why it cannot redraw it."""
    try:
        own = None if _needs_no_training(sampler) else train
        fitted, _ = fitted_sampler(sampler, rows, table, own, features, model, seed)
    except SubgroveError as error:
        if len(features) == 1:
            return {features[0]: str(error)}
        # One that it does not take is no reason to leave out the others.
        parts = [fit_each(sampler, rows, table, train, [feature], model, seed) for feature in features]
        return {feature: fit for part in parts for feature, fit in part.items()}
    return dict.fromkeys(features, fitted)


def _listed(samplers: Any) -> list[Any]:
    if isinstance(samplers, str) or not isinstance(samplers, Iterable) or hasattr(samplers, "partitions"):
        samplers = [samplers]
    return list(samplers)


def _read(sampler: Any) -> Any:
    """A sampler of this package, or an object of the user that can be one."""
    sampler = with_columns(sampler)
    if isinstance(sampler, FittedSampler | Sampler):
        return sampler
    if isinstance(sampler, str) or hasattr(sampler, "partitions"):
        return read_sampler(sampler)
    try:
        reject_what_is_no_sampler(sampler)
    except ParameterError as error:
        raise ParameterError(f"samplers: {error}") from None
    return sampler


def _needs_no_training(sampler: Any) -> bool:
    """Whether it was fitted before, on rows that the user chose."""
    found = isinstance(sampler, SubgroupSampler) and sampler.groups is not None and sampler.donors == "test"
    return isinstance(sampler, FittedSampler) or found


def _another(name: str, taken: Iterable[str]) -> str:
    """The name, with a number if it is taken."""
    label, number = name, 1
    while label in taken:
        number += 1
        label = f"{name} ({number})"
    return label
