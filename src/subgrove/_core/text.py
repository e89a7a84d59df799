"""Names and numbers in messages."""

from __future__ import annotations

from collections.abc import Iterable

TOGETHER = " + "
"""Between the names of features that share a tree."""


def quote(names: Iterable[str]) -> str:
    """Names as they stand in a message."""
    return ", ".join(repr(name) for name in names)
