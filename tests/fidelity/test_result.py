"""The result of `fidelity`, made by hand: what its tables say of the numbers."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from subgrove import Fidelity


def made(estimates: Any, samplers: tuple[str, ...] = ("unchanged", "mine", "marginal"), **more: Any) -> Fidelity:
    values = np.asarray(estimates, dtype=float)
    features = tuple(f"x{k}" for k in range(len(values)))
    given: dict[str, Any] = {"auc": None, "notes": {}, "n": 50, "n_reference": 60, "settings": {}, **more}
    return Fidelity(features, samplers, np.exp(-values), **given)


def test_position_is_the_share_of_the_way_from_marginal_to_unchanged() -> None:
    result = made([[[6.0, 8.0], [5.0, 7.0], [2.0, 4.0]]])
    np.testing.assert_allclose(result.positions, [[1.0, 0.75, 0.0]])


def test_position_may_be_outside_the_bounds() -> None:
    np.testing.assert_allclose(made([[[4.0], [1.0], [2.0]]]).positions, [[1.0, -0.5, 0.0]])
    np.testing.assert_allclose(made([[[4.0], [5.0], [2.0]]]).positions, [[1.0, 1.5, 0.0]])


def test_bounds_within_their_noise_have_no_position() -> None:
    # Gaps 1.0 and -0.6: mean 0.2, standard error 0.8.
    assert np.isnan(made([[[3.0, 2.0], [2.5, 2.5], [2.0, 2.6]]]).positions).all()
    assert np.isnan(made([[[2.0], [2.5], [2.0]]]).positions).all()
    assert np.isnan(made([[[1.0], [2.5], [2.0]]]).positions).all()


def test_noise_shared_by_all_samplers_cancels_in_positions() -> None:
    common = np.array([0.0, 1.0, -2.0])
    table = made([[6 + common, 5 + common, 2 + common]]).table
    np.testing.assert_allclose(table["position_std_error"], 0.0, atol=1e-12)
    assert (table["std_error"] > 0.5).all()


def test_standard_errors_are_those_of_a_mean_over_repeats() -> None:
    table = made([[[6.0, 8.0], [5.0, 5.5], [2.0, 4.0]]]).table
    np.testing.assert_allclose(table["std_error"], [1.0, 0.25, 1.0])


def test_noise_of_a_position_is_that_of_a_ratio() -> None:
    # Against jackknife-like truth: positions of many made results scatter as the standard error says.
    rng = np.random.default_rng(0)
    positions, errors = [], []
    for _ in range(400):
        common = rng.normal(size=30)
        low = 2 + common
        result = made([[6 + common + rng.normal(0, 0.5, 30), 5 + common + rng.normal(0, 0.5, 30), low]])
        positions.append(result.positions[0, 1])
        errors.append(result.table["position_std_error"][1])
    # The standard deviation of 400 values is known to 1 / sqrt(800) = 3.5 %; 4 of these are allowed.
    assert np.mean(errors) == pytest.approx(np.std(positions), rel=0.15)


def test_ranks_count_the_smallest_mmd_as_first_and_share_ties() -> None:
    result = made([[[6.0], [6.0], [2.0]], [[6.0], [5.0], [2.0]]])
    table = result.overall.set_index("sampler")
    assert table.loc["mine", "mean_rank"] == (1.5 + 2) / 2
    assert table.loc["marginal", "mean_rank"] == 3.0


def test_overall_position_is_that_of_the_means() -> None:
    # The second feature has bounds that hardly differ; its own position of -10 would swamp the mean of positions.
    result = made([[[6.0], [5.0], [2.0]], [[3.1], [2.0], [3.0]]])
    np.testing.assert_allclose(result.positions[:, 1], [0.75, -10.0])
    overall = result.overall.set_index("sampler")["position"]
    assert overall["mine"] == pytest.approx((3.0 - 1.0) / (4.0 + 0.1))
    assert overall["unchanged"] == 1.0


def test_samplers_without_a_common_feature_are_compared_by_their_own() -> None:
    """The user saw: position 0 of a sampler that was realistic for all features but the one that all could resample."""
    samplers = ("unchanged", "one", "two", "marginal")
    result = made([[[6.0], [np.nan], [5.0], [2.0]], [[6.0], [5.0], [np.nan], [2.0]]], samplers)
    table = result.overall.set_index("sampler")
    assert table["estimate"].to_dict() == {"unchanged": 6.0, "one": 5.0, "two": 5.0, "marginal": 2.0}
    assert table["position"].to_dict() == {"unchanged": 1.0, "one": 0.75, "two": 0.75, "marginal": 0.0}
    assert table["mean_rank"].to_dict() == {"unchanged": 1.0, "one": 2.0, "two": 2.0, "marginal": 3.0}
    assert table["n_features"].to_dict() == {"unchanged": 2, "one": 1, "two": 1, "marginal": 2}


def test_mean_auc_is_over_features_and_repeats() -> None:
    auc = np.array([[[0.5, 0.7], [0.6, 0.8], [0.9, 1.0]]])
    result = made([[[6.0, 6.0], [5.0, 5.0], [2.0, 2.0]]], auc=auc)
    assert result.overall.set_index("sampler").loc["mine", "auc"] == pytest.approx(0.7)
    assert result.table["auc"].tolist() == pytest.approx([0.6, 0.7, 0.95])
    assert len(result.repeats) == 6


def test_without_a_classifier_there_is_no_auc_column() -> None:
    result = made([[[6.0], [5.0], [2.0]]])
    for table in (result.table, result.overall, result.repeats):
        assert not [name for name in table.columns if "auc" in name]


def test_equal_samples_have_infinite_fidelity_and_no_position() -> None:
    result = made([[[np.inf], [5.0], [2.0]]])
    assert result.table["estimate"][0] == np.inf
    assert np.isnan(result.positions).all()


def test_result_is_frozen_and_can_be_pickled() -> None:
    result = made([[[6.0], [5.0], [2.0]]])
    with pytest.raises(FrozenInstanceError):
        result.n = 3  # type: ignore[misc]  # that is what is tested
    again = pickle.loads(pickle.dumps(result))
    assert again.table.equals(result.table)


def test_repr_describes_the_result() -> None:
    notes = {("x0", "mine"): "why"}
    assert repr(made([[[6.0], [5.0], [2.0]]], notes=notes)) == (
        "<Fidelity of mine: 1 feature, 50 rows against 60, 1 resampling failed>"
    )
