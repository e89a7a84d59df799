"""Scores and importance by depth, from one fit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
NAMES = ["temp", "wind", "season"]


class Counting:
    """A model that counts the rows that it predicts."""

    def __init__(self) -> None:
        self.rows = 0
        self.calls = 0

    def predict(self, X: Any) -> Any:
        self.rows += len(X)
        self.calls += 1
        return 100 * X["temp"] - 10 * X["hum"] + 50 * X["wind"]


def test_importance_at_each_depth_is_that_of_the_subgroups_of_that_depth() -> None:
    model = Counting()
    profile = sg.DepthProfile.compute(
        TRAIN.X, features=NAMES, model=model, test=TEST, loss="absolute_error", random_state=3
    )
    assert len(profile.importance) == max(each.tree.depth for each in profile.full_depth.values()) + 1 > 3
    for depth, result in profile.importance.items():
        groups = sg.find_subgroups(TRAIN.X, features=NAMES, max_depth=depth)
        expected = sg.importance(model, TEST.X, TEST.y, sampler=groups, loss="absolute_error", random_state=3)
        assert result.overall.equals(expected.overall)
        assert result.by_subgroup.equals(expected.by_subgroup)


def test_model_predicts_each_depth_once_for_features_with_deeper_trees() -> None:
    model, n_repeats = Counting(), 4
    profile = sg.DepthProfile.compute(
        TRAIN.X, features=NAMES, model=model, test=TEST, n_repeats=n_repeats, random_state=3
    )
    predicted = model.rows
    assert predicted == profile.n_rows_predicted
    depths = [each.tree.depth for each in profile.full_depth.values()]
    most = sum(len(TEST.X) * (1 + n_repeats * sum(own >= depth for own in depths)) for depth in range(max(depths) + 1))
    assert predicted <= most  # fewer where a subgroup has no more other values than repeats
    _ = profile.table, profile.subgroups, profile.reasons, repr(profile), profile.with_tolerance(0.5)
    assert model.rows == predicted


def test_table_has_scores_and_importance_side_by_side() -> None:
    profile = sg.DepthProfile.compute(TRAIN.X, features=NAMES, model=Counting(), test=(TEST.X, TEST.y), random_state=1)
    table = profile.table
    assert list(table.columns[:7]) == [
        "feature", "depth", "n_subgroups", "score", "difference", "score_error", "selected",
    ]  # fmt: skip
    assert list(table.columns[7:]) == ["n", "estimate", "std_error", "conf_low", "conf_high"]
    assert table.groupby("feature")["selected"].sum().eq(1).all()
    for depth, result in profile.importance.items():
        own = result.overall.set_index("feature")["estimate"]
        here = table[table["depth"] == depth].set_index("feature")["estimate"]
        np.testing.assert_array_equal(here, own[here.index])


def test_tables_in_other_containers_give_the_same() -> None:
    numbers = ["temp", "hum", "wind"]
    frames = [{name: X[name].to_numpy() for name in numbers} for X in (TRAIN.X, TEST.X)]
    train, test = (pl.DataFrame(frame) for frame in frames)

    def model(X: Any) -> Any:
        return np.asarray(X["temp"]) - np.asarray(X["hum"])

    one = sg.DepthProfile.compute(train, model=model, test=(test, TEST.y.to_numpy()), random_state=1).table
    other = sg.DepthProfile.compute(
        TRAIN.X[numbers], model=model, test=(TEST.X[numbers], TEST.y), random_state=1, n_jobs=2
    ).table
    assert one.equals(other)


def test_chosen_subgroups_are_those_of_auto() -> None:
    profile = sg.DepthProfile.compute(TRAIN.X, features=NAMES)
    auto = sg.find_subgroups(TRAIN.X, features=NAMES, max_depth="auto")
    assert profile.subgroups == auto
    assert pickle.loads(pickle.dumps(profile)) == profile


def test_tolerance_gives_up_a_share_of_the_gain() -> None:
    profile = sg.DepthProfile.compute(TRAIN.X, features="temp")
    (exact,) = profile.choices
    gain = exact.scores[0] - min(exact.scores)
    for share in (0.05, 0.2, 0.5, 1.0):
        (choice,) = profile.with_tolerance(share).choices
        lost = choice.scores[choice.depth] - min(choice.scores)
        assert lost <= share * gain
        assert choice.depth == 0 or choice.scores[choice.depth - 1] - min(choice.scores) > share * gain
        assert choice == sg.DepthProfile.compute(TRAIN.X, features="temp", tolerance=share).choices[0]
    assert profile.with_tolerance(1.0).choices[0].depth == 0
    assert "of the gain of the best" in profile.with_tolerance(0.2).reasons[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": Counting()}, "model was given without test"),
        ({"test": TEST}, "test was given without model"),
        ({"model": Counting(), "test": TEST.X}, "test must be a pair"),
        ({"max_depth": "auto"}, "max_depth must be a whole number >= 0"),
        ({"tolerance": 2}, "tolerance must be a number from 0 to 1"),
        ({"model": Counting(), "test": TEST, "loss": ["absolute_error"]}, "loss must be one loss"),
    ],
)
def test_bad_input_is_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        sg.DepthProfile.compute(TRAIN.X, **options)
