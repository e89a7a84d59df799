"""Tables of results, in the container that the user's table has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Backend = str  # "pandas", "polars", "pyarrow": whose tables a result is given in

_ROUNDING = 1e-12  # of sums of weights that are a whole number


def backend_of(X: Any) -> Backend:
    """Whose tables results are given in: the container of X, or pandas for arrays."""
    if isinstance(X, np.ndarray) or "pandas" in type(X).__module__:
        return "pandas"
    import narwhals as nw

    return str(nw.from_native(X, eager_only=True).implementation.value)


def make_table(backend: Any, columns: Mapping[str, Any], index: Any = None) -> Any:
    """A table in the container of the user; `index` goes with pandas alone."""
    if backend == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns), index=index)
    import narwhals as nw

    plain = {name: list(values) for name, values in columns.items()}
    return nw.from_dict(plain, backend=backend).to_native()


def table_of_lines(backend: Any, lines: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Any:
    """A table of lines, which may have different columns; without a line, the columns of these names."""
    found = dict.fromkeys(name for line in lines for name in line) or dict.fromkeys(names)
    columns: dict[str, list[Any]] = {name: [line.get(name) for line in lines] for name in found}
    if any(isinstance(n, float) for n in columns.get("n", ())):
        columns["n"] = [float(n) for n in columns["n"]]  # a column has one type
    return make_table(backend, columns)


def as_count(n: float) -> float | int:
    """A number of rows as a whole number, if it is one; weights may add up to others."""
    whole = round(n)
    return whole if abs(n - whole) <= _ROUNDING * abs(n) else float(n)
