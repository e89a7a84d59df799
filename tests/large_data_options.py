"""`importance` and `effect` with options of large data and of memory as keywords, for parametrized tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn import config_context

import subgrove as sg

_LARGE = {"row_key", "sample_size", "checkpoint", "chunk_rows"}


def _large(X: Any, options: dict[str, Any]) -> Any:
    own = {name: options.pop(name) for name in [*options] if name in _LARGE}
    if not own:
        return X
    return replace(X, **own) if isinstance(X, sg.LargeData) else sg.LargeData(X, **own)


def importance(model: Any, X: Any, y: Any, memory: float = 1024, **options: Any) -> sg.ImportanceResult:
    """Call `sg.importance` with so many MiB of working memory; keywords of `LargeData` are passed to it."""
    with config_context(working_memory=memory):
        return sg.importance(model, _large(X, options), y, **options)


def effect(model: Any, X: Any, feature: Any, **options: Any) -> sg.Effect:
    """Call `sg.effect`; keywords of `LargeData` are passed to it."""
    return sg.effect(model, _large(X, options), feature, **{"subgroups": None, **options})
