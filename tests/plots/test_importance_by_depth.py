"""The picture of importance by the depth of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from subgrove.exceptions import ParameterError
from subgrove.plots.importance import importance_by_depth

from .results import make_result
from .seen import cut_off, legend_texts, overlaps, words

NAMES = ("temp", "yr", "season", "hum", "wind", "weekday", "weather", "work", "holiday")


def results_of(n: int, depths: tuple[int, ...] = (0, 1, 2, 3)) -> dict[int, Any]:
    """Results of n features that are close to each other at the last depth."""
    names = [NAMES[k] if k < len(NAMES) else f"a feature with a very long name {k}" for k in range(n)]
    return {
        depth: make_result({name: (n - k) * 100.0 / (1 + depth) ** 2 for k, name in enumerate(names)})
        for depth in depths
    }


def curves(ax: Axes) -> list[Any]:
    """Lines of features."""
    return [line for line in ax.lines if len(np.asarray(line.get_xdata())) == 4]


def test_each_feature_has_a_line_over_depths() -> None:
    ax = importance_by_depth(results_of(3))
    drawn = sorted(np.asarray(line.get_ydata()).tolist() for line in curves(ax))
    np.testing.assert_allclose(drawn, [[(k + 1) * 100.0 / (1 + depth) ** 2 for depth in range(4)] for k in range(3)])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2", "3"]


def test_names_stand_in_the_order_of_the_ends_of_lines() -> None:
    assert legend_texts(importance_by_depth(results_of(9))) == list(NAMES)
    crossing = {0: make_result({"a": 9.0, "b": 2.0}), 2: make_result({"a": 1.0, "b": 3.0})}
    assert legend_texts(importance_by_depth(crossing)) == ["b", "a"]


def test_depths_are_put_in_order() -> None:
    results = results_of(2)
    ax = importance_by_depth({depth: results[depth] for depth in (3, 0, 2, 1)})
    assert np.all(np.diff(np.asarray(curves(ax)[0].get_xdata())) > 0)


def test_depth_zero_is_said_to_be_marginal() -> None:
    assert "(0: marginal)" in importance_by_depth(results_of(2)).get_xlabel()
    assert "marginal" not in importance_by_depth(results_of(2, depths=(1, 2))).get_xlabel()


def test_features_beyond_the_first_are_grey_without_a_name_and_counted() -> None:
    ax = importance_by_depth(results_of(30))
    shown = words(ax)
    assert len(curves(ax)) == 30
    assert any("grey: 18 other features" in text for text in shown)
    assert sum(text.startswith("a feature") for text in shown) == 3


def test_the_largest_at_any_depth_are_highlighted() -> None:
    results = {0: make_result({"a": 9.0, "b": 2.0, "c": 1.0}), 2: make_result({"a": 0.0, "b": 1.0, "c": 1.0})}
    shown = words(importance_by_depth(results, top=1))
    assert "a" in shown
    assert "b" not in shown


def test_a_feature_that_a_depth_lacks_leaves_a_gap() -> None:
    ax = importance_by_depth({0: make_result({"a": 3.0, "b": 1.0}), 1: make_result({"a": 2.0})})
    assert {"a", "b"} <= set(words(ax))


@pytest.mark.parametrize("n", [1, 9, 30])
@pytest.mark.parametrize("size", [None, (3.5, 3.0), (10.0, 4.0)])
def test_nothing_touches_or_is_cut_off(n: int, size: tuple[float, float] | None) -> None:
    ax = None if size is None else Figure(figsize=size, layout="constrained").add_subplot()
    ax = importance_by_depth(results_of(n), ax=ax)
    assert overlaps(ax) == []
    assert cut_off(ax) == []


def test_fits_axes_without_a_layout() -> None:
    ax = Figure(figsize=(4.5, 3)).add_subplot()
    assert importance_by_depth(results_of(9), ax=ax) is ax
    assert overlaps(ax) == []
    assert cut_off(ax, slack=2.0) == []
    assert plt.get_fignums() == []


@pytest.mark.parametrize("wrong", [None, [make_result({"a": 1.0})], {}])
def test_something_else_than_a_mapping_of_results_is_rejected(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^results must be a mapping from depth to ImportanceResult"):
        importance_by_depth(wrong)


def test_depths_that_are_no_whole_numbers_are_rejected() -> None:
    with pytest.raises(ParameterError, match="a depth in results must be a whole number"):
        importance_by_depth({"marginal": make_result({"a": 1.0})})  # type: ignore[dict-item]  # what is tested
