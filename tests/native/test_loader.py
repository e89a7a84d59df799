"""Kernels are loaded once; a missing one is None, and the fallback of the forest warns."""

from __future__ import annotations

import pytest

from subgrove._native import loader


def test_kernel_that_is_not_installed_is_none() -> None:
    assert loader.load_kernel("no_such_kernel") is None


def test_kernels_in_use_are_those_that_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "forest", None)
    monkeypatch.setattr(loader, "tree_fit", loader)
    in_use = loader.kernels_in_use()
    assert tuple(in_use) == loader.KERNELS
    assert not in_use["forest"]
    assert in_use["tree_fit"]
