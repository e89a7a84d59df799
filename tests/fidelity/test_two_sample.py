"""Statistics of fidelity checks: AUC of pairs, held-out predictions, and the paired MMD."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from subgrove._scoring.two_sample import (
    PairedRows,
    Points,
    TargetColumns,
    auc_and_variance,
    paired_mmd,
    predict_by_halves,
)

RNG = np.random.default_rng(0)


def test_auc_equals_that_of_scikit_learn() -> None:
    real, resampled = RNG.normal(size=80).round(1), RNG.normal(0.5, 1, size=80).round(1)
    expected = roc_auc_score(np.repeat([0, 1], 80), np.concatenate([real, resampled]))
    assert auc_and_variance(real, resampled)[0] == pytest.approx(expected, rel=1e-12)


def test_variance_of_the_auc_is_that_over_samples() -> None:
    # 2000 areas: their variance has a relative error of sqrt(2 / 2000) = 3 %, the mean of the estimates a smaller one.
    found = []
    for _ in range(2000):
        common = RNG.normal(size=60)
        found.append(auc_and_variance(common + RNG.normal(size=60), common + RNG.normal(0.3, 1, size=60)))
    areas, variances = np.array(found).T
    assert variances.mean() == pytest.approx(areas.var(), rel=0.12)


def test_held_out_predictions_do_not_use_the_row_itself() -> None:
    X = RNG.normal(size=(100, 3))
    y = RNG.normal(size=(100, 1))
    changed = y.copy()
    changed[7] += 1000
    halves = np.array_split(RNG.permutation(100), 2)
    for before, after in zip(
        predict_by_halves(Points.of(X), y, (halves[0], halves[1]), 1),
        predict_by_halves(Points.of(X), changed, (halves[0], halves[1]), 1),
        strict=True,
    ):
        assert after[7] == pytest.approx(before[7], abs=1e-6)


def test_residuals_of_labels_are_predicted_probabilities() -> None:
    labels = np.array([0.0, 1.0, 1.0, 2.0])
    points = Points(np.empty((4, 0)), labels[:, None])
    outputs = TargetColumns.of(points)
    said = np.tile([0.1, 0.2, 0.7, 0.0], (4, 1))
    np.testing.assert_allclose(outputs.residuals(points, said)[:, -1], [0.1, 0.2, 0.2, 0.7])
    strange = Points(np.empty((4, 0)), np.full((4, 1), -2.0))
    np.testing.assert_allclose(outputs.matrix(strange), np.tile([0, 0, 0, 1.0], (4, 1)))


def test_paired_mmd_is_the_mean_over_pairs_of_rows() -> None:
    x, drawn, said = RNG.normal(size=(3, 30, 1))
    found = paired_mmd(PairedRows(Points.of(said), Points.of(x), Points.of(drawn)), [said])
    unit = said / said.std()
    squared = (unit - unit.T) ** 2 + (x - x.T) ** 2
    gamma = 0.5 / np.median(squared[::4])
    terms = [
        np.exp(-gamma * (unit[i] - unit[j]) ** 2)
        * sum(
            sign * np.exp(-gamma * (a[i] - b[j]) ** 2)
            for a, b, sign in ((x, x, 1), (drawn, drawn, 1), (x, drawn, -1), (drawn, x, -1))
        )
        for i in range(30)
        for j in range(30)
        if i != j
    ]
    assert found.squared == pytest.approx(float(np.mean(terms)), rel=1e-4)


def test_marginal_bound_is_the_mean_over_marginal_draws() -> None:
    differences = []
    for _ in range(300):
        x, fresh = RNG.normal(size=(2, 60, 1))
        said = x + RNG.normal(size=(60, 1))
        found = paired_mmd(PairedRows(Points.of(said), Points.of(x), Points.of(fresh)), [said])
        differences.append((found.squared - found.marginal, found.marginal))
    gap, bound = np.array(differences).T
    assert abs(gap.mean()) < 3 * gap.std() / np.sqrt(300)
    assert gap.std() / np.sqrt(300) < 0.05 * bound.mean()
