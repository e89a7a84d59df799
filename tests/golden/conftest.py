"""Recorded numbers are those of the model's own predictions."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def without_tree_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict by the model, as when numbers were recorded; sums of trees in another order differ in the last digits."""
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")
