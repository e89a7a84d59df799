"""The column to be foretold: which task it makes, and which rows can be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from subgrove._cli.reading import Data
from subgrove._report.inputs import reject_extreme
from subgrove.exceptions import InputError

Task = Literal["regression", "classification"]

_FEW = 10  # whole numbers that are held for classes
MOST_CLASSES = 50
LEAST_IN_CLASS = 10
LEAST_ROWS = 50


@dataclass(frozen=True, eq=False)
class Problem:
    """Features and target of rows that have a target, and what was decided about them."""

    X: Any
    y: Any
    task: Task
    notes: tuple[str, ...]


def pose(data: Data, target: str, task: str | None) -> Problem:
    """The rows that have a target, and the task; told where it was inferred."""
    y, notes = data.frame[target], []
    missing = int(y.isna().sum())
    if missing == len(y):
        raise InputError(f"The target {target!r} has no value in any row of {data.path}. Name another with --target.")
    if missing:
        notes.append(f"{_rows(missing)} without a value of {target!r} {'is' if missing == 1 else 'are'} left out.")
    found, why = _task_of(y.dropna(), target)
    chosen: Task = _asked(task, y, target) if task else found
    if task is None:
        notes.append(f"Task: {found}, since {why} (--task for the other).")
    rows = np.flatnonzero(y.notna())
    values = _labels(y.iloc[rows]) if chosen == "classification" else y.iloc[rows].astype(float)
    if chosen == "classification":
        values, told = _common(values, target)
        notes += told
    if len(values) < LEAST_ROWS:
        raise InputError(
            f"{_rows(len(values))} of {data.path} with a target {'is' if len(values) == 1 else 'are'} left; "
            f"at least {LEAST_ROWS} are needed."
        )
    if values.nunique() < 2:
        raise InputError(f"The target {target!r} has the same value in all rows; there is nothing to explain.")
    if chosen == "regression":
        reject_extreme(values.to_numpy(), f"The target {target!r}")
    X = data.frame.drop(columns=target).loc[values.index]
    return Problem(X.reset_index(drop=True), values.reset_index(drop=True), chosen, tuple(notes))


def _task_of(y: Any, target: str) -> tuple[Task, str]:
    if y.dtype.kind not in "iuf":
        if y.dtype.kind == "M":
            raise InputError(
                f"The target {target!r} holds dates, which cannot be foretold here. Convert it to numbers."
            )
        return "classification", f"{target!r} has {y.nunique()} levels"
    distinct = y.nunique()
    if (y == y.round()).all() and distinct <= _FEW:
        return "classification", f"{target!r} has {distinct} different whole numbers"
    return "regression", f"{target!r} is numeric"


def _asked(task: str, y: Any, target: str) -> Task:
    if task == "regression" and y.dtype.kind not in "iuf":
        raise InputError(
            f"--task regression needs numbers, but the target {target!r} holds levels. Use classification."
        )
    return "regression" if task == "regression" else "classification"


def _labels(y: Any) -> Any:
    """Classes as text, or as whole numbers where they are such."""
    if y.dtype.kind in "iuf":
        return y.astype(np.int64) if (y == y.round()).all() else y.map(lambda value: f"{value:g}").astype(object)
    return y.astype(object)


def _common(y: Any, target: str) -> tuple[Any, list[str]]:
    """The rows of classes that have enough of them to be learned and judged."""
    counts = y.value_counts()
    rare = counts[counts < LEAST_IN_CLASS]
    if len(counts) - len(rare) > MOST_CLASSES:
        raise InputError(
            f"The target {target!r} has {len(counts)} classes; at most {MOST_CLASSES} are explained. "
            f"Use --task regression if it is a number, or merge classes."
        )
    if len(rare) == len(counts):
        raise InputError(
            f"No class of the target {target!r} has {LEAST_IN_CLASS} rows or more. Is it an identifier, or a number?"
        )
    if not len(rare):
        return y, []
    listed = ", ".join(repr(str(label)) for label in rare.index[:5]) + (" and others" if len(rare) > 5 else "")
    n = int(rare.sum())
    verb = "is" if n == 1 else "are"
    told = f"{_rows(n)} of classes with fewer than {LEAST_IN_CLASS} rows {verb} left out: {listed}."
    return y[~y.isin(rare.index)], [told]


def _rows(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"
