"""Settings of all tests: examples of hypothesis are the same in each run, so that a failure is due to a change."""

from __future__ import annotations

import gc

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


def pytest_collection_finish() -> None:
    """The collected tests stay to the end: the garbage collector need not look through them in every test."""
    gc.collect()
    gc.freeze()
