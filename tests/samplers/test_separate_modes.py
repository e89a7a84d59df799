"""Features with several modes, and features whose spread depends on other columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._data.table import read_table
from subgrove.samplers.chained import PartProbabilities, SeparateModes, ignoring_own_values
from subgrove.samplers.predicted_probabilities import mixture_crps, mode_borders, separation

N = 1000


def two_modes(n: int, seed: int, *, rounded: bool = False) -> pd.DataFrame:
    """Two modes, 3 + 0.5 z1 and -3 - 0.5 z1, whose probability depends on z2."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 2))
    sign = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * z[:, 1])), 1.0, -1.0)
    x = sign * (3 + 0.5 * z[:, 0]) + 0.4 * rng.standard_normal(n)
    return pd.DataFrame({"x": np.round(x, 1) if rounded else x, "z1": z[:, 0], "z2": z[:, 1]})


def draws(fitted: Any, X: pd.DataFrame, n_repeats: int = 40) -> Any:
    return np.array(list(fitted.sample(X, "x", Streams(0, "x", n_repeats))))


@pytest.fixture(scope="module")
def fitted() -> Any:
    return sg.samplers.Auto().fit(two_modes(N, 1), ["x"])


def test_modes_are_predicted_one_by_one(fitted: Any) -> None:
    assert fitted.choices["x"].selected == "separate_modes"
    assert isinstance(fitted.learned["x"], SeparateModes)
    assert set(fitted.choices["x"].conditioning) == {"z1", "z2"}
    test = two_modes(500, 2)
    new = draws(fitted, test)
    upper, true = new > 0, 1 / (1 + np.exp(-1.5 * test["z2"].to_numpy()))
    # The share of the upper mode in each row, over 40 draws, and the place of the modes.
    assert np.abs(upper.mean(axis=0) - true).mean() < 3 * np.sqrt(0.25 / 40)
    centre = 3 + 0.5 * test["z1"].to_numpy()
    off = np.where(upper, new - centre, new + centre)
    assert abs(off.mean()) < 0.1
    assert off.std() == pytest.approx(0.4, rel=0.15)


def test_rows_with_unknown_values_get_values_too(fitted: Any) -> None:
    test = two_modes(50, 3)
    hidden = ignoring_own_values(fitted.learned["x"])
    assert all(mode.retention == 0 for mode in hidden.modes)
    assert hidden.probabilities.kept == 0
    assert np.isfinite(draws(fitted, test, 2)).all()


def test_rounded_values_stay_values_of_training_rows() -> None:
    train = two_modes(N, 4, rounded=True)
    fitted = sg.samplers.Auto(candidates=["separate_modes"]).fit(train, ["x"])
    assert fitted.choices["x"].selected == "separate_modes"
    assert set(np.unique(draws(fitted, two_modes(100, 5, rounded=True), 3))) <= set(train["x"])


@pytest.mark.parametrize("kind", ["normal", "exponential", "whole", "atom", "few", "constant"])
def test_one_mode_has_no_border(kind: str) -> None:
    rng = np.random.default_rng(6)
    values = {
        "normal": rng.standard_normal(N),
        "exponential": rng.exponential(size=N),
        "whole": rng.poisson(30, N).astype(float),
        "atom": np.where(rng.random(N) < 0.3, 0.0, 5 + rng.standard_normal(N)),
        "few": np.concatenate([rng.standard_normal(30), 9 + rng.standard_normal(30)]),
        "constant": np.ones(N),
    }[kind]
    assert not len(mode_borders(values))


def test_borders_lie_between_modes() -> None:
    rng = np.random.default_rng(7)
    values = np.concatenate([centre + 0.5 * rng.standard_normal(300) for centre in (-3.0, 0.0, 4.0)])
    borders = mode_borders(values)
    assert len(borders) == 2
    assert -2.5 < borders[0] < -0.8
    assert 1.0 < borders[1] < 3.0


def test_modes_that_other_columns_predict_are_not_separate() -> None:
    predicted, spreads = np.tile([-3.0, 3.0], (100, 1)), np.ones(2)
    certain = np.eye(2)[np.arange(100) % 2]
    assert separation(predicted, spreads, certain) == 0
    assert separation(predicted, spreads, np.full((100, 2), 0.5)) == pytest.approx(3.0)


def test_score_of_a_mixture_is_that_of_its_values() -> None:
    rng = np.random.default_rng(8)
    residuals = [np.repeat(rng.standard_normal(), 5), np.repeat(rng.standard_normal(), 5)]
    predicted, shares, x = rng.standard_normal((6, 2)), np.tile([0.3, 0.7], (6, 1)), rng.standard_normal(6)
    points = predicted + np.array([residuals[0][0], residuals[1][0]])
    expected = (shares * np.abs(points - x[:, None])).sum(axis=1) - 0.3 * 0.7 * np.abs(np.diff(points, axis=1))[:, 0]
    np.testing.assert_allclose(mixture_crps(x, predicted, residuals, shares), expected)


def test_residuals_have_the_predicted_spread() -> None:
    rng = np.random.default_rng(9)
    z = rng.standard_normal((2 * N, 2))
    rows = pd.DataFrame(
        {"x": z[:, 0] + np.exp(0.8 * z[:, 1]) * rng.standard_normal(2 * N), "z1": z[:, 0], "z2": z[:, 1]}
    )
    fitted = sg.samplers.Auto().fit(rows.head(N), ["x"])
    assert fitted.choices["x"].selected == "scaled_subgroups"
    test = rows.tail(N)
    spread = (draws(fitted, test) - test["z1"].to_numpy()).std(axis=0)
    slope, _ = np.polyfit(test["z2"], np.log(spread), 1)
    # The logarithm of the spread is regressed on 1,000 residuals: standard error 1.1 / sqrt(1000) = 0.035.
    assert slope == pytest.approx(0.8, abs=0.12)


def test_modes_far_apart_and_parts_without_doubt_divide_by_nothing() -> None:
    rng = np.random.default_rng(10)
    values = np.where(rng.random(20_000) < 0.12, 1000.0, 0.0) + 0.01 * rng.standard_normal(20_000)
    values[:400] += 5000.0
    assert np.isfinite(mode_borders(values)).all()
    certain = PartProbabilities(np.array([1.0, 0.0])).held_out(
        read_table(pd.DataFrame({"x": np.ones(2)})), np.zeros(2, int), np.zeros(2)
    )
    np.testing.assert_allclose(certain, [[1.0, 0.0]] * 2)
