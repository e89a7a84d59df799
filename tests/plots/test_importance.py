"""The picture of the importance of features."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from subgrove._scoring.feature_result import with_rows
from subgrove.exceptions import ParameterError
from subgrove.plots.importance import importance

from .results import make_result
from .seen import cut_off, legend_texts, overlaps, row_names, texts, words

BIKE = {"yr": 700.0, "temp": 500.0, "season": 200.0, "wind": 30.0, "holiday": -2.0}
GIVEN = {"temp": ("season", "hum"), "season": ("temp",), "wind": ("season", "hum", "temp")}
LONG = {
    f"average_monthly_consumption_of_household_{k}_in_kWh" if k % 3 == 0 else f"x{k}": 60.0 - 2 * k for k in range(60)
}
MANY_GIVEN = {name: tuple(f"average_income_{k}" for k in range(at % 6)) for at, name in enumerate(LONG)}
CONDITIONAL = make_result(BIKE, given=GIVEN)
MARGINAL = make_result({name: 1.5 * value for name, value in BIKE.items()}, sampler="marginal")


def estimates(ax: Axes) -> list[list[float]]:
    """Where the points are, a list for each result."""
    return [np.asarray(line.get_xdata()).tolist() for line in ax.lines if line.get_marker() not in ("None", "")]


def test_features_stand_from_the_largest_to_the_smallest_estimate() -> None:
    ax = importance(make_result({"b": 1.0, "c": -1.0, "a": 3.0}))
    assert row_names(ax) == ["a", "b", "c"]
    assert estimates(ax) == [[3.0, 1.0, -1.0]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_points_and_intervals_are_those_of_the_table() -> None:
    ax = importance(CONDITIONAL)
    table = CONDITIONAL.overall.sort_values("estimate", ascending=False)
    (intervals,) = ax.collections
    ends = np.array([segment[:, 0] for segment in intervals.get_segments()])  # type: ignore[attr-defined]
    np.testing.assert_allclose(estimates(ax)[0], table["estimate"])
    np.testing.assert_allclose(ends, table[["conf_low", "conf_high"]])


def test_a_line_marks_zero() -> None:
    ax = importance(make_result({"a": 2.0, "b": 1.0}))
    assert any(np.array_equal(np.asarray(line.get_xdata()), [0, 0]) for line in ax.lines)


def test_conditioning_stands_below_the_name_and_nothing_where_there_is_none() -> None:
    shown = words(importance(CONDITIONAL))
    assert "given season, hum" in shown
    assert "given temp" in shown
    assert sum(text.startswith("given") for text in shown) == len(GIVEN)


def test_many_conditioning_columns_are_counted() -> None:
    given = {"a": tuple(f"a column with a long name {k}" for k in range(9))}
    (shown,) = [text for text in words(importance(make_result({"a": 1.0}, given=given))) if text.startswith("given")]
    assert shown.endswith("more")


def test_conditioning_without_room_is_written_as_a_number() -> None:
    given = {
        "a": tuple(
            f"a column with a very long name, which does not fit at all into two lines of this picture {k}"
            for k in range(3)
        )
    }
    assert "given 3 columns" in words(importance(make_result({"a": 1.0}, given=given)))


def test_the_axis_says_which_loss_grows_and_the_note_which_noise_is_covered() -> None:
    ax = importance(CONDITIONAL)
    assert ax.get_xlabel() == "conditional importance (increase of absolute error)"
    assert "95 % intervals, covering test rows + Monte Carlo" in words(ax)
    assert "90 % intervals, covering test rows + Monte Carlo" in words(importance(CONDITIONAL.with_level(0.9)))


def test_of_several_losses_the_first_is_drawn_unless_another_is_named() -> None:
    result = make_result({"a": 2.0}, losses=("absolute_error", "squared_error"))
    assert estimates(importance(result)) == [[2.0]]
    ax = importance(result, loss="squared_error")
    assert estimates(ax) == [[4.0]]
    assert ax.get_xlabel() == "conditional importance (increase of squared error)"


def test_a_score_has_no_interval_and_the_note_says_so() -> None:
    result = make_result(BIKE, losses=("auc",), per_row_losses=(False,))
    scores = tuple(
        replace(score, influence=np.full_like(score.influence, np.nan))
        for score in with_rows(result.scores, "the test")
    )
    ax = importance(replace(result, scores=scores))
    assert ax.get_xlabel() == "conditional importance (worsening of auc)"
    assert "no intervals: auc is a score of all rows together" in words(ax)


def test_several_results_share_the_axes_and_one_legend() -> None:
    ax = importance(CONDITIONAL, MARGINAL)
    assert legend_texts(ax) == ["subgroups", "marginal"]
    assert len(estimates(ax)) == 2
    heights = [line.get_ydata() for line in ax.lines if line.get_marker() not in ("None", "")]
    assert np.all(np.asarray(heights[0]) < np.asarray(heights[1]))


def test_one_result_needs_no_legend() -> None:
    assert importance(CONDITIONAL).get_legend() is None


def test_results_may_have_labels_of_their_own() -> None:
    assert legend_texts(importance({"_depth $2$": CONDITIONAL, "depth 0": MARGINAL})) == ["_depth $2$", "depth 0"]


def test_results_of_the_same_sampler_are_numbered() -> None:
    assert legend_texts(importance(CONDITIONAL, CONDITIONAL, CONDITIONAL)) == [
        "subgroups",
        "subgroups (2)",
        "subgroups (3)",
    ]


def test_a_feature_that_one_result_lacks_has_one_point() -> None:
    ax = importance(make_result({"a": 2.0, "b": 1.0}), make_result({"b": 3.0, "c": 1.5}))
    assert row_names(ax) == ["a", "c", "b"]
    assert np.isnan(estimates(ax)[0][1])
    assert np.isnan(estimates(ax)[1][0])


def test_top_keeps_the_largest_and_says_how_many_are_left_out() -> None:
    ax = importance(CONDITIONAL, top=2)
    assert row_names(ax) == ["yr", "temp"]
    assert "95 % intervals, covering test rows + Monte Carlo; 3 features with smaller estimates left out" in words(ax)
    assert "left out" not in " ".join(words(importance(CONDITIONAL, top=5)))


def test_figure_grows_with_the_number_of_features() -> None:
    heights = [importance(make_result(LONG), top=n).figure.figure.get_figheight() for n in (3, 20, 60)]
    assert heights[0] < heights[1] < heights[2]


@pytest.mark.parametrize("top", [1, 3, 20, 60])
def test_nothing_touches_or_is_cut_off(top: int) -> None:
    ax = importance(make_result(LONG, given=MANY_GIVEN), make_result(LONG, sampler="marginal"), top=top)
    assert overlaps(ax) == []
    assert cut_off(ax) == []


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
@pytest.mark.parametrize("size", [(3.5, 3.5), (10.0, 4.0)])
def test_fits_axes_of_many_sizes(size: tuple[float, float], layout: Any) -> None:
    ax = Figure(figsize=size, layout=layout).add_subplot()
    importance({"within subgroups": CONDITIONAL, "marginal": MARGINAL}, ax=ax)
    assert overlaps(ax) == []
    assert cut_off(ax, slack=2.0) == []


def test_long_names_are_shortened_in_the_middle() -> None:
    name = "average_monthly_consumption_" + "of_a_household_" * 8 + "in_kWh"
    (shown,) = row_names(importance(make_result({name: 1.0})))
    assert shown.startswith("average_monthly")
    assert shown.endswith("kWh")
    assert "\N{HORIZONTAL ELLIPSIS}" in shown


def test_names_are_no_formulas() -> None:
    assert {"cost $x$", "given $a_b$"} <= set(
        words(importance(make_result({"cost $x$": 1.0}, given={"cost $x$": ["$a_b$"]})))
    )


def test_returns_axes_of_a_new_figure() -> None:
    assert isinstance(importance(CONDITIONAL), Axes)
    assert plt.get_fignums() == [1]


def test_draws_on_the_given_axes_and_leaves_the_current_ones_as_they_were() -> None:
    _, (first, second) = plt.subplots(1, 2, figsize=(10, 4))
    plt.sca(second)
    assert importance(CONDITIONAL, ax=first) is first
    assert plt.gca() is second
    assert plt.get_fignums() == [1]
    assert not second.has_data()


def test_does_not_alter_the_result() -> None:
    before = copy.deepcopy(CONDITIONAL.overall)
    importance(CONDITIONAL, MARGINAL, top=2)
    assert CONDITIONAL.overall.equals(before)
    assert CONDITIONAL.backend == "pandas"


def test_results_of_polars_tables_are_drawn() -> None:
    ax = importance(replace(CONDITIONAL, backend="polars"))
    assert row_names(ax)[0] == "yr"


def test_text_follows_the_font_size_of_matplotlib() -> None:
    small = max(box.height for text, box in texts(importance(CONDITIONAL)) if text.strip() == "yr")
    with plt.rc_context({"font.size": 15}):
        large = max(box.height for text, box in texts(importance(CONDITIONAL)) if text.strip() == "yr")
    assert large > 1.3 * small


def test_axes_that_are_too_low_are_rejected_and_left_as_they_were() -> None:
    ax = Figure(figsize=(5, 3)).add_subplot()
    with pytest.raises(ParameterError, match=r"ax is .* inches high, too low to write 60 rows: about \d+ fit.*top="):
        importance(make_result(LONG), ax=ax)
    assert ax.get_xlabel() == ""
    assert ax.get_position().height == pytest.approx(0.77)


@pytest.mark.parametrize("wrong", [None, "temp", [CONDITIONAL]])
def test_something_else_than_a_result_is_rejected_by_name(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^result must be an ImportanceResult.*; got \w+\.$"):
        importance(wrong)


def test_a_mapping_that_holds_something_else_is_rejected_by_its_label() -> None:
    with pytest.raises(ParameterError, match=r"^result\['b'\] must be an ImportanceResult; got int\.$"):
        importance({"a": CONDITIONAL, "b": 3})  # type: ignore[dict-item]  # it is rejected


def test_an_empty_mapping_is_rejected() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        importance({})


def test_a_loss_that_a_result_lacks_is_rejected() -> None:
    with pytest.raises(ParameterError, match="loss='log_loss' is not among the losses"):
        importance(CONDITIONAL, loss="log_loss")


@pytest.mark.parametrize("top", [0, 2.5, True])
def test_top_that_is_no_positive_whole_number_is_rejected(top: Any) -> None:
    with pytest.raises(ParameterError, match="top must be a whole number >= 1"):
        importance(CONDITIONAL, top=top)


def test_something_else_than_axes_is_rejected_by_name() -> None:
    with pytest.raises(ParameterError, match=r"^ax must be matplotlib Axes or None .*; got Figure\.$"):
        importance(CONDITIONAL, ax=Figure())  # type: ignore[arg-type]  # it is rejected
