"""Level shifts: probabilities of a sparse multinomial model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Donors
from subgrove._data.table import read_table
from subgrove._regress.gram import FoldGrams
from subgrove._regress.multinomial import _RIDGE, MultinomialFit, _fit, _softmax, fit_sparse_multinomial
from subgrove.samplers.predicted_probabilities import LevelSampler


def frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    scores = np.column_stack([1.5 * z[:, 0], -1.5 * z[:, 0] + z[:, 1], np.zeros(n)])
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    level = (rng.random((n, 1)) > shares.cumsum(axis=1)).sum(axis=1)
    kind = np.array(["cold", "warm", "mild"])[np.minimum(level, 2)]
    return pd.DataFrame({"kind": kind, "z0": z[:, 0], "z1": z[:, 1], "z2": z[:, 2], "size": level % 2})


TRAIN = frame(1500, 0)
TABLE = read_table(TRAIN)


def found(
    X: pd.DataFrame = TRAIN, feature: str = "kind", given: tuple[str, ...] = ("z0", "z1", "z2")
) -> MultinomialFit:
    table = read_table(X)
    return fit_sparse_multinomial(FoldGrams.of(table, 0), table.series(feature), given)


def donors(change: Any) -> Rows:
    assert isinstance(change, Donors)
    return change.rows


def test_columns_that_matter_are_found_and_reported() -> None:
    shift = found().predictor
    assert shift.columns[:2] == ("z0", "z1")
    assert shift.levels == ("cold", "mild", "warm")
    assert shift.text().startswith("kind depends on z0 (more cold, less warm), z1 (more warm, less ")


def test_probabilities_sum_to_one_and_are_those_of_the_data() -> None:
    shares = found().predictor.predict(TABLE)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for k, level in enumerate(("cold", "mild", "warm")):
        # With an intercept, mean probabilities of training rows are their shares.
        assert shares[:, k].mean() == pytest.approx((TRAIN["kind"] == level).mean(), abs=1e-4)
    near = found().predictor.predict(read_table(TRAIN.assign(z0=2.0, z1=0.0)))
    true = np.exp([3.0, 0.0, -3.0]) / np.exp([3.0, 0.0, -3.0]).sum()
    np.testing.assert_allclose(near[0], true, atol=0.06)


def test_fit_is_that_of_scikit_learn_with_the_same_penalty() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    code = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    matrix: Floats = np.hstack([np.ones((200, 1)), X])
    ours = _softmax((matrix @ _fit(matrix, code, 2)).T).T
    peer = LogisticRegression(C=1 / _RIDGE, tol=1e-10, max_iter=10_000).fit(X, code)
    # Here the intercept costs a thousandth as well.
    np.testing.assert_allclose(ours, peer.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("start", [None, "far"])
def test_fit_is_the_least_cost_where_whole_steps_of_newton_lead_away(start: str | None) -> None:
    """Days of the week by two indicators that rule most of them out: whole steps go round in circles there."""
    X = sg.datasets.bike().X
    day = pd.factorize(X["weekday"], sort=True)[0]
    indicators = np.column_stack([X["work"] == "WORKING DAY", X["holiday"] == "NO HOLIDAY"]).astype(float)
    scaled = (indicators - indicators.mean(axis=0)) / indicators.std(axis=0)
    matrix: Floats = np.hstack([np.ones((len(X), 1)), scaled])
    given = None if start is None else np.hstack([np.full((3, 6), 8.0), np.zeros((3, 1))])
    b = _fit(matrix, day, 7, given)
    shares = _softmax((matrix @ b).T)[:6]
    slope = matrix.T @ ((day[:, None] == np.arange(6)) - shares.T)
    slope -= np.array([[1e-3], [_RIDGE], [_RIDGE]]) * b[:, :6]
    np.testing.assert_allclose(slope, 0, atol=1e-5)


def test_separated_levels_have_a_finite_fit() -> None:
    x = np.linspace(-1, 1, 100)
    b = _fit(np.column_stack([np.ones(100), x]), (x > 0).astype(int), 2)
    assert np.isfinite(b).all()
    assert np.abs(b).max() < 50


def test_without_a_column_there_are_shares_however_many_levels() -> None:
    levels = np.random.default_rng(2).integers(0, 1200, 3000).astype(str)
    many = found(TRAIN.head(1000).assign(kind=levels[:1000]))
    assert many.predictor.parts == ()
    assert many.predictor.text() == "kind has the same probabilities in all rows"
    shares = many.predictor.predict(read_table(TRAIN.head(1).assign(kind="0")))
    np.testing.assert_allclose(shares[0], np.unique(levels[:1000], return_counts=True)[1] / 1000, rtol=1e-9)


def test_a_number_of_few_values_is_reported_by_its_values() -> None:
    assert found(feature="size").predictor.levels == ("0", "1")


def test_a_constant_has_one_level() -> None:
    one = found(TRAIN.assign(kind="same"))
    np.testing.assert_array_equal(one.predictor.predict(TABLE), 1.0)


def test_held_out_scores_are_proper_and_larger_than_those_of_fitted_rows() -> None:
    one = found(TRAIN.head(200))
    rows = np.arange(200)
    held_out = one.held_out_log_scores([(rows[:100], rows[100:]), (rows[100:], rows[:100])])
    shares = one.predictor.predict(read_table(TRAIN.head(200)))
    fitted = -np.log(shares[np.arange(200), one.code])
    assert held_out.mean() > fitted.mean()
    counts = np.bincount(one.code) / 200
    assert held_out.mean() < -(counts * np.log(counts)).sum()  # and better than without columns


def test_draws_have_the_probabilities() -> None:
    series = TABLE.series("kind")
    one = LevelSampler.of(found(), series, np.arange(1500), TABLE.columns)
    n_repeats, test = 400, TRAIN.head(30)
    resampled = one.resample(read_table(test), ("kind",), Streams(0, "kind", n_repeats), exact=False)
    drawn = np.array([TRAIN["kind"].to_numpy()[donors(change["kind"])] for change in resampled.draws()])
    shares = one.predictor.predict(read_table(test))
    for k, level in enumerate(found().predictor.levels):
        # Standard error of a share at most 0.5 / sqrt(400) = 0.025; 90 of them.
        np.testing.assert_allclose((drawn == level).mean(axis=0), shares[:, k], atol=4 * 0.025)


def test_exact_steps_have_the_probabilities_of_other_levels() -> None:
    one = LevelSampler.of(found(), TABLE.series("kind"), np.arange(1500), TABLE.columns)
    resampled = one.resample(TABLE, ("kind",), Streams(0, "kind", 5), exact=True)
    assert resampled.exact is not None
    changed = np.zeros(1500)
    for step in resampled.exact.terms():
        changed[step.rows] += step.weights
    own = one.predictor.predict(TABLE)[np.arange(1500), found().code]
    np.testing.assert_allclose(changed, 1 - own, atol=1e-9)
