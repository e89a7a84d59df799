"""Shifted subgroups: a shift in words, residuals of subgroups, and values that stay what they can be."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats
from subgrove.exceptions import ColumnError, ParameterError
from subgrove.samplers.shifted_subgroups import FittedShiftedSubgroups, ShiftedSubgroups


def frame(n: int, seed: int) -> pd.DataFrame:
    """x is a sum whose noise is four times as large where kind is v."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n))
    kind = np.array(["u", "v"])[rng.integers(0, 2, n)]
    x = 10 + 2 * a - b + np.where(kind == "v", 2.0, 0.5) * rng.normal(size=n)
    return pd.DataFrame({"x": x, "a": a, "b": b, "c": c, "kind": kind, "count": rng.poisson(np.exp(2 + a / 4))})


TRAIN, TEST = frame(1000, 0), frame(200, 1)
FITTED: FittedShiftedSubgroups = ShiftedSubgroups().fit(TRAIN, ["x", "count", "kind"])


def drawn(fitted: Any, X: pd.DataFrame, feature: str, n_repeats: int = 20) -> Any:
    return np.array([np.asarray(column) for column in fitted.sample(X, feature, Streams(0, feature, n_repeats))])


def test_shift_and_subgroups_are_those_of_the_data() -> None:
    shift = FITTED.shifts["x"]
    assert shift.columns[:2] == ("a", "b")
    assert re.match(r"x ~ (9\.\d+|10\S*) \+ (1\.9\d|2\S*) \* a - (0\.9\d+|1\S*) \* b", shift.text())
    assert set(FITTED.subgroups["x"].rules) == {"kind in {u}", "kind in {v}"}


def test_resampled_values_have_the_mean_and_spread_of_their_subgroup() -> None:
    left = drawn(FITTED, TEST, "x", 200) - np.asarray(10 + 2 * TEST["a"] - TEST["b"])
    for kind, spread in (("u", 0.5), ("v", 2.0)):
        own = left[:, np.asarray(TEST["kind"] == kind)]
        # 500 training residuals have a standard deviation that is off by 1 / sqrt(1000) = 3 %.
        assert own.std() == pytest.approx(spread, rel=0.12)
        assert own.mean() == pytest.approx(0, abs=4 * spread / np.sqrt(500))


def test_results_are_reported_by_subgroups_and_all_columns_are_named() -> None:
    resampled = FITTED.resample(FITTED.read(TEST), ("x",), Streams(0, "x", 2))
    assert set(resampled.groups.rules) == {"kind in {u}", "kind in {v}"}
    assert set(resampled.groups.conditioning) >= {"a", "b", "kind"}


def test_keep_moves_resampled_values_towards_the_old_ones() -> None:
    def distance(keep: Any) -> float:
        fitted = ShiftedSubgroups(residual_retention=keep).fit(TRAIN, ["x"])
        return float(np.mean((drawn(fitted, TEST, "x") - np.asarray(TEST["x"])) ** 2))

    far, half, whole = (distance(keep) for keep in (0, 0.5, 1))
    assert half == pytest.approx(far / 2, rel=0.1)  # 2 (1 - rho) times the variance
    assert whole == pytest.approx(0, abs=1e-20)


def test_much_is_kept_only_if_the_shift_is_badly_known() -> None:
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(4000, 60))
    X = pd.DataFrame(Z, columns=[f"z{k}" for k in range(60)]).assign(x=Z.sum(axis=1) + rng.normal(size=4000))
    few, many = (ShiftedSubgroups().fit(X[:n], ["x"]).residual_retention["x"] for n in (150, 4000))
    assert 0.15 < few < 0.9
    assert 0 <= many < 0.06


def test_whole_numbers_stay_whole_and_are_values_of_training() -> None:
    column = next(FITTED.sample(TEST, "count", 1))
    assert pd.Series(column).dtype == TEST["count"].dtype
    assert set(np.unique(drawn(FITTED, TEST, "count"))) <= set(TRAIN["count"])


def test_numbers_that_repeat_are_values_of_training() -> None:
    rounded = TRAIN.assign(x=TRAIN["x"].round(1))
    fitted = ShiftedSubgroups().fit(rounded, ["x"])
    assert set(np.unique(drawn(fitted, TEST.assign(x=TEST["x"].round(1)), "x"))) <= set(rounded["x"])


def test_values_stay_near_those_of_training() -> None:
    values = drawn(FITTED, TEST, "x", 100)
    residual = 2 * float(np.std(FITTED.learned["x"].residuals))  # type: ignore[union-attr]
    low, high = (f(TRAIN["x"].to_numpy(), TEST["x"].to_numpy()) for f in (least, largest))
    assert values.min() >= low - residual - 1e-9
    assert values.max() <= high + residual + 1e-9


def least(*parts: Floats) -> float:
    return float(min(part.min() for part in parts))


def largest(*parts: Floats) -> float:
    return float(max(part.max() for part in parts))


def test_positive_numbers_stay_positive_and_piles_at_an_end_are_not_passed() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=600)
    capped = np.clip(a + rng.normal(size=600), -1, 1)  # piles up at both ends
    positive = np.exp(a + 0.3 * rng.normal(size=600))
    X = pd.DataFrame({"a": a, "capped": capped, "positive": positive})
    fitted = ShiftedSubgroups().fit(X)
    assert drawn(fitted, X, "positive").min() >= 0
    assert np.abs(drawn(fitted, X, "capped")).max() <= 1


