"""The dependence of the bike features comes out as in the paper's table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import subgrove as sg

# Table "Percentage of loss explained" in the section "Analyzing Feature Dependence".
PUBLISHED = {
    "season": 45,
    "yr": 8,
    "holiday": 29,
    "weekday": 14,
    "temp": 66,
    "hum": 43,
    "work": 100,
    "weather": 46,
    "wind": 12,
}
SPLITS = 12


@pytest.fixture(scope="module")
def percent() -> pd.DataFrame:
    """A row for each split of the data, a column for each feature."""
    lines = []
    for seed in range(SPLITS):
        train, _ = sg.datasets.bike(split=0.7, random_state=seed)
        found = sg.dependence(train.X, n_trees=100, random_state=seed)
        lines.append({each.feature: 100 * each.explained for each in found.found})
    return pd.DataFrame(lines)


@pytest.mark.parametrize("feature", PUBLISHED)
def test_the_mean_over_splits_is_within_8_points_of_the_published_share(percent: pd.DataFrame, feature: str) -> None:
    # The published number is one draw. Draws spread by 1 to 6 points (holiday, which some 14 days are, by 16), and the
    # mean of 12 by a third of that.
    assert percent[feature].mean() == pytest.approx(PUBLISHED[feature], abs=8)


@pytest.mark.parametrize("feature", PUBLISHED)
def test_the_published_share_is_among_what_splits_give(percent: pd.DataFrame, feature: str) -> None:
    away = abs(percent[feature].mean() - PUBLISHED[feature])
    # One draw beside the mean of 12: three standard deviations of the difference.
    assert away <= 3 * percent[feature].std() * np.sqrt(1 + 1 / SPLITS) + 0.5  # published numbers are rounded


def test_work_is_reported_by_weekday_and_holiday() -> None:
    train, _ = sg.datasets.bike(split=0.7, random_state=1)
    (found,) = sg.dependence(train.X, features="work", n_trees=100, random_state=1).found
    assert found.predictors == ("weekday", "holiday")
    assert found.explained > 0.98
