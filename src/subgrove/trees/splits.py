"""Splits of nodes, and the rules they define.

The printed rule and the condition applied to rows are the same object, so they cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._data.columns import number_text
from subgrove._data.table import ColumnInfo, Kind, Table

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
ALL_ROWS = "all rows"


@dataclass(frozen=True, slots=True)
class Split:
    """Split of a node into two children.

    Attributes
    ----------
    column : str
        Column that is split.
    kind : {"numeric", "ordered", "nominal"}
        Kind of the column.
    threshold : float or None
        Numeric: values up to it are below. Ordered: number of levels below. None for nominal columns, and if missing
        values are separated from all others.
    strict : bool
        Whether a value equal to the threshold is above it (CART) instead of below.
    below : {"left", "right"}
        Child that receives the values below.
    levels : pair of tuples of str
        Nominal: levels of the left and of the right child; levels without training rows in the node are assigned to
        the larger child.
    missing : {"left", "right"}
        Child that receives missing values.
    larger : {"left", "right"}
        Child with more training rows, which receives new levels.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="temp"), X["temp"])
    >>> split = tree.nodes[0].split
    >>> split.column, split.kind, split.levels
    ('season', 'nominal', (('WINTER', 'SPRING', 'FALL'), ('SUMMER',)))
    """

    column: str
    kind: Kind
    threshold: float | None = None
    strict: bool = False
    below: Side = "left"
    levels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    missing: Side = "left"
    larger: Side = "left"


def goes_left(split: Split, column: ColumnInfo, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows go to the left child; `values` are numbers, or codes if nominal."""
    to_left = np.array([split.missing == "left", split.larger == "left"])
    if split.kind == "nominal":
        left = set(split.levels[0])
        table = np.array([level in left for level in column.levels] + [to_left[1], to_left[0]])
        return np.asarray(table[values])  # -1 is missing, -2 a new level
    missing = np.isnan(values)
    if split.threshold is None:
        below = ~missing
    else:
        below = values < split.threshold if split.strict else values <= split.threshold
    left_side = below if split.below == "left" else ~below
    if missing.any():
        left_side = np.where(missing, to_left[0], left_side)
    if split.kind == "ordered":
        left_side = np.where(np.isinf(values), to_left[1], left_side)
    return np.asarray(left_side)


