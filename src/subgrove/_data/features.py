"""Which features are asked for, and which columns their trees may split on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from subgrove._core.text import TOGETHER, quote
from subgrove.exceptions import ParameterError

Members = tuple[str, ...]


def parse_features(features: Any, columns: Sequence[str]) -> tuple[Members, ...]:
    """What `features` names: a tuple of names for each feature or group; None stands for every column."""
    if features is None:
        return tuple((name,) for name in columns)
    asked = tuple(_members(each) for each in ([features] if _is_name(features) else _listed("features", features)))
    if not asked:
        raise ParameterError("features is empty. Name some columns, or leave features out for all of them.")
    _reject_unknown("features", [name for members in asked for name in members], columns)
    _reject_twice(asked)
    return asked


def allowed_columns(given: Any, columns: Sequence[str]) -> Members:
    """What `given` names, in the order of the table; None stands for every column."""
    if given is None:
        return tuple(columns)
    names = [str(given)] if _is_name(given) else [str(name) for name in _listed("given", given)]
    _reject_unknown("given", names, columns)
    return tuple(name for name in columns if name in names)


def _members(feature: Any) -> Members:
    if _is_name(feature):
        return (str(feature),)
    members = tuple(str(name) for name in _listed("A group in features", feature))
    if not members:
        raise ParameterError("features has a group without features. Name its features, or leave it out.")
    if len(set(members)) < len(members):
        raise ParameterError(f"features has a group that names a feature twice: {quote(members)}. Name it once.")
    return members


def _is_name(value: Any) -> bool:
    # Labels of pandas columns may be numbers; as names they are text.
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def _listed(argument: str, values: Any) -> list[Any]:
    if not isinstance(values, Iterable):
        raise ParameterError(f"{argument} must be a name or a list of names; got {values!r}.")
    return list(values)


def _reject_unknown(argument: str, names: Iterable[str], columns: Sequence[str]) -> None:
    unknown = [name for name in dict.fromkeys(names) if name not in columns]
    if unknown:
        raise ParameterError(f"{argument} names {quote(unknown)}, but X has the columns {quote(columns)}.")


def _reject_twice(asked: Sequence[Members]) -> None:
    """The order of features in a group does not matter; nor may a group be called what a column is called."""
    sets = [frozenset(members) for members in asked]
    twice = [TOGETHER.join(members) for members in asked if sets.count(frozenset(members)) > 1]
    names = [TOGETHER.join(members) for members in asked]
    twice += [name for name in names if names.count(name) > 1]
    if twice:
        raise ParameterError(f"features names {quote(dict.fromkeys(twice))} more than once. Name each feature once.")
