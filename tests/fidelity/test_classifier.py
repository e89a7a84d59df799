"""Held-out AUC of the classifier for resampled against real rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from subgrove._fidelity.compare import _folds, check_classifier, held_out_auc
from subgrove._scoring.two_sample import Points
from subgrove.exceptions import ParameterError


def normal(n: int, seed: int, shift: float = 0.0) -> Points:
    return Points.of(shift + np.random.default_rng(seed).normal(size=(n, 3)))


def test_distant_samples_are_separated() -> None:
    assert held_out_auc(normal(100, 0), normal(100, 1, 3.0), True, 0) > 0.95


def test_auc_of_one_distribution_is_one_half_on_average() -> None:
    # 40 pairs of samples; the mean has the standard error sd / sqrt(40), and 4 of them are allowed.
    found = [held_out_auc(normal(60, 2 * k), normal(50, 2 * k + 1), True, k) for k in range(40)]
    assert np.mean(found) == pytest.approx(0.5, abs=4 * np.std(found) / np.sqrt(40))
    assert np.std(found) < 0.15


class Memory(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Knows the rows that it has seen, and says 0.5 of any other."""

    def fit(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> Memory:
        self.seen_ = {tuple(row): label for row, label in zip(X.tolist(), y.tolist(), strict=True)}
        return self

    def predict_proba(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        second = np.array([self.seen_.get(tuple(row), 0.5) for row in X.tolist()])
        return np.column_stack([1 - second, second])


def test_rows_are_scored_by_a_classifier_of_the_other_fold() -> None:
    assert held_out_auc(normal(30, 0), normal(40, 1, 5.0), Memory(), 0) == 0.5


def test_folds_are_disjoint_and_stratified() -> None:
    folds = _folds(11, 16, np.random.default_rng(0))
    scored = np.concatenate([rows for _, rows in folds])
    assert sorted(scored.tolist()) == list(range(27))
    for learned, rows in folds:
        assert not set(learned.tolist()) & set(rows.tolist())
        assert 5 <= (rows < 11).sum() <= 6
        assert (rows >= 11).sum() == 8


def test_user_classifier_is_not_modified() -> None:
    mine = LogisticRegression()
    assert held_out_auc(normal(50, 0), normal(50, 1, 2.0), mine, 0) > 0.9
    assert not hasattr(mine, "coef_")


def test_the_same_seed_gives_the_same_area() -> None:
    samples = normal(50, 0), normal(50, 1, 0.3)
    assert held_out_auc(*samples, True, 4) == held_out_auc(*samples, True, 4)


def test_auc_of_few_rows_is_nan() -> None:
    assert np.isnan(held_out_auc(normal(9, 0), normal(50, 1), True, 0))


@pytest.mark.parametrize("classifier", ["forest", None, 1, LogisticRegression, object()])
def test_invalid_classifier_raises(classifier: Any) -> None:
    with pytest.raises(ParameterError, match="classifier must be"):
        check_classifier(classifier)


class Own:
    """A classifier that is not of scikit-learn; it may be fitted once."""

    fitted = False

    def fit(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> Own:
        assert not self.fitted
        self.fitted = True
        return self

    def predict_proba(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.column_stack([-X[:, 0], X[:, 0]])


def test_any_object_with_fit_and_predict_proba_is_a_classifier() -> None:
    own = Own()
    assert held_out_auc(normal(100, 0), normal(100, 1, 3.0), own, 0) > 0.9
    assert not own.fitted
