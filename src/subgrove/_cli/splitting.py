"""Training and test rows, and folds of cross-validation: at random, by time or by group.

By time, the test rows are the last ones, and each of the folds, which divide the last half of the rows, is predicted by
a model of all rows before it. By group, all rows of a group are on the same side. Rows of the same time stay together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from subgrove._cli.learning_task import LearningTask
from subgrove._core.kinds import Rows
from subgrove._core.text import count_of
from subgrove.exceptions import InputError

FOLDS = 5
TRAIN_SHARE = 0.7
BLOCK_ROWS = 10
"""Consecutive rows of a block, if rows are ordered by time; standard errors take blocks as independent."""
_FEW_BLOCKS, _MOST_BLOCKS = 20, 100  # fewer than 20 only for blocks of 5 rows; more than 100 would only be shorter
_MIN_TEST = 10  # rows


def with_roles(task: LearningTask, time: str | None, group: str | None, keep: tuple[str, ...] = ()) -> LearningTask:
    """Return the task with the columns that order and group its rows, which are features only if they are in `keep`."""
    for option, name in (("--time", time), ("--group", group)):
        if name is not None and (missing := int(task.X[name].isna().sum())):
            raise InputError(
                f"{option} {name}: {count_of(missing, 'row')} without a value. Fill them in, or leave these rows out."
            )
    if time is not None and task.X[time].dtype == "category":
        raise InputError(
            f"--time {time} holds text, which has no order in time. Write it as dates (2024-01-31) or numbers."
        )
    roles = [name for name in dict.fromkeys((time, group)) if name is not None]
    used_as_role = [name for name in roles if name not in keep]
    notes = [f"{name} is not a feature: it {'orders' if name == time else 'groups'} the rows." for name in used_as_role]
    X = task.X.drop(columns=used_as_role)
    if not X.shape[1]:
        raise InputError(f"There is no feature besides {' and '.join(roles)}. Add columns to the file.")
    return replace(
        task,
        X=X,
        time=None if time is None else _numbered(task.X[time]),
        groups=None if group is None else _numbered(task.X[group]),
        notes=(*task.notes, *notes),
    )


def _numbered(values: Any) -> Rows:
    """Return the rank of each value among the distinct ones."""
    if values.dtype == "category":
        values = values.astype(str)
    return np.unique(values.to_numpy(), return_inverse=True)[1].astype(np.intp)


def split_rows(task: LearningTask, random_state: int) -> tuple[LearningTask, LearningTask]:
    """Split into training and test rows: by time, else by group, else stratified by class."""
    from sklearn.model_selection import train_test_split

    units = task.time if task.time is not None else task.groups
    if units is None:
        classes = task.y if task.kind == "classification" else None
        rows = np.arange(len(task.y))
        first, second = train_test_split(rows, train_size=TRAIN_SHARE, random_state=random_state, stratify=classes)
    else:
        first, second = _parts(units, [TRAIN_SHARE], None if task.time is not None else random_state)
        if len(second) < _MIN_TEST or not _can_train(task, first):
            raise InputError(
                f"Split by {_by(task)}, there are {len(first)} training and {len(second)} test rows; at least "
                f"{_MIN_TEST} of each, and two classes, are needed. Use a column with more distinct values."
            )
    return task.rows(np.sort(first)), task.rows(np.sort(second))


def known_classes(training: LearningTask, test: LearningTask) -> LearningTask:
    """Return the test rows of classes that the training rows have, with a note on the others."""
    if training.kind != "classification":
        return test
    known = np.flatnonzero(test.y.isin(set(training.y)))
    if len(known) == len(test.y):
        return test
    note = f"{count_of(len(test.y) - len(known), 'test row')} of classes that no training row has left out."
    return replace(test.rows(known), notes=(note,))


def cross_validation_folds(task: LearningTask, random_state: int) -> list[tuple[Rows, Rows]]:
    """Return the training and held-out rows of each fold."""
    from sklearn.model_selection import KFold, StratifiedKFold

    classes = task.kind == "classification"
    if task.time is None and task.groups is None:
        splitter = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=random_state)
        return list(splitter.split(task.X, task.y if classes else None))
    if task.time is not None:
        blocks = _parts(task.time, [0.5 + 0.5 * at / FOLDS for at in range(FOLDS)], None)
        folds = [(np.concatenate(blocks[:at]), blocks[at]) for at in range(1, FOLDS + 1)]
    else:
        assert task.groups is not None
        blocks = _parts(task.groups, [at / FOLDS for at in range(1, FOLDS)], random_state)
        folds = [(np.concatenate(blocks[:at] + blocks[at + 1 :]), blocks[at]) for at in range(FOLDS)]
    folds = [(first, second) for first, second in folds if len(second) and _can_train(task, first)]
    if not folds:
        raise InputError(
            f"Cross-validation by {_by(task)} is not possible: there are too few distinct values, or training rows "
            f"have only one class. Use a column with more distinct values."
        )
    return folds


def _can_train(task: LearningTask, rows: Rows) -> bool:
    return len(rows) >= _MIN_TEST and (task.kind == "regression" or task.y.iloc[rows].nunique() > 1)


def _part_of(units: Rows, shares: list[float], random_state: int | None = None) -> Rows:
    """Return the part of each row, divided at cumulative shares, with units in one part each.

    With a seed, units are in random order.
    """
    sizes = np.bincount(units)
    order = np.arange(len(sizes))
    if random_state is not None:
        order = np.random.default_rng(random_state).permutation(order)
    ends = np.cumsum(sizes[order])
    # The middle of a unit decides, so that each part has about its share.
    part = np.searchsorted(shares, (ends - sizes[order] / 2) / ends[-1], side="right")
    part_of = np.empty(len(sizes), dtype=np.intp)
    part_of[order] = part
    return part_of[units]


def _parts(units: Rows, shares: list[float], random_state: int | None) -> list[Rows]:
    """Return the rows of each part."""
    part = _part_of(units, shares, random_state)
    return [np.flatnonzero(part == at) for at in range(len(shares) + 1)]


def dependent_groups(task: LearningTask) -> Rows | None:
    """Return the groups for standard errors: those of --group, else blocks of consecutive rows by time."""
    if task.groups is not None and len(np.unique(task.groups)) < 2:
        raise InputError("The test rows are of one group only. Use --group with a column that has more groups.")
    if task.groups is not None or task.time is None:
        return task.groups
    n = len(task.time)
    n_blocks = max(2, min(max(n // BLOCK_ROWS, min(_FEW_BLOCKS, 2 * n // BLOCK_ROWS)), _MOST_BLOCKS))
    ranks = np.unique(task.time, return_inverse=True)[1].astype(np.intp)
    return _part_of(ranks, [at / n_blocks for at in range(1, n_blocks)])


def describe_split(time: str | None, group: str | None) -> tuple[str, str, str]:
    """Return how training rows were selected, how rows were cross-validated, and a sentence on standard errors."""
    errors = "" if group is None else f"Standard errors are clustered by {group}."
    if time is not None:
        blocks = "Standard errors take blocks of consecutive test rows as independent."
        selected = f"the first {TRAIN_SHARE:.0%} of the rows by {time}"
        return selected, f"{FOLDS}-fold forward cross-validation by {time}", errors or blocks
    if group is not None:
        selected = f"{TRAIN_SHARE:.0%} of the rows, whole groups of {group} selected at random"
        return selected, f"{FOLDS}-fold cross-validation by {group}", errors
    return f"{TRAIN_SHARE:.0%} of the rows, selected at random", f"{FOLDS}-fold cross-validation", errors


def _by(task: LearningTask) -> str:
    return "time" if task.time is not None else "group"
