"""The transformation model of one sample: an exact maximum, a proper distribution, safe on any data."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from subgrove._core.weights import FrequencyWeights
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees import FittedTransformation, TransformationModel

Floats = npt.NDArray[np.float64]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


SAMPLES: dict[str, Floats] = {
    "normal": rng(1).normal(2.0, 3.0, 400),
    "skewed": rng(2).gamma(2.0, size=300),
    "two humps": np.r_[rng(3).normal(-3, 0.5, 150), rng(4).normal(3, 1.0, 150)],
    "uniform": rng(5).uniform(size=200),
    "cauchy": rng(6).standard_cauchy(500),
    "ties": np.round(rng(7).normal(size=300)),
    "two values": np.repeat([0.0, 1.0], 20),
    "two uneven values": np.repeat([0.0, 1.0], [99, 1]),
    "two rows": np.array([0.0, 1.0]),
    "three rows": np.array([0.0, 1.0, 5.0]),
    "concentrated": np.r_[1.0 + 1e-9 * rng(8).uniform(size=99), 2.0],
    "concentrated inside": np.r_[-1.0, 1e-9 * rng(9).normal(size=98), 1.0],
    "concentrated to the last digit": np.r_[np.full(99, 1.0), 2.0],
    "exponentials": np.exp(5 * rng(10).normal(size=300)),
    "cubes of cauchy": rng(11).standard_cauchy(2000) ** 3,
    "far from 0": 1e15 + np.round(100 * rng(12).normal(size=300)),
}
COUNTS: dict[str, npt.NDArray[np.int64]] = {
    "poisson": rng(1).poisson(3.0, 300),
    "negative": rng(2).integers(-5, 6, 200),
    "two values": np.repeat([0, 1], 20),
    "two uneven values": np.repeat([0, 1], [99, 1]),
    "three rows": np.array([0, 1, 5]),
    "gap": np.repeat([0, 1, 50], [40, 40, 20]),
    "outlier": np.r_[rng(3).integers(0, 5, 200), 10**9],
    "wide": rng(4).integers(0, 10**12, 200),
    "huge": rng(5).integers(-(2**62), 2**62, 200),
}


def of(samples: dict[str, Any]) -> pytest.MarkDecorator:
    """The test on each sample."""
    return pytest.mark.parametrize("x", list(samples.values()), ids=list(samples))


each_sample = of(SAMPLES)
each_count = of(COUNTS)


def slopes_by_steps(model: FittedTransformation, x: Any) -> Floats:
    """Derivatives of the mean log-likelihood by theta_0 and by each step, in units of the range of theta."""
    by_step = np.cumsum(model.scores(x).sum(axis=0)[::-1])[::-1]
    slopes: Floats = by_step * (model.theta[-1] - model.theta[0]) / len(x)
    return slopes


def wide_grid(model: FittedTransformation, n: int = 400_001) -> Floats:
    """A grid from far below the support to far above it."""
    low, high = model.quantile([1e-14, 1 - 1e-14])
    return np.linspace(low, high, n)


# Against closed forms.


def test_order_1_is_the_normal_distribution_with_mean_and_spread_of_the_sample() -> None:
    x = SAMPLES["skewed"]
    normal = stats.norm(x.mean(), x.std())
    model = TransformationModel(order=1).fit(x)
    grid = np.linspace(-3.0, 12.0, 50)
    np.testing.assert_allclose(model.cdf(grid), normal.cdf(grid), rtol=1e-8)
    np.testing.assert_allclose(model.pdf(grid), normal.pdf(grid), rtol=1e-8)


def test_order_1_has_the_log_likelihood_of_the_normal_distribution() -> None:
    x = SAMPLES["skewed"]
    model = TransformationModel(order=1).fit(x)
    assert model.log_likelihood == pytest.approx(stats.norm(x.mean(), x.std()).logpdf(x).sum(), rel=1e-12)


@each_sample
def test_log_likelihood_does_not_fall_with_the_order(x: Floats) -> None:
    # A polynomial with ascending coefficients has ascending coefficients as one of a higher order, too.
    fits = [TransformationModel(order=order).fit(x).log_likelihood for order in range(1, 9)]
    assert (np.diff(fits) >= -1e-8 * np.abs(fits[1:])).all()


@pytest.mark.parametrize("order", [12, 15, 20, 30, 50])
def test_high_order_is_fitted_or_rejected(order: int) -> None:
    x = SAMPLES["normal"]
    try:
        model = TransformationModel(order=order).fit(x)
    except (InputError, ParameterError):
        return
    assert model.log_likelihood >= TransformationModel(order=10).fit(x).log_likelihood


# The maximum.


@each_sample
@pytest.mark.parametrize("order", [1, 3, 5, 8])
def test_coefficients_ascend(x: Floats, order: int) -> None:
    theta = TransformationModel(order=order).fit(x).theta
    assert len(theta) == order + 1
    assert (np.diff(theta) >= 0).all()


@pytest.mark.parametrize(("name", "order"), [("normal", 2), ("skewed", 2), ("uniform", 2), ("another normal", 5)])
def test_scores_sum_to_0_where_no_constraint_is_active(name: str, order: int) -> None:
    x = SAMPLES.get(name, rng(0).normal(size=300))
    model = TransformationModel(order=order).fit(x)
    assert (np.diff(model.theta) > 1e-3).all()
    scores = model.scores(x)
    assert (np.abs(scores.sum(axis=0)) <= 1e-7 * np.abs(scores).sum(axis=0)).all()


@each_sample
@pytest.mark.parametrize("order", [1, 3, 5, 8])
def test_no_change_of_the_coefficients_raises_the_likelihood(x: Floats, order: int) -> None:
    """The conditions of Karush, Kuhn and Tucker: slope 0 along free steps, none upwards along steps at 0."""
    model = TransformationModel(order=order).fit(x)
    slopes, free = slopes_by_steps(model, x), np.r_[True, np.diff(model.theta) > 0]
    assert np.abs(slopes[free]).max() <= 1e-7
    assert slopes[~free].max(initial=0.0) <= 1e-7


def test_scores_are_the_derivatives_of_the_log_density() -> None:
    x, step = SAMPLES["skewed"], 1e-6
    model = TransformationModel().fit(x)
    for at in range(6):
        up, down = (np.array(model.theta) + sign * step * np.eye(6)[at] for sign in (1, -1))
        moved = [
            FittedTransformation(tuple(theta), model.support, model.log_likelihood).logpdf(x) for theta in (up, down)
        ]
        np.testing.assert_allclose(model.scores(x)[:, at], (moved[0] - moved[1]) / (2 * step), atol=1e-5, rtol=1e-5)


def test_maximum_with_active_constraints_beats_random_neighbours() -> None:
    x = SAMPLES["two humps"]
    model = TransformationModel(order=8).fit(x)
    assert (np.diff(model.theta) == 0).any()
    generator = rng(1)
    for _ in range(200):
        theta = np.sort(np.array(model.theta) + generator.normal(scale=10 ** generator.uniform(-4, 0), size=9))
        other = FittedTransformation(tuple(theta), model.support, 0.0)
        assert other.logpdf(x).sum() <= model.log_likelihood


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-3), (100.0, 7.0), (-3.0, 1e6)])
@of({name: SAMPLES[name] for name in ["normal", "two humps", "cauchy"]})
def test_origin_and_scale_do_not_matter(x: Floats, shift: float, scale: float) -> None:
    one, other = TransformationModel().fit(x), TransformationModel().fit(shift + scale * x)
    np.testing.assert_allclose(other.cdf(shift + scale * x), one.cdf(x), atol=1e-6)
    assert other.log_likelihood == pytest.approx(one.log_likelihood - len(x) * np.log(scale), rel=1e-6)


# A distribution.


@of({name: SAMPLES[name] for name in ["normal", "skewed", "two humps", "uniform", "ties"]})
@pytest.mark.parametrize("order", [1, 5])
def test_density_integrates_to_1_with_its_linear_continuation(x: Floats, order: int) -> None:
    model = TransformationModel(order=order).fit(x)
    grid = wide_grid(model)
    assert grid[0] < x.min()
    assert grid[-1] > x.max()
    assert trapezoid(model.pdf(grid), grid) == pytest.approx(1.0, abs=1e-6)


@of({name: SAMPLES[name] for name in ["normal", "skewed", "two humps", "uniform"]})
def test_density_is_the_derivative_of_the_distribution_function(x: Floats) -> None:
    model = TransformationModel().fit(x)
    grid = np.linspace(x.min() - 1, x.max() + 1, 100_001)
    slopes = np.diff(model.cdf(grid)) / np.diff(grid)
    np.testing.assert_allclose(slopes, model.pdf((grid[1:] + grid[:-1]) / 2), atol=1e-4)


@of({name: SAMPLES[name] for name in ["normal", "skewed", "uniform", "three rows"]})
def test_quantile_is_the_inverse_of_the_distribution_function(x: Floats) -> None:
    model = TransformationModel().fit(x)
    p = np.r_[1e-10, 1e-4, np.linspace(0.01, 0.99, 99), 1 - 1e-4, 1 - 1e-10]
    np.testing.assert_allclose(model.cdf(model.quantile(p)), p, rtol=1e-9)


def test_quantiles_of_0_and_1_are_infinite() -> None:
    assert TransformationModel().fit(SAMPLES["normal"]).quantile([0.0, 1.0]).tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan])
def test_quantile_of_no_probability_is_rejected(p: float) -> None:
    with pytest.raises(ParameterError, match="p must be probabilities from 0 to 1"):
        TransformationModel().fit(SAMPLES["normal"]).quantile(p)


def test_distribution_function_reaches_0_and_1() -> None:
    model = TransformationModel().fit(SAMPLES["normal"])
    assert model.cdf([-np.inf, -1e300, 1e300, np.inf]).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_density_vanishes_far_out() -> None:
    model = TransformationModel().fit(SAMPLES["normal"])
    assert model.pdf([-np.inf, -1e300, 1e300, np.inf]).tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_shape_of_the_argument_is_preserved(shape: tuple[int, ...]) -> None:
    model, values = TransformationModel().fit(SAMPLES["normal"]), np.full(shape, 0.5)
    for result in (model.cdf(values), model.pdf(values), model.logpdf(values), model.quantile(values)):
        assert np.shape(result) == shape


@of({name: SAMPLES[name] for name in ["normal", "skewed", "two humps"]})
def test_sample_has_the_distribution_of_the_model(x: Floats) -> None:
    # One test at a fixed seed; a correct sampler has a p-value below 0.001 for one seed in a thousand.
    model = TransformationModel().fit(x)
    assert stats.kstest(model.cdf(model.sample(5000, rng(0))), "uniform").pvalue > 0.001


def test_sample_follows_its_seed() -> None:
    model = TransformationModel().fit(SAMPLES["normal"])
    np.testing.assert_array_equal(model.sample(5, 0), model.sample(5, rng(0)))
    assert (model.sample(5, 0) != model.sample(5, 1)).all()


def test_outside_the_support_the_transformation_is_a_line() -> None:
    x = SAMPLES["skewed"]
    model = TransformationModel().fit(x)
    for outside in (np.linspace(x.min() - 5, x.min(), 9), np.linspace(x.max(), x.max() + 5, 9)):
        np.testing.assert_allclose(np.diff(model.transform(outside), 2), 0.0, atol=1e-12)


@pytest.mark.parametrize("support", [(-50.0, 60.0), (0.0, 4.0), (-1000.0, 1000.0), (1.5, 1.6)])
def test_density_integrates_to_1_on_any_support_around_the_data(support: tuple[float, float]) -> None:
    model = TransformationModel(support=support).fit(SAMPLES["normal"])
    grid = wide_grid(model)
    assert np.isfinite(grid).all()
    assert trapezoid(model.pdf(grid), grid) == pytest.approx(1.0, abs=1e-4)


def test_support_away_from_the_data_is_used_or_rejected() -> None:
    # There h is a line: a normal distribution, if it can be fitted at all.
    x = SAMPLES["normal"]
    try:
        model = TransformationModel(support=(100.0, 200.0)).fit(x)
    except InputError as error:
        assert "support" in str(error)  # noqa: PT017  # either way is right, a bare error is not
    else:
        assert model.log_likelihood == pytest.approx(stats.norm(x.mean(), x.std()).logpdf(x).sum(), rel=1e-6)


# Safe on any data.


def check_or_rejection(x: Any, **parameters: Any) -> None:
    """A fit that can be used, or a rejection with a remedy; anything else fails."""
    try:
        model = TransformationModel(**parameters).fit(x)
    except InputError as error:
        assert any(word in str(error) for word in ("Pass", "Rescale", "remove"))  # noqa: PT017  # either is right
        return
    assert np.isfinite(model.log_likelihood)
    assert np.isfinite(model.theta).all()
    values = np.sort(np.asarray(x, dtype=float))
    cdf = model.cdf(values)
    assert ((cdf >= 0) & (cdf <= 1)).all()
    assert (np.diff(cdf) >= 0).all()
    assert np.isfinite(model.scores(x)).all()
    assert not np.isnan(model.sample(100, 0)).any()


@each_sample
@pytest.mark.parametrize("order", [1, 2, 5, 9])
def test_any_sample_is_fitted_or_rejected_with_the_remedy(x: Floats, order: int) -> None:
    check_or_rejection(x, order=order)


@pytest.mark.parametrize("scale", [1e-320, 1e-310, 1e-300, 1e-150, 1e150, 1e300, 1e307])
@of({name: SAMPLES[name] for name in ["normal", "ties", "two values", "cauchy"]})
def test_any_scale_is_fitted_or_rejected_with_the_remedy(x: Floats, scale: float) -> None:
    check_or_rejection(scale * (x / np.abs(x).max()))


@pytest.mark.parametrize(
    "x",
    [
        np.array([0.0, 5e-324]),
        np.array([0.0, 1.0, 1.0 + 2e-16]),
        np.array([-1.7e308, 1.7e308]),
        np.r_[-1.7e308, rng(0).normal(size=50), 1.7e308],
        10.0 ** rng(0).uniform(-300, 300, 200),
        np.r_[np.zeros(50), 5e-324, 1.0],
    ],
    ids=["next to 0", "next to 1", "all floats", "all floats and 0", "all exponents", "denormal step"],
)
def test_limits_of_floats_are_fitted_or_rejected_with_the_remedy(x: Floats) -> None:
    check_or_rejection(x)


@each_count
@pytest.mark.parametrize("order", [1, 2, 5, 9])
def test_any_counts_are_fitted_or_rejected_with_the_remedy(x: npt.NDArray[np.int64], order: int) -> None:
    check_or_rejection(x, order=order)


@pytest.mark.parametrize("x", [[], [1.0], [2.0, 2.0], [np.nan, np.nan], [1.0, np.nan]])
def test_fewer_than_two_values_are_rejected(x: list[float]) -> None:
    with pytest.raises(InputError, match="x"):
        TransformationModel().fit(np.array(x))


def test_missing_values_are_left_out() -> None:
    x = SAMPLES["normal"]
    holes = np.insert(x, [3, 50], np.nan)
    assert TransformationModel().fit(holes) == TransformationModel().fit(x)


# Whole numbers.


def test_integer_dtype_has_the_interval_likelihood_unless_overridden() -> None:
    x = COUNTS["poisson"]
    assert TransformationModel().fit(x) == TransformationModel(likelihood="interval").fit(x.astype(float))
    assert TransformationModel(likelihood="density").fit(x) == TransformationModel().fit(x.astype(float))


@of({name: COUNTS[name] for name in ["poisson", "negative", "three rows", "gap"]})
def test_interval_likelihood_is_that_of_the_probabilities(x: npt.NDArray[np.int64]) -> None:
    # P(x - 1 < X <= x), and P(X <= x) for the smallest value.
    model = TransformationModel().fit(x)
    below = np.where(x == x.min(), 0.0, model.cdf(x - 1.0))
    assert model.log_likelihood == pytest.approx(np.log(model.cdf(x) - below).sum(), rel=1e-9)


def test_interval_likelihood_with_enough_coefficients_gives_the_frequencies() -> None:
    # Three values have two free probabilities; order 5 is enough to meet them.
    x = np.repeat([0, 1, 2], [20, 50, 30])
    np.testing.assert_allclose(TransformationModel().fit(x).cdf([0.0, 1.0]), [0.2, 0.7], atol=1e-6)


@of({name: COUNTS[name] for name in ["poisson", "negative", "three rows", "gap"]})
def test_no_change_of_the_coefficients_raises_the_interval_likelihood(x: npt.NDArray[np.int64]) -> None:
    model = TransformationModel().fit(x)
    slopes, free = slopes_by_steps(model, x), np.r_[True, np.diff(model.theta) > 0]
    assert np.abs(slopes[free]).max() <= 1e-7
    assert slopes[~free].max(initial=0.0) <= 1e-7


@of({name: COUNTS[name] for name in ["poisson", "negative", "gap"]})
def test_sample_of_whole_numbers_is_whole_and_not_below_the_support(x: npt.NDArray[np.int64]) -> None:
    draws = TransformationModel().fit(x).sample(500, 0)
    assert (draws == np.floor(draws)).all()
    assert draws.min() >= x.min()


def test_sample_of_whole_numbers_has_the_frequencies_of_the_model() -> None:
    # The standard error of a frequency of 20,000 draws is at most 0.0036; four of them.
    model = TransformationModel().fit(COUNTS["poisson"])
    draws = model.sample(20_000, 0)
    values = np.arange(8.0)
    assert np.abs((draws[:, None] <= values).mean(axis=0) - model.cdf(values)).max() < 0.0144


# Weights.


@pytest.mark.parametrize("likelihood", ["density", "interval"])
def test_integer_weights_equal_repeated_values(likelihood: Any) -> None:
    x = COUNTS["poisson"] if likelihood == "interval" else SAMPLES["skewed"]
    weights = rng(3).integers(0, 4, len(x))
    model = TransformationModel(likelihood=likelihood)
    one, other = model.fit(x, FrequencyWeights(weights)), model.fit(np.repeat(x, weights))
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-9)


def test_value_of_weight_0_does_not_widen_the_support() -> None:
    x = SAMPLES["normal"]
    weights = np.r_[np.ones(len(x)), 0.0]
    assert TransformationModel().fit(np.r_[x, 1e6], weights) == TransformationModel().fit(x)


def test_weights_do_not_change_the_fit_by_their_scale() -> None:
    x, weights = SAMPLES["skewed"], rng(3).uniform(size=300)
    one, other = TransformationModel().fit(x, weights), TransformationModel().fit(x, 1000 * weights)
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-5)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-9)
