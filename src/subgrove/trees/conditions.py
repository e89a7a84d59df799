"""Conditions on one column: merged along a path, printed as a rule, asked of a table.

The printed rule and the asked condition are the same object, so they cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from subgrove._data.columns import number_text
from subgrove._data.table import ColumnInfo, Table

if TYPE_CHECKING:
    from subgrove.trees.nodes import Side, Split

ALL_ROWS = "all rows"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule asks of one column.

    Attributes
    ----------
    column : ColumnInfo
    low, high : float
        Bounds of a numeric or ordered column (ordered: number of the level, from 1).
    low_closed, high_closed : bool
        Whether a bound belongs to the interval.
    levels : frozenset of str, or None
        Allowed levels of a nominal column.
    present : bool
        Whether any value that is not missing is allowed.
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
        """Which rows of a table satisfy the condition."""
        values = table.values(self.column.name)
        if self.column.is_nominal:
            return self._matches_codes(values)
        missing = np.isnan(values)
        above = values >= self.low if self.low_closed else values > self.low
        below = values <= self.high if self.high_closed else values < self.high
        # Infinite: a level of an ordered column that training did not have, which no rule covers.
        inside = above & below & self.present & ~np.isinf(values)
        result: npt.NDArray[np.bool_] = np.where(missing, self.missing, inside)
        return result

    def _matches_codes(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        levels = self.levels or frozenset()
        allowed = np.array([level in levels for level in self.column.levels] + [False, self.missing])
        result: npt.NDArray[np.bool_] = allowed[codes]
        return result

    def __str__(self) -> str:
        name = self.column.name
        said_missing = self.missing and self.column.has_missing
        if not self.present or (self.levels is not None and not self.levels):
            return f"{name} is missing"
        text = self._range_text() if self.levels is None else self._levels_text()
        if text is None:
            return ALL_ROWS if said_missing or not self.column.has_missing else f"{name} is not missing"
        return f"{text} or missing" if said_missing else text

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
    """A level as it stands in a rule: in quotes if it could be taken for something else."""
    plain = level == level.strip() and level not in ("", "missing", "or missing") and not set(level) & set("{},'\"\n\r")
    return level if plain else repr(level)


def split_condition(split: Split, side: Side, column: ColumnInfo) -> Condition:
    """What a split asks of the rows that go to one side."""
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
    """A path of conditions and one more; conditions on the same column become one."""
    merged = []
    found = False
    for earlier in path:
        if earlier.column.name == condition.column.name:
            merged.append(_intersect(earlier, condition))
            found = True
        else:
            merged.append(earlier)
    return tuple(merged) if found else (*path, condition)


def rule_text(conditions: tuple[Condition, ...]) -> str:
    """The rule of a leaf in one line."""
    texts = [str(condition) for condition in conditions]
    asked = [text for text in texts if text != ALL_ROWS]
    if not asked:
        return ALL_ROWS
    if len(asked) == 1:
        return asked[0]
    return " and ".join(f"({text})" if text.endswith(" or missing") else text for text in asked)


def matches(conditions: tuple[Condition, ...], table: Table) -> npt.NDArray[np.bool_]:
    """Which rows of a table satisfy all conditions."""
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
