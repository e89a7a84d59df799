"""Redraws until their noise is small beside that of the test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove.exceptions import ParameterError, SubgroveWarning
from tests.large_data_options import importance

N = 120


def rows_of(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=N)
    frame = pd.DataFrame({"a": a, "b": a + rng.normal(size=N), "c": rng.normal(size=N)})
    return frame.assign(level=rng.integers(0, 3, N), few=rng.integers(0, 15, N))


def model(X: Any) -> Floats:
    return np.asarray(X["a"] + 2 * X["b"] * X["level"] + 0.1 * X["few"])


X = rows_of(0)
Y = model(X) + np.random.default_rng(1).normal(size=N)


class Counting:
    """Counts the rows it is predicted."""

    def __init__(self) -> None:
        self.rows = 0

    def predict(self, X: Any) -> Floats:
        self.rows += len(X)
        return model(X)


def run(counting: Any = model, **options: Any) -> sg.ImportanceResult:
    return importance(counting, X, Y, **{"sampler": "marginal", "n_repeats": 4, "random_state": 1, **options})


def adaptive(share: Any, start: int = 4, max_repeats: int = 1000) -> sg.AdaptiveRepeats:
    return sg.AdaptiveRepeats(share=share, start=start, max_repeats=max_repeats)


def same(one: sg.ImportanceResult, two: sg.ImportanceResult) -> None:
    for name in ("overall", "by_subgroup", "per_row", "repeats"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), check_exact=True)
    pd.testing.assert_frame_equal(one.independence_test(X), two.independence_test(X), check_exact=True)


@pytest.mark.parametrize("feature", ["a", "b", "few"])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_numbers_are_those_of_as_many_repeats(feature: str, share: float) -> None:
    found = run(n_repeats=adaptive(share), features=[feature])
    used = found.settings["repeats_used"][feature]
    assert used in (4, 8, 16, 32, 64, 128)
    same(found, run(n_repeats=used, features=[feature]))


def test_error_of_the_draws_is_within_the_budget_and_was_not_before() -> None:
    found = run(n_repeats=adaptive(0.15))
    table = found.variance_components.set_index("feature")
    assert (table["Monte Carlo"] <= 0.15 * table["test rows"]).all()
    used = found.settings["repeats_used"]
    assert max(used.values()) > 4
    for feature, repeats in used.items():
        if repeats > 4:
            before = run(n_repeats=repeats // 2, features=[feature]).variance_components.iloc[0]
            assert before["Monte Carlo"] > 0.15 * before["test rows"]


def test_features_that_are_done_are_not_predicted_again_and_others_go_on() -> None:
    counting = Counting()
    found = run(counting, n_repeats=adaptive(0.2), features=["a", "b", "c", "level"])
    used = found.settings["repeats_used"]
    assert used["c"] == used["level"] == 4  # nothing moves; and what is exact is done
    assert used["b"] > 4
    others = [len(set(X["level"])) - 1] * N
    again = 10
    assert counting.rows == N * (1 + used["a"] + used["b"] + used["c"]) + sum(others) + again
    assert found.settings["n_rows_predicted"] == counting.rows


def test_many_repeats_that_make_an_expectation_exact_end_there() -> None:
    found = run(n_repeats=adaptive(0.001), features=["few"])
    assert found.settings["repeats_used"]["few"] == 16  # of 15 values, 14 are other ones
    assert found.overall["mc_error"][0] == 0


@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"memory": 1e-9}, {"features": ["few", "b", "a", "level", "c"]}])
def test_jobs_batches_and_order_change_no_digit(options: dict[str, Any]) -> None:
    one, two = run(n_repeats=adaptive(0.2)), run(n_repeats=adaptive(0.2), **options)
    assert one.settings["repeats_used"] == two.settings["repeats_used"]
    names = list(one.features)
    pd.testing.assert_frame_equal(
        one.overall.set_index("feature"), two.overall.set_index("feature").loc[names], check_exact=True
    )


def test_weights_and_cross_fitting_go_on_where_they_ended() -> None:
    weights = np.arange(N) % 3 + 1
    for options in (
        {"sample_weight": weights, "loss": "squared_error"},
        {"sampler": sg.samplers.SubgroupSampler(min_samples_leaf=15)},
    ):
        found = run(n_repeats=adaptive(0.3), features=["b"], **options)
        used = found.settings["repeats_used"]["b"]
        assert used > 4
        same(found, run(n_repeats=used, features=["b"], **options))


def test_bound_is_kept_and_reported() -> None:
    with pytest.warns(SubgroveWarning, match=r"max_repeats=6 .* above 0.01 .* for 'b'"):
        found = run(n_repeats=adaptive(0.01, max_repeats=6), features=["b"])
    assert found.settings["repeats_used"] == {"b": 6}
    same(found, run(n_repeats=6, features=["b"]))


def test_single_repeat_is_not_enough_to_know_the_error() -> None:
    assert run(n_repeats=adaptive(100, start=1), features=["b"]).settings["repeats_used"]["b"] == 2


def test_bad_budgets() -> None:
    for budget in (0, -1, True, "0.1", np.inf):
        with pytest.raises(ParameterError, match="share must be a number above 0"):
            run(n_repeats=adaptive(budget))
    with pytest.raises(ParameterError, match="max_repeats=3 is below start=4"):
        run(n_repeats=adaptive(0.1, max_repeats=3))
    with pytest.raises(ParameterError, match="score of all rows together"):
        run(n_repeats=adaptive(0.1), loss="root_mean_squared_error")
