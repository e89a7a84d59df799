"""Arguments that only large data have a use for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from subgrove._core.text import quote
from subgrove._scale.readers.data import ChunkedData
from subgrove.exceptions import ParameterError

SAMPLE_SIZE = 100_000
"""Rows that are drawn by default to fit samplers and to find grids."""


def reject_large_data_options(
    *, sample: Any, row_key: Any, checkpoint: Any, chunk_rows: Any, least: int = SAMPLE_SIZE
) -> None:
    """Rows in memory are all used, at once: none of these says anything about them."""
    defaults = {"sample": least, "row_key": None, "checkpoint": None, "chunk_rows": None}
    given = {"sample": sample, "row_key": row_key, "checkpoint": checkpoint, "chunk_rows": chunk_rows}
    wrong = [name for name, value in given.items() if value is not defaults[name] and value != defaults[name]]
    if wrong:
        raise ParameterError(
            f"{wrong[0]}={given[wrong[0]]!r} is for large data, and X is a table in memory. Leave it out, or "
            f"pass X as a path to Parquet, a pyarrow Dataset, a polars LazyFrame or a Dask DataFrame."
        )


def check_sample_size(sample: Any) -> int:
    """How many rows to draw."""
    if isinstance(sample, bool) or not isinstance(sample, int | np.integer) or sample < 1:
        raise ParameterError(f"sample must be a whole number >= 1, of rows to draw; got {sample!r}.")
    return int(sample)


def check_column_name(name: Any, data: ChunkedData, argument: str, why: str) -> str | None:
    """The name of a column of the data, or None."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise ParameterError(
            f"{argument} must be the name of a column of {data.description}, {why}; got {type(name).__name__}."
        )
    data.reject_unknown([name], argument)
    return name


def check_checkpoint(checkpoint: Any) -> Path | None:
    """Where finished chunks are kept."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str | Path):
        raise ParameterError(f"checkpoint must be the path of a folder; got {type(checkpoint).__name__}.")
    if isinstance(checkpoint, str) and not checkpoint.strip():
        raise ParameterError(f"checkpoint must be the path of a folder; got {checkpoint!r}, which names none.")
    return Path(checkpoint)


def model_columns(data: ChunkedData, model: Any, known: tuple[str, ...], left_out: tuple[str | None, ...]) -> list[str]:
    """The columns that the model is given: those it was fitted on, if it says so; else those that are known; else all.

    A file mostly holds the target too, and it is no feature.
    """
    try:
        fitted = [str(name) for name in model.feature_names_in_]
    except AttributeError:
        fitted = []
    if fitted:
        data.reject_unknown(fitted, "the model (feature_names_in_)")
        return fitted
    if known and set(known) <= set(data.columns):
        return list(known)
    found = [name for name in data.columns if name not in left_out]
    _reject_other_number(found, model, data)
    return found


def _reject_other_number(found: list[str], model: Any, data: ChunkedData) -> None:
    """A model that was fitted on an array says how many columns it had, not which."""
    n = getattr(model, "n_features_in_", None)
    if isinstance(n, int | np.integer) and n != len(found):
        listed = quote(found[:30]) + (" ..." if len(found) > 30 else "")
        raise ParameterError(
            f"The model was fitted on {n} columns without names, and {data.description} has {len(found)} that may be "
            f"meant: {listed}. Pass data with the columns of the model alone (a LazyFrame with select, say) beside "
            f"those that other arguments name, or fit the model on a table with names."
        )


def select_columns(table: Any, columns: list[str]) -> Any:
    """Some columns of a table that a chunk gave."""
    return table.select(columns) if hasattr(table, "column_names") else table[columns]
