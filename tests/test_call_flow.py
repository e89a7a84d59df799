"""A call passes through few modules, so that a reader can follow it."""

from __future__ import annotations

import pytest

from tools.call_flow import LIMITS, calls, modules_entered


@pytest.mark.compiled
@pytest.mark.parametrize("name", LIMITS)
def test_calls_enter_few_modules(name: str) -> None:
    entered = modules_entered(calls()[name])
    assert "subgrove._data.table" in entered or "subgrove._data.columns" in entered
    assert len(entered) <= LIMITS[name], sorted(entered)
