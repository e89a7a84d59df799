"""From the arguments `sampler=` and `given=` to a fitted sampler.

Conditioning sets range from no column (marginal) to all other columns. A sampler supports them by a parameter, or an
attribute, `given`: names of columns, or None for all others. The sampler itself is not changed, but copied. Without any
column every sampler is the marginal one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from typing import Any

from subgrove._core.execution import Streams, stream
from subgrove._core.kinds import Floats
from subgrove._core.text import quote
from subgrove._data.columns import ColumnInfo, allowed_columns, as_argument
from subgrove._data.from_containers import BOOLEANS, names_and_rows
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_like, read_table
from subgrove._subgroups import Partition
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ColumnError, InputError, ParameterError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import ROW_WISE_SAMPLERS, Feature, FittedSampler, Sampler, title
from subgrove.samplers.cross_fit import N_FOLDS, CrossFitted, SamplerFold, merge_selections, random_folds
from subgrove.samplers.marginal import Marginal
from subgrove.samplers.resampled_feature import ResampledFeature
from subgrove.samplers.subgroups import SubgroupSampler, features_with_subgroups
from subgrove.samplers.user_defined import UserSampler, check_user_sampler


def fitted_sampler(
    sampler: Any, X: Any, table: Table, train: Any, features: Sequence[Feature], model: Any, seed: int
) -> tuple[FittedSampler, Table]:
    """Return a fitted sampler for X, and the rows of X as it reads them."""
    train = training_rows(train)
    if isinstance(sampler, FittedSampler):
        _reject_needless(train, "the sampler is fitted already")
        return _checked(sampler, X, table, features)
    is_ours = isinstance(sampler, str | Sampler | FoundSubgroups)
    method = read_sampler(sampler).for_model(model) if is_ours else sampler
    names = [as_argument(feature) for feature in features]
    if isinstance(method, Sampler):
        method.reject_unsuitable(table.columns, features)
        if method.prefitted:
            if method.ignores_train:
                _reject_needless(train, "the subgroups were found before, and donors are rows of X")
            return _checked(method.fit(train, names), X, table, features)
    else:
        check_user_sampler(method)
        if any(len(feature) > 1 for feature in features) and not getattr(method, "accepts_groups", False):
            raise ParameterError(
                f"features has a group, but {type(method).__name__} has no attribute accepts_groups = True, so it is "
                f"assumed to resample one feature at a time."
            )
    if train is not None:
        _reject_other_columns(train, X, table, features)
        return _checked(_fit(method, train, names, X), X, table, features)
    if not getattr(method, "learns", True):
        return _checked(_fit(method, X, names, X), X, table, features)
    return _cross_fitted(method, X, table, names, seed), table


def training_rows(train: Any) -> Any:
    """Return the table of training rows; `train` may be a data set with a target."""
    return train.X if hasattr(train, "X") and not hasattr(train, "columns") else train


def _reject_needless(train: Any, why: str) -> None:
    if train is not None:
        raise ParameterError(f"train has no effect here: {why}. Omit train, or pass a sampler to be fitted on it.")


def read_sampler(sampler: Any) -> Sampler:
    """Return the sampler of a name, or of subgroups that were found before."""
    if isinstance(sampler, Sampler):
        return sampler
    if isinstance(sampler, FoundSubgroups):
        return SubgroupSampler(groups=sampler)
    known = samplers_by_name()
    if sampler not in known:
        raise ParameterError(
            f"sampler={sampler!r} is not a sampler. Known names: {', '.join(sorted(known))}. "
            f"An object with fit and sample, or the result of find_subgroups, is a sampler too."
        )
    return known[sampler]()


def samplers_by_name() -> dict[str, Callable[[], Sampler]]:
    """Return all imported samplers by name; of two with the same name, the first one."""
    known: dict[str, Callable[[], Sampler]] = {"cart": partial(SubgroupSampler, tree="cart")}
    for each in Sampler.__subclasses__():
        if "name" in vars(each):
            known.setdefault(each.name, each)
    return known


def with_columns(sampler: Any) -> Any:
    """Return a single partition of `find_subgroups` as subgroups; anything else unchanged."""
    if not isinstance(sampler, Partition):
        return sampler
    if len(sampler.members) > 1:
        raise ParameterError(
            f"sampler is the partition of the group {sampler.feature!r}, which does not know the columns of its "
            f"members. Pass the whole result of find_subgroups."
        )
    columns = (*sampler.tree.columns, sampler.tree.target)
    return FoundSubgroups((sampler,), columns, "", {})


def features_of(sampler: Any) -> list[Any] | None:
    """Return the features that a sampler is limited to; None if it is not."""
    if isinstance(sampler, FoundSubgroups):
        return features_with_subgroups(sampler)
    return sampler.default_features if isinstance(sampler, Sampler | FittedSampler) else None


def sampler_name(sampler: Any) -> str:
    """Return the name of the sampler in results."""
    if isinstance(sampler, str):
        return sampler
    if isinstance(sampler, FoundSubgroups):
        return "subgroups"
    if isinstance(sampler, FittedSampler):
        words = re.findall("[A-Z][a-z]*", type(sampler).__name__.removeprefix("FittedSampler"))
        return "_".join(words).lower()
    return str(getattr(sampler, "name", type(sampler).__name__))


def _fit(method: Any, train: Any, names: list[Any], X: Any) -> FittedSampler:
    try:
        fitted = method.fit(train, names)
    except (SubgroveError, SubgroveWarning):
        raise
    except Exception as error:
        raise SamplerError(f"fit of {type(method).__name__} raised {type(error).__name__}: {error}") from error
    if isinstance(fitted, FittedSampler):
        return fitted
    sampler = method if fitted is None else fitted
    if not callable(getattr(sampler, "sample", None)):
        raise ParameterError(
            f"fit of {type(method).__name__} returned {type(sampler).__name__}, which has no method sample. "
            f"It must return an object with sample(X, feature, rngs)."
        )
    return UserSampler(read_table(train, argument="train", lenient=True).columns, sampler=sampler, X=X)


def _checked(fitted: FittedSampler, X: Any, table: Table, features: Sequence[Feature]) -> tuple[FittedSampler, Table]:
    known = {column.name for column in fitted.columns}
    unknown = [name for feature in features for name in feature if name not in known]
    if unknown:
        raise InputError(
            f"The sampler was fitted on other columns: it does not know {unknown[0]!r}. Fit it on the columns of X."
        )
    reject_other_kinds([column for column in fitted.columns if column.name not in fitted.user_kinds()], table)
    return fitted, fitted.read(X)


def _cross_fitted(method: Any, X: Any, table: Table, names: list[Any], seed: int) -> CrossFitted:
    if table.n_rows < 2 * N_FOLDS:
        raise InputError(
            f"X has {table.n_rows} rows, too few to fit the sampler on one half and resample the other. "
            f"Pass training rows as train, or use sampler='marginal'."
        )
    if isinstance(method, Sampler):
        method.warn_about_few_rows(table.n_rows, N_FOLDS)
    frames = Frames(X, table.columns)
    parts = random_folds(table.n_rows, stream(seed, "folds"))
    folds = []
    for number, rows in enumerate(parts):
        others = parts[1 - number]
        own = frames.changed(rows, {})
        fitted = _fit(method, frames.changed(others, {}), names, own)
        folds.append(SamplerFold(rows, others, fitted, fitted.read(own)))
    return CrossFitted(table.columns, folds=tuple(folds))


def _reject_other_columns(train: Any, X: Any, table: Table, features: Sequence[Feature]) -> None:
    """Raise unless the columns of X exist in training and have the same kinds."""
    theirs, ours = read_table(train, argument="train", lenient=True), set(names_and_rows(X)[0])
    absent = [name for feature in features for name in feature if name not in theirs.names]
    if absent:
        raise InputError(f"train lacks the column {absent[0]!r}, which X has. Pass the same columns in both.")
    lacking = [column.name for column in theirs.columns if column.name not in ours]
    if lacking:
        raise InputError(f"X lacks the column {lacking[0]!r}, which train has. Pass the same columns in both.")
    unknown = [name for name in table.names if name not in theirs.names]
    if unknown:
        warnings.warn(
            f"train lacks {', '.join(map(repr, unknown[:5]))}, which X has, so features are not resampled conditional "
            f"on it. Pass the same columns in both.",
            SubgroveWarning,
            stacklevel=4,
        )
    reject_other_kinds(theirs.columns, table)
    read_like(X, theirs.columns)


def reject_other_kinds(columns: Sequence[ColumnInfo], table: Table) -> None:
    """Raise if a column is numeric in training and text in X, or the reverse, even if the text looks like numbers."""
    ours = {column.name: column for column in table.columns}
    for theirs in columns:
        own = ours.get(theirs.name)
        if own is None or BOOLEANS in (theirs.levels, own.levels):
            continue  # 0 and 1 are read as booleans
        if (theirs.kind == "numeric") != (own.kind == "numeric"):
            raise ColumnError(
                f"Column {own.name!r} of X is {own.kind}, but in training it was {theirs.kind}. "
                f"Give it the dtype that it had in training."
            )


def row_wise_sampler(sampler: Any) -> Any:
    """Return the sampler in a form that resamples each row independently, as data in chunks need it.

    A sampler that takes values from other rows of X, or that draws from a plain random generator, would depend on the
    chunks.
    """
    if isinstance(sampler, FittedSampler):
        return sampler.for_chunks()
    if isinstance(sampler, str | FoundSubgroups):
        sampler = read_sampler(sampler)
    if not isinstance(sampler, Sampler):
        raise ParameterError(
            f"sampler {sampler_name(sampler)!r} is user-defined and draws from random generators, whose numbers depend "
            f"on the position of a row in its chunk. {ROW_WISE_SAMPLERS}, or pass a table in memory."
        )
    return sampler.for_chunks()


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
