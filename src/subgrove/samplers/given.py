"""Conditioning sets: from the argument `given=` to a fitted sampler.

Conditioning sets range from no column (marginal) to all other columns. A sampler supports them by a parameter, or an
attribute, `given`: names of columns, or None for all others. The sampler itself is not changed, but copied. Without any
column every sampler is the marginal one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._data.columns import allowed_columns
from subgrove._data.table import Table
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, title
from subgrove.samplers.fit import fitted_sampler, merge_selections, read_sampler, sampler_name
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.resampled_feature import ResampledFeature

Given = tuple[str, ...] | None  # conditioning columns; None leaves them to the sampler
_ALL_OTHERS = "all others"


def read_given(given: Any, features: Sequence[Feature], columns: Sequence[str], *, named: bool) -> dict[Feature, Given]:
    """Return the conditioning columns of each feature, in the order of the table.

    If the user named the features (`named`), a feature that is also in `given` is an error. Otherwise each feature is
    excluded from its own conditioning columns.
    """
    if isinstance(given, Mapping):
        return _by_feature(given, features, columns)
    allowed = allowed_columns(given, columns)
    sets: dict[Feature, Given] = {}
    for feature in features:
        own = [name for name in allowed if name in feature]
        if own and named:
            raise ParameterError(
                f"given names {quote(own)}, which is resampled itself: a feature cannot be conditional on itself. "
                f"Remove it from given, or pass given as a dict from feature to columns."
            )
        sets[feature] = tuple(name for name in allowed if name not in feature)
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
    """Return a copy of the sampler with conditioning columns, or the marginal sampler if there are none."""
    if given is None:
        return sampler
    if isinstance(sampler, FittedSampler):
        raise ParameterError("given cannot change a fitted sampler. Pass one to be fitted on train.")
    if isinstance(sampler, FoundSubgroups):
        raise ParameterError(
            "given cannot change subgroups that were found before. Pass given to find_subgroups, or "
            "sampler='subgroups'."
        )
    method = read_sampler(sampler) if isinstance(sampler, str) else sampler
    if isinstance(method, Sampler):
        method.reject_given(given)
    every = _is_every(given, feature, columns)
    if not given:
        return (method.unconditional() if isinstance(method, Sampler) else None) or Marginal()
    if accepts_given(method):
        return _with(method, None if every else list(given))
    if every:
        return method
    raise ParameterError(
        f"sampler {sampler_name(sampler)!r} has no parameter given, so its conditioning columns cannot be set. "
        f"Use 'auto', 'subgroups', 'imputation' or a user-defined sampler with an attribute given; or pass given=[] "
        f"(marginal) or all other columns ({quote(name for name in columns if name not in feature)})."
    )


def _is_every(given: Sequence[str], feature: Feature, columns: Sequence[str]) -> bool:
    return set(given) | set(feature) >= set(columns)


def accepts_given(sampler: Any) -> bool:
    """Return whether the conditioning columns of a sampler can be set; those of a fitted one cannot."""
    if isinstance(sampler, FittedSampler | FoundSubgroups):
        return False
    sampler = read_sampler(sampler) if isinstance(sampler, str) else sampler
    return sampler.accepts_given if isinstance(sampler, Sampler) else hasattr(sampler, "given")


def narrowed(sampler: Any, selected: Collection[str]) -> Any:
    """Return the sampler with the comparison of candidates limited to some, if it compares candidates."""
    sampler = read_sampler(sampler) if isinstance(sampler, str) else sampler
    return sampler.narrowed(selected) if hasattr(sampler, "narrowed") else sampler


def _with(sampler: Any, given: list[str] | None) -> Any:
    if is_dataclass(sampler) and not isinstance(sampler, type):
        return replace(sampler, given=given)
    changed = copy(sampler)
    changed.given = given
    return changed


def fitted_given(
    sampler: Any, given_by_feature: Mapping[Feature, Given], X: Any, table: Table, train: Any, model: Any, seed: int
) -> tuple[FittedSampler, Table]:
    """Return a fitted sampler with the conditioning columns of each feature, and the rows as it reads them."""
    together: dict[Any, list[Feature]] = {}
    for feature, given in given_by_feature.items():
        every = given is not None and _is_every(given, feature, table.names)
        together.setdefault(_ALL_OTHERS if every else given, []).append(feature)
    parts: list[SharedConditioning] = []
    for features in together.values():
        method, *_ = [conditional_on(sampler, given_by_feature[feature], feature, table.names) for feature in features]
        rows = None if isinstance(method, Sampler) and method.ignores_train else train
        fitted, read = fitted_sampler(method, X, table, rows, features, model, seed)
        parts.append(SharedConditioning(tuple(features), fitted, read))
    if len(parts) == 1:
        return parts[0].fitted, parts[0].table
    donors = next((part.fitted.train for part in parts if part.fitted.train is not None), None)
    return PerFeatureSampler(table.columns, donors, parts=tuple(parts)), table


@dataclass(frozen=True, eq=False)
class SharedConditioning:
    """Features with the same conditioning columns, their sampler, and the rows as it reads them."""

    features: tuple[Feature, ...]
    fitted: FittedSampler
    table: Table


@dataclass(frozen=True, eq=False)
class PerFeatureSampler(FittedSampler):
    """Fitted samplers with different conditioning columns, used as one on the rows that they were fitted for."""

    parts: tuple[SharedConditioning, ...] = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature by its sampler."""
        fitted, own = self.of_feature(table, feature)
        return fitted.resample(own, feature, rngs, weights=weights, exact=exact)

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return any(part.fitted.uses_training_donors for part in self.parts)

    @property
    def members(self) -> tuple[FittedSampler, ...]:
        """Samplers of the features."""
        return tuple(part.fitted for part in self.parts)

    def of_feature(self, table: Table, feature: Feature) -> tuple[FittedSampler, Table]:
        """Return the sampler of a feature, and the rows as it reads them."""
        part = next(part for part in self.parts if feature in part.features)
        return part.fitted, part.table

    def selections(self) -> dict[str, list[Any]]:
        """Return the `SamplerChoice` of each feature."""
        return merge_selections(self.members)
