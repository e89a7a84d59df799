"""Datasets of pyarrow in chunks, each given as a pyarrow table.

Parquet files without a filter are read as from a path. With a filter, rows are counted row group by row group, since
nobody knows how many are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from subgrove._scale.readers.data import ChunkedData
from subgrove._scale.readers.files import ParquetFile
from subgrove._scale.readers.parquet import chunks_of_files
from subgrove.exceptions import InputError


def chunks_of_dataset(X: Any, argument: str, chunk_rows: int) -> ChunkedData:
    """The chunks of a Dataset."""
    files = [file for part in _file_datasets(X, argument) for file in _files(part, X.schema)]
    description = f"the Dataset {argument} ({len(files)} Parquet file{'s' if len(files) != 1 else ''})"
    return chunks_of_files(files, X.schema, "pyarrow", description, chunk_rows)


def _file_datasets(X: Any, argument: str) -> Iterator[Any]:
    """The parts of a Dataset, each of Parquet files."""
    import pyarrow.dataset as ds

    if isinstance(X, ds.UnionDataset):
        for child in X.children:
            yield from _file_datasets(child, argument)
        return
    if not isinstance(X, ds.FileSystemDataset) or not isinstance(X.format, ds.ParquetFileFormat):
        kind = X.format.default_extname if isinstance(X, ds.FileSystemDataset) else type(X).__name__
        raise InputError(
            f"{argument} is a Dataset of {kind}; chunks are read from Parquet, where row groups can be found without "
            f"reading what is before them. Pass {argument}.to_table() if it fits in memory, or convert it once: "
            f"pyarrow.dataset.write_dataset({argument}, 'rows', format='parquet')"
        )
    yield X


def _filter(part: Any) -> Any:
    return getattr(part, "_scan_options", {}).get("filter")


def _files(part: Any, schema: Any) -> Iterator[ParquetFile]:
    """The files of a Dataset; columns that a file does not have are missing in it."""
    for fragment in _unfiltered(part).get_fragments(filter=_filter(part)):
        yield ParquetFile.of(fragment.path.rpartition("/")[2], fragment, schema, _filter(part))


def _unfiltered(part: Any) -> Any:
    """The Dataset without its filter; one with a filter does not list its fragments."""
    import pyarrow.dataset as ds

    if _filter(part) is None:
        return part
    folders = part.partitioning
    if folders is not None and folders.schema.names and not isinstance(folders, ds.HivePartitioning):
        raise InputError(
            f"X is a Dataset with a filter and {type(folders).__name__}; of filtered ones, folders must be like "
            f"'year=2024' (partitioning='hive'). Leave the filter out, or write it: "
            f"pyarrow.dataset.write_dataset(X, 'rows', format='parquet')"
        )
    options = {"schema": part.schema, "format": part.format, "filesystem": part.filesystem}
    return ds.dataset(part.files, **options, partitioning=folders)
