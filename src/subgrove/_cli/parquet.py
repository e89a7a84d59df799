"""Some rows of a Parquet file as plain Python values, by pyarrow or polars, whichever is installed.

Both give the same: for each column what the file declares it to be, and its values, None where missing.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from random import Random
from typing import Any

from subgrove._cli.columns import Declared, Raw, RawTable, Wanted, reject_twice
from subgrove._cli.open_file import Source
from subgrove.exceptions import InputError, SubgroveError


def read_parquet(source: Source, wanted: Wanted, *, most: int, seed: int, engine: str | None = None) -> RawTable:
    """At most so many rows of a Parquet file, with the wanted of its columns."""
    found = engine or next((name for name in ("pyarrow", "polars") if find_spec(name)), None)
    if found is None:
        raise InputError(
            f"{source.path} is a Parquet file, and neither pyarrow nor polars is installed to read it. "
            f"Run: pip install 'subgrove[pyarrow]'"
        )
    try:
        read = _by_pyarrow if found == "pyarrow" else _by_polars
        table = read(source, wanted, most, seed)
    except (SubgroveError, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own, which share no class
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{source.path} is damaged or no Parquet that {found} can read: {text}") from error
    if not table.total:
        raise InputError(f"{source.path} has no rows.")
    return table


def rows_drawn(total: int, most: int, seed: int) -> list[int]:
    """Places of at most so many rows, in order."""
    return list(range(total)) if total <= most else sorted(Random(seed).sample(range(total), most))


def _by_pyarrow(source: Source, wanted: Wanted, most: int, seed: int) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with source.open() as opened:
        # A packed file cannot be read from its end, where Parquet has its table of contents.
        file = pq.ParquetFile(io.BytesIO(opened.read()) if source.zipped else opened)
        schema = file.schema_arrow
        kinds = {field.name: _arrow_kind(field.type, pa) for field in schema}
        names = _chosen(schema.names, wanted, source)
        _reject_nested(source, {name: str(schema.field(name).type) for name in names if kinds[name] == "nested"})
        total = int(file.metadata.num_rows)
        chosen, parts, start = rows_drawn(total, most, seed), [], 0
        for group in range(file.num_row_groups):
            n = file.metadata.row_group(group).num_rows
            within = [row - start for row in chosen if start <= row < start + n]
            if within:
                parts.append(file.read_row_group(group, columns=names, use_threads=False).take(within))
            start += n
        whole = pa.concat_tables(parts) if parts else schema.empty_table().select(names)
    return RawTable(raw_columns(whole), tuple(chosen), total)


def raw_columns(table: Any) -> tuple[Raw, ...]:
    """Columns of a pyarrow table as plain values."""
    import pyarrow as pa

    types = {field.name: field.type for field in table.schema}
    return tuple(
        Raw(name, _arrow_kind(kind, pa), _arrow_values(table[name], pa), str(kind)) for name, kind in types.items()
    )


def _arrow_values(column: Any, pa: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        # Nanoseconds would make pandas objects, which polars does not; a microsecond is fine enough.
        timestamp = pa.types.is_timestamp(column.type)
        coarse = pa.timestamp("us", tz=column.type.tz) if timestamp else pa.duration("us")
        column = column.cast(coarse, safe=False)
    values: list[Any] = column.to_pylist()
    return values


def _arrow_kind(kind: Any, pa: Any) -> Declared:
    types = pa.types
    if types.is_dictionary(kind):
        return _arrow_kind(kind.value_type, pa)
    tests: dict[Declared, tuple[Any, ...]] = {
        "nested": (types.is_nested,),
        "boolean": (types.is_boolean,),
        "number": (types.is_integer, types.is_floating, types.is_decimal),
        "text": (types.is_string, types.is_large_string, types.is_string_view),
        "date": (types.is_date, types.is_timestamp),
        "duration": (types.is_duration,),
        "none": (types.is_null,),
    }
    return next((name for name, asked in tests.items() if any(test(kind) for test in asked)), "other")


def _by_polars(source: Source, wanted: Wanted, most: int, seed: int) -> RawTable:
    import polars as pl

    if source.zipped:
        with source.open() as opened:
            lazy = pl.read_parquet(io.BytesIO(opened.read())).lazy()
    else:
        lazy = pl.scan_parquet(source.path, glob=False)
    schema = lazy.collect_schema()
    kinds = {name: _polars_kind(kind) for name, kind in schema.items()}
    names = _chosen(schema.names(), wanted, source)
    _reject_nested(source, {name: str(schema[name]) for name in names if kinds[name] == "nested"})
    total = int(lazy.select(pl.len()).collect().item())
    chosen = rows_drawn(total, most, seed)
    part = lazy.select(names)
    if len(chosen) < total:
        places = pl.Series(chosen, dtype=pl.UInt32).implode()
        part = part.with_row_index("\0").filter(pl.col("\0").is_in(places)).drop("\0")
    frame = part.collect()
    columns = tuple(Raw(name, kinds[name], frame[name].to_list(), str(schema[name])) for name in names)
    return RawTable(columns, tuple(chosen), total)


def _polars_kind(kind: Any) -> Declared:
    import polars as pl

    if kind.is_nested():
        return "nested"
    if kind.is_numeric():
        return "number"
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    named: dict[Any, Declared] = {
        pl.Boolean: "boolean",
        pl.Date: "date",
        pl.Datetime: "date",
        pl.Duration: "duration",
        pl.Null: "none",
    }
    return named.get(kind.base_type(), "other")


def _chosen(names: list[str], wanted: Wanted, source: Source) -> list[str]:
    reject_twice(names, str(source.path))
    chosen = set(wanted(names))
    return [name for name in names if name in chosen]


def _reject_nested(source: Source, nested: dict[str, str]) -> None:
    if nested:
        listed = ", ".join(f"{name!r} ({kind[:40]})" for name, kind in list(nested.items())[:5])
        first = next(iter(nested))
        raise InputError(
            f"{source.path} has nested columns: {listed}. A feature holds one value in a row; "
            f"leave them out (--drop {first!r}), or unpack them into columns of their own."
        )
