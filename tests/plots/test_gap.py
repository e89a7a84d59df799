"""The picture of a gap: bars from the marginal to the conditional importance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from subgrove import Gap, GapStep
from subgrove.exceptions import ParameterError
from subgrove.plots.gap import gap

from .seen import cut_off, overlaps, row_names, words


def made(marginal: float, steps: dict[str, float], noise: float = 1.0, **more: Any) -> Gap:
    parts, before = [], marginal
    for name, step in steps.items():
        parts.append(GapStep(name, before, before - step, step, noise, noise))
        before -= step
    pair = (noise, noise)
    kind = more.pop("kind", "trees" if steps else "no split")
    return Gap("temp", "absolute_error", marginal, before, tuple(parts), pair, pair, pair, kind=kind, **more)


def bars(ax: Axes) -> list[tuple[float, float]]:
    """Ends of the bars, from the top down."""
    boxes = [patch.get_bbox() for patch in ax.patches]  # type: ignore[attr-defined]  # bars are rectangles
    return [(round(box.x0, 9), round(box.x1, 9)) for box in boxes]


def test_bars_go_from_one_importance_to_the_next() -> None:
    ax = gap(made(100.0, {"season": 60.0, "hum": -10.0}))
    assert bars(ax) == [(0.0, 100.0), (40.0, 100.0), (40.0, 50.0), (0.0, 50.0)]
    assert row_names(ax) == ["temp", "season", "hum", "temp"]


def test_numbers_and_shares_are_written() -> None:
    said = words(gap(made(1000.0, {"season": 600.0, "hum": -100.0})))
    for text in ("1,000", "-600 (-60 %)", "+100 (+10 %)", "500 (50 %)"):
        assert text in said
    assert "increase of absolute error" in said


def test_steps_within_noise_are_called_so() -> None:
    said = words(gap(made(100.0, {"season": 60.0, "hum": 1.0, "wind": -20.0})))
    for text in ("shared", "within noise", "increases it", "within its subgroups", "shuffled"):
        assert text in said


def test_without_a_positive_start_there_are_no_shares() -> None:
    ax = gap(made(-5.0, {"season": 10.0}))
    assert not any("%" in text for text in words(ax))
    assert bars(ax)[0] == (-5.0, 0.0)


@pytest.mark.parametrize(
    "shown",
    [
        made(100.0, {}),
        made(0.0, {"season": 0.0}, noise=0.0),
        made(1e6, {"season": 1e5, "the other 12 columns": 2e5}, noise=0.0, kind="sampler"),
        made(1e-5, {"season": 5e-6}, noise=np.nan, per_row=False),
        made(100.0, {f"a column with quite a long name {k}": 10.0 for k in range(8)}, orders="32 orders"),
        made(-50.0, {"season": 20.0, "hum": -200.0}, noise=10.0),
    ],
    ids=["no step", "nothing", "large", "a score", "long names", "below 0"],
)
def test_texts_neither_touch_nor_leave_the_figure(shown: Gap) -> None:
    ax = gap(shown)
    assert overlaps(ax) == []
    assert cut_off(ax) == []
    right = ax.get_window_extent().x1
    for text in ax.texts:
        if text.get_text() and text.get_position()[0] == 4.0:  # numbers beside bars
            assert text.get_window_extent().x1 <= right + 2


def test_notes_say_which_noise_and_which_orders() -> None:
    said = " ".join(words(gap(made(100.0, {"season": 60.0}, orders="all orders"))))
    assert "(test rows and draws); steps are means over all orders" in said
    assert "(draws only)" in " ".join(words(gap(made(100.0, {"season": 60.0}, per_row=False))))


def test_axes_of_the_user_are_used_and_wrong_arguments_rejected() -> None:
    figure, ax = plt.subplots(figsize=(6, 4))
    assert gap(made(100.0, {"season": 60.0}), ax=ax) is ax
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(ParameterError, match=r"gap must be what ImportanceResult\.gap returned; got int"):
        gap(3)  # type: ignore[arg-type]  # that is what is tried
    with pytest.raises(ParameterError, match="too low"):
        gap(made(100.0, {f"c{k}": 1.0 for k in range(40)}), ax=ax)
