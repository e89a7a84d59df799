"""Tables of results, in the container that the user's table has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Backend = str  # "pandas", "polars", "pyarrow": whose tables a result is given in


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
