"""Settings of all tests: examples of hypothesis are the same in each run, so that a failure is due to a change."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
