"""Fidelity checks: true conditional draws pass, draws that break the dependence fail, others are unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.replace_columns import Frames
from subgrove._data.table import read_table
from subgrove._scoring.exchangeability import exchangeability_test
from subgrove._scoring.fidelity_check import (
    MAX_DRAWS,
    MAX_ROWS,
    MIN_ROWS,
    MIN_ROWS_TO_PASS,
    FidelityCheck,
    FidelityChecker,
)
from subgrove._scoring.two_sample import Points
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups

Draw = Callable[[np.random.Generator], dict[str, Any]]


def checked(X: Any, draw: Draw | dict[str, Any], seed: int = 0, weights: Any = None) -> FidelityCheck:
    """Check draws of a function, or of fixed values or functions by column."""

    def draws(first: int) -> Iterator[dict[str, Any]]:
        for number in range(first, first + MAX_DRAWS):
            rng = np.random.default_rng([seed, number])
            if callable(draw):
                made = draw(rng)
            else:
                made = {name: own(rng) if callable(own) else own for name, own in draw.items()}
            yield {name: np.asarray(values) for name, values in made.items()}

    def resampled(first: int) -> ResampledFeature:
        return ResampledFeature(RowGroups.single(len(X)), lambda: draws(first))

    class Sampler:
        unfitted = None

        def of_feature(self, table: Any, feature: Any) -> Any:
            return self, table

        def resample(self, *args: Any, **options: Any) -> ResampledFeature:
            return resampled(MAX_DRAWS)

    table = read_table(X, lenient=True)
    sampler: Any = Sampler()
    checker = FidelityChecker.of(Frames(X, table.columns), table, sampler, table, weights, seed)
    return checker.check(tuple(next(draws(0))), checker.read((), lambda: resampled(0)))


def normal(n: int, correlation: float, seed: int, p: int = 6) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n, p))
    values[:, 0] = correlation * values[:, 1] + np.sqrt(1 - correlation**2) * values[:, 0]
    return pd.DataFrame(values, columns=[f"x{number + 1}" for number in range(p)])


def shuffled(X: pd.DataFrame, name: str = "x1") -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.permutation(X[name].to_numpy())


def share_of_failures(verdicts: Sequence[str]) -> float:
    return float(np.mean([verdict == "failed" for verdict in verdicts]))


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in sg.simulate.scenarios()[2:]]


@pytest.mark.parametrize("name", [*sg.simulate.scenarios()[:2], *OTHERS])
def test_true_conditional_draws_rarely_fail(name: str) -> None:
    # Of 40 runs, 5 % are 2; more than 6 have a probability of 0.3 %.
    scenario, verdicts = sg.simulate.scenario(name), []
    for seed in range(40):
        X = scenario.sample(300, random_state=seed).X
        sampler = scenario.sampler.fit(X)
        drawn = partial(lambda own, X, rng: next(iter(own.sample(X, "x1", [rng]))), sampler, X)
        verdicts.append(checked(X, {"x1": drawn}, seed).verdict)
    assert share_of_failures(verdicts) <= 6 / 40


def test_marginal_draws_of_a_strongly_dependent_feature_fail() -> None:
    found = [checked(X := normal(300, 0.9, seed), {"x1": shuffled(X)}, seed) for seed in range(20)]
    assert [one.verdict for one in found] == ["failed"] * 20
    # A normal feature of correlation r: residuals of resampled rows are sqrt((1 + r^2) / (1 - r^2)) times as large, and
    # the best AUC is 1 - 2 / pi * atan(1 / 3.09) = 0.80; a classifier that learns from 150 rows comes near it.
    assert 0.70 < np.mean([one.auc for one in found]) < 0.82
    assert np.mean([one.mmd for one in found]) == pytest.approx(1, abs=0.15)


def test_marginal_draws_of_an_independent_feature_pass_without_a_position() -> None:
    found = [checked(X := normal(300, 0.0, seed), {"x1": shuffled(X)}, seed) for seed in range(20)]
    assert [one.verdict for one in found].count("failed") <= 4  # a chance of 0.3 % if 5 % fail
    assert sum(np.isnan(one.mmd) for one in found) >= 19


def test_deeper_subgroups_are_closer_to_real_rows() -> None:
    train, X = normal(2000, 0.9, 1), normal(400, 0.9, 2)
    places = []
    for depth in (1, 2, 4):
        sampler = sg.samplers.SubgroupSampler(max_depth=depth).fit(train, ["x1"])
        drawn = partial(lambda own, rng: next(iter(own.sample(X, "x1", [rng]))), sampler)
        places.append(checked(X, {"x1": drawn}).mmd)
    assert places == sorted(places, reverse=True)
    assert places[-1] < 0.1


def test_values_that_the_feature_never_has_fail_without_any_dependence() -> None:
    X = normal(300, 0.0, 4)
    found = checked(X, {"x1": lambda rng: rng.normal(3, 1, 300)})
    assert found.verdict == "failed"
    assert found.auc > 0.9


def test_unchanged_rows_have_auc_one_half() -> None:
    X = normal(300, 0.9, 6)
    found = checked(X, {"x1": X["x1"]})
    assert (found.verdict, found.auc, found.mmd) == ("passed", 0.5, 0.0)


def test_constant_column_passes_without_a_position() -> None:
    X = normal(100, 0.5, 7).assign(x1=1.0)
    found = checked(X, {"x1": X["x1"]})
    assert (found.verdict, found.auc) == ("passed", 0.5)
    assert np.isnan(found.mmd)


def test_single_column_is_checked_by_its_values() -> None:
    X = pd.DataFrame({"x1": np.random.default_rng(8).normal(size=200)})
    assert checked(X, {"x1": shuffled(X)}).verdict == "passed"
    assert checked(X, {"x1": X["x1"] + 5}).verdict == "failed"


def nominal(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"season": rng.choice(["cold", "mild", "hot"], n), "noise": rng.normal(size=n)})
    return X.assign(temp=X["season"].map({"cold": 0, "mild": 10, "hot": 20}) + rng.normal(0, 3, n))


def test_labels_are_checked() -> None:
    X = nominal(300, 9)
    assert checked(X, {"season": shuffled(X, "season")}).verdict == "failed"
    assert checked(X, {"noise": shuffled(X, "noise")}).verdict == "passed"
    within = checked(X, {"temp": lambda rng: X.groupby("season")["temp"].transform(rng.permutation)})
    assert within.verdict == "passed"
    assert checked(X, {"temp": shuffled(X, "temp")}).verdict == "failed"


def test_groups_are_checked_jointly() -> None:
    X = normal(300, 0.9, 10)

    def together(rng: np.random.Generator) -> dict[str, Any]:
        order = rng.permutation(300)
        return {name: X[name].to_numpy()[order] for name in ("x1", "x2")}

    assert checked(X, together).verdict == "passed"  # both depend on no other column
    assert checked(X, {"x1": shuffled(X), "x2": shuffled(X, "x2")}).verdict == "failed"


def test_pattern_of_missing_values_is_checked() -> None:
    X = normal(400, 0.0, 12)
    X["x1"] = X["x1"].where(X["x2"] < 0.5)
    assert checked(X, {"x1": shuffled(X)}).verdict == "failed"

    def kept(rng: np.random.Generator) -> Any:
        drawn = X["x1"].to_numpy().copy()
        known = ~np.isnan(drawn)
        drawn[known] = rng.permutation(drawn[known])
        return drawn

    assert checked(X, {"x1": kept}).verdict == "passed"


def test_missing_values_in_other_columns_are_handled() -> None:
    X = normal(300, 0.9, 15)
    X.loc[::7, "x2"] = np.nan
    assert checked(X, {"x1": shuffled(X)}).verdict == "failed"


def test_few_rows_are_not_checked() -> None:
    X = normal(MIN_ROWS - 1, 0.9, 17)
    found = checked(X, {"x1": shuffled(X)})
    assert found.verdict == "unknown"
    assert found.reason == f"there are {MIN_ROWS - 1} rows, but {MIN_ROWS} are needed"
    assert np.isnan([found.auc, found.mmd]).all()


def test_check_of_few_rows_can_fail_but_not_pass() -> None:
    X = normal(MIN_ROWS_TO_PASS - 1, 0.95, 27)
    assert checked(X, {"x1": shuffled(X)}).verdict == "failed"
    found = checked(X, {"x1": X["x1"]})
    assert (found.verdict, found.auc) == ("unknown", 0.5)
    assert found.reason.endswith(f"there are {MIN_ROWS_TO_PASS - 1} rows, and {MIN_ROWS_TO_PASS} are needed to pass")


def test_many_rows_are_subsampled() -> None:
    X = normal(3 * MAX_ROWS, 0.9, 19)
    assert checked(X, {"x1": shuffled(X)}).n == MAX_ROWS


def test_rows_are_subsampled_by_weight() -> None:
    X = normal(2000, 0.9, 21)
    weights = np.where(np.arange(2000) < 1000, 1.0, 1e-9)
    drawn = X["x1"].to_numpy().copy()
    drawn[1000:] += 100  # wrong where weights are next to nothing
    assert checked(X, {"x1": drawn}, weights=weights).verdict == "passed"
    assert checked(X, {"x1": drawn}).verdict == "failed"


def test_overflowing_values_are_unknown() -> None:
    X = normal(100, 0.0, 22)
    X["x3"] *= 1e200
    found = checked(X, {"x1": shuffled(X)})
    assert (found.verdict, found.reason) == ("unknown", "values are too large for distances")


def test_unreadable_values_are_unknown_with_the_reason() -> None:
    X = normal(100, 0.0, 24)
    found = checked(X, {"x1": np.array(["a"] * 100)})
    assert found.verdict == "unknown"
    assert found.reason.startswith("the resampled values could not be read")


def test_same_seed_gives_the_same_check() -> None:
    X = normal(1000, 0.7, 25)
    drawn = shuffled(X)
    one, two, other = (repr(checked(X, {"x1": drawn}, seed)) for seed in (3, 3, 4))  # as text, since NaN is not NaN
    assert one == two
    assert one != other


def labelled(n: int, share: float, seed: int) -> pd.DataFrame:
    """Labels of which the first follows the second in some share of the rows, and a number."""
    rng = np.random.default_rng(seed)
    codes = rng.integers([6, 6, 80], size=(n, 3))
    codes[:, 0] = np.where(rng.random(n) < share, codes[:, 1], codes[:, 0])
    X = pd.DataFrame({f"x{at + 1}": [f"level {code}" for code in codes[:, at]] for at in range(3)})
    return X.assign(x4=rng.normal(size=n))


@pytest.mark.parametrize("n", [200, 600])
def test_labels_that_are_independent_of_the_others_pass_when_shuffled(n: int) -> None:
    # At most 5 % should fail; if 30 runs had that rate, more than 5 failures had a chance of 0.3 %.
    tables = [labelled(n, 0.0, seed) for seed in range(30)]
    verdicts = [checked(X, {"x1": shuffled(X)}, seed).verdict for seed, X in enumerate(tables)]
    assert verdicts.count("failed") <= 5


def test_labels_permuted_within_their_parent_pass_and_others_fail() -> None:
    within, marginal = [], []
    for seed in range(20):
        X = labelled(400, 0.7, seed)
        drawn = partial(lambda X, rng: X.groupby("x2")["x1"].transform(rng.permutation), X)
        within.append(checked(X, {"x1": drawn}, seed).verdict)
        marginal.append(checked(X, {"x1": shuffled(X)}, seed).verdict)
    assert within.count("failed") <= 4  # a chance of 0.3 % if 5 % fail
    assert marginal.count("failed") == 20


def misses(n: int, seed: int, given: Callable[[Any], Any], drawn: Callable[[Any, np.random.Generator], Any]) -> str:
    """Verdict for x1 = given(others) + noise, and draws that are wrong."""
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(n, 4))
    X = pd.DataFrame(others, columns=["x2", "x3", "x4", "x5"])
    X.insert(0, "x1", given(others) + 0.5 * rng.normal(size=n))
    return checked(X, {"x1": lambda rng: drawn(others, rng)}, seed).verdict


@pytest.mark.parametrize(
    ("given", "drawn"),
    [
        (lambda z: z[:, 0], lambda z, rng: z[:, 0] + 0.65 * rng.normal(size=len(z))),
        (lambda z: z[:, 0], lambda z, rng: z[:, 0] + 0.35 * rng.normal(size=len(z))),
        (lambda z: z[:, 0], lambda z, rng: z[:, 0] + 0.5 * (rng.exponential(size=len(z)) - 1)),
        (lambda z: np.sin(3 * z[:, 1]), lambda z, rng: np.sqrt(0.75) * rng.normal(size=len(z))),
        (lambda z: z[:, 0], lambda z, rng: z[:, 0] + 0.5 * np.where(rng.random(len(z)) < 0.5, 1, -1)),
    ],
    ids=["too wide", "too narrow", "skewed", "periodic term missed", "two modes for one"],
)
def test_wrong_conditional_distributions_are_found(given: Any, drawn: Any) -> None:
    # 0.95 or more differ; fewer than 7 of 10 have a chance of 0.1 %.
    verdicts = [misses(400, seed, given, drawn) for seed in range(10)]
    assert sum(verdict in ("failed", "small difference") for verdict in verdicts) >= 7


@pytest.mark.parametrize(
    ("n", "n_copies"),
    [
        (60, 1),
        (150, 10),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((60, 10), (150, 1), (500, 1), (500, 10))),
    ],
)
def test_p_values_of_true_draws_are_uniform(n: int, n_copies: int) -> None:
    # 200 runs at a level of 5 %: more than 20 failures have a chance of 0.1 %; a mean has standard error 0.02.
    found = []
    for seed in range(200):
        rng = np.random.default_rng([seed, n])
        others = rng.normal(size=(n, 3))
        scale = np.exp(0.5 * others[:, :1])
        draws = [Points.of(others[:, 1:2] + scale * rng.standard_t(3, (n, 1))) for _ in range(11 + n_copies)]
        found.append(exchangeability_test(Points.of(others), draws[10:], draws[:10], rng)[0])
    assert np.mean(np.array(found) <= 0.05) <= 0.1
    assert np.mean(found) == pytest.approx(0.5, abs=0.07)
