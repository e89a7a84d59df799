"""The picture of the effect of a feature that has levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle

from subgrove.exceptions import ParameterError
from subgrove.plots.effects import effect

from .effects_cases import SEASONS, classes, effect_of
from .seen import cut_off, legend_texts, overlaps


def boxes(ax: Axes) -> list[tuple[float, float, float]]:
    """Middle, lower and upper end of each box of predictions."""
    found = [patch.get_path().vertices for patch in ax.patches if isinstance(patch, PathPatch)]
    corners = [np.asarray(vertices) for vertices in found]
    return [(float(each[:4, 0].mean()), float(each[:, 1].min()), float(each[:, 1].max())) for each in corners]


def bars(ax: Axes) -> list[Rectangle]:
    """Bars that show how many rows have each level."""
    return [patch for strip in ax.child_axes for patch in strip.patches if isinstance(patch, Rectangle)]


def means(ax: Axes) -> list[float]:
    """Heights of the dots, curve by curve."""
    dots = [np.asarray(line.get_ydata()) for line in ax.lines if line.get_marker() == "o"]
    return [float(y) for ys in dots for y in ys]


def ticks(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_xticklabels()]


def test_levels_have_boxes_of_the_predictions() -> None:
    found = effect_of("season")
    ax = effect(found)
    assert ticks(ax) == list(SEASONS)
    expected = found.curves[["q1", "q3"]].to_numpy()
    np.testing.assert_allclose([box[1:] for box in boxes(ax)], expected)


def test_dots_are_the_means() -> None:
    found = effect_of("season")
    ax = effect(found)
    np.testing.assert_allclose(means(ax), found.curves["estimate"])
    assert ax.get_ylabel() == "prediction (dot: mean)"


def test_bars_below_count_the_rows_of_levels() -> None:
    ax = effect(effect_of("season"))
    assert len({round(bar.get_height(), 6) for bar in bars(ax)}) == 1
    assert len(bars(ax)) == 4


def test_subgroups_stand_side_by_side() -> None:
    found = effect_of("season", depth=2)
    ax = effect(found)
    assert len(boxes(ax)) == len(found.curves)
    places = sorted(box[0] for box in boxes(ax))
    assert min(np.diff(places)) > 0.05
    assert len(legend_texts(ax)) == len(found.support["rule"].unique())


def test_a_level_that_a_subgroup_lacks_has_no_box_there() -> None:
    found = effect_of("season", depth=2)
    absent = int((found.support["count"] == 0).sum())
    assert absent > 0
    assert len(boxes(effect(found))) == 4 * len(found.lines) - absent


def test_ale_of_levels_has_points_in_the_order_of_accumulation() -> None:
    found = effect_of("season", "ale")
    ax = effect(found)
    assert ticks(ax) == found.curves["x"].tolist()
    assert boxes(ax) == []
    np.testing.assert_allclose(means(ax), found.curves["estimate"])


def test_ale_in_subgroups_keeps_the_order_of_levels() -> None:
    ax = effect(effect_of("season", "ale", depth=1))
    assert [label for label in ticks(ax) if label] == [season for season in SEASONS if season in ticks(ax)]


def test_pdp_and_ale_of_levels_share_axes() -> None:
    ax = effect(effect_of("season"), effect_of("season", "ale"))
    _, label = legend_texts(ax)
    assert label.startswith("ALE + ")


def test_outputs_stand_side_by_side() -> None:
    ax = effect(effect_of("season", model=classes))
    assert legend_texts(ax) == ["0", "1", "2"]
    assert len(boxes(ax)) == 12


def test_many_levels_widen_the_figure_so_that_each_has_a_label() -> None:
    ax = effect(effect_of("place"))
    assert len(ticks(ax)) == 40
    assert ax.figure.figure.get_figwidth() > 6.4


@pytest.mark.parametrize("kind", ["pdp", "ale", "mplot", "ice"])
@pytest.mark.parametrize("feature", ["season", "place"])
def test_nothing_touches_or_is_cut_off(feature: str, kind: str) -> None:
    ax = effect(effect_of(feature, kind))
    assert overlaps(ax) == []
    assert cut_off(ax) == []


@pytest.mark.parametrize("size", [(3.5, 3.2), (10.0, 4.0)])
@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize(("feature", "depth"), [("season", 2), ("place", None)])
def test_fits_axes_of_many_sizes(feature: str, depth: int | None, layout: Any, size: tuple[float, float]) -> None:
    ax = Figure(figsize=size, layout=layout).add_subplot()
    effect(effect_of(feature, depth=depth), ax=ax)
    assert overlaps(ax) == []
    assert cut_off(ax, slack=2.0) == []


def test_effects_with_different_levels_are_rejected() -> None:
    one = effect_of("season")
    other = replace(one, infos=(replace(one.infos[0], levels=("a", "b", "c", "d")),))
    with pytest.raises(ParameterError, match="different kinds or levels"):
        effect(one, other)
