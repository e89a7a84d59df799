"""The heat map of dependence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

from subgrove._dependence.result import Dependence, FeatureDependence
from subgrove.exceptions import ParameterError
from subgrove.plots.dependence import dependence

from .seen import cut_off, overlaps, row_names, words


def make(shares: dict[str, dict[str, float]], threshold: float = 0.2, explained: dict[str, float] | None = None) -> Any:
    """A result whose parts are these; a feature is explained by their sum, if nothing else is said."""
    columns = tuple(shares)
    found = []
    for name, parts in shares.items():
        others = tuple(each for each in columns if each != name)
        whole = sum(parts.values()) if explained is None or name not in explained else explained[name]
        folds = np.array([[whole, *(parts.get(each, 0.0) for each in others)]])
        found.append(FeatureDependence(name, "numeric", 100, others, folds, ""))
    return Dependence(tuple(found), columns, threshold, {}, "pandas")


SMALL = make({"a": {"b": 0.1}, "b": {"a": 0.5, "c": 0.3}, "c": {"a": 0.05}, "d": {}}, explained={"d": -0.07})
LONG = {f"average_monthly_consumption_{k}" if k % 4 == 0 else f"x{k}": {"x1": 0.02 * k, "x2": 0.01} for k in range(25)}


def test_features_are_rows_the_best_predicted_at_the_top() -> None:
    assert row_names(dependence(SMALL)) == ["b", "a", "c", "d"]


def test_shares_are_written_in_percent() -> None:
    seen = words(dependence(SMALL))
    for text in ("80", "50", "30", "10", "5", "-7"):
        assert text in seen


def test_columns_stand_above_with_the_whole_first() -> None:
    ax = dependence(SMALL)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["all others", "a", "b", "c", "d"]


def colours(mesh: Any) -> list[float]:
    """What is shown as colour in each cell."""
    found: list[float] = np.ma.filled(mesh.get_array(), np.nan).ravel().tolist()
    return found


def test_cells_have_the_shares_as_colours() -> None:
    whole, parts = map(colours, dependence(SMALL).collections[:2])
    assert whole == pytest.approx([0.8, 0.1, 0.05, 0.0])
    assert parts[:4] == pytest.approx([0.5, np.nan, 0.3, 0.0], nan_ok=True)


def test_a_line_parts_those_that_reach_the_threshold() -> None:
    lines = [line for line in dependence(SMALL).lines if line.get_linestyle() == "-"]
    assert [line.get_ydata()[0] for line in lines] == [0.5]  # type: ignore[index]  # an array, though typed as any sequence
    assert "line: 20 % explained" in words(dependence(SMALL))


@pytest.mark.parametrize("threshold", [0.0, 0.9])
def test_no_line_is_drawn_where_all_or_none_reach_it(threshold: float) -> None:
    table = {"a": {"b": 0.5}, "b": {"a": 0.5}}
    ax = dependence(make(table, threshold))
    assert not ax.lines
    assert not [text for text in words(ax) if "line" in text]


def test_a_feature_without_a_share_is_crossed_and_at_the_bottom() -> None:
    ax = dependence(make({"a": {}, "b": {"c": 0.3}, "c": {"b": 0.3}}, explained={"a": np.nan}))
    assert row_names(ax)[-1] == "a"
    assert [line.get_marker() for line in ax.lines if line.get_marker() == "x"] == ["x"]


def test_top_keeps_those_predicted_best() -> None:
    assert row_names(dependence(SMALL, top=2)) == ["b", "a"]


def test_of_many_columns_those_without_predictive_value_are_left_out() -> None:
    ax = dependence(make(LONG))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["all others", "x1", "x2"]
    assert any("23 columns without predictive value left out" in text for text in words(ax))


def test_many_columns_without_predictive_value_can_be_drawn() -> None:
    ax = dependence(make({f"x{k}": {} for k in range(30)}))
    assert len(row_names(ax)) == 30


@pytest.mark.parametrize("result", [SMALL, make(LONG), make({f"x{k}": {"x0": 0.1, "x1": 0.1} for k in range(2)})])
def test_no_text_touches_another_or_leaves_the_figure(result: Dependence) -> None:
    ax = dependence(result)
    assert overlaps(ax) == []
    assert cut_off(ax) == []


def test_all_columns_of_a_wide_table_have_room() -> None:
    names = [f"consumption_of_month_{k}" for k in range(20)]
    ax = dependence(make({name: dict.fromkeys(names, 0.04) for name in names}))
    assert len(ax.get_xticklabels()) == 21
    assert cut_off(ax) == []


def test_dollars_and_newlines_in_names_are_no_markup() -> None:
    ax = dependence(make({"$a$_{": {"b\nc": 0.3}, "b\nc": {"$a$_{": 0.3}}))
    assert "b c" in row_names(ax)
    assert "$a$_{" in words(ax)


def test_axes_of_the_user_are_drawn_on() -> None:
    _, ax = plt.subplots(figsize=(6, 4))
    assert dependence(SMALL, ax=ax) is ax
    assert cut_off(ax) == []


def test_axes_that_are_too_small_are_rejected_and_left_alone() -> None:
    _, ax = plt.subplots(figsize=(1, 1))
    with pytest.raises(ParameterError, match="too small for 25 features"):
        dependence(make(LONG), ax=ax)
    assert not ax.collections


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"result": "a"}, "result must be what dependence returned"), ({"top": 0}, "top"), ({"ax": 3}, "ax must be")],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"result": SMALL} | arguments
    with pytest.raises(ParameterError, match=says):
        dependence(given.pop("result"), **given)
