"""What intervals and tests promise, by simulation with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import subgrove as sg
from tests.claims.without_checks import importance


@pytest.mark.parametrize("n_repeats", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_default_interval_covers_also_with_few_redraws(n_repeats: int) -> None:
    """True sampler, true model; 300 runs: 95 % less 4 sqrt(.95 * .05 / 300) = 5 %.

    With the test rows alone, two redraws cover less: their noise is missing.
    """
    scenario = sg.simulate.scenario("linear")
    covered = []
    for run in range(300):
        test = scenario.sample(200, random_state=run)
        imp = importance(
            scenario.model,
            test.X,
            test.y,
            sampler=scenario.sampler,
            features=["x1"],
            n_repeats=n_repeats,
            random_state=run,
            loss="squared_error",
        )
        for result in (imp, imp.with_noise("test rows")):
            line = result.overall.iloc[0]
            covered.append(line["conf_low"] <= scenario.importance <= line["conf_high"])
    both, rows = np.mean(covered[::2]), np.mean(covered[1::2])
    assert both > 0.9
    assert both >= rows


def rejections(strength: float, runs: int, n: int = 300) -> tuple[float, float]:
    """Share of runs in which the p-value of overall, and that of `test`, is below 5 %, with coarse subgroups."""
    scenario = sg.simulate.null_scenario("linear", strength=strength)
    found = []
    for run in range(runs):
        train, test = scenario.sample(n, random_state=2 * run), scenario.sample(n, random_state=2 * run + 1)

        def model(X: object, shift: float = strength) -> object:
            # As a forest does, it gives part of the weight of x2 to x1, which is nearly the same.
            x = np.asarray(X, dtype=float)
            return (0.4 + shift) * x[:, 0] + 0.64 * x[:, 1] + x[:, 2:10].sum(axis=1)

        sampler = sg.samplers.SubgroupSampler(max_depth=1)
        imp = importance(
            model,
            test.X,
            test.y,
            sampler=sampler,
            train=train.X,
            features=["x1"],
            n_repeats=5,
            random_state=run,
            loss="squared_error",
        )
        found.append((imp.overall["p_value"][0] < 0.05, imp.independence_test(test.X)["p_value"][0] < 0.05))
    plain, doubting = np.mean(found, axis=0)
    return float(plain), float(doubting)


@pytest.mark.parametrize("runs", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_test_that_doubts_the_sampler_keeps_its_level_where_the_other_does_not(runs: int) -> None:
    """At most 5 % and 3 sqrt(.05 * .95 / runs) more. Coarse subgroups leave half of the dependence."""
    plain, doubting = rejections(0.0, runs)
    assert plain > 0.2
    assert doubting < 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


def test_test_that_doubts_the_sampler_finds_what_is_there() -> None:
    assert rejections(0.5, 20)[1] > 0.9


@pytest.mark.slow
def test_noise_of_the_partition_is_that_of_other_training_rows() -> None:
    """The same test rows, 60 training sets; the spread of estimates, draws taken off, against what resamples say.

    A variance of 60 numbers is known to 4 sqrt(2 / 59) = 74 %; halves have shallower trees, so a factor of 3 is left.
    """
    scenario = sg.simulate.scenario("linear")
    test = scenario.sample(300, random_state=10_000)
    estimates, draws, reported = [], [], []
    for run in range(60):
        train = scenario.sample(400, random_state=run)
        options = {"train": train.X, "features": ["x1"], "n_repeats": 30, "random_state": run, "sampler": "subgroups"}
        resamples = 10 if run < 20 else None
        imp = importance(scenario.model, test.X, test.y, loss="squared_error", **options)  # type: ignore[arg-type]
        estimates.append(imp.overall["estimate"][0])
        draws.append(imp.overall["mc_error"][0] ** 2)
        if resamples:
            imp = imp.with_sampler_variance(resamples)
            reported.append(imp.variance_components["sampler"][0] ** 2)
    real = np.var(estimates, ddof=1) - np.mean(draws)
    assert real > 0
    assert 1 / 3 < np.mean(reported) / real < 3


@pytest.mark.slow
def test_correction_makes_the_interval_over_refits_cover_more_though_not_enough() -> None:
    """Linear models of 150 rows; the truth is the mean over 400 fresh models and test rows. 100 runs of 10 refits.

    A row changes the importance of a linear model equally as training and as test row, which is the worst case of the
    correction (docs/inference.md). 68 % of intervals covered when this was written, 4 sqrt(.68 * .32 / 100) = 19 %.
    """
    scenario = sg.simulate.null_scenario("linear", strength=0.5)

    def fresh(seed: int) -> float:
        train, test = scenario.sample(150, random_state=seed), scenario.sample(50, random_state=seed + 1)
        model = LinearRegression().fit(train.X, train.y)
        imp = importance(
            model,
            test.X,
            test.y,
            sampler=scenario.sampler,
            features=["x1"],
            n_repeats=5,
            random_state=seed,
            train=train.X,
            loss="squared_error",
        )
        return float(imp.overall["estimate"][0])

    truth = np.mean([fresh(2 * seed + 100_000) for seed in range(400)])
    corrected, plain = [], []
    for run in range(100):
        data = scenario.sample(200, random_state=run)
        found = sg.importance_over_refits(
            LinearRegression(), data.X, data.y, n_refits=10, sampler=scenario.sampler, features=["x1"], n_repeats=5,
            random_state=run, loss="squared_error",
        )  # fmt: skip
        line = found.overall.iloc[0]
        shrunk = np.sqrt((1 / 10) / (1 / 10 + 50 / 150))  # without the correction
        corrected.append(line["conf_low"] <= truth <= line["conf_high"])
        plain.append(abs(line["estimate"] - truth) <= shrunk * (line["conf_high"] - line["estimate"]))
    assert np.mean(corrected) == pytest.approx(0.68, abs=0.19)
    assert np.mean(plain) < np.mean(corrected) - 0.1


@pytest.mark.parametrize("name", ["linear", pytest.param("mixed", marks=pytest.mark.slow)])
def test_randomization_test_is_exact_with_the_true_sampler(name: str) -> None:
    """400 runs of 19 resamples of 60 rows: p is uniform on 1/20, ..., 1, for a model that uses x1 wrongly.

    p <= k / 20 has a share of k / 20, with standard error sqrt(s (1 - s) / 400); four of them.
    """
    scenario = sg.simulate.null_scenario(name)

    def model(X: object) -> object:
        return scenario.model(X) + np.sin(3 * X["x1"])  # type: ignore[index]

    p_values = []
    for run in range(400):
        test = scenario.sample(60, random_state=run)
        imp = importance(
            model,
            test.X,
            test.y,
            sampler=scenario.sampler,
            features=["x1"],
            n_repeats=1,
            random_state=run,
            loss="squared_error",
        )
        p_values.append(imp.randomization_test(19)["p_value"][0])
    for share in (0.05, 0.1, 0.25, 0.5, 0.75):
        found = np.mean(np.array(p_values) <= share + 1e-9)
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / 400)


def test_randomization_test_finds_what_is_there() -> None:
    scenario = sg.simulate.null_scenario("linear", strength=1.0)
    test = scenario.sample(200, random_state=1)
    imp = importance(
        scenario.model, test.X, test.y, sampler=scenario.sampler, features=["x1"], random_state=1, loss="squared_error"
    )
    assert imp.randomization_test(99)["p_value"][0] == 0.01
