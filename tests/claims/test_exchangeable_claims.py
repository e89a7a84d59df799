"""Shifted redraws and the old values are exchangeable as far as two moments go, although shifts are estimated.

In the scenario "multilinear" x1 has variance 34, and 25 given the others, so that two values of the same row are 50
apart in mean square. Shifts are fitted to 200 rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats

RUNS = 40
WITHIN, ALL = 25.0, 34.0


@cache
def moments(p: int, keep: Any) -> Floats:
    """For each run: mean squared distance of new and old values, their variances' difference, and the share kept."""
    scenario = sg.simulate.scenario("multilinear", p=p)
    found = []
    for run in range(RUNS):
        train, test = scenario.sample(200, random_state=2 * run), scenario.sample(200, random_state=2 * run + 1)
        fitted = sg.samplers.ShiftedSubgroups(residual_retention=keep).fit(train.X, ["x1"])
        own = np.asarray(test.X["x1"], dtype=float)
        new = np.array([np.asarray(column) for column in fitted.sample(test.X, "x1", Streams(run, "x1", 5))])
        found.append([((new - own) ** 2).mean(), new.var(axis=1).mean() - own.var(), fitted.residual_retention["x1"]])
    return np.array(found)


def margin(values: Floats) -> float:
    """Four standard errors of the mean over runs."""
    return float(4 * values.std() / np.sqrt(RUNS))


@pytest.mark.parametrize("p", [10, 90])
def test_old_and_new_values_are_as_far_apart_as_two_values_of_a_row(p: int) -> None:
    distance = moments(p, "auto")[:, 0]
    assert distance.mean() == pytest.approx(2 * WITHIN, abs=margin(distance))
    assert margin(distance) < 0.07 * 2 * WITHIN  # or the test could not fail


@pytest.mark.parametrize(("p", "excess"), [(10, 1.5), (90, 6.0)])
def test_without_keeping_they_are_too_far_apart(p: int, excess: float) -> None:
    distance = moments(p, 0)[:, 0]
    assert distance.mean() > 2 * WITHIN + excess
    assert (moments(p, "auto")[:, 0] < distance).mean() > 0.9


def test_new_values_vary_as_old_ones_do_where_terms_are_shrunk() -> None:
    difference = moments(90, "auto")[:, 1]
    assert difference.mean() == pytest.approx(0, abs=margin(difference))
    assert margin(difference) < 0.1 * ALL


def test_and_by_twice_the_error_of_the_shift_more_where_they_are_not() -> None:
    """Nine terms of least squares: an error of variance 25 * 9 / 200 in the shift, which varies by as much more."""
    difference = moments(10, "auto")[:, 1]
    assert -margin(difference) < difference.mean() < 2 * 25 * 9 / 200 + margin(difference)


def test_more_is_kept_where_more_is_to_be_estimated() -> None:
    few, many = (moments(p, "auto")[:, 2].mean() for p in (10, 90))
    assert 0.02 < few < 0.15
    assert few + 0.05 < many < 0.4
