"""Cross-fitting: each fold is resampled by a sampler that was fitted on the other fold.

No sampler is applied to the rows that it was fitted on, even if there is only one table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._data.replace_columns import Changes, Donors, Rows
from subgrove._data.table import Table
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.resampled_feature import ExactExpectation, ExpectationTerm, ResampledFeature, RowGroups

N_FOLDS = 2


@dataclass(frozen=True, eq=False)
class SamplerFold:
    """Rows of a fold, and their sampler, which was fitted on the other rows."""

    rows: Rows
    others: Rows
    fitted: FittedSampler
    table: Table


def random_folds(n_rows: int, rng: np.random.Generator) -> list[Rows]:
    """Return random folds of equal size."""
    return [np.sort(rows) for rows in np.array_split(rng.permutation(n_rows), N_FOLDS)]


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
