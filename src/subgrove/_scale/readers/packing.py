"""Tables as bytes and back, without pickle: rows travel between processes in Arrow's own format."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def pack_table(table: Any) -> Bytes:
    """A table as bytes."""
    if _kind(table) == "polars":  # which writes the format by itself
        buffer = io.BytesIO()
        table.write_ipc_stream(buffer)
        return np.frombuffer(buffer.getvalue(), dtype=np.uint8)
    import pyarrow as pa

    arrow = pa.Table.from_pandas(table, preserve_index=False) if _kind(table) == "pandas" else table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as writer:
        writer.write_table(arrow)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def unpack_tables(parts: Sequence[Bytes], empty: Any, columns: Sequence[str], order: npt.NDArray[np.intp]) -> Any:
    """One table from the bytes of several, its rows in another order, with the types of an empty one."""
    if _kind(empty) == "polars":
        import polars as pl

        return pl.concat([pl.read_ipc_stream(part.tobytes()) for part in parts])[order]
    import pyarrow as pa

    tables = [pa.ipc.open_stream(pa.py_buffer(part)).read_all() for part in parts]
    whole = pa.concat_tables(tables).take(order)
    if _kind(empty) == "pyarrow":
        return whole.combine_chunks()
    frame = whole.to_pandas()
    # A column of objects may look like another type once it travelled: booleans, of which none drawn is missing.
    known = [name for name in columns if name in empty.columns]
    wrong = {name: empty[name].dtype for name in known if empty[name].dtype != frame[name].dtype}
    return frame.astype(wrong) if wrong else frame


def _kind(table: Any) -> str:
    return type(table).__module__.partition(".")[0]
