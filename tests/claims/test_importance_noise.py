"""Standard errors of a result agree with the spread of estimates over repeated samples.

x1 ~ N(0, 1) where x0 <= 0 and N(2, 4) elsewhere, the model is f(x) = x1, y = x1 + noise, squared error: the marginal
importance of x1 is 2 Var(x1) = 2 (1 + 2.5) = 7, the conditional one 2 E Var(x1 | x0) = 5, in the first subgroup 2.

Margins: the variance of R values that are about normal has the relative standard deviation sqrt(2 / (R - 1)), 7.1 % at
R = 400. Four of these, and 2 % for terms of the order 1 / n that the standard error leaves out, are 30 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.weights import FrequencyWeights
from subgrove._scoring.feature_result import with_rows
from tests.claims.without_checks import importance

Floats = npt.NDArray[np.float64]
RUNS = 400
MARGIN = 0.30
ROWS = 150


def sample(rng: np.random.Generator, n: int = ROWS) -> tuple[Floats, Floats]:
    X = rng.normal(size=(n, 2))
    X[:, 1] = np.where(X[:, 0] > 0, 2 + 2 * X[:, 1], X[:, 1])
    return X, X[:, 1] + rng.normal(size=n)


def model(X: Floats) -> Floats:
    return X[:, 1]


@cache
def training() -> tuple[Floats, sg.Subgroups]:
    """Other rows, and subgroups with their cut next to 0."""
    X, _ = sample(np.random.default_rng(0), 4000)
    groups = sg.find_subgroups(X, features=["x1"], max_depth=1)
    assert len(groups["x1"]) == 2
    return X[:300], groups


def options(name: str) -> dict[str, Any]:
    train, groups = training()
    if name == "training donors":
        return {"sampler": sg.samplers.SubgroupSampler(groups=groups, donors="train"), "train": train}
    return {"sampler": "marginal" if name == "marginal" else groups}


@dataclass(frozen=True, eq=False)
class Reported:
    """What results reported in many runs: arrays (runs,)."""

    estimate: Floats
    std_error: Floats
    mc_error: Floats
    low: Floats
    high: Floats
    one_part: Floats  # the obvious standard error: the spread of the rows' increases

    def ratio(self, error: Floats) -> float:
        """Mean square of the two errors, over the variance of the estimates."""
        return float((np.mean(error**2) + np.mean(self.mc_error**2)) / self.estimate.var(ddof=1))


def simulate(name: str, n_repeats: int, runs: int = RUNS) -> tuple[Reported, Reported]:
    """Of all rows, and of the first subgroup."""
    rng = np.random.default_rng(1000 + n_repeats)
    lines: tuple[list[Any], list[Any]] = ([], [])
    for run in range(runs):
        X, y = sample(rng)
        result = importance(
            model, X, y, features=["x1"], n_repeats=n_repeats, random_state=run, loss="squared_error", **options(name)
        )
        result = result.with_noise("test rows")
        score = with_rows(result.scores, "the test")[0]
        tables = (result.overall, score.rows[0]), (result.by_subgroup, score.rows[0][score.code == 0])
        for kept, (table, rows) in zip(lines, tables, strict=True):
            line = table.iloc[0]
            one_part = rows.std(ddof=1) / np.sqrt(len(rows))
            kept.append((*line[["estimate", "std_error", "mc_error", "conf_low", "conf_high"]].tolist(), one_part))
    overall, subgroup = (Reported(*np.array(kept, dtype=float).T) for kept in lines)
    return overall, subgroup


def check(reported: Reported, truth: float) -> None:
    assert abs(reported.estimate.mean() - truth) < 4 * reported.estimate.std() / np.sqrt(len(reported.estimate))
    assert abs(reported.ratio(reported.std_error) - 1) < MARGIN


TRUTH = {"marginal": (7.0, 7.0), "subgroups": (5.0, 2.0)}  # of all rows, and of the first subgroup
LIGHT = [("marginal", 2), ("subgroups", 10), ("training donors", 10)]
HEAVY = [("marginal", 10), ("subgroups", 2), ("training donors", 2), ("training donors", 50)]


@pytest.mark.parametrize(("name", "n_repeats"), LIGHT + [pytest.param(*case, marks=pytest.mark.slow) for case in HEAVY])
def test_variance_of_estimates_is_that_of_rows_plus_that_of_draws(name: str, n_repeats: int) -> None:
    overall, subgroup = simulate(name, n_repeats)
    if name == "training donors":  # given rows, so that their own mean and variance are in the expectation
        assert abs(overall.ratio(overall.std_error) - 1) < MARGIN
        assert abs(subgroup.ratio(subgroup.std_error) - 1) < MARGIN
    else:
        check(overall, TRUTH[name][0])
        check(subgroup, TRUTH[name][1])


@pytest.mark.parametrize("name", [pytest.param("marginal", marks=pytest.mark.slow), "subgroups"])
def test_interval_covers_and_the_spread_of_rows_alone_does_not(name: str) -> None:
    """With 50 repeats the draws hardly matter. 400 runs: 95 % +- 4 sqrt(.95 * .05 / 400) = 4.4 %."""
    for reported, truth in zip(simulate(name, 50), TRUTH[name], strict=True):
        check(reported, truth)
        covered = np.mean((reported.low <= truth) & (truth <= reported.high))
        assert abs(covered - 0.95) < 0.045
        # The increase of a row varies with the row as the one redrawn; its part as a donor is left out.
        assert reported.ratio(reported.one_part) < 1 - MARGIN
        naive = np.mean(np.abs(reported.estimate - truth) <= 1.96 * reported.one_part)
        assert naive < 0.905


@pytest.mark.parametrize("size", [pytest.param(4, marks=pytest.mark.slow), 6, pytest.param(12, marks=pytest.mark.slow)])
def test_standard_error_is_not_too_small_in_small_subgroups(size: int) -> None:
    """Exact expectations of samples of few rows, by columns as in test_importance_claims.py.

    For h(i, j) = (x_i - x_j)^2 of normal x: Var U = [4 (n - 2) z1 + 2 z2] / (n (n - 1)) with z1 = 2, z2 = 8. The
    jackknife counts the part of z2 beyond 2 z1 twice over: 1.5, 1.25 and 1.1 of the variance at 4, 6 and 12 rows. The
    spread of influences, not corrected, has ((n - 2) / (n - 1))^2 of it: 0.67, 0.8 and 0.91.
    1600 columns: the mean square error and the variance have relative sd of about 4.5 % together; three of these.
    """
    rng = np.random.default_rng(size)
    tables = []
    for _ in range(20):
        X = rng.normal(size=(size, 80))
        y = X.sum(axis=1)
        tables.append(
            importance(
                lambda X: X.sum(axis=1), X, y, sampler="marginal", n_repeats=size, random_state=0, loss="squared_error"
            ).overall
        )
    table = pd.concat(tables)
    n, z1, z2 = size, 2.0, 8.0
    expected = (
        4 * (n - 1) / (n * (n - 2)) * ((n - 4) * z1 + z2) / (n - 1) / ((4 * (n - 2) * z1 + 2 * z2) / (n * (n - 1)))
    )
    found = np.mean(table["std_error"] ** 2) / table["estimate"].var()
    assert found == pytest.approx(expected, rel=0.14)
    assert found > 1


def support() -> tuple[Floats, Floats, Floats]:
    """Rows of a discrete distribution, and their probabilities."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 2))
    return X, X[:, 1] + 0.5 * rng.normal(size=80), rng.dirichlet(np.ones(80))


