"""Groups of features by the chain rule: each member is resampled given the other columns and the members before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Changes, Donors
from subgrove._data.table import Table
from subgrove._subgroups import Partition
from subgrove.samplers.base import Feature, FittedSampler
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups


@dataclass(frozen=True, eq=False, kw_only=True)
class ChainedMembers(FittedSampler):
    """Resamples several features jointly, one after the other.

    Attributes
    ----------
    names : tuple of str
        The members.
    samplers : tuple of FittedSampler
        Sampler of each member; those after the first may depend on the members before them.
    shown : Partition
        Subgroups by which results are reported.
    table : Table
        Training rows.
    rows : int array
        Their positions in the user's table.
    conditioning : tuple of str
        Columns outside the group that new values depend on.
    """

    names: tuple[str, ...]
    samplers: tuple[FittedSampler, ...]
    shown: Partition
    table: Table
    rows: Rows
    conditioning: tuple[str, ...] = ()

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample the members; their combinations have no exact expectation."""
        names = self.names

        def draws() -> Iterator[Changes]:
            first = self.samplers[0].resample(table, names[:1], rngs, exact=False)
            for repeat, changes in enumerate(first.draws()):
                drawn, changed = dict(changes), table
                for previous, name, sampler in zip(names, names[1:], self.samplers[1:], strict=False):
                    changed = with_values(changed, previous, self._values(previous, drawn[previous]))
                    streams = rngs.apart(f"{name} in repeat {repeat}")
                    drawn |= next(iter(sampler.resample(changed, (name,), streams, exact=False).draws()))
                yield drawn

        code = self.shown._assign_table(table).astype(np.int32)
        return ResampledFeature(RowGroups(code, self.shown.rules, self.conditioning), draws)

    def _values(self, name: str, column: Any) -> Any:
        """Return new values as they are in a table."""
        if not isinstance(column, Donors):
            return column
        return self.table.values(name)[np.searchsorted(self.rows, column.rows)]

    @property
    def has_subgroups(self) -> bool:
        """Whether results can be reported by subgroups."""
        return True

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results are reported."""
        return self.shown

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return {"conditioning": self.conditioning}


def with_values(table: Table, name: str, values: Any) -> Table:
    """Return the table with other values of one column."""
    place = table.names.index(name)
    at, numbers, codes = table.positions()[place], table.numbers, table.codes
    if table.columns[place].is_nominal:
        codes = codes.copy()
        codes[:, at] = values
    else:
        numbers = numbers.copy()
        numbers[:, at] = values
    return replace(table, numbers=numbers, codes=codes)


def ignoring_own_values(sampler: Any) -> Any:
    """Return the sampler without the share of their own values, or residuals, that rows keep.

    A member that is drawn after others has another distribution than in its row, if these have changed.
    """
    shares = {field.name for field in fields(sampler)} & {"retention", "kept"}
    parts = {field.name for field in fields(sampler)} & {"ordinary", "probabilities"}
    changes = {name: ignoring_own_values(getattr(sampler, name)) for name in parts} | dict.fromkeys(shares, 0.0)
    return replace(sampler, **changes) if changes else sampler
