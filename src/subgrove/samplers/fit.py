"""From the argument `sampler=` to a fitted sampler."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from subgrove._core.execution import stream
from subgrove._data.columns import ColumnInfo, as_argument
from subgrove._data.from_containers import BOOLEANS, names_and_rows
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_like, read_table
from subgrove._subgroups import Partition
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ColumnError, InputError, ParameterError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import ROW_WISE_SAMPLERS, Feature, FittedSampler, Sampler
from subgrove.samplers.cross_fit import N_FOLDS, CrossFitted, SamplerFold, random_folds
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
    method = read_sampler(sampler).for_model(model) if _is_ours(sampler) else sampler
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
    """Return the samplers that the package imports, by name."""
    ours = [each for each in Sampler.__subclasses__() if each.__module__.startswith(__package__)]
    return {**{each.name: each for each in ours}, "cart": partial(SubgroupSampler, tree="cart")}


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


def _is_ours(sampler: Any) -> bool:
    return isinstance(sampler, str | Sampler | FoundSubgroups)


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
