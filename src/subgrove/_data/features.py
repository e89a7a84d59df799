"""The `features` and `given` arguments as column names.

A column is given by its name or by its position. Names come first: an integer is a position only if no column is
labelled with an integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from subgrove._core.text import TOGETHER, quote
from subgrove.exceptions import ParameterError

Members = tuple[str, ...]


class NamedGroup(tuple[str, ...]):
    """Columns that are resampled together, with the name that results show."""

    name: str

    def __new__(cls, name: str, members: Iterable[str]) -> NamedGroup:
        group = super().__new__(cls, tuple(members))
        group.name = name
        return group

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, tuple(self)

    def __repr__(self) -> str:
        return f"NamedGroup({self.name!r}, {tuple(self)!r})"


def feature_label(feature: Members) -> str:
    """Return the name of a feature or group in results: its own name, or those of its columns."""
    return feature.name if isinstance(feature, NamedGroup) else TOGETHER.join(feature)


def as_argument(feature: Members) -> str | Members | list[str]:
    """Return a feature as `features` of a sampler's `fit` has it: a name, or a group."""
    if isinstance(feature, NamedGroup):
        return feature
    return feature[0] if len(feature) == 1 else list(feature)


def parse_features(features: Any, columns: Sequence[str]) -> tuple[Members, ...]:
    """Return the columns of each feature or group; None stands for every column.

    Parameters
    ----------
    features : str, int, list, dict or None
        Names or positions of columns, groups of them as lists, or a dict from the names of groups to their columns.
    columns : sequence of str
        Names of the columns of the table.
    """
    if features is None:
        return tuple((name,) for name in columns)
    if isinstance(features, Mapping):
        groups: tuple[Members, ...] = tuple(_named_group(name, each, columns) for name, each in features.items())
    else:
        each_feature = [features] if _is_column(features) else _as_list("features", features)
        groups = tuple(_members(each, columns) for each in each_feature)
    if not groups:
        raise ParameterError("features is empty. Name some columns, or omit features for all of them.")
    _reject_duplicates(groups)
    return groups


def allowed_columns(given: Any, columns: Sequence[str]) -> Members:
    """Return the columns of `given` in the order of the table; None stands for every column."""
    if given is None:
        return tuple(columns)
    names = _names("given", [given] if _is_column(given) else _as_list("given", given), columns)
    return tuple(name for name in columns if name in names)


def _members(feature: Any, columns: Sequence[str]) -> Members:
    if isinstance(feature, NamedGroup):
        return NamedGroup(feature.name, _names("features", feature, columns))
    members = _names(
        "features", [feature] if _is_column(feature) else _as_list("A group in features", feature), columns
    )
    if not members:
        raise ParameterError("features has a group without columns. Name its columns, or leave it out.")
    if len(set(members)) < len(members):
        raise ParameterError(f"features has a group that names a column twice: {quote(members)}. Name it once.")
    return members


def _named_group(name: Any, feature: Any, columns: Sequence[str]) -> Members:
    members = _members(feature, columns)
    if not isinstance(name, str):
        raise ParameterError(f"features is a dict, whose keys are names of groups; got the key {name!r}.")
    if name in columns and members != (name,):
        raise ParameterError(
            f"features has a group named {name!r}, which is the name of a column. Choose another name for the group."
        )
    return NamedGroup(name, members)


def _names(argument: str, values: Iterable[Any], columns: Sequence[str]) -> Members:
    """Names of columns that are given by name or position."""
    labelled_by_integers = any(name.removeprefix("-").isdecimal() for name in columns)
    names = []
    for value in values:
        if isinstance(value, int | np.integer) and not isinstance(value, bool) and not labelled_by_integers:
            if not 0 <= value < len(columns):
                raise ParameterError(
                    f"{argument} has the position {value}, but positions are from 0 to {len(columns) - 1}: "
                    f"X has {len(columns)} columns. Negative positions are not supported."
                )
            names.append(columns[int(value)])
        else:
            names.append(str(value))
    unknown = [name for name in dict.fromkeys(names) if name not in columns]
    if unknown:
        raise ParameterError(f"{argument} names {quote(unknown)}, but X has the columns {quote(columns)}.")
    return tuple(names)


def _is_column(value: Any) -> bool:
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def _as_list(argument: str, values: Any) -> list[Any]:
    if not isinstance(values, Iterable):
        raise ParameterError(f"{argument} must be a name, a position or a list of them; got {values!r}.")
    return list(values)


def _reject_duplicates(groups: Sequence[Members]) -> None:
    """Reject groups with the same columns, in whatever order, and features with the same label."""
    sets = [frozenset(members) for members in groups]
    labels = [feature_label(members) for members in groups]
    twice = [label for label, members in zip(labels, sets, strict=True) if sets.count(members) > 1]
    twice += [label for label in labels if labels.count(label) > 1]
    if twice:
        raise ParameterError(f"features names {quote(dict.fromkeys(twice))} more than once. Name each feature once.")
