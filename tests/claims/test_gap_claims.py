"""The gap in closed form: for a linear model and normal features, importance given S is 2 beta^2 Var(x | S).

The sampler of these tests knows the truth: it draws from the normal distribution of a column given the columns in
`given`. So every step from marginal to conditional is known, along an order and in the mean over all orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg

Floats = npt.NDArray[np.float64]
NAMES = ["x", "a", "b", "c", "d"]
BETA = np.array([1.5, -1.0, 0.5, 0.0, 2.0])
LOADINGS = np.array(
    [[0.9, 0.5, 0.3, 0.0], [0.8, 0.0, 0.0, 0.2], [0.5, 0.5, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0], [0, 0, 0.7, 0]]
)
COVARIANCE = LOADINGS @ LOADINGS.T + np.diag([0.3, 0.4, 0.5, 0.6, 0.5])


def conditional(given: list[int]) -> tuple[Floats, float]:
    """Weights of the given columns in the mean of x, and the variance of x given them."""
    if not given:
        return np.zeros(0), float(COVARIANCE[0, 0])
    weights = np.linalg.solve(COVARIANCE[np.ix_(given, given)], COVARIANCE[given, 0])
    return weights, float(COVARIANCE[0, 0] - weights @ COVARIANCE[given, 0])


def truth(given: Any) -> float:
    return 2 * float(BETA[0]) ** 2 * conditional(sorted(NAMES.index(name) for name in given))[1]


@dataclass(frozen=True)
class Truth:
    """Draws x from its true distribution given some columns; None stands for all others."""

    given: list[str] | None = None

    def fit(self, X: Any, features: Any) -> Truth:
        return self

    def sample(self, X: Any, feature: str, rngs: Any) -> Iterator[Floats]:
        assert feature == "x"
        names = NAMES[1:] if self.given is None else self.given
        weights, variance = conditional([NAMES.index(name) for name in names])
        mean = X[names].to_numpy() @ weights
        return (mean + np.sqrt(variance) * rng.normal(size=len(X)) for rng in rngs)


def model(X: Any) -> Any:
    return np.asarray(X, dtype=np.float64) @ BETA


def gap_of(n: int, n_repeats: int, seed: int, *, average: bool = False) -> sg.Gap:
    rng = np.random.default_rng(seed)
    values = rng.multivariate_normal(np.zeros(5), COVARIANCE, size=n)
    X = pd.DataFrame(values, columns=NAMES)
    y = model(X) + rng.normal(size=n)
    options: dict[str, Any] = {"features": ["x"], "n_repeats": n_repeats, "random_state": seed, "check_fidelity": False}
    imp = sg.importance(model, X, y, sampler=Truth(), train=-X[:50], loss="squared_error", **options)
    return imp.explain_gap(
        sg.importance(model, X, y, sampler="marginal", loss="squared_error", **options), "x", average=average
    )


def true_steps(order: tuple[str, ...]) -> list[float]:
    return [truth(order[:at]) - truth(order[: at + 1]) for at in range(len(order))]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_steps_of_a_linear_model_are_known(seed: int) -> None:
    """Each of 4 steps within 4 of its own standard errors (test rows and draws): wrong once in 4,000 runs."""
    gap = gap_of(20_000, 20, seed)
    assert gap.kind == "sampler"
    assert set(gap.columns) == set(NAMES[1:])
    for part, expected in zip(gap.parts, true_steps(gap.columns), strict=True):
        assert abs(part.step - expected) < 4 * part.noise, part
        assert part.noise < 0.1  # steps are up to 3, so that this is a test
    assert abs(gap.parts[0].step) > 10 * gap.parts[0].noise
    assert abs(gap.steps["step"].sum() - (gap.marginal - gap.conditional)) <= 1e-12 * gap.marginal
    assert gap.marginal == pytest.approx(truth([]), rel=0.05)
    assert gap.conditional == pytest.approx(truth(NAMES[1:]), rel=0.05)


def test_steps_in_the_mean_over_orders_are_known() -> None:
    """Shapley values of 2 beta^2 Var(x | S), within 4 standard errors each."""
    gap = gap_of(20_000, 20, 4, average=True)
    orders = list(permutations(NAMES[1:]))
    expected = dict.fromkeys(NAMES[1:], 0.0)
    for order in orders:
        for name, step in zip(order, true_steps(order), strict=True):
            expected[name] += step / len(orders)
    assert gap.orders == "all orders"
    for part in gap.parts:
        assert abs(part.step - expected[part.column]) < 4 * part.noise, part
        assert part.noise < 0.1
    assert abs(gap.steps["step"].sum() - (gap.marginal - gap.conditional)) <= 1e-12 * gap.marginal


def test_noise_of_steps_is_as_large_as_they_say() -> None:
    """95 % intervals of steps cover the truth in 95 % of 300 samples; 3 standard deviations of that share are 3.8 %."""
    runs = 300
    covered = []
    for seed in range(runs):
        gap = gap_of(200, 5, 100 + seed)
        for part, expected in zip(gap.parts, true_steps(gap.columns), strict=True):
            covered.append(abs(part.step - expected) < 1.96 * part.noise)
    share = np.mean(covered)
    assert 0.912 <= share <= 0.988, share
