"""In which order conditioning columns are added: the strongest dependence first.

How strongly a column goes with a feature is what the root of the feature's tree tests: the same test for numeric,
ordered and nominal columns, with missing values, and for groups of features.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._subgroups import find_subgroups
from subgrove.exceptions import SubgroveWarning
from subgrove.samplers.base import Feature

MOST_NAMED = 5  # columns that have a step of their own; the others are added together
Block = tuple[str, ...]  # columns that are added in one step


def by_dependence(X: Any, feature: Feature, columns: Sequence[str]) -> tuple[str, ...]:
    """Columns from the one that the feature depends on most to the one that it depends on least."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubgroveWarning)  # columns that no tree can split on come last
        asked = feature[0] if len(feature) == 1 else feature
        groups = find_subgroups(X, features=[asked], max_depth=1)
    tests = groups.partitions[0].tree.nodes[0].tests
    strength = {} if tests is None else dict(zip(tests.columns, -tests.log_p, strict=True))
    known = {name: value for name, value in strength.items() if not np.isnan(value)}
    return tuple(sorted(columns, key=lambda name: -known.get(name, -1.0)))


def in_blocks(columns: Sequence[str], most: int = MOST_NAMED) -> tuple[Block, ...]:
    """The first columns one by one, the others together; one that would be left alone has a step too."""
    if len(columns) <= most + 1:
        return tuple((name,) for name in columns)
    return (*((name,) for name in columns[:most]), tuple(columns[most:]))


def block_title(block: Block, *, others: bool) -> str:
    """What a step is called: its column, its columns, or how many others they are."""
    return f"the other {len(block)} columns" if others and len(block) > 1 else ", ".join(block)
