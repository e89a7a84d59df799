"""Samplers of users: objects with `fit` and `sample`, adapted to the contract of this package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove._data.columns import ColumnInfo, format_number
from subgrove._data.from_containers import BOOLEANS
from subgrove._data.replace_columns import Changes
from subgrove._data.table import Table
from subgrove.exceptions import ParameterError, SamplerError, SubgroveError, SubgroveWarning
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups


@dataclass(frozen=True, eq=False)
class UserSampler(FittedSampler):
    """Fitted sampler of a user, with the rows to resample."""

    user_defined: ClassVar[bool] = True
    sampler: Any = field(kw_only=True)
    X: Any = field(kw_only=True)

    def with_rows(self, X: Any) -> UserSampler:
        """Return the sampler for other rows.

        Parameters
        ----------
        X : table
            Rows in the user's container.
        """
        return replace(self, X=X)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Return the validated values of the user's `sample`."""
        return ResampledFeature(RowGroups.single(table.n_rows), lambda: self._draws(table.n_rows, feature, rngs))

    def _draws(self, n_rows: int, feature: Feature, rngs: Streams) -> Iterator[Changes]:
        argument: Any = feature[0] if len(feature) == 1 else list(feature)
        repeat = 0
        try:
            for columns in self.sampler.sample(self.X, argument, list(rngs)):
                if repeat == len(rngs):
                    break
                yield self._changes(columns, feature, n_rows, repeat)
                repeat += 1
        except (SubgroveError, SubgroveWarning):
            raise
        except Exception as error:
            raise SamplerError(
                f"sample of {type(self.sampler).__name__} raised {type(error).__name__} for feature "
                f"{title(feature)!r}, repeat {repeat}: {error}"
            ) from error
        if repeat < len(rngs):
            raise SamplerError(
                f"sample of {type(self.sampler).__name__} gave {repeat} columns for feature {title(feature)!r}, but "
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
            if np.ma.is_masked(values):
                raise SamplerError(f"sample returned masked values for feature {name!r}, repeat {repeat}.")
            # A copy, since a sampler may yield the same array again with other values.
            values = np.array(values.to_numpy() if hasattr(values, "to_numpy") else values)
            if values.shape != (n_rows,):
                raise SamplerError(
                    f"sample returned values of shape {values.shape} for feature {name!r}, repeat {repeat}, but there "
                    f"are {n_rows} rows. It must return one value per row."
                )
            changes[name] = _check_type(values, infos[name], repeat)
        return changes


def _check_type(values: npt.NDArray[Any], info: ColumnInfo, repeat: int) -> npt.NDArray[Any]:
    """Return the values if their type agrees with the column: numbers or labels."""
    mismatch: Any = None
    if info.kind != "numeric" and values.dtype.kind in "iuf":
        known = {"0", "1"} if info.levels == BOOLEANS else set(info.levels)
        mismatch = next((value for value in np.unique(values).tolist() if format_number(value) not in known), None)
    elif info.kind == "numeric" and not (info.is_date or info.is_duration) and values.dtype.kind not in "iufb":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            mismatch = values.tolist()[0]
    if mismatch is not None:
        raise SamplerError(
            f"sample returned {mismatch!r} for feature {info.name!r}, repeat {repeat}, whose values are "
            f"{info.kind}. Values must keep the type of their column."
        )
    return values


def check_user_sampler(sampler: Any) -> None:
    """Raise unless an object can be used as a sampler."""
    if isinstance(sampler, type):
        raise ParameterError(
            f"sampler is the class {sampler.__name__}, not an object of it: write {sampler.__name__}()."
        )
    if not callable(getattr(sampler, "fit", None)):
        raise ParameterError(
            f"sampler must be a name, the result of find_subgroups, or an object with fit and sample; "
            f"got {type(sampler).__name__}, which has no fit."
        )
