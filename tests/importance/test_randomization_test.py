"""The holdout randomization test: which draws it makes, what it costs, and what is rejected; its size is in claims."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove._core.execution import IndependentStreams
from subgrove._core.kinds import Floats
from subgrove.exceptions import ParameterError
from subgrove.samplers.donors import cyclic_shifts, training_donors
from subgrove.samplers.training_donors import balanced_points

N = 120
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "level": RNG.choice(["u", "v", "w"], N)})
X["c"] = X["a"] + RNG.normal(size=N)
Y = X["a"] + (X["level"] == "u") + RNG.normal(size=N)


class Counting:
    rows = 0

    def __call__(self, X: Any) -> Floats:
        self.rows += len(X)
        return np.asarray(X["a"].to_numpy() + (X["level"].to_numpy() == "u"), dtype=float)


def run(model: Any = None, table: Any = X, **options: Any) -> sg.ImportanceResult:
    chosen = {"sampler": "marginal", "n_repeats": 3, "random_state": 1, "check_fidelity": False, **options}
    chosen.setdefault("loss", "squared_error")
    return sg.importance(model or Counting(), table, Y, **chosen)


def test_p_values_are_ranks_of_the_loss() -> None:
    table = run(loss=["squared_error", "absolute_error"]).randomization_test(99)
    assert list(table.columns) == ["loss", "feature", "n", "estimate", "p_value", "p_holm", "p_bh"]
    p_values = table.set_index(["loss", "feature"])["p_value"]
    assert (p_values * 100).round(9).isin(range(1, 101)).all()
    for loss in ("squared_error", "absolute_error"):
        assert p_values[loss, "a"] == p_values[loss, "level"] == 0.01  # the smallest there is
        assert p_values[loss, "b"] == p_values[loss, "c"] == 1.0  # the model does not use them


@pytest.mark.parametrize("sampler", ["marginal", "subgroups", "auto"])
def test_each_resample_predicts_all_rows_of_each_feature(sampler: str) -> None:
    """Also of a feature of three levels, whose importance is an exact expectation."""
    counting = Counting()
    imp = run(counting, sampler=sampler, features=["a", "level"], train=X.assign(a=-X["a"]))
    counting.rows = 0
    imp.randomization_test(19)
    assert counting.rows == 2 * 19 * N


def test_jobs_containers_and_order_of_features_change_no_digit() -> None:
    options = {"sampler": "subgroups", "features": ["a", "level"]}
    expected = run(**options).randomization_test(19)
    again = run(table=pl.from_pandas(X), **options).randomization_test(19, n_jobs=2)
    pd.testing.assert_frame_equal(again.to_pandas(), expected)
    other = run(**{**options, "features": ["level", "a"]}).randomization_test(19)
    assert other["estimate"].tolist() == expected["estimate"].tolist()[::-1]


def test_estimate_is_near_that_of_balanced_draws() -> None:
    """The mean of 199 resamples of 120 rows; both have Monte Carlo errors below 0.02 in an importance of 2."""
    imp = run(n_repeats=100, features=["a"])
    assert imp.randomization_test()["estimate"][0] == pytest.approx(imp.overall["estimate"][0], abs=0.1)


def test_draws_are_independent_from_row_to_row_and_from_repeat_to_repeat() -> None:
    """40 rows, 4000 repeats: correlations of draws have standard error 0.016; five of them, for some 5,000 pairs.

    Balanced draws are negatively correlated: two rows never have the same donor in a repeat.
    """
    code, rngs = np.zeros(40, dtype=np.int32), IndependentStreams(1, "x", 4000)
    donors = np.array(list(training_donors(code, [np.arange(40)], rngs)), dtype=float)
    points = np.array(list(balanced_points(code, 1, np.arange(40.0), rngs)))
    for drawn in (donors, points):
        between_rows = np.corrcoef(drawn.T)[np.triu_indices(40, 1)]
        between_repeats = np.corrcoef(drawn[:-1].T, drawn[1:].T)[:40, 40:].diagonal()
        assert np.abs(between_rows).max() < 5 / np.sqrt(4000)
        assert np.abs(between_repeats).max() < 5 / np.sqrt(4000)


def test_shifts_are_uniform_permutations_within_subgroups() -> None:
    """Three rows have six permutations: each in a sixth of 6000 repeats, with standard error 29; four of them."""
    code = np.array([0, 1, 0, 1, 0], dtype=np.int32)
    found = [tuple(donors.rows.tolist()) for donors in cyclic_shifts(code, 2, IndependentStreams(1, "x", 6000))]
    _, counts = np.unique([[rows[0], rows[2], rows[4]] for rows in found], axis=0, return_counts=True)
    assert len(counts) == 6
    assert np.abs(counts - 1000).max() < 116
    assert {code[at] for rows in found for at in (rows[1], rows[3])} == {1}


def test_results_without_a_model_are_rejected() -> None:
    with pytest.raises(ParameterError, match="randomization_test needs the model"):
        pickle.loads(pickle.dumps(run(sum_of_columns))).randomization_test()
    with pytest.raises(ParameterError, match="n_resamples must be"):
        run().randomization_test(0)


def sum_of_columns(X: Any) -> Floats:
    return np.asarray(X["a"] + X["b"])
