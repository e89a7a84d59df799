"""Lying boxes with a point for each value, as several experiments draw them."""

from __future__ import annotations

from typing import Any

import numpy as np


def lying_box(
    ax: Any, at: float, values: Any, color: str, rng: np.random.Generator, *, line: float, median: float, point: float
) -> None:
    """A box at the height `at`, and the values as points that are shifted up or down a little; sizes in points."""
    look = {"color": color, "linewidth": line}
    ax.boxplot(
        [values],
        positions=[at],
        widths=0.64,
        orientation="horizontal",
        showfliers=False,
        boxprops=look,
        whiskerprops=look,
        capprops=look,
        medianprops={**look, "linewidth": median},
    )
    shifted = at + rng.uniform(-0.15, 0.15, len(values))
    ax.plot(values, shifted, ".", color=color, markersize=point, markeredgewidth=0, alpha=0.6)
