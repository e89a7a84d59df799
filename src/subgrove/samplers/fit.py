"""From what the user gave as `sampler=` to a fitted sampler."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Sequence
from typing import Any

from subgrove._core.kinds import ColumnInfo
from subgrove._core.random import stream
from subgrove._data.features import as_argument
from subgrove._data.from_containers import BOOLEANS, names_and_rows
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_like, read_table
from subgrove._subgroups import Partition
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ColumnError, InputError, ParameterError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import Feature, FittedSampler, Sampler
from subgrove.samplers.cross_fit import N_FOLDS, CrossFitted, Fold, folds_of
from subgrove.samplers.subgroups import FittedSubgroups, SubgroupSampler
from subgrove.samplers.user_defined import UserSampler, reject_what_is_no_sampler


def fitted_sampler(
    sampler: Any, X: Any, table: Table, train: Any, features: Sequence[Feature], model: Any, seed: int
) -> tuple[FittedSampler, Table]:
    """A fitted sampler for the rows of X, and these rows as it reads them."""
    train = training_rows(train)
    if isinstance(sampler, FittedSampler):
        _reject_needless(train, "the sampler is fitted already")
        return _checked(sampler, X, table, features)
    method = read_sampler(sampler).for_model(model) if _is_ours(sampler) else sampler
    names = [as_argument(feature) for feature in features]
    if isinstance(method, Sampler):
        method.reject_unsuitable(table.columns, features)
        if isinstance(method, SubgroupSampler) and method.groups is not None:
            if method.donors != "train":
                _reject_needless(train, "the subgroups are found already, and donors are rows of X")
            return _checked(method.fit(train, names), X, table, features)
    else:
        reject_what_is_no_sampler(method)
        if any(len(feature) > 1 for feature in features) and not getattr(method, "accepts_groups", False):
            raise ParameterError(
                f"features has a group, but {type(method).__name__} has no attribute accepts_groups = True, so it is "
                f"taken to redraw one feature at a time."
            )
    if train is not None:
        _reject_other_columns(train, X, table, features)
        return _checked(_fit(method, train, names, X), X, table, features)
    if not getattr(method, "learns", True):
        return _checked(_fit(method, X, names, X), X, table, features)
    return _cross_fitted(method, X, table, names, seed), table


def training_rows(train: Any) -> Any:
    """The table of what was given as training rows, which may be a data set with a target."""
    return train.X if hasattr(train, "X") and not hasattr(train, "columns") else train


def _reject_needless(train: Any, why: str) -> None:
    if train is not None:
        raise ParameterError(f"train has no effect here: {why}. Leave train out, or pass a sampler to be fitted on it.")


def read_sampler(sampler: Any) -> Sampler:
    """The sampler of a name, or of subgroups that were found before."""
    if isinstance(sampler, Sampler):
        return sampler
    if isinstance(sampler, FoundSubgroups):
        return SubgroupSampler(groups=sampler)
    from subgrove.samplers.registry import NAMES

    if sampler not in NAMES:
        raise ParameterError(
            f"sampler={sampler!r} is not a sampler. Known names: {', '.join(sorted(NAMES))}. "
            f"An object with fit and sample, or what find_subgroups returned, is a sampler too."
        )
    return NAMES[sampler]()


def with_columns(sampler: Any) -> Any:
    """A part of what `find_subgroups` returned, made whole; anything else as it is."""
    if not isinstance(sampler, Partition):
        return sampler
    if len(sampler.members) > 1:
        raise ParameterError(
            f"sampler is the partition of the group {sampler.feature!r} alone, which does not know the columns of its "
            f"members. Pass all that find_subgroups returned."
        )
    columns = (*sampler.tree.columns, sampler.tree.target)
    return FoundSubgroups((sampler,), columns, "", {})


def features_of(sampler: Any) -> list[Any] | None:
    """The features that a sampler was made for, if it was; else None."""
    groups = sampler.groups if isinstance(sampler, SubgroupSampler | FittedSubgroups) else sampler
    if not isinstance(groups, FoundSubgroups):
        return None
    return [as_argument(partition.members) for partition in groups.values()]


def sampler_name(sampler: Any) -> str:
    """What a result calls the sampler."""
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
    redraws = method if fitted is None else fitted
    if not callable(getattr(redraws, "sample", None)):
        raise ParameterError(
            f"fit of {type(method).__name__} returned {type(redraws).__name__}, which has no method sample. "
            f"It must return an object with sample(X, feature, rngs)."
        )
    return UserSampler(read_table(train, argument="train", lenient=True).columns, redraws=redraws, X=X)


def _checked(fitted: FittedSampler, X: Any, table: Table, features: Sequence[Feature]) -> tuple[FittedSampler, Table]:
    known = {column.name for column in fitted.columns}
    unknown = [name for feature in features for name in feature if name not in known]
    if unknown:
        raise InputError(
            f"The sampler was fitted on other columns: it does not know {unknown[0]!r}. Fit it on the columns of X."
        )
    reject_other_kinds([column for column in fitted.columns if column.name not in _chosen_kinds(fitted)], table)
    return fitted, fitted.read(X)


def _cross_fitted(method: Any, X: Any, table: Table, names: list[Any], seed: int) -> CrossFitted:
    if table.n_rows < 2 * N_FOLDS:
        raise InputError(
            f"X has {table.n_rows} rows, too few to fit the sampler on one half and redraw the other. "
            f"Pass training rows as train, or use sampler='marginal'."
        )
    if isinstance(method, SubgroupSampler) and table.n_rows < 2 * N_FOLDS * method.min_samples_leaf:
        warnings.warn(
            f"X has {table.n_rows} rows. A tree grown on half of them cannot split with "
            f"min_samples_leaf={method.min_samples_leaf}, so there is one subgroup, and "
            f"the importance is the marginal one. Pass training rows as train, or a smaller min_samples_leaf.",
            SubgroveWarning,
            stacklevel=4,
        )
    frames = Frames(X, table.columns)
    parts = folds_of(table.n_rows, stream(seed, "folds"))
    folds = []
    for number, rows in enumerate(parts):
        others = parts[1 - number]
        own = frames.changed(rows, {})
        fitted = _fit(method, frames.changed(others, {}), names, own)
        folds.append(Fold(rows, others, fitted, fitted.read(own)))
    return CrossFitted(table.columns, folds=tuple(folds))


def _reject_other_columns(train: Any, X: Any, table: Table, features: Sequence[Feature]) -> None:
    """Columns of X must be there in training, and hold the same kind of thing."""
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
            f"train lacks {', '.join(map(repr, unknown[:5]))}, which X has, so features are not redrawn conditional on "
            f"it. Pass the same columns in both.",
            SubgroveWarning,
            stacklevel=4,
        )
    reject_other_kinds(theirs.columns, table)
    read_like(X, theirs.columns)


def _chosen_kinds(fitted: FittedSampler) -> Collection[str]:
    """Columns whose kind the user chose, so that it may differ from what the dtype says; all, if that is not known."""
    if not isinstance(fitted, FittedSubgroups):
        return ()
    parameters = fitted.groups.parameters
    return (parameters["kinds"] or ()) if "kinds" in parameters else [column.name for column in fitted.columns]


def reject_other_kinds(columns: Sequence[ColumnInfo], table: Table) -> None:
    """Numbers in training and text in X, or the reverse, are refused, also if the text looks like numbers."""
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
