"""The picture of relative importance: a point for each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import subgrove as sg
import subgrove.plots
from subgrove.exceptions import ParameterError
from subgrove.plots.gap import relative_importance

from .seen import cut_off, overlaps, row_names, words

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
LOSSES = ["absolute_error", "squared_error"]
OPTIONS: dict[str, Any] = {"train": TRAIN.X, "features": ["temp"], "n_repeats": 3, "random_state": 1}
RESULT = sg.importance(lambda X: 100 * X["temp"], TEST.X, TEST.y, loss=LOSSES, **OPTIONS).relative(
    order=["season", "hum"]
)


@pytest.mark.parametrize("loss", [None, *LOSSES])
def test_points_are_those_of_the_table(loss: str | None) -> None:
    ax = relative_importance(RESULT, loss=loss)
    table = RESULT.table
    expected = table[table["loss"] == (loss or LOSSES[0])]["estimate"]
    (points,) = (line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(np.asarray(points.get_xdata()), expected)
    assert row_names(ax) == ["temp given nothing", "+ season", "+ hum", "+ the other 6 columns"]
    assert overlaps(ax) == []
    assert cut_off(ax) == []
    assert f"increase of {(loss or LOSSES[0]).replace('_', ' ')}" in words(ax)


def test_a_score_has_no_intervals_and_says_so() -> None:
    imp = sg.importance(lambda X: X["temp"], TEST.X, TEST.y, loss="root_mean_squared_error", **OPTIONS)
    score = imp.relative(order=[])
    assert "no intervals: a score of all rows together" in words(relative_importance(score))


def test_wrong_arguments_are_rejected() -> None:
    with pytest.raises(ParameterError, match="result must be a RelativeImportance; got int"):
        relative_importance(3)  # type: ignore[arg-type]  # that is what is tried
    with pytest.raises(ParameterError, match="loss='nope' is not among"):
        relative_importance(RESULT, loss="nope")
