"""The picture of the effect of a numeric feature; others are in test_effect_levels.py and test_effect_surface.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import subgrove as sg
import subgrove.plots
from subgrove.exceptions import ParameterError
from subgrove.plots.effects import effect

from .effects_cases import classes, effect_of, model, table
from .seen import cut_off, legend_texts, overlaps, words

Floats = npt.NDArray[np.float64]
BOLD, THIN = 2.8, 1.1


def drawn(ax: Axes, width: float) -> list[Floats]:
    """Lines of that width as arrays of points."""
    return [np.asarray(line.get_xydata()) for line in ax.lines if line.get_linewidth() == width]


def dots(ax: Axes) -> Floats:
    """Points at outliers."""
    found = [np.asarray(line.get_xydata()) for line in ax.lines if line.get_marker() == "."]
    return np.concatenate(found)


def test_a_curve_is_bold_between_the_quartiles_and_thin_to_the_whiskers() -> None:
    found = effect_of("temp")
    ax = effect(found)
    (bold,), (thin,) = drawn(ax, BOLD), drawn(ax, THIN)
    box = found.support.iloc[0]
    assert (bold[0, 0], bold[-1, 0]) == (box["q1"], box["q3"])
    assert (thin[0, 0], thin[-1, 0]) == (box["whisker_low"], box["whisker_high"])


def test_outliers_are_points_on_the_curve() -> None:
    found = effect_of("temp")
    points = dots(effect(found))
    assert points[:, 0].tolist() == found.outliers["x"].tolist()
    np.testing.assert_allclose(points[:, 1], found.predict(points[:, 0]))


@pytest.mark.parametrize("kind", ["pdp", "ale", "mplot", "ice"])
def test_values_are_those_of_the_curve(kind: str) -> None:
    found = effect_of("temp", kind)
    (thin,) = drawn(effect(found), THIN)
    np.testing.assert_allclose(thin[:, 1], found.predict(thin[:, 0]))


def test_each_subgroup_has_a_curve_and_a_rule_in_the_legend() -> None:
    found = effect_of("temp", depth=2)
    ax = effect(found)
    sizes = found.support["n"].tolist()
    assert len(drawn(ax, BOLD)) == len(found.support) > 1
    assert [text.split(" (n = ")[0] for text in legend_texts(ax)] == [
        rule.replace("  ", " ") for rule in found.support["rule"]
    ]
    assert [int(text.split(" (n = ")[1].rstrip(")")) for text in legend_texts(ax)] == sizes


def test_subgroups_have_different_colours_and_boxes_of_their_own() -> None:
    found = effect_of("temp", depth=2)
    ax = effect(found)
    colors = {line.get_color() for line in ax.lines if line.get_linewidth() == BOLD}
    assert len(colors) == len(found.support)


def test_one_curve_needs_no_legend() -> None:
    assert effect(effect_of("temp")).get_legend() is None


def test_the_distribution_stands_between_the_curves_and_the_axis() -> None:
    ax = effect(effect_of("temp", depth=2))
    ax.figure.figure.draw_without_rendering()
    (strip,) = ax.child_axes
    assert len(strip.lines) == 3 * len(effect_of("temp", depth=2).lines)
    spine = ax.spines["bottom"].get_window_extent()
    assert spine.y1 < strip.bbox.y0 < strip.bbox.y1 < ax.bbox.y0
    assert strip.get_xlim() == ax.get_xlim()


def test_axes_are_named_after_the_feature_and_what_is_drawn() -> None:
    labels = {kind: effect(effect_of("temp", kind)).get_ylabel() for kind in ("pdp", "ale", "mplot", "ice")}
    assert labels == {
        "pdp": "mean prediction (PDP)",
        "ale": "accumulated local effect on prediction",
        "mplot": "mean prediction (M-plot)",
        "ice": "prediction",
    }
    assert effect(effect_of("temp")).get_xlabel() == "temp"


def test_several_effects_share_axes_and_one_legend() -> None:
    ax = effect(effect_of("temp"), effect_of("temp", "mplot"))
    assert legend_texts(ax) == ["PDP", "M-plot"]
    assert len(drawn(ax, BOLD)) == 2
    assert ax.get_ylabel() == "mean prediction"


def test_effects_may_have_labels_of_their_own() -> None:
    ax = effect({"_all $rows$": effect_of("temp"), "again": effect_of("temp")})
    assert legend_texts(ax) == ["_all $rows$", "again"]


def test_ale_among_means_is_moved_to_their_height_and_says_by_how_much() -> None:
    ale = effect_of("temp", "ale")
    ax = effect(effect_of("temp"), ale)
    _, label = legend_texts(ax)
    shift = float(label.removeprefix("ALE + "))
    moved = drawn(ax, THIN)[1]
    np.testing.assert_allclose(moved[:, 1], ale.predict(moved[:, 0]) + shift)
    other = drawn(ax, THIN)[0]
    assert abs(np.interp(moved[:, 0], other[:, 0], other[:, 1]) - moved[:, 1]).mean() < 0.2 * np.ptp(other[:, 1])


def test_ale_alone_stays_at_its_height() -> None:
    ax = effect(effect_of("temp", "ale"))
    (thin,) = drawn(ax, THIN)
    assert thin[:, 1].min() < 0 < thin[:, 1].max()


def test_interval_is_drawn_for_one_curve_and_explained() -> None:
    ax = effect(effect_of("temp"))
    assert any(isinstance(each, PolyCollection) for each in ax.collections)
    assert any("95 % interval" in text for text in words(ax))


def test_interval_is_optional() -> None:
    assert not effect(effect_of("temp"), interval=False).collections
    assert not effect(effect_of("temp", depth=1)).collections
    assert len(effect(effect_of("temp", depth=1), interval=True).collections) == 2


def test_ice_has_a_thin_line_for_each_row_and_the_mean() -> None:
    found = effect_of("temp", "ice")
    ax = effect(found)
    (rows,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    curves = np.array(rows.get_segments())
    expected = found.ice.pivot(index="row", columns="x", values="estimate").to_numpy()
    np.testing.assert_allclose(curves[:, :, 1], expected)
    assert legend_texts(ax) == ["one row", "mean (PDP)"]


def test_centred_ice_says_so() -> None:
    ax = effect(effect_of("temp", "ice").centred())
    assert ax.get_ylabel() == "prediction less that at the first point"


def test_highlighted_ice_is_more_opaque_where_the_feature_is_dense() -> None:
    found = effect_of("temp", "ice", depth=1)
    ax = effect(found)
    collections = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert len(collections) == 2
    alphas = np.unique(np.asarray(collections[0].get_colors())[:, 3])
    assert len(alphas) > 2
    opacity = found.ice.query("subgroup == 0").groupby("x")["opacity"].first().to_numpy()
    between = (opacity[1:] + opacity[:-1]) / 2
    np.testing.assert_allclose(alphas / alphas.max(), np.unique(between) / between.max(), atol=1e-6)


def test_of_many_rows_some_are_drawn_and_the_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subgrove.plots._curves.MOST_ROWS", 50)
    ax = effect(effect_of("temp", "ice"))
    (rows,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert len(rows.get_segments()) == 50
    assert any("50 of 200 rows are drawn" in text for text in words(ax))


def test_each_output_has_a_colour() -> None:
    ax = effect(effect_of("temp", model=classes))
    assert legend_texts(ax) == ["0", "1", "2"]
    assert len({line.get_color() for line in ax.lines if line.get_linewidth() == BOLD}) == 3


def test_one_output_may_be_chosen() -> None:
    ax = effect(effect_of("temp", model=classes), output=2)
    assert ax.get_legend() is None
    assert ax.get_ylabel() == "mean prediction of 2 (PDP)"


@pytest.mark.parametrize("output", ["middle", 1])
def test_labelled_class_may_be_chosen_by_its_label_or_its_number(output: Any) -> None:
    found = replace(effect_of("temp", model=classes), outputs=("small", "middle", "large"))
    assert effect(found, output=output).get_ylabel() == "mean prediction of middle (PDP)"


def test_label_that_is_a_number_comes_before_the_number_of_an_output() -> None:
    found = replace(effect_of("temp", model=classes), outputs=(1, 2, 0))
    assert effect(found, output=0).get_ylabel() == "mean prediction of 0 (PDP)"


def test_outputs_in_subgroups_are_rejected_with_a_remedy() -> None:
    with pytest.raises(ParameterError, match=r"3 outputs of 2 subgroups .* output=, .*plots\.effects"):
        effect(effect_of("temp", depth=1, model=classes))
    effect(effect_of("temp", depth=1, model=classes), output=1)


def test_subgroups_without_a_curve_are_named_in_grey() -> None:
    found = effect_of("temp", depth=2)
    few = replace(found, lines=found.lines[:-1], groups=(*found.groups[:-1], replace(found.groups[-1], n=1.0)))
    ax = effect(few)
    legend = ax.get_legend()
    assert legend is not None
    assert legend_texts(ax)[-1].endswith("(n = 1, no curve)")
    assert to_rgba(legend.get_texts()[-1].get_color()) == to_rgba("#737373")


def test_no_curve_at_all_is_rejected() -> None:
    with pytest.raises(ParameterError, match="No subgroup has two rows or more"):
        effect(replace(effect_of("temp", depth=1), lines=()))


def test_dates_have_dates_on_the_axis() -> None:
    labels = [label.get_text() for label in effect(effect_of("when")).get_xticklabels()]
    assert labels == sorted(labels)
    assert all(label.startswith("2023-") for label in labels)


def test_durations_have_a_unit() -> None:
    ax = effect(effect_of("wait"))
    assert ax.get_xlabel() == "wait (hours)"
    assert ax.get_xlim()[1] < 24


def test_a_constant_feature_is_a_point() -> None:
    ax = effect(effect_of("constant"))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["3"]
    assert any(line.get_marker() == "o" for line in ax.lines)


def test_rows_without_a_value_are_counted_in_the_note() -> None:
    assert any("50 rows have no value of gaps" in text for text in words(effect(effect_of("gaps"))))


def test_large_numbers_are_written_out_at_the_ticks() -> None:
    ax = effect(effect_of("temp", model=lambda X: 1e6 + 1e3 * np.asarray(X["temp"])))
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert all(label.replace(",", "").isdigit() for label in labels)
    assert ax.yaxis.get_offset_text().get_text() == ""


@pytest.mark.parametrize("depth", [None, 1, 2, 4])
@pytest.mark.parametrize("size", [None, (3.5, 3.2), (10.0, 4.5)])
def test_nothing_touches_or_is_cut_off(depth: int | None, size: tuple[float, float] | None) -> None:
    ax = None if size is None else Figure(figsize=size, layout="constrained").add_subplot()
    ax = effect(effect_of("temp", depth=depth), ax=ax)
    assert overlaps(ax) == []
    assert cut_off(ax) == []


@pytest.mark.parametrize("feature", ["temp", "when", "wait", "constant", "gaps"])
def test_fits_axes_without_a_layout(feature: str) -> None:
    ax = Figure(figsize=(4.5, 3.5)).add_subplot()
    assert effect(effect_of(feature), ax=ax) is ax
    assert overlaps(ax) == []
    assert cut_off(ax, slack=2.0) == []
    assert plt.get_fignums() == []


def test_leaves_the_current_axes_of_pyplot_as_they_were() -> None:
    _, (first, second) = plt.subplots(1, 2, figsize=(10, 4))
    plt.sca(second)
    effect(effect_of("temp"), ax=first)
    assert plt.gca() is second
    assert not second.has_data()
    assert plt.get_fignums() == [1]


def test_does_not_alter_the_effect_or_the_table() -> None:
    before = table().copy()
    found, same = effect_of("temp", depth=2), effect_of("temp", depth=2)
    effect(found)
    assert found == same
    assert table().equals(before)


def test_effects_of_polars_tables_are_drawn() -> None:
    assert len(drawn(effect(replace(effect_of("temp"), backend="polars")), BOLD)) == 1


def test_effects_of_different_features_are_rejected_with_a_remedy() -> None:
    with pytest.raises(ParameterError, match=r"Effects of different features \(temp, hum\).*plots\.effects"):
        effect(effect_of("temp"), effect_of("hum"))


@pytest.mark.parametrize("wrong", [None, "temp", [effect_of]])
def test_something_else_than_an_effect_is_rejected_by_name(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^effect must be an Effect.*; got \w+\.$"):
        effect(wrong)


def test_an_unknown_output_is_rejected_with_those_that_there_are() -> None:
    for wrong in ("b", 3, -1, True):
        with pytest.raises(ParameterError, match=f"output={wrong!r} is not among the outputs of this effect: 0, 1, 2"):
            effect(effect_of("temp", model=classes), output=wrong)


def test_too_many_curves_are_rejected_with_a_remedy() -> None:
    many = {str(k): effect_of("temp") for k in range(25)}
    with pytest.raises(ParameterError, match=r"25 curves cannot be distinguished.*at most 24.*at_depth\(2\)"):
        effect(many)


def test_an_interval_that_is_neither_true_nor_false_is_rejected() -> None:
    with pytest.raises(ParameterError, match=r"interval must be True, False or None; got 0\.9"):
        effect(effect_of("temp"), interval=0.9)  # type: ignore[arg-type]  # it is rejected


def test_something_else_than_axes_is_rejected_by_name() -> None:
    with pytest.raises(ParameterError, match=r"^ax must be matplotlib Axes or None .*; got Figure\.$"):
        effect(effect_of("temp"), ax=Figure())  # type: ignore[arg-type]  # it is rejected


def test_axis_of_moments_with_a_time_zone_says_that_it_shows_utc() -> None:
    X = table().assign(when=lambda X: X["when"].dt.tz_localize("America/New_York"))
    assert effect(sg.effect(model, X, "when", grid_resolution=4, subgroups=None)).get_xlabel() == "when (UTC)"