@pytest.mark.parametrize("n_repeats", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_weighted_rows_have_the_errors_of_duplicated_rows(n_repeats: int) -> None:
    """150 rows drawn from 80 different ones, once as weights and once repeated; more values than repeats.

    The standard errors are compared over 200 samples: they differ by their own noise, about 10 % a sample.
    """
    X, y, shares = support()
    rng = np.random.default_rng(n_repeats)
    lines = []
    for run in range(200):
        times = rng.multinomial(150, shares)
        kept, repeated = times > 0, np.repeat(np.arange(80), times)
        line: list[float] = []
        for rows, weights in ((kept, FrequencyWeights(times[kept])), (repeated, None)):
            found = importance(
                model, X[rows], y[rows], sample_weight=weights, sampler="marginal", features=["x1"],
                n_repeats=n_repeats, random_state=run, loss="squared_error",
            ).with_noise("test rows")  # fmt: skip
            line += found.overall.loc[0, ["estimate", "std_error", "mc_error"]].tolist()
        lines.append(line)
    weighted, repeated_ = np.array(lines)[:, :3], np.array(lines)[:, 3:]
    difference = weighted[:, 0] - repeated_[:, 0]
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(200)
    assert np.mean(weighted[:, 1] ** 2) == pytest.approx(np.mean(repeated_[:, 1] ** 2), rel=0.1)
    for reported in (weighted, repeated_):
        known = np.mean(reported[:, 1] ** 2) + np.mean(reported[:, 2] ** 2)
        # R = 200: 4 sqrt(2 / 199) = 40 %.
        assert known / reported[:, 0].var(ddof=1) == pytest.approx(1, abs=0.42)


@pytest.mark.parametrize(
    ("name", "n_repeats"),
    [("marginal", 30), ("subgroups", 3), pytest.param("subgroups", 14, marks=pytest.mark.slow), ("training donors", 5)],
)
def test_mc_error_is_the_spread_of_estimates_over_seeds(name: str, n_repeats: int) -> None:
    """The same 40 rows, 200 seeds; 30 of 39 donors and 14 of about 20 are a large share. 4 sqrt(2 / 199) = 40 %."""
    X, y = sample(np.random.default_rng(77), 40)
    lines = []
    for seed in range(200):
        result = importance(
            model, X, y, features=["x1"], n_repeats=n_repeats, random_state=seed, loss="squared_error", **options(name)
        )
        one, two = result.overall.iloc[0], result.by_subgroup.iloc[-1]
        lines.append((one["estimate"], one["mc_error"], two["estimate"], two["mc_error"]))
    reported = np.array(lines)
    for estimate, error in ((reported[:, 0], reported[:, 1]), (reported[:, 2], reported[:, 3])):
        assert np.mean(error**2) / estimate.var(ddof=1) == pytest.approx(1, abs=0.42)
    if n_repeats in (14, 30):  # drawn with replacement, the error would be more than half as large again
        independent = reported[:, 1] / np.sqrt(1 - n_repeats / (39 if name == "marginal" else 20))
        assert np.mean(independent**2) / reported[:, 0].var(ddof=1) > 2


def test_mc_error_counts_the_draws_that_come_after_all_have_been_there() -> None:
    """Of 4 rows with fixed points there are 4 draws; 6 repeats are these and 2 of them again."""
    X, y = sample(np.random.default_rng(1), 4)
    sampler = sg.samplers.Marginal(fixed_points=True)
    lines = [
        importance(
            model, X, y, sampler=sampler, features=["x1"], n_repeats=6, random_state=seed, loss="squared_error"
        ).overall.iloc[0]
        for seed in range(300)
    ]
    spread = np.var([line["estimate"] for line in lines], ddof=1)
    assert spread > 0
    # Few draws: their variance is itself known from 6 numbers only, hence the wider margin.
    assert np.mean([line["mc_error"] ** 2 for line in lines]) / spread == pytest.approx(1, abs=0.5)


def compare_in_many(one: Any, two: Any, runs: int = 200) -> Floats:
    """Difference, its standard error, the squared Monte-Carlo errors, and the error if rows were not paired."""
    rng = np.random.default_rng(3)
    lines = []
    for run in range(runs):
        X, y = sample(rng)
        first, second = (
            importance(X=X, y=y, features=["x1"], n_repeats=20, loss="squared_error", **call(run))
            for call in (one, two)
        )
        line = first.with_noise("test rows").compare(second).iloc[0]
        a, b = first.overall.iloc[0], second.overall.iloc[0]
        lines.append(
            (
                line["estimate"],
                line["std_error"],
                a["mc_error"] ** 2 + b["mc_error"] ** 2,
                np.hypot(a["std_error"], b["std_error"]),
            )
        )
    return np.array(lines)


def test_compare_of_two_samplers_has_the_error_of_paired_rows() -> None:
    reported = compare_in_many(
        lambda run: {"model": model, "sampler": "marginal", "random_state": run},
        lambda run: {"model": model, "random_state": run, **options("subgroups")},
    )
    known = np.mean(reported[:, 1] ** 2) + np.mean(reported[:, 2])
    assert known / reported[:, 0].var(ddof=1) == pytest.approx(1, abs=0.42)  # 4 sqrt(2 / 199) = 40 %
    assert abs(reported[:, 0].mean() - (7 - 5)) < 4 * reported[:, 0].std() / np.sqrt(200)


def test_compare_of_two_models_with_the_same_draws_has_an_error_that_is_not_too_small() -> None:
    """f = x1 and f = 1.2 x1, the same seed: draws are shared, so their noise mostly goes out of the difference."""

    def larger(X: Floats) -> Floats:
        return 1.2 * X[:, 1]

    reported = compare_in_many(
        lambda run: {"model": larger, "sampler": "marginal", "random_state": run},
        lambda run: {"model": model, "sampler": "marginal", "random_state": run},
    )
    ratio = np.mean(reported[:, 1] ** 2) / reported[:, 0].var(ddof=1)
    assert 1 - 0.42 < ratio < 1.6
    assert np.mean(reported[:, 3] ** 2) / reported[:, 0].var(ddof=1) > 3  # what it would be if rows were not paired


def test_compare_of_nearly_the_same_models_does_not_take_off_noise_that_both_share() -> None:
    """The user saw: with few repeats a standard error a third of what many repeats reported, for two like models."""
    X, y = sample(np.random.default_rng(2))

    def nearly(X: Floats) -> Floats:
        return X[:, 1] + 0.01 * X[:, 0]

    few, many = (
        importance(
            nearly, X, y, sampler="marginal", features=["x1"], n_repeats=m, random_state=1, loss="squared_error"
        ).compare(
            importance(
                model, X, y, sampler="marginal", features=["x1"], n_repeats=m, random_state=1, loss="squared_error"
            )
        )
        for m in (5, 149)
    )
    assert few["std_error"][0] > 0.8 * many["std_error"][0]
