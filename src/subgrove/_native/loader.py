"""Compiled parts, which are optional: a package that was installed without a C compiler does without."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def load_compiled(name: str) -> ModuleType | None:
    """The compiled module of this name, or None where it is not there."""
    try:
        return import_module(name)
    except ImportError:
        return None
