"""Pictures of subgroups, of one feature and of several."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

import subgrove as sg
from subgrove._subgroups import find_subgroups
from subgrove.exceptions import ParameterError

BIKE = sg.datasets.bike().X


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    """Draw without a screen, and leave no figure behind."""
    mpl.use("agg")
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


def texts(ax: Axes) -> list[Text]:
    """What is written, once the picture is drawn."""
    ax.figure.figure.savefig(BytesIO(), format="png")
    return [text for text in ax.texts if text.get_text().strip()]


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in texts(ax)]


def test_partition_is_drawn_as_its_tree() -> None:
    partition = find_subgroups(BIKE, features="temp")["temp"]
    one, other = sg.plots.tree(partition), sg.plots.tree(partition.tree)
    assert words(one) == words(other)
    assert len(one.child_axes) == len(partition)


@pytest.mark.parametrize("members", [("temp", "hum"), ("temp", "hum", "wind"), ("season", "yr")])
def test_group_is_drawn_with_its_name_and_sizes_and_no_distribution(members: tuple[str, ...]) -> None:
    partition = find_subgroups(BIKE, features=[members], max_depth=3)[members]
    ax = sg.plots.tree(partition)
    assert ax.child_axes == []
    written = words(ax)
    assert " ".join(written[-1].split()) == partition.feature
    assert [word for word in written if word.startswith("n = ")] == [f"n = {size}" for size in partition.sizes]
    assert "all rows" not in written


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("size", [None, (7, 4), (14, 9)])
def test_texts_of_a_group_do_not_overlap(depth: int, size: Any) -> None:
    from matplotlib.figure import Figure

    partition = find_subgroups(BIKE, features=[("temp", "hum")], max_depth=depth)["temp", "hum"]
    ax = sg.plots.tree(partition, ax=None if size is None else Figure(figsize=size).add_subplot())
    boxes = [text.get_window_extent() for text in texts(ax)]
    figure = ax.figure.figure.bbox
    for box in boxes:
        assert figure.x0 <= box.x0
        assert box.x1 <= figure.x1
        assert figure.y0 <= box.y0
        assert box.y1 <= figure.y1
    for one, other in itertools.combinations(boxes, 2):
        width = min(one.x1, other.x1) - max(one.x0, other.x0)
        assert width <= 0.5 or min(one.y1, other.y1) - max(one.y0, other.y0) <= 0.5


def test_long_names_of_a_group_are_shortened() -> None:
    names = {"temp": "temperature of the air in the shade", "hum": "relative humidity of the air in the morning"}
    members = tuple(names.values())
    ax = sg.plots.tree(find_subgroups(BIKE.rename(columns=names), features=[members])[members])
    assert words(ax)[-1].startswith("temperature")
    assert ax.figure.figure.get_size_inches()[0] < 10


@pytest.mark.parametrize("x", ["constant", "no rows", "one value"])
def test_feature_that_no_tree_can_grow_on_is_drawn(x: str) -> None:
    columns = {"constant": np.ones(731), "no rows": np.r_[2.0, np.full(730, np.nan)], "one value": ["p"] * 731}
    weights = np.r_[0.0, np.ones(730)] if x == "no rows" else None
    X = BIKE[["hum"]].assign(x=columns[x])
    partition = find_subgroups(X, features="x", sample_weight=weights)["x"]
    assert f"n = {partition.sizes[0]}" in words(sg.plots.tree(partition))


def test_partition_of_too_many_subgroups_says_how_to_prune_it() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[:, 1] += 5 * X[:, 0]
    partition = find_subgroups(X, features="x1", max_depth=9, min_samples_leaf=10, alpha=1)["x1"]
    assert len(partition) > 64
    with pytest.raises(ParameterError, match=r"Prune it first: tree\.at_depth\(\d\)"):
        sg.plots.tree(partition)


def test_anything_but_a_tree_is_rejected() -> None:
    with pytest.raises(ParameterError, match=r"or a Partition as in find_subgroups\(X\)\['temp'\]; got Subgroups"):
        sg.plots.tree(find_subgroups(BIKE, max_depth=0))  # type: ignore[arg-type]
