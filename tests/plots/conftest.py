"""Pictures are drawn without a screen."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import pytest

from .hand_made import TreeMaker, hand_made_tree


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    """Draw without a screen, find no figure of tests of other folders, and leave none behind."""
    mpl.use("agg")
    from matplotlib import pyplot as plt

    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def make_tree() -> TreeMaker:
    """What makes a plausible tree."""
    return hand_made_tree
