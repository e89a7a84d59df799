"""Settings of all tests: examples of hypothesis are the same in each run, so that a failure is due to a change."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


def pytest_collection(session: pytest.Session) -> None:
    """Where the compiled forest is missing, its fallback is what is tested, and its warning no error.

    The package is imported here and not at the top: processes of tests count the lines that run from collection on.
    """
    from subgrove._native import loader

    if loader.forest is None:
        session.config.addinivalue_line("filterwarnings", "ignore::subgrove.exceptions.FallbackWarning")


def pytest_collection_finish() -> None:
    """The collected tests stay to the end: the garbage collector need not look through them in every test."""
    gc.collect()
    gc.freeze()
