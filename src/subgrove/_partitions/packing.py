"""Tables as bytes and back, without pickle: rows travel between processes as Arrow's own format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def packed(table: Any) -> Bytes:
    """A table as bytes."""
    import pyarrow as pa

    arrow = _as_arrow(table)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as writer:
        writer.write_table(arrow)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def unpacked(parts: Sequence[Bytes], empty: Any, columns: Sequence[str], order: npt.NDArray[np.intp]) -> Any:
    """One table from the bytes of several, its rows in another order, with the types of an empty one."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(pa.py_buffer(part)).read_all() for part in parts]
    whole = pa.concat_tables(tables).take(order)
    kind = type(empty).__module__.partition(".")[0]
    if kind == "pyarrow":
        return whole.combine_chunks()
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(whole)
    frame = whole.to_pandas()
    # A column of objects may look like another type once it travelled: booleans, of which none drawn is missing.
    known = [name for name in columns if name in empty.columns]
    wrong = {name: empty[name].dtype for name in known if empty[name].dtype != frame[name].dtype}
    return frame.astype(wrong) if wrong else frame


def _as_arrow(table: Any) -> Any:
    import pyarrow as pa

    kind = type(table).__module__.partition(".")[0]
    if kind == "pandas":
        return pa.Table.from_pandas(table, preserve_index=False)
    return table.to_arrow() if kind == "polars" else table
