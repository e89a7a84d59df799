"""The learning task that the target column defines: regression or classification, and the rows that can be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from subgrove._cli.columns import require
from subgrove._cli.reading import FileTable
from subgrove._core.kinds import Rows
from subgrove._core.text import count_of, first_of
from subgrove._report.inputs import reject_extreme

TaskKind = Literal["regression", "classification"]

_MOST_INTEGER_CLASSES = 10  # integer targets with at most so many distinct values are classes
MOST_CLASSES = 50
MIN_CLASS_ROWS = 10
FEWEST_CLASS_ROWS = 5  # one for each fold of cross-validation; if fewer than two classes have more
MIN_ROWS = 50


@dataclass(frozen=True, eq=False)
class LearningTask:
    """Features and target of the rows with a known target, and notes on how they were selected.

    `time` has the place in time of each row, and `groups` its group, as numbers from 0; None if they are not known.
    """

    X: Any
    y: Any
    kind: TaskKind
    notes: tuple[str, ...]
    time: Rows | None = None
    groups: Rows | None = None

    def rows(self, rows: Any) -> LearningTask:
        """Return the task with some of the rows."""
        X, y = (values.iloc[rows].reset_index(drop=True) for values in (self.X, self.y))
        roles = (None if one is None else one[rows] for one in (self.time, self.groups))
        return LearningTask(X, y, self.kind, (), *roles)


def learning_task(table: FileTable, target: str, kind: TaskKind | None) -> LearningTask:
    """Return the rows with a known target; the kind of task is inferred if it is None."""
    name, y = f"The target {target!r}", table.frame[target].dropna()
    column = next(one for one in table.columns if one.name == target)
    why = column.note or "all its values are missing"
    require(len(y), f"{name} in {table.path} cannot be used: {why}. Convert it, or choose another --target.")
    require(column.kind != "date", f"{name} holds dates, which cannot be predicted here. Convert it to numbers.")
    is_text = column.kind == "nominal"
    require(kind != "regression" or not is_text, f"A regression needs numbers, but {target!r} has {column.values}.")
    missing = len(table.frame) - len(y)
    notes = [f"{count_of(missing, 'row')} with missing target {target!r} left out."] if missing else []
    if kind is None:
        is_class = is_text or (y.nunique() <= _MOST_INTEGER_CLASSES and (y % 1 == 0).all())
        kind = "classification" if is_class else "regression"
        values = f"{y.nunique()} {'levels' if is_text else 'distinct numbers'}"
        notes.append(f"Task: {kind}, because {target!r} has {values} (override with --task).")
    if kind == "classification":
        y, removed = _without_rare_classes(_labels(y), name)
        notes += removed
    found = f"{count_of(len(y), 'usable row')} in {table.path}"
    require(len(y) >= MIN_ROWS, f"{found}; at least {MIN_ROWS} rows with a target are needed. {' '.join(notes)}")
    require(y.nunique() > 1, f"{name} is constant; there is nothing to explain.")
    if kind == "regression":
        y = y.astype(float)
        reject_extreme(y.to_numpy(), name)
    X = table.frame.drop(columns=target).loc[y.index]
    return LearningTask(X.reset_index(drop=True), y.reset_index(drop=True), kind, tuple(notes))


def _labels(y: Any) -> Any:
    """Return classes as integers where they are integers, else as text."""
    if y.dtype == "category":
        return y.astype(object)
    return y.astype(np.int64) if (y == y.round()).all() else y.map("{:g}".format).astype(object)


def _without_rare_classes(y: Any, name: str) -> tuple[Any, list[str]]:
    """Return the rows of classes with enough rows for training and validation, and notes on the others."""
    counts = y.value_counts(sort=False).sort_values(ascending=False, kind="stable")  # ties in the order of rows
    fewest = MIN_CLASS_ROWS if (counts >= MIN_CLASS_ROWS).sum() > 1 else FEWEST_CLASS_ROWS
    kept, rare = counts[counts >= fewest], counts[counts < fewest]
    remedy = "Use --task regression if it is a quantity" if y.dtype.kind == "i" else "Merge classes"
    limit = f"{len(counts)} classes; at most {MOST_CLASSES} are supported"
    require(len(kept) <= MOST_CLASSES, f"{name} has {limit}. {remedy}, or choose another --target.")
    needed = f"Two classes of at least {FEWEST_CLASS_ROWS} rows are needed. Is it an identifier or a quantity?"
    classes = f"{len(counts)} classes with too few rows: {_sizes(counts)}"
    require(len(kept) >= min(2, len(counts)), f"{name} has {classes}. {needed}")
    few, rows = kept[kept < MIN_CLASS_ROWS], count_of(int(rare.sum()), "row")
    notes = [f"Classes with few rows, so results are imprecise: {_sizes(few)} of {len(y):,}."] if len(few) else []
    notes += [f"{rows} of classes with fewer than {fewest} rows left out: {_sizes(rare)}."] if len(rare) else []
    return y[y.isin(kept.index)], notes


def _sizes(counts: Any) -> str:
    """Return classes and their numbers of rows."""
    return first_of([f"{str(name)!r} ({n})" for name, n in counts.items()], 4)
