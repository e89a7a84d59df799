"""Read a sample of the rows of Parquet files as plain Python values; pyarrow and polars give the same ones."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._cli.columns import RawTable, SelectColumns
from subgrove._cli.options import DataOptions
from subgrove._core.files import TemporaryFolder
from subgrove.exceptions import InputError, SubgroveError


def read_parquet(path: Path, gzipped: bool, select: SelectColumns, options: DataOptions) -> RawTable:
    """Read the selected columns of a sample of the rows; of all rows if there are at most `options.sample_size`."""
    if not find_spec("pyarrow") and not find_spec("polars"):
        raise InputError(f"{path} is Parquet, which needs pyarrow or polars. Run: pip install 'subgrove[pyarrow]'")
    if not gzipped:
        return read_sample(lambda: _lazy_table(path), select, options)
    with TemporaryFolder() as folder:
        unpacked = folder / "rows.parquet"  # Parquet is read from its end
        with gzip.open(path) as source, unpacked.open("wb") as plain:
            shutil.copyfileobj(source, plain)
        return read_sample(lambda: _lazy_table(unpacked), select, options)


def read_sample(source: Callable[[], Any], select: SelectColumns, options: DataOptions) -> RawTable:
    """Read a sample of the rows of a source of `LargeData`, in their order."""
    try:
        return _read_sample(source(), select, options)
    except (SubgroveError, MemoryError):
        raise
    except Exception as error:  # the libraries' errors have no common class
        text = str(error).partition("\n")[0].split(": ")[-1].rstrip(".") or type(error).__name__
        raise InputError(f"{options.data} is damaged, or not Parquet that can be read: {text}.") from error


def _lazy_table(path: Path) -> Any:
    if find_spec("pyarrow"):
        import pyarrow.dataset as ds

        return ds.dataset(str(path), format="parquet")
    import polars as pl

    return pl.scan_parquet(path, glob=False)


def _read_sample(source: Any, select: SelectColumns, options: DataOptions) -> RawTable:
    import narwhals.stable.v2 as nw

    from subgrove._scale.large_data import read_chunks
    from subgrove._scale.readers import sample_rows

    data = read_chunks(source, argument="DATA")
    selected = set(select(data.columns))
    names = [name for name in data.columns if name in selected]
    schema = nw.from_native(data.empty, eager_only=True).schema
    nested = [name for name in names if schema[name].is_nested()]
    if nested:
        listed = ", ".join(f"{name!r} ({str(schema[name])[:40]})" for name in nested[:5])
        raise InputError(
            f"{options.data} has nested columns: {listed}. A feature must have one value per row; "
            f"leave them out (--drop {nested[0]!r}), or unnest them into separate columns."
        )
    sample = sample_rows(data, names, options.sample_size, options.random_state)
    order = np.argsort(sample.rows)
    table = nw.from_native(sample.table, eager_only=True)[order.tolist()]
    return RawTable({name: table[name].to_list() for name in names}, sample.rows[order].tolist(), data.n_rows)
