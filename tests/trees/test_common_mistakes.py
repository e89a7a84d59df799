"""Mistakes that would give wrong results silently, and unusual inputs that are valid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ColumnError, InputError
from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationTree

RNG = np.random.default_rng(0)
A = RNG.normal(size=(400, 3))
X = A[:, 1] + RNG.normal(size=400)


def test_x_with_the_index_in_another_order_is_rejected() -> None:
    bike = sg.datasets.bike().X
    with pytest.raises(InputError, match=r"x has the index labels of X in another order.*x\.loc\[X\.index\]"):
        TransformationTree().fit(bike.drop(columns="temp"), bike["temp"].sample(frac=1, random_state=0))


def test_weights_with_the_index_in_another_order_are_rejected() -> None:
    frame = pd.DataFrame(A, columns=list("abc"))
    with pytest.raises(InputError, match="sample_weight has the index labels of X in another order"):
        TransformationTree().fit(frame, X, pd.Series(np.arange(400.0), index=np.arange(400)[::-1]))


def test_x_with_other_labels_goes_by_place() -> None:
    frame = pd.DataFrame(A, columns=list("abc"))
    moved = pd.Series(X, index=np.arange(1000, 1400))
    assert TransformationTree().fit(frame, moved).rules == TransformationTree().fit(frame, X).rules


def test_x_among_the_columns_is_rejected() -> None:
    bike = sg.datasets.bike().X
    for name, grower in [("temp", TransformationTree()), ("season", ConditionalInferenceTree())]:
        with pytest.raises(InputError, match=f"X has a column '{name}' that equals x"):
            grower.fit(bike, bike[name])


def test_x_made_from_a_column_may_keep_its_name() -> None:
    frame = pd.DataFrame(A, columns=list("abc"))
    assert len(TransformationTree().fit(frame, frame["a"] + RNG.normal(size=400)).leaves) > 1


@pytest.mark.parametrize("grower", [TransformationTree, ConditionalInferenceTree, CartTree])
def test_masked_values_are_missing(grower: type[TransformationTree]) -> None:
    masked = np.ma.masked_greater(X, 1.0)
    assert grower().fit(A, masked).nodes[0].n == (X <= 1.0).sum()
    table = np.ma.masked_less(A, 0.0)
    assert grower().fit(table, X).rules == grower().fit(np.where(A < 0, np.nan, A), X).rules


def test_matrix_of_numpy_is_a_table() -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(A)
    assert TransformationTree().fit(matrix, X).rules == TransformationTree().fit(A, X).rules


def test_frame_of_one_column_is_a_column() -> None:
    bike = sg.datasets.bike().X
    rest = bike.drop(columns="temp")
    assert TransformationTree().fit(rest, bike[["temp"]]) == TransformationTree().fit(rest, bike["temp"])


def test_dates_are_not_taken_for_numbers_at_apply() -> None:
    days = pd.date_range("2020-01-01", periods=400)
    of_numbers = TransformationTree().fit(pd.DataFrame({"b": A[:, 1]}), X)
    of_dates = TransformationTree().fit(pd.DataFrame({"b": days}), np.sort(X))
    with pytest.raises(ColumnError, match="'b' of X holds dates, but in training it held numbers"):
        of_numbers.apply(pd.DataFrame({"b": days}))
    with pytest.raises(ColumnError, match="'b' of X holds numbers, but in training it held dates"):
        of_dates.apply(pd.DataFrame({"b": A[:, 1]}))


def test_0_and_1_are_known_again_as_booleans() -> None:
    frame = pd.DataFrame({"b": A[:, 1] > 0})
    tree = TransformationTree().fit(frame, X)
    assert tree.apply(frame.astype(float)).tolist() == tree.apply(frame).tolist()


def test_durations_are_printed_as_durations() -> None:
    hours = pd.DataFrame({"b": pd.to_timedelta(np.arange(400), unit="h")})
    assert list(TransformationTree(max_depth=1).fit(hours, (np.arange(400) > 30) + X / 50).rules.values()) == [
        "b <= 1 day, 6:00:00",
        "b > 1 day, 6:00:00",
    ]


def test_moments_of_cart_are_printed_as_they_are_applied() -> None:
    moments = pd.DataFrame({"t": np.repeat(np.array([1, 2], dtype="datetime64[us]"), 50)})
    tree = CartTree(min_samples_leaf=10).fit(moments, np.repeat([0.0, 1.0], 50))
    assert list(tree.rules.values()) == ["t < 1970-01-01T00:00:00.000002", "t >= 1970-01-01T00:00:00.000002"]


@pytest.mark.parametrize("level", ["", "a, b", "missing", "or missing", "{a}", " a", "it's", "two\nlines"])
def test_level_that_could_be_misread_stands_in_quotes(level: str) -> None:
    labels = np.where(A[:, 1] > 0, level, "plain")
    rules = TransformationTree(max_depth=1).fit(pd.DataFrame({"g": labels}), X).rules
    assert set(rules.values()) == {f"g in {{{level!r}}}", "g in {plain}"}


def test_numbers_larger_than_a_float_are_rejected() -> None:
    with pytest.raises(ColumnError, match="larger than a float holds"):
        TransformationTree().fit(A, [10**400] * 400)


def test_zero_inflated_x_is_fitted_whatever_is_in_memory() -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(0, 3, 2000)
    x = np.where(group == 0, 0.0, rng.gamma(1.0, size=2000))
    for _ in range(10):
        del_me = [np.full((6, size), np.nan) for size in (100, 500, 700, 2000)]
        del del_me
        tree = TransformationTree().fit(pd.DataFrame({"g": group, "z": rng.normal(size=2000)}), x)
        assert any(leaf.stop == "constant" for leaf in tree.leaves)
