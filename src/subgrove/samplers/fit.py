"""From the argument `sampler=` to a fitted sampler, cross-fitted if there are no training rows.

Cross-fitting: each fold is resampled by a sampler that was fitted on the other fold. No sampler is applied to the rows
that it was fitted on, even if there is only one table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams, stream
from subgrove._core.kinds import Floats
from subgrove._core.validate import warn
from subgrove._data.clusters import independent_rows
from subgrove._data.columns import ColumnInfo, as_argument
from subgrove._data.from_containers import BOOLEANS, names_and_rows
from subgrove._data.replace_columns import Changes, Donors, Frames, Rows, selected_rows
from subgrove._data.table import Table, read_like, read_table
from subgrove._subgroups import Partition
from subgrove._subgroups import Subgroups as FoundSubgroups
from subgrove.exceptions import ColumnError, InputError, ParameterError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import ROW_WISE_SAMPLERS, Feature, FittedSampler, Sampler
from subgrove.samplers.donors import FoldDistributions, KnownDistribution
from subgrove.samplers.resampled_feature import ExactExpectation, ExpectationTerm, ResampledFeature, RowGroups
from subgrove.samplers.subgroups import SubgroupSampler, features_with_subgroups
from subgrove.samplers.user_defined import UserSampler, check_user_sampler

N_FOLDS = 2
_MEANT = {
    "conditional": "Use 'auto', which is conditional on the other columns. ",
    "permutation": "Permutation importance is sampler='marginal'. ",
}


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
    return cross_fitted(method, X, table, names, seed), table


def training_rows(train: Any) -> Any:
    """Return the table of training rows; `train` may be a pair (X, y), or a data set with a target."""
    if isinstance(train, tuple | list) and len(train) == 2 and not isinstance(train[0], list | tuple):
        return train[0]
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
            f"sampler={sampler!r} is not a sampler. {_MEANT.get(sampler, '')}Known names: {', '.join(sorted(known))}. "
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
    return fitted, fitted.read(X).with_clusters(table.clusters)


def cross_fitted(method: Any, X: Any, table: Table, names: list[Any], seed: int) -> CrossFitted:
    """Return a sampler of each half of X that is fitted on the other half; `names` are the features."""
    if table.n_rows < 2 * N_FOLDS:
        raise InputError(
            f"X has {table.n_rows} rows, too few to fit the sampler on one half and resample the other. "
            f"Pass training rows as train, or use sampler='marginal'."
        )
    if isinstance(method, Sampler):
        method.warn_about_few_rows(table.n_rows, N_FOLDS)
    frames = Frames(X, table.columns)
    clusters = table.clusters
    parts = random_folds(table.n_rows, stream(seed, "folds"), clusters)
    folds = []
    for number, rows in enumerate(parts):
        others = parts[1 - number]
        if clusters is not None:
            others = others[independent_rows(table.rows(others), stream(seed, f"rows of fold {number}"))]
        fitted = _fit(method, frames.changed(others, {}), names, None)
        # Donors are rows of the whole table; a sampler of the user's gets the rows that it will resample.
        fitted = fitted.with_rows(frames.changed(rows, {})) if fitted.user_defined else replace(fitted, train=None)
        own = selected_rows(table, rows, fitted.columns)
        if own is None:
            own = fitted.read(frames.changed(rows, {})).with_clusters(None if clusters is None else clusters[rows])
        folds.append(SamplerFold(rows, others, fitted, own))
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
        warn(
            f"train lacks {', '.join(map(repr, unknown[:5]))}, which X has, so features are not resampled conditional "
            f"on it. Pass the same columns in both."
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


@dataclass(frozen=True, eq=False)
class SamplerFold:
    """Rows of a fold, and their sampler, which was fitted on the other rows."""

    rows: Rows
    others: Rows
    fitted: FittedSampler
    table: Table


def random_folds(n_rows: int, rng: np.random.Generator, clusters: Rows | None = None) -> list[Rows]:
    """Return random folds of equal size; clusters are not divided, so with them sizes are only about equal."""
    if clusters is None:
        return [np.sort(rows) for rows in np.array_split(rng.permutation(n_rows), N_FOLDS)]
    sizes = np.bincount(clusters)
    order = rng.permutation(len(sizes))
    fold_of, filled = np.zeros(len(sizes), dtype=np.intp), np.zeros(N_FOLDS)
    for cluster in order[np.argsort(-sizes[order], kind="stable")]:  # the largest first, each to the smaller fold
        fold_of[cluster] = filled.argmin()
        filled[fold_of[cluster]] += sizes[cluster]
    return [np.flatnonzero(fold_of[clusters] == fold) for fold in range(N_FOLDS)]


@dataclass(frozen=True, eq=False)
class CrossFitted(FittedSampler):
    """Samplers of all folds, used as one."""

    cross_fitted: ClassVar[bool] = True

    folds: tuple[SamplerFold, ...] = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample each fold, and combine the results."""
        parts = []
        for number, fold in enumerate(self.folds):
            own = replace(rngs, key=f"{rngs.key}, fold {number}")
            fold_weights = None if weights is None else weights[fold.rows]
            # The training rows of a fold are test rows of the other one: only draws record them as donors.
            allowed = exact and not fold.fitted.uses_training_donors
            parts.append(fold.fitted.resample(fold.table, feature, own, weights=fold_weights, exact=allowed))
        population = np.concatenate([np.broadcast_to(one.population, len(one.groups)) for one in parts])
        return ResampledFeature(
            self._groups(table.n_rows, parts),
            lambda: self._draws(table, parts),
            self._exact(table.n_rows, parts),
            population,
            distribution=self._distribution(parts),
        )

    def selections(self) -> dict[str, list[Any]]:
        """Return the `SamplerChoice` of each feature, one per fold."""
        return merge_selections(fold.fitted for fold in self.folds)

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the split columns of the trees of all folds: the first of each, then the second of each."""
        lists = [fold.fitted.split_columns(feature) for fold in self.folds]
        if any(columns is None for columns in lists):
            return None
        ranked = [(place, fold, name) for fold, names in enumerate(lists) for place, name in enumerate(names or ())]
        return tuple(dict.fromkeys(name for _, _, name in sorted(ranked)))

    def restricted(self, feature: Feature, columns: Collection[str]) -> CrossFitted:
        """Return the sampler with pruned trees in all folds."""
        folds = (replace(fold, fitted=fold.fitted.restricted(feature, columns)) for fold in self.folds)
        return replace(self, folds=tuple(folds))

    def _groups(self, n_rows: int, parts: list[ResampledFeature]) -> RowGroups:
        code = np.zeros(n_rows, dtype=np.int32)
        rules: tuple[str, ...] = ()
        folds: tuple[int, ...] = ()
        conditioning: dict[str, None] = {}
        for number, (fold, one) in enumerate(zip(self.folds, parts, strict=True)):
            code[fold.rows] = one.groups.code + len(rules)
            rules += one.groups.rules
            folds += (number,) * len(one.groups)
            conditioning |= dict.fromkeys(one.groups.conditioning)
        return RowGroups(code, rules, tuple(conditioning), folds)

    def _distribution(self, parts: list[ResampledFeature]) -> FoldDistributions | None:
        known = tuple(one.distribution for one in parts if isinstance(one.distribution, KnownDistribution))
        if len(known) < len(parts):
            return None
        return FoldDistributions(
            tuple(fold.rows for fold in self.folds), tuple(fold.others for fold in self.folds), known
        )

    def _draws(self, table: Table, parts: list[ResampledFeature]) -> Iterator[Changes]:
        for together in zip(*(one.draws() for one in parts), strict=True):
            changes: dict[str, Any] = {}
            for name in together[0]:
                columns = [self._in_all_rows(fold, one[name]) for fold, one in zip(self.folds, together, strict=True)]
                changes[name] = _merged(table.values(name), [fold.rows for fold in self.folds], columns)
            yield changes

    def _in_all_rows(self, fold: SamplerFold, column: Any) -> Any:
        """Return donors as rows of the whole table, which contains the training rows of a fold."""
        if not isinstance(column, Donors):
            return column
        return Donors((fold.others if column.train else fold.rows)[column.rows], representatives=column.representatives)

    def _exact(self, n_rows: int, parts: list[ResampledFeature]) -> ExactExpectation | None:
        if all(one.exact is None for one in parts):
            return None
        rows = np.zeros(n_rows, dtype=np.bool_)
        cell = np.full(n_rows, -1, dtype=np.intp)
        n_cells, starts, has_cells = 0, [], False
        for fold, one in zip(self.folds, parts, strict=True):
            starts.append(n_cells)
            if one.exact is not None:
                rows[fold.rows] = one.exact.rows
                if one.exact.cell is not None:
                    has_cells = True
                    cell[fold.rows] = np.where(one.exact.cell >= 0, one.exact.cell + n_cells, -1)
                    n_cells += one.exact.n_cells
        return ExactExpectation(rows, lambda: self._terms(parts, starts), cell if has_cells else None, n_cells)

    def _terms(self, parts: list[ResampledFeature], starts: list[int]) -> Iterator[ExpectationTerm]:
        for fold, one, start in zip(self.folds, parts, starts, strict=True):
            for term in one.exact.terms() if one.exact is not None else ():
                changes = {name: self._in_all_rows(fold, column) for name, column in term.changes.items()}
                cells = None if term.cells is None else term.cells + start
                yield ExpectationTerm(fold.rows[term.rows], changes, term.weights, cells)


def _merged(own: npt.NDArray[Any], places: list[Rows], columns: list[Any]) -> Any:
    """Return the columns of the folds as one; `own` are the values of the table."""
    if all(isinstance(column, Donors) for column in columns):
        rows = np.empty(len(own), dtype=np.intp)
        for place, column in zip(places, columns, strict=True):
            rows[place] = column.rows
        # If one fold has representatives instead of donors, the others count as representatives too.
        return Donors(rows, representatives=any(column.representatives for column in columns))
    # Folds may have selected different samplers: donors are then replaced by their values.
    columns = [own[column.rows] if isinstance(column, Donors) else column for column in columns]
    values: npt.NDArray[Any] = np.empty(len(own), dtype=np.result_type(*(column.dtype for column in columns)))
    for place, column in zip(places, columns, strict=True):
        values[place] = column
    return values


def merge_selections(samplers: Iterable[FittedSampler]) -> dict[str, list[Any]]:
    """Return the choices of several samplers by feature."""
    merged: dict[str, list[Any]] = {}
    for sampler in samplers:
        for name, choices in sampler.selections().items():
            merged.setdefault(name, []).extend(choices)
    return merged
