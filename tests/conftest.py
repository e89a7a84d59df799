"""Settings of all tests: examples of hypothesis are the same in each run, so that a failure is due to a change."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

from subgrove._native import loader

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """Where the compiled forest is missing, its fallback is what is tested, and its warning no error."""
    if loader.forest is None:
        config.addinivalue_line("filterwarnings", "ignore::subgrove.exceptions.FallbackWarning")


def pytest_collection_finish() -> None:
    """The collected tests stay to the end: the garbage collector need not look through them in every test."""
    gc.collect()
    gc.freeze()
