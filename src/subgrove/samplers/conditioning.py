"""Any conditioning set: which columns a redraw is conditional on, from none (marginal) to all others (conditional).

A sampler takes part by a parameter, or an attribute, `given`: names of columns, or None for all others. It is never
changed: a copy of it is. Without any column every sampler is the marginal one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

from subgrove._core.kinds import Floats
from subgrove._core.random import Streams
from subgrove._core.text import quote
from subgrove._data.features import allowed_columns
from subgrove._data.table import Table
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, title
from subgrove.samplers.fit import fitted_sampler, read_sampler, sampler_name
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.redraw import ResampledFeature
from subgrove.samplers.subgroups import SubgroupSampler

Given = tuple[str, ...] | None  # columns that a feature is redrawn conditional on; None leaves it to the sampler
_NO_GROUPS = "given cannot change subgroups that were found before. Pass given to find_subgroups, or "

_EVERY = "all others"


def read_given(given: Any, features: Sequence[Feature], columns: Sequence[str], *, named: bool) -> dict[Feature, Given]:
    """For each feature the columns that `given` names, in the order of the table.

    `named` says whether the user named the features: a feature that is also in `given` is then a mistake. Else `given`
    is meant for many features at once, and each is left out of its own columns.
    """
    if isinstance(given, Mapping):
        return _by_feature(given, features, columns)
    asked = allowed_columns(given, columns)
    sets: dict[Feature, Given] = {}
    for feature in features:
        own = [name for name in asked if name in feature]
        if own and named:
            raise ParameterError(
                f"given names {quote(own)}, which is redrawn itself: a feature cannot be conditional on itself. Leave "
                f"it out of given, or pass given as a dict from feature to columns."
            )
        sets[feature] = tuple(name for name in asked if name not in feature)
    return sets


def _by_feature(given: Mapping[Any, Any], features: Sequence[Feature], columns: Sequence[str]) -> dict[Feature, Given]:
    known = {frozenset(feature): feature for feature in features}
    by_title = {title(feature): feature for feature in features}
    sets: dict[Feature, Given] = dict.fromkeys(features)
    for key, names in given.items():
        members = frozenset(map(str, key)) if isinstance(key, tuple | list | frozenset) else frozenset([str(key)])
        feature = known.get(members) or by_title.get(str(key))
        if feature is None:
            raise ParameterError(
                f"given has the key {key!r}, but the features are {quote(by_title)}. Its keys are features, and its "
                f"values the columns that they are conditional on."
            )
        sets[feature] = read_given(names, [feature], columns, named=True)[feature]
    return sets


def conditional_on(sampler: Any, given: Given, feature: Feature, columns: Sequence[str]) -> Any:
    """The sampler that redraws a feature conditional on some columns: a copy with `given` set, or the marginal one."""
    if given is None:
        return sampler
    if isinstance(sampler, FittedSampler):
        raise ParameterError("given cannot change a sampler that is fitted already. Pass one to be fitted on train.")
    if isinstance(sampler, FoundSubgroups):
        raise ParameterError(f"{_NO_GROUPS}sampler='subgroups'.")
    method = read_sampler(sampler) if isinstance(sampler, str) else sampler
    if isinstance(method, SubgroupSampler) and method.groups is not None:
        raise ParameterError(f"{_NO_GROUPS}a sampler without groups.")
    if isinstance(method, Sampler) and not method.conditional and (given or not isinstance(method, Marginal)):
        raise ParameterError(
            f"sampler {method.name!r} does not look at other columns, so given={list(given)!r} has no meaning. Use a "
            f"conditional sampler such as 'subgroups', or leave given out."
        )
    every = _is_every(given, feature, columns)
    if not given:
        return method.without_columns() if isinstance(method, Sampler) else Marginal()
    if takes_given(method):
        return _with(method, None if every else list(given))
    if every:
        return method
    raise ParameterError(
        f"sampler {sampler_name(sampler)!r} cannot be told which columns to condition on: it has no parameter given. "
        f"Use 'auto', 'subgroups', 'imputation' or a sampler of your own with an attribute given; or pass given=[] "
        f"(marginal) or all other columns ({quote(name for name in columns if name not in feature)})."
    )


def _is_every(given: Sequence[str], feature: Feature, columns: Sequence[str]) -> bool:
    return set(given) | set(feature) >= set(columns)


def takes_given(sampler: Any) -> bool:
    """Whether a sampler can be told which columns to condition on; one that is fitted, or a found tree, cannot."""
    if isinstance(sampler, FittedSampler | FoundSubgroups):
        return False
    sampler = read_sampler(sampler) if isinstance(sampler, str) else sampler
    if isinstance(sampler, SubgroupSampler) and sampler.groups is not None:
        return False
    return "given" in sampler.get_params() if isinstance(sampler, Sampler) else hasattr(sampler, "given")


def _with(sampler: Any, given: list[str] | None) -> Any:
    if is_dataclass(sampler) and not isinstance(sampler, type):
        return replace(sampler, given=given)  # of the user, and has a field `given`
    changed = copy(sampler)
    changed.given = given
    return changed


def fitted_given(
    sampler: Any,
    sets: Mapping[Feature, Given],
    X: Any,
    table: Table,
    train: Any,
    model: Any,
    seed: int,
) -> tuple[FittedSampler, Table]:
    """A fitted sampler that redraws each feature conditional on its own columns, and the rows as it reads them."""
    together: dict[Any, list[Feature]] = {}
    for feature, given in sets.items():
        every = given is not None and _is_every(given, feature, table.names)
        together.setdefault(_EVERY if every else given, []).append(feature)
    parts: list[SharedConditioning] = []
    for features in together.values():
        method, *_ = [conditional_on(sampler, sets[feature], feature, table.names) for feature in features]
        rows = None if isinstance(method, Marginal) and not method.learns else train
        fitted, read = fitted_sampler(method, X, table, rows, features, model, seed)
        parts.append(SharedConditioning(tuple(features), fitted, read))
    if len(parts) == 1:
        return parts[0].fitted, parts[0].table
    donors = next((part.fitted.train for part in parts if part.fitted.train is not None), None)
    return PerFeatureSampler(table.columns, donors, parts=tuple(parts)), table


@dataclass(frozen=True, eq=False)
class SharedConditioning:
    """Features that have the same conditioning columns, their sampler, and the rows as it reads them."""

    features: tuple[Feature, ...]
    fitted: FittedSampler
    table: Table


@dataclass(frozen=True, eq=False)
class PerFeatureSampler(FittedSampler):
    """Fitted samplers with different conditioning columns, used as one on the rows that they were made for."""

    parts: tuple[SharedConditioning, ...] = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature, by the sampler that is for it."""
        fitted, own = sampler_of(self, table, feature)
        return fitted.resample(own, feature, rngs, weights=weights, exact=exact)

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return any(part.fitted.uses_training_donors for part in self.parts)


def sampler_of(fitted: FittedSampler, table: Table, feature: Feature) -> tuple[FittedSampler, Table]:
    """The sampler that redraws a feature, and the rows as it reads them."""
    if isinstance(fitted, PerFeatureSampler):
        part = next(part for part in fitted.parts if feature in part.features)
        fitted, table = part.fitted, part.table
    return fitted.for_feature(feature), table


def parts_of(fitted: FittedSampler) -> Iterable[FittedSampler]:
    """The samplers that a sampler is made of; itself, if it is one."""
    return [part.fitted for part in fitted.parts] if isinstance(fitted, PerFeatureSampler) else [fitted]
