"""The compiled inner loops, or None where the package was installed without a C compiler."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

MOST_COMPILED = 32  # coefficients of a model beyond the first, or scores of a row, that the compiled loops take


def _load() -> ModuleType | None:
    try:
        return import_module("subgrove.trees._inner")
    except ImportError:
        return None


inner = _load()
