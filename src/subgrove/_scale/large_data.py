"""`LargeData`: a table that need not fit in memory, and how it is read."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._core.text import quote
from subgrove._core.validate import whole_number
from subgrove._scale.readers.data import ChunkedData
from subgrove.exceptions import InputError, ParameterError

SAMPLE_SIZE = 100_000
"""Default number of sampled rows, which samplers are fitted on and grids are computed from."""

CHUNK_ROWS = 250_000
"""Default for the maximum number of rows of a chunk."""


@dataclass(frozen=True, eq=False)
class LargeData:
    """A table that is read in chunks, so that it need not fit in memory.

    Parameters
    ----------
    source : str or path, pyarrow Dataset, polars LazyFrame or Dask DataFrame
        A Parquet file, a folder of them (also with subfolders such as "year=2024"), or a pattern such as
        "rows/*.parquet"; or the lazy table of another library. Passed alone as `X`, it is read with the defaults below.
    row_key : str, optional
        Column with a different value in each row. Random draws then depend on this value instead of the row number, so
        that results do not depend on the order of the rows. It is not passed to the model.
    sample_size : int, default 100000
        Number of rows drawn at random: samplers are fitted on them (on at most half of the rows, which are then left
        out of the evaluation), grids of effects are computed from them.
    checkpoint : path, optional
        Folder for the sums of finished chunks. The same call with the same folder continues after a failure.
    chunk_rows : int, optional
        Maximum number of rows read at once; 250,000 by default. Partitions of Dask are read as they are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import subgrove as sg
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bike.parquet"
    >>> sg.datasets.bike().X.to_parquet(path)
    >>> rows = sg.LargeData(path, chunk_rows=200)
    >>> effect = sg.effect(lambda X: 100 * X["temp"], rows, "temp", subgroups=None, grid_resolution=3)
    >>> effect.curves["n"].tolist()
    [731, 731, 731]
    """

    source: Any
    row_key: str | None = None
    sample_size: int = SAMPLE_SIZE
    checkpoint: str | Path | None = None
    chunk_rows: int | None = None

    def __post_init__(self) -> None:
        if not _is_source(self.source):
            raise ParameterError(
                f"LargeData takes a path to Parquet, a pyarrow Dataset, a polars LazyFrame or a Dask DataFrame; got "
                f"{type(self.source).__name__}. Pass a table in memory as X itself."
            )
        whole_number("sample_size", self.sample_size, least=1)
        if self.chunk_rows is not None:
            whole_number("chunk_rows", self.chunk_rows, least=1)
        if self.row_key is not None and not isinstance(self.row_key, str):
            raise ParameterError(f"row_key must be the name of a column; got {type(self.row_key).__name__}.")
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | Path):
            raise ParameterError(f"checkpoint must be the path of a folder; got {type(self.checkpoint).__name__}.")
        if isinstance(self.checkpoint, str) and not self.checkpoint.strip():
            raise ParameterError(f"checkpoint must be the path of a folder; got {self.checkpoint!r}.")

    def read(self, argument: str = "X") -> ChunkedData:
        """Return the chunks, without reading their rows.

        Parameters
        ----------
        argument : str, default "X"
            Name of the argument in error messages.
        """
        data = read_chunks(self.source, argument=argument, chunk_rows=self.chunk_rows)
        if self.row_key is not None:
            data.reject_unknown([self.row_key], "row_key")
        return data

    @property
    def folder(self) -> Path | None:
        """Folder of the checkpoint."""
        return None if self.checkpoint is None else Path(self.checkpoint)


def is_large(X: Any) -> bool:
    """Return whether X is read in chunks: `LargeData`, a path, a Dataset, a LazyFrame or a Dask frame."""
    return isinstance(X, LargeData) or _is_source(X)


def as_large(X: Any) -> LargeData:
    """Return X as `LargeData`, with the defaults if it is a bare source."""
    return X if isinstance(X, LargeData) else LargeData(X)


def read_chunks(source: Any, *, argument: str = "X", chunk_rows: int | None = None) -> ChunkedData:
    """Return the chunks of a source of `LargeData`; no rows are read yet.

    Parameters
    ----------
    source : str or path, pyarrow Dataset, polars LazyFrame or Dask DataFrame
        As in `LargeData`.
    argument : str, default "X"
        Name of the argument in error messages.
    chunk_rows : int, optional
        Maximum number of rows of a chunk; 250,000 by default.
    """
    rows = CHUNK_ROWS if chunk_rows is None else whole_number("chunk_rows", chunk_rows, least=1)
    if isinstance(source, ChunkedData):
        return source
    if isinstance(source, str | os.PathLike):
        from subgrove._scale.readers.parquet import chunks_of_path

        data = chunks_of_path(os.fspath(source), argument, rows)
    elif _is_instance(source, "pyarrow.dataset", "Dataset"):
        from subgrove._scale.readers.parquet import chunks_of_dataset

        data = chunks_of_dataset(source, argument, rows)
    elif _is_instance(source, "polars", "LazyFrame"):
        from subgrove._scale.readers.lazy_frames import chunks_of_lazy_frame

        data = chunks_of_lazy_frame(source, argument, rows)
    elif _is_instance(source, "dask.dataframe", "DataFrame"):
        from subgrove._scale.readers.lazy_frames import chunks_of_dask

        data = chunks_of_dask(source, argument)
    else:
        raise InputError(
            f"{argument} must be a path to Parquet, a pyarrow Dataset, a polars LazyFrame or a Dask DataFrame; "
            f"got {type(source).__name__}."
        )
    if not data.n_rows:
        raise InputError(f"{argument}, {data.description}, has no rows. Pass data with at least one row.")
    return data


def _is_source(X: Any) -> bool:
    libraries = (("pyarrow.dataset", "Dataset"), ("polars", "LazyFrame"), ("dask.dataframe", "DataFrame"))
    return isinstance(X, str | os.PathLike | ChunkedData) or any(_is_instance(X, *one) for one in libraries)


def _is_instance(X: Any, module: str, name: str) -> bool:
    """Return whether X is of a class of an optional library, without importing it."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(X, getattr(loaded, name))


def check_column_name(name: Any, data: ChunkedData, argument: str, meaning: str) -> str | None:
    """Return the name of a column of the data, or None."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise ParameterError(
            f"{argument} must be the name of a column of {data.description}, {meaning}; got {type(name).__name__}."
        )
    data.reject_unknown([name], argument)
    return name


def model_columns(data: ChunkedData, model: Any, known: tuple[str, ...], excluded: tuple[str | None, ...]) -> list[str]:
    """Return the columns passed to the model: those it was fitted on, else the known ones, else all but `excluded`."""
    try:
        fitted = [str(name) for name in model.feature_names_in_]
    except AttributeError:
        fitted = []
    if fitted:
        data.reject_unknown(fitted, "the model (feature_names_in_)")
        return fitted
    if known and set(known) <= set(data.columns):
        return list(known)
    columns = [name for name in data.columns if name not in excluded]
    n = getattr(model, "n_features_in_", None)
    if isinstance(n, int | np.integer) and n != len(columns):
        listed = quote(columns[:30]) + (" ..." if len(columns) > 30 else "")
        raise ParameterError(
            f"The model was fitted on {n} columns without names, but {data.description} has {len(columns)} possible "
            f"ones: {listed}. Pass data with the columns of the model only (for example a LazyFrame with select) and "
            f"those that other arguments name, or fit the model on a table with column names."
        )
    return columns


def select_columns(table: Any, columns: list[str]) -> Any:
    """Return some columns of a table read from a chunk."""
    return table.select(columns) if hasattr(table, "column_names") else table[columns]
