"""How columns of Arrow look to the model: the same types in every chunk, as if all rows had been read at once.

Three things depend on which rows are read together, and are made the same here for all chunks:

- A dictionary column becomes a categorical one with one set of levels. If all row groups hold the same levels in the
  same order, these; otherwise all levels that are found, sorted (levels that are ordered must agree).
- Whole numbers with a missing value anywhere are float64 in pandas, in all chunks.
- Booleans with a missing value anywhere are objects in pandas, in all chunks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from subgrove.exceptions import ColumnError


@dataclass(frozen=True, eq=False)
class ArrowTypes:
    """Types of columns, and how tables get them.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types that all files agree on.
    levels : mapping
        Of each dictionary column its levels, as a pyarrow array.
    missing : frozenset of str
        Whole numbers and booleans that are missing somewhere.
    backend : {"pandas", "pyarrow"}
        Whose tables are given.
    """

    schema: Any
    levels: Mapping[str, Any] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    backend: str = "pandas"

    def table(self, batches: Iterable[Any], columns: Sequence[str]) -> Any:
        """A table of record batches that have these columns."""
        import pyarrow as pa

        schema = pa.schema([self._field(name) for name in columns], self._metadata())
        typed = [self._typed(batch, schema) for batch in batches]
        if not typed:  # levels are known by arrays alone, so that there must be one
            columns = [column.combine_chunks() for column in self.schema.empty_table().columns]  # keep `ordered`
            typed = [self._typed(pa.RecordBatch.from_arrays(columns, schema=self.schema), schema)]
        table = pa.Table.from_batches(typed, schema)
        del typed
        if self.backend == "pyarrow":
            return table.combine_chunks()
        # Columns of Arrow are let go as they are converted, so that no chunk is held twice.
        booleans = [f.name for f in table.schema if pa.types.is_boolean(f.type) and f.name in self.missing]
        frame = table.to_pandas(self_destruct=True, split_blocks=True)
        for name in booleans:
            frame[name] = frame[name].astype(object)
        return frame

    def _field(self, name: str) -> Any:
        import pyarrow as pa

        found = self.schema.field(name)
        if name in self.levels:
            kind = pa.dictionary(pa.int32(), found.type.value_type, found.type.ordered)
            return pa.field(name, kind)
        if name in self.missing and pa.types.is_integer(found.type) and self.backend == "pandas":
            return pa.field(name, pa.float64())
        return pa.field(name, found.type)

    def _metadata(self) -> dict[bytes, bytes] | None:
        """What pandas noted about types; its index is not one here."""
        noted = (self.schema.metadata or {}).get(b"pandas")
        if noted is None or self.backend != "pandas":
            return None
        metadata = json.loads(noted)
        metadata["index_columns"] = []
        metadata["column_indexes"] = []  # names are strings, as in the file, also where pandas had numbers
        metadata["columns"] = [
            column
            for column in metadata.get("columns", [])
            if column.get("field_name", column["name"]) not in self.missing
        ]
        return {b"pandas": json.dumps(metadata).encode()}

    def _typed(self, batch: Any, schema: Any) -> Any:
        import pyarrow as pa

        arrays = []
        for wanted in schema:
            array = batch.column(wanted.name)
            if wanted.name in self.levels:
                array = encode_levels(array, self.levels[wanted.name], wanted.type)
            elif array.type != wanted.type:
                array = array.cast(wanted.type, safe=False)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def encode_levels(array: Any, levels: Any, kind: Any) -> Any:
    """A dictionary array with these levels, from one that has others, or from plain values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(array.type):
        codes = pc.index_in(array.cast(levels.type), value_set=levels)
    elif array.dictionary.equals(levels):
        codes = array.indices.cast(pa.int32())
    else:
        codes = pc.index_in(array.dictionary.cast(levels.type), value_set=levels).take(array.indices)
    return pa.DictionaryArray.from_arrays(codes, levels, ordered=kind.ordered)


def common_levels(name: str, kind: Any, found: Sequence[Any]) -> Any:
    """The levels of a column from the dictionaries of all row groups."""
    import pyarrow as pa

    distinct: dict[tuple[Any, ...], None] = dict.fromkeys(tuple(one.to_pylist()) for one in found)
    longest = max(distinct, key=len, default=())
    if len(distinct) > 1 and kind.ordered:
        _reject_other_orders(name, longest, list(distinct))
    elif len(distinct) > 1:
        longest = tuple(sorted({level for levels in distinct for level in levels if level is not None}))
    return pa.array([level for level in longest if level is not None], kind.value_type)


def _reject_other_orders(name: str, longest: tuple[Any, ...], others: Sequence[tuple[Any, ...]]) -> None:
    place = {level: at for at, level in enumerate(longest)}
    for levels in others:
        at = [place.get(level, -1) for level in levels]
        if -1 in at or at != sorted(at):
            raise ColumnError(
                f"Column {name!r} has ordered levels, and files disagree on them: {list(longest)} here, {list(levels)} "
                f"there. Write all files with the same levels."
            )


def nullable_columns(schema: Any) -> list[str]:
    """Columns whose type in pandas depends on whether a value is missing."""
    import pyarrow as pa

    plain = schema.empty_table().to_pandas(ignore_metadata=False)
    plain.columns = plain.columns.map(str)
    return [
        column.name
        for column in schema
        if (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type))
        and column.nullable
        and column.name in plain.columns
        and isinstance(plain[column.name].dtype, np.dtype)
    ]
