"""The picture of the importance of one feature in its subgroups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from subgrove import ImportanceResult
from subgrove.exceptions import ParameterError
from subgrove.plots.importance import subgroup_importance

from .results import RULES, make_result
from .seen import cut_off, overlaps, row_names, words

RESULT = make_result({"temp": 500.0, "hum": 100.0}, rules=RULES)
LONG = tuple(
    f"season in {{SPRING, SUMMER}} and {2 * k}.123456789 < humidity_of_the_day <= {2 * k + 2}" for k in range(12)
)


def with_score(result: ImportanceResult, **changes: Any) -> ImportanceResult:
    """The result of its first feature, changed."""
    return replace(result, scores=(replace(result.scores[0], **changes),))


def test_rules_are_the_labels_in_the_order_of_subgroups() -> None:
    assert row_names(subgroup_importance(RESULT, "temp")) == list(RULES)


def test_points_are_those_of_the_table() -> None:
    ax = subgroup_importance(RESULT, "temp")
    table = RESULT.by_subgroup.query("feature == 'temp'")
    (points,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(np.asarray(points.get_xdata()), table["estimate"])


def test_rows_of_each_subgroup_are_counted() -> None:
    assert words(subgroup_importance(RESULT, "temp")).count("n = 10") == 4


def test_a_line_marks_the_value_of_all_rows() -> None:
    ax = subgroup_importance(RESULT, "temp")
    assert any(np.array_equal(np.asarray(line.get_xdata()), [500.0, 500.0]) for line in ax.lines)
    assert "all rows" in words(ax)


def test_the_axis_names_feature_and_loss() -> None:
    assert subgroup_importance(RESULT, "temp").get_xlabel() == "importance of temp (increase of absolute error)"


def test_thresholds_are_rounded() -> None:
    result = make_result({"temp": 1.0}, rules=("a <= -1.2345678 and b > 3.25", "0.000123456 < b <= 7654321.5"))
    assert row_names(subgroup_importance(result, "temp")) == ["a <= -1.235 and b > 3.25", "0.0001235 < b <= 7654322"]


def test_a_subgroup_of_one_row_says_that_it_keeps_its_value() -> None:
    sizes = np.array([38.0, 1.0, 1.0, 0.0])
    shown = words(subgroup_importance(with_score(RESULT, sizes=sizes, singletons=(1,)), "temp"))
    assert "n = 1, keeps its value" in shown
    assert "n = 1" in shown
    assert "n = 0" in shown


def test_a_subgroup_without_rows_has_no_point() -> None:
    repeats = RESULT.scores[0].repeats.copy()
    repeats[:, :, 3] = np.nan
    ax = subgroup_importance(with_score(RESULT, repeats=repeats, sizes=np.array([20.0, 10.0, 10.0, 0.0])), "temp")
    (points,) = [line for line in ax.lines if line.get_marker() == "o"]
    assert np.isnan(np.asarray(points.get_xdata())).tolist() == [False, False, False, True]
    assert len(row_names(ax)) == 4


def test_folds_of_cross_fitting_are_named() -> None:
    shown = words(subgroup_importance(with_score(RESULT, folds=(0, 0, 1, 1)), "temp"))
    assert shown.count("n = 10, fold 0") == 2
    assert shown.count("n = 10, fold 1") == 2


@pytest.mark.parametrize("rules", [RULES, LONG], ids=["short", "long"])
def test_nothing_touches_or_is_cut_off(rules: tuple[str, ...]) -> None:
    ax = subgroup_importance(make_result({"temp": 500.0}, rules=rules), "temp")
    assert overlaps(ax) == []
    assert cut_off(ax) == []


@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("size", [(3.5, 3.2), (10.0, 3.0)])
def test_fits_axes_of_many_sizes(size: tuple[float, float], layout: Any) -> None:
    ax = Figure(figsize=size, layout=layout).add_subplot()
    assert subgroup_importance(RESULT, "temp", ax=ax) is ax
    assert overlaps(ax) == []
    assert cut_off(ax, slack=2.0) == []
    assert plt.get_fignums() == []


def test_rules_are_written_whole_where_a_smaller_font_allows_it() -> None:
    ax = Figure(figsize=(6, 3)).add_subplot()
    assert row_names(subgroup_importance(RESULT, "temp", ax=ax)) == list(RULES)


def test_a_score_of_all_rows_has_no_subgroups() -> None:
    result = make_result({"temp": 1.0}, losses=("auc",), per_row_losses=(False,))
    with pytest.raises(ParameterError, match="by_subgroup needs a value for each subgroup"):
        subgroup_importance(result, "temp")
    assert plt.get_fignums() == []


def test_an_unknown_feature_is_rejected_with_those_that_there_are() -> None:
    with pytest.raises(ParameterError, match=r"feature='wind' is not in this result. Its features: temp, hum."):
        subgroup_importance(RESULT, "wind")


@pytest.mark.parametrize("wrong", [None, {"a": RESULT}])
def test_something_else_than_a_result_is_rejected_by_name(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^result must be an ImportanceResult.*; got \w+\.$"):
        subgroup_importance(wrong, "temp")
