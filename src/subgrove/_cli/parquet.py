"""Read a sample of the rows of a Parquet file as plain Python values, by pyarrow or polars.

Both give the same values, None where missing.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from subgrove._cli.columns import RawTable, SelectColumns, raw_column
from subgrove._cli.options import DataOptions
from subgrove.exceptions import InputError, SubgroveError


def read_parquet(path: Path, gzipped: bool, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    engine = next((name for name in ("pyarrow", "polars") if find_spec(name)), None)
    if engine is None:
        raise InputError(
            f"{path} is a Parquet file, and neither pyarrow nor polars is installed to read it. "
            f"Run: pip install 'subgrove[pyarrow]'"
        )
    try:
        # Parquet is read from its end, which needs the content of a compressed file in memory.
        source = io.BytesIO(gzip.decompress(path.read_bytes())) if gzipped else path
        table = (_read_with_pyarrow if engine == "pyarrow" else _read_with_polars)(source, select, options)
    except (SubgroveError, MemoryError):
        raise
    except Exception as error:  # the libraries' errors have no common class
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} is damaged, or not Parquet that {engine} can read: {text}") from error
    if not table.total:
        raise InputError(f"{path} has no rows.")
    return table


def _sample(total: int, options: DataOptions) -> list[int]:
    """Return row numbers of a sample, in order."""
    if total <= options.sample_size:
        return list(range(total))
    return sorted(Random(options.random_state).sample(range(total), options.sample_size))


def _read_with_pyarrow(source: io.BytesIO | Path, select: SelectColumns, options: DataOptions) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as content:
        schema = content.schema_arrow
        names = _selected(schema.names, select)
        _reject_nested(options, {name: schema.field(name).type for name in names}, pa.types.is_nested)
        total = int(content.metadata.num_rows)
        rows, chunks, start = _sample(total, options), [], 0
        for group in range(content.num_row_groups):
            n = content.metadata.row_group(group).num_rows
            within = [row - start for row in rows if start <= row < start + n]
            if within:
                chunks.append(content.read_row_group(group, columns=names, use_threads=False).take(within))
            start += n
        table = pa.concat_tables(chunks) if chunks else schema.empty_table()
    columns = (raw_column(name, table[name].to_pylist()) for name in names)
    return RawTable(tuple(columns), tuple(rows), total)


def _read_with_polars(source: io.BytesIO | Path, select: SelectColumns, options: DataOptions) -> RawTable:
    import polars as pl

    lazy = pl.scan_parquet(source, glob=False)
    schema = lazy.collect_schema()
    names = _selected(schema.names(), select)
    _reject_nested(options, {name: schema[name] for name in names}, lambda kind: kind.is_nested())
    total = int(lazy.select(pl.len()).collect().item())
    rows = _sample(total, options)
    query = lazy.select(names)
    if len(rows) < total:
        places = pl.Series(rows, dtype=pl.UInt32).implode()
        query = query.with_row_index("\0").filter(pl.col("\0").is_in(places)).drop("\0")
    frame = query.collect()
    columns = (raw_column(name, frame[name].to_list()) for name in names)
    return RawTable(tuple(columns), tuple(rows), total)


def _selected(names: list[str], select: SelectColumns) -> list[str]:
    selected = set(select(names))
    return [name for name in names if name in selected]


def _reject_nested(options: DataOptions, types: dict[str, Any], is_nested: Callable[[Any], bool]) -> None:
    nested = [name for name, kind in types.items() if is_nested(kind)]
    if nested:
        listed = ", ".join(f"{name!r} ({str(types[name])[:40]})" for name in nested[:5])
        raise InputError(
            f"{options.data} has nested columns: {listed}. A feature must have one value per row; "
            f"leave them out (--drop {nested[0]!r}), or unnest them into separate columns."
        )