def assign_unseen_values(split: Split, column: ColumnInfo, values: npt.NDArray[Any], larger: Side) -> Split:
    """Return a split that sends levels and missing values absent from the node to the larger child.

    `values` are those of the node's training rows: numbers, or codes if nominal.
    """
    has_missing = bool((values < 0).any() if column.is_nominal else np.isnan(values).any())
    split = replace(split, larger=larger, missing=split.missing if has_missing else larger)
    if not column.is_nominal:
        return split
    present = {column.levels[code] for code in np.unique(values) if code >= 0}
    left, right = (
        tuple(level for level in column.levels if (level in group if level in present else side == larger))
        for side, group in zip(SIDES, split.levels, strict=True)
    )
    return replace(split, levels=(left, right))


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a rule on one column.

    Attributes
    ----------
    column : ColumnInfo
        Name, kind and levels of the column.
    low, high : float
        Bounds of a numeric or ordered column (ordered: number of the level, from 1).
    low_closed, high_closed : bool
        Whether the bound is included.
    levels : frozenset of str, or None
        Allowed levels of a nominal column.
    present : bool
        Whether values that are not missing are allowed.
    missing : bool
        Whether missing values are allowed.
    """

    column: ColumnInfo
    low: float = -np.inf
    high: float = np.inf
    low_closed: bool = False
    high_closed: bool = True
    levels: frozenset[str] | None = None
    present: bool = True
    missing: bool = True

    def matches(self, table: Table) -> npt.NDArray[np.bool_]:
        """Return which rows of a table satisfy the condition."""
        values = table.values(self.column.name)
        if self.column.is_nominal:
            return self._matches_codes(values)
        missing = np.isnan(values)
        above = values >= self.low if self.low_closed else values > self.low
        below = values <= self.high if self.high_closed else values < self.high
        # Infinite: a new level of an ordered column, which no rule covers.
        inside = above & below & self.present & ~np.isinf(values)
        return np.asarray(np.where(missing, self.missing, inside))

    def _matches_codes(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        levels = self.levels or frozenset()
        allowed = np.array([level in levels for level in self.column.levels] + [False, self.missing])
        return np.asarray(allowed[codes])

    def __str__(self) -> str:
        name = self.column.name
        allows_missing = self.missing and self.column.has_missing
        if not self.present or (self.levels is not None and not self.levels):
            return f"{name} is missing"
        text = self._range_text() if self.levels is None else self._levels_text()
        if text is None:
            return ALL_ROWS if allows_missing or not self.column.has_missing else f"{name} is not missing"
        return f"{text} or missing" if allows_missing else text

    def _levels_text(self) -> str | None:
        levels = self.levels or frozenset()
        if len(levels) == len(self.column.levels):
            return None
        listed = ", ".join(level_text(level) for level in self.column.levels if level in levels)
        return f"{self.column.name} in {{{listed}}}"

    def _range_text(self) -> str | None:
        name = self.column.name
        low = None if np.isneginf(self.low) else self._value(self.low)
        high = None if np.isposinf(self.high) else self._value(self.high)
        less_low = "<=" if self.low_closed else "<"
        less_high = "<=" if self.high_closed else "<"
        if low is not None and high is not None:
            return f"{low} {less_low} {name} {less_high} {high}"
        if high is not None:
            return f"{name} {less_high} {high}"
        if low is not None:
            return f"{name} {'>=' if self.low_closed else '>'} {low}"
        return None

    def _value(self, value: float) -> str:
        if self.column.kind == "ordered":
            return level_text(self.column.levels[int(value) - 1])
        return number_text(value, self.column)


def level_text(level: str) -> str:
    """Return a level as printed in a rule: quoted if it would be ambiguous."""
    plain = level == level.strip() and level not in ("", "missing", "or missing") and not set(level) & set("{},'\"\n\r")
    return level if plain else repr(level)


def split_condition(split: Split, side: Side, column: ColumnInfo) -> Condition:
    """Return the condition of a split on the rows of one side."""
    missing = split.missing == side
    if split.kind == "nominal":
        levels = frozenset(split.levels[0 if side == "left" else 1])
        return Condition(column, levels=levels, present=bool(levels), missing=missing)
    if split.threshold is None:
        return Condition(column, present=split.below == side, missing=missing)
    if split.below == side:
        return Condition(column, high=split.threshold, high_closed=not split.strict, missing=missing)
    return Condition(column, low=split.threshold, low_closed=split.strict, missing=missing)


def merge(path: tuple[Condition, ...], condition: Condition) -> tuple[Condition, ...]:
    """Add a condition to a path; conditions on the same column are intersected."""
    name = condition.column.name
    if all(earlier.column.name != name for earlier in path):
        return (*path, condition)
    return tuple(_intersect(earlier, condition) if earlier.column.name == name else earlier for earlier in path)


def rule_text(conditions: tuple[Condition, ...]) -> str:
    """Return the rule of a leaf in one line."""
    texts = [str(condition) for condition in conditions]
    conditions_text = [text for text in texts if text != ALL_ROWS]
    if not conditions_text:
        return ALL_ROWS
    if len(conditions_text) == 1:
        return conditions_text[0]
    return " and ".join(f"({text})" if text.endswith(" or missing") else text for text in conditions_text)


def matches(conditions: tuple[Condition, ...], table: Table) -> npt.NDArray[np.bool_]:
    """Return which rows of a table satisfy all conditions."""
    result = np.ones(table.n_rows, dtype=np.bool_)
    for condition in conditions:
        result &= condition.matches(table)
    return result


def _intersect(one: Condition, other: Condition) -> Condition:
    changes: dict[str, Any] = {"present": one.present and other.present, "missing": one.missing and other.missing}
    if one.levels is not None or other.levels is not None:
        everything = frozenset(one.column.levels)
        levels = (everything if one.levels is None else one.levels) & (
            everything if other.levels is None else other.levels
        )
        return replace(one, **changes, levels=levels)
    if other.low > one.low or (other.low == one.low and not other.low_closed):
        changes |= {"low": other.low, "low_closed": other.low_closed}
    if other.high < one.high or (other.high == one.high and not other.high_closed):
        changes |= {"high": other.high, "high_closed": other.high_closed}
    return replace(one, **changes)
