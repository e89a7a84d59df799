"""Samplers of users: anything with `fit` and `sample`, brought to the form that this package works with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._core.random import Streams
from subgrove._data.columns import format_number
from subgrove._data.from_containers import BOOLEANS
from subgrove._data.replace_columns import Changes
from subgrove._data.table import Table
from subgrove.exceptions import ParameterError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.redraw import ResampledFeature, RowGroups


@dataclass(frozen=True, eq=False)
class UserSampler(FittedSampler):
    """A user's fitted sampler, on the rows that are to be redrawn."""

    redraws: Any = field(kw_only=True)
    X: Any = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature: what the user's `sample` yields, checked."""
        return ResampledFeature(RowGroups.single(table.n_rows), lambda: self._draws(table.n_rows, feature, rngs))

    def _draws(self, n_rows: int, feature: Feature, rngs: Streams) -> Iterator[Changes]:
        asked: Any = feature[0] if len(feature) == 1 else list(feature)
        given = 0
        try:
            for columns in self.redraws.sample(self.X, asked, list(rngs)):
                if given == len(rngs):
                    break
                yield self._changes(columns, feature, n_rows, given)
                given += 1
        except (SubgroveError, SubgroveWarning):
            raise
        except Exception as error:
            raise SamplerError(
                f"sample of {type(self.redraws).__name__} raised {type(error).__name__} for feature "
                f"{title(feature)!r}, repeat {given}: {error}"
            ) from error
        if given < len(rngs):
            raise SamplerError(
                f"sample of {type(self.redraws).__name__} gave {given} columns for feature {title(feature)!r}, but "
                f"{len(rngs)} generators. It must yield one column of new values for each generator."
            )

    def _changes(self, columns: Any, feature: Feature, n_rows: int, repeat: int) -> Changes:
        if len(feature) == 1:
            columns = {feature[0]: columns}
        elif not isinstance(columns, Mapping):
            raise SamplerError(
                f"For the group {title(feature)!r}, sample must yield a mapping from column name to values; "
                f"got {type(columns).__name__}."
            )
        infos = {column.name: column for column in self.columns}
        changes = {}
        for name in feature:
            values = columns[name]
            values = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
            if values.shape != (n_rows,):
                raise SamplerError(
                    f"sample returned values of shape {values.shape} for feature {name!r}, repeat {repeat}, but there "
                    f"are {n_rows} rows. It must give one value for each row."
                )
            changes[name] = _of_its_kind(values, infos[name], repeat)
        return changes


def _of_its_kind(values: npt.NDArray[Any], info: ColumnInfo, repeat: int) -> npt.NDArray[Any]:
    """Values, if they are numbers for a column of numbers and labels for one of labels."""
    strange: Any = None
    if info.kind != "numeric" and values.dtype.kind in "iuf":
        known = {"0", "1"} if info.levels == BOOLEANS else set(info.levels)
        strange = next((value for value in np.unique(values).tolist() if format_number(value) not in known), None)
    elif info.kind == "numeric" and not (info.is_date or info.is_duration) and values.dtype.kind not in "iufb":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            strange = values.tolist()[0]
    if strange is not None:
        raise SamplerError(
            f"sample returned {strange!r} for feature {info.name!r}, repeat {repeat}, whose values are "
            f"{info.kind}. Values must keep the type of their column."
        )
    return values


def reject_what_is_no_sampler(sampler: Any) -> None:
    """Raise unless a sampler of a user has what it takes."""
    if isinstance(sampler, type):
        raise ParameterError(
            f"sampler is the class {sampler.__name__}, not an object of it: write {sampler.__name__}()."
        )
    if not callable(getattr(sampler, "fit", None)):
        raise ParameterError(
            f"sampler must be a name, what find_subgroups returned, or an object with fit and sample; "
            f"got {type(sampler).__name__}, which has no fit."
        )
