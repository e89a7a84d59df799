"""Tables of results, in the container of the user's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Backend = str  # container of the tables of a result: "pandas", "polars", "pyarrow"

_ROUNDING = 1e-12  # relative error of sums of weights that are integers


def backend_of(X: Any) -> Backend:
    """Return the container of the tables of a result: that of X, or pandas for arrays."""
    if isinstance(X, np.ndarray) or "pandas" in type(X).__module__:
        return "pandas"
    import narwhals as nw

    return str(nw.from_native(X, eager_only=True).implementation.value)


def make_table(backend: Any, columns: Mapping[str, Any], index: Any = None) -> Any:
    """Return a table in a container; only pandas has an `index`."""
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns), index=index)
    import narwhals as nw

    plain = {name: list(values) for name, values in columns.items()}
    return nw.from_dict(plain, backend=backend).to_native()


def table_of_lines(backend: Any, lines: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Any:
    """Return a table of lines, which may have different columns; without a line, an empty table of these columns."""
    present = dict.fromkeys(name for line in lines for name in line) or dict.fromkeys(names)
    columns: dict[str, list[Any]] = {name: [line.get(name) for line in lines] for name in present}
    if any(isinstance(n, float) for n in columns.get("n", ())):
        columns["n"] = [float(n) for n in columns["n"]]  # a column has one type
    return make_table(backend, columns)


def as_count(n: float) -> float | int:
    """Return a number of rows as an int if it is an integer; sums of weights may not be."""
    whole = round(n)
    return whole if abs(n - whole) <= _ROUNDING * abs(n) else float(n)