def test_levels_are_drawn_with_probabilities_that_shift() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=2000)
    X = pd.DataFrame({"a": a, "kind": np.where(rng.random(2000) < 1 / (1 + np.exp(-3 * a)), "warm", "cold")})
    fitted = ShiftedSubgroups().fit(X, ["kind"])
    assert fitted.shifts["kind"].columns == ("a",)
    assert "kind" not in fitted.subgroups
    assert "kind" not in fitted.residual_retention
    share = (drawn(fitted, X.assign(a=1.0)[:500], "kind") == "warm").mean()
    assert share == pytest.approx(1 / (1 + np.exp(-3)), abs=0.04)


def test_a_feature_that_nothing_states_of_has_its_mean_as_shift() -> None:
    fitted = ShiftedSubgroups().fit(TRAIN, ["c"])
    if not fitted.shifts["c"].columns:
        assert fitted.shifts["c"].text() == f"c ~ {TRAIN['c'].mean():.3g}"
    assert drawn(fitted, TEST, "c", 100).std() == pytest.approx(TRAIN["c"].std(), rel=0.05)


def test_a_duplicate_column_gives_the_old_values_back() -> None:
    twin = TRAIN.assign(twin=TRAIN["x"])
    fitted = ShiftedSubgroups().fit(twin, ["x"])
    other = TEST.assign(twin=TEST["x"])
    np.testing.assert_allclose(drawn(fitted, other, "x", 2), np.tile(other["x"], (2, 1)), atol=0.1)


def test_given_columns_are_the_only_ones_used() -> None:
    fitted = ShiftedSubgroups(given=["b", "c"]).fit(TRAIN, ["x"])
    assert fitted.shifts["x"].columns[0] == "b"
    assert set(fitted.shifts["x"].columns) <= {"b", "c"}
    resampled = fitted.resample(fitted.read(TEST), ("x",), Streams(0, "x", 1))
    assert set(resampled.groups.conditioning) <= {"b", "c"}


def test_only_some_rows_are_used_of_many() -> None:
    one = ShiftedSubgroups(max_rows=100, random_state=1).fit(TRAIN, ["x"])
    two = ShiftedSubgroups(max_rows=100, random_state=2).fit(TRAIN, ["x"])
    assert len(one.learned["x"].residuals) == 100  # type: ignore[union-attr]
    assert one.shifts["x"].text() != two.shifts["x"].text()
    counts = ShiftedSubgroups(max_rows=100, random_state=1).fit(TRAIN, ["count"])
    assert set(np.unique(drawn(counts, TEST, "count"))) <= set(TRAIN["count"])


def test_it_is_frozen_and_pickled() -> None:
    copy = pickle.loads(pickle.dumps(FITTED))
    np.testing.assert_array_equal(drawn(copy, TEST, "x", 2), drawn(FITTED, TEST, "x", 2))
    with pytest.raises(AttributeError):
        FITTED.learned["x"].retention = 0.5  # type: ignore[misc]


def test_number_of_jobs_changes_nothing() -> None:
    one, two = (ShiftedSubgroups(n_jobs=jobs).fit(TRAIN, ["x", "count"]) for jobs in (1, 2))
    for feature in ("x", "count"):
        np.testing.assert_array_equal(drawn(one, TEST, feature, 3), drawn(two, TEST, feature, 3))


@pytest.mark.parametrize("keep", [-0.1, 1.1, "half", None])
def test_keep_is_a_share(keep: Any) -> None:
    with pytest.raises(ParameterError, match="residual_retention must be 'auto' or a number from 0 to 1"):
        ShiftedSubgroups(residual_retention=keep).fit(TRAIN)


def test_missing_values_of_the_feature_raise_an_error_in_training_and_in_rows_to_resample() -> None:
    holed = TRAIN.assign(x=TRAIN["x"].where(TRAIN.index > 5))
    with pytest.raises(ParameterError, match="takes no missing values, but column 'x'"):
        ShiftedSubgroups().fit(holed, ["x"])
    with pytest.raises(ParameterError, match=r"takes no missing values, but column 'x' .* use 'auto'"):
        next(FITTED.sample(TEST.assign(x=np.nan), "x", 1))


def test_missing_values_of_other_columns_are_taken() -> None:
    holed = TRAIN.assign(a=TRAIN["a"].where(TRAIN.index % 5 > 0), kind=TRAIN["kind"].where(TRAIN.index % 7 > 0))
    fitted = ShiftedSubgroups().fit(holed, ["x"])
    values = drawn(fitted, TEST.assign(a=TEST["a"].where(TEST.index % 5 > 0), kind=None), "x", 2)
    assert np.isfinite(values).all()


def test_an_unseen_level_of_a_nominal_feature_is_resampled_like_others() -> None:
    values = drawn(FITTED, TEST.assign(kind="new"), "kind", 2)
    assert set(np.unique(values)) <= {"u", "v"}


def test_numbers_that_cannot_be_squared_raise_an_error_by_name() -> None:
    with pytest.raises(ColumnError, match="'x' of train has numbers above 1e70"):
        ShiftedSubgroups().fit(TRAIN.assign(x=1e300 * TRAIN["x"]), ["x"])


def test_importance_takes_it_by_name() -> None:
    imp = sg.importance(
        lambda X: X["x"],
        TEST,
        TEST["x"],
        sampler="shifted_subgroups",
        train=TRAIN,
        features=["x"],
        random_state=1,
        loss="squared_error",
    )
    # 2 E Var(x | others) = 2 (0.25 + 4) / 2; the error of a mean over 200 rows is about a tenth of it.
    assert imp.overall["estimate"][0] == pytest.approx(4.25, rel=0.35)
