"""Cross-fitting: each half is resampled by what was learned on the other one, and the halves are put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import stream
from subgrove._data.replace_columns import Donors
from subgrove.samplers.fit import _merged, random_folds

Floats = npt.NDArray[np.float64]
SEED = 5
RNG = np.random.default_rng(0)
N = 301
LEVEL = RNG.integers(0, 3, N)
X = pd.DataFrame({"level": LEVEL, "x": RNG.normal(size=N) + 2 * (LEVEL == 1), "z": RNG.normal(size=N)})
Y = RNG.normal(size=N)
HALVES = random_folds(N, stream(SEED, "folds"))


def model(X: Any) -> Any:
    return X["level"].to_numpy() * X["z"].to_numpy() + X["x"].to_numpy()


def run(X: Any, y: Any, **options: Any) -> sg.ImportanceResult:
    return sg.importance(model, X, y, **{"n_repeats": 4, "random_state": SEED, **options})


def test_halves_are_all_rows_once_and_depend_on_the_seed() -> None:
    assert sorted(np.concatenate(HALVES).tolist()) == list(range(N))
    assert [len(half) for half in HALVES] == [151, 150]
    assert all((np.diff(half) > 0).all() for half in HALVES)
    other = random_folds(N, stream(SEED + 1, "folds"))
    assert set(other[0].tolist()) != set(HALVES[0].tolist())


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_fitting_is_each_half_with_the_other_as_training_rows(weighted: bool) -> None:
    """Of a feature whose expectation is exact, so that draws do not matter."""
    sampler = sg.samplers.SubgroupSampler()
    weights = RNG.integers(1, 4, N) if weighted else None

    def frequencies(rows: Any) -> Any:
        return None if weights is None else sg.FrequencyWeights(weights[rows])

    whole = run(X, Y, sampler=sampler, features=["level"], sample_weight=frequencies(slice(None)))
    per_row = np.full(N, np.nan)
    tables = []
    for own, other in (HALVES, HALVES[::-1]):
        counted = frequencies(own)
        half = run(X.iloc[own], Y[own], sampler=sampler, train=X.iloc[other], features=["level"], sample_weight=counted)
        per_row[own] = half.per_row["level"]
        tables.append(half.by_subgroup)
    np.testing.assert_allclose(whole.per_row["level"], per_row, rtol=1e-12)
    by = pd.concat(tables, ignore_index=True)
    assert whole.by_subgroup["fold"].tolist() == [0] * len(tables[0]) + [1] * len(tables[1])
    for name in ("rule", "n"):
        assert whole.by_subgroup[name].tolist() == by[name].tolist()
    np.testing.assert_allclose(whole.by_subgroup["estimate"], by["estimate"], rtol=1e-10)
    np.testing.assert_allclose(whole.by_subgroup["std_error"], by["std_error"], rtol=1e-4)


def spread_and_error(sampler: Any, runs: int, levels: int) -> tuple[float, float]:
    """Standard deviation of cross-fitted estimates over samples, and the root mean square of their reported errors."""
    rng = np.random.default_rng(7)
    estimates, errors = [], []
    for seed in range(runs):
        level = rng.integers(0, levels, 200)
        frame = pd.DataFrame({"level": [f"l{each}" for each in level], "z": rng.normal(size=200)})
        y = level + rng.normal(size=200)
        line = sg.importance(
            lambda Z: Z["level"].str[1:].astype(float), frame, y, sampler=sampler, features=["level"], random_state=seed
        ).overall.iloc[0]
        estimates.append(line["estimate"])
        errors.append(line["std_error"] ** 2)
    return float(np.std(estimates, ddof=1)), float(np.sqrt(np.mean(errors)))


def test_error_counts_training_rows_that_are_test_rows_of_the_other_half() -> None:
    """The user saw: half the standard error, where a binary feature was cross-fitted with training donors.

    With 120 runs the standard deviation has a relative error of 1 / sqrt(240) = 6.5 %; the margin is 4 of these.
    """
    spread, error = spread_and_error(sg.samplers.SubgroupSampler(max_depth=0, donors="train"), 120, 2)
    assert 0.74 < error / spread < 1.26


def test_rows_that_merely_hold_a_level_are_no_donors() -> None:
    """The user saw: a standard error 15 times too large for a cross-fitted imputation of levels drawn at random."""
    frame = pd.DataFrame({"level": RNG.choice(list("abcdefgh"), 400), "z": RNG.normal(size=400)})
    y = RNG.normal(size=400)

    def model(table: Any) -> Floats:
        return np.asarray(table["level"].map(dict(zip("abcdefgh", range(8), strict=True))), dtype=np.float64)

    sampler = sg.samplers.Imputation(n_trees=10)
    drawn, exact = (
        sg.importance(model, frame, y, sampler=sampler, features=["level"], n_repeats=m, random_state=1).overall
        for m in (3, 7)
    )
    assert drawn["std_error"][0] == pytest.approx(exact["std_error"][0], rel=0.3)


@pytest.mark.parametrize("donors", ["test", "train"])
def test_drawn_donors_are_of_the_right_half(donors: Any) -> None:
    """`x` differs in every row, so that the table that the model predicts identifies the donors."""
    tables: list[Any] = []

    def spy(table: Any) -> Floats:
        tables.append(table["x"].to_numpy())
        return np.zeros(len(table))

    sg.importance(
        spy, X, Y, sampler=sg.samplers.SubgroupSampler(donors=donors), features=["x"], n_repeats=3, random_state=SEED
    )  # fmt: skip
    place = {value: row for row, value in enumerate(X["x"])}
    half = np.zeros(N, dtype=int)
    half[HALVES[1]] = 1
    for repeat in tables[1].reshape(3, N):
        given = np.array([place[value] for value in repeat])
        assert (half[given] == half).all() if donors == "test" else (half[given] != half).all()
        assert (given != np.arange(N)).all()


def test_features_that_are_exact_in_one_half_only_are_put_together() -> None:
    """Five values in one half, four in the other; four repeats are enough for the exact expectation of both."""
    level = LEVEL.copy().astype(float)
    level[HALVES[0][:2]] = [8.0, 9.0]
    level[HALVES[1][0]] = 7.0
    table = X.assign(level=level)
    one = sg.samplers.SubgroupSampler(max_depth=0)
    found = {m: run(table, Y, sampler=one, features=["level"], n_repeats=m) for m in (3, 4)}
    assert found[4].scores[0].n_exact == N
    assert 0 < found[3].scores[0].n_exact < N
    drawn = found[3].overall.iloc[0]
    assert drawn["mc_error"] > 0
    assert abs(drawn["estimate"] - found[4].overall["estimate"][0]) < 4 * drawn["mc_error"]
    fold = found[3].by_subgroup.groupby("fold")["mc_error"].max()
    assert fold[1] == 0 < fold[0]


def test_groups_are_cross_fitted_too() -> None:
    result = run(X, Y, sampler="subgroups", features=[["level", "x"], "z"])
    assert result.features == ("level + x", "z")
    assert set(result.by_subgroup["fold"]) == {0, 1}


def test_folds_whose_samplers_give_donors_and_numbers_are_put_together() -> None:
    """The default call failed where one half of the rows led to subgroups and the other to a shift."""
    own = np.array([1.0, 2.0, 3.0, np.nan])
    places = [np.array([0, 2]), np.array([1, 3])]
    mixed = _merged(own, places, [Donors(np.array([3, 1])), np.array([7.5, 8.5])])
    np.testing.assert_array_equal(mixed, [np.nan, 7.5, 2.0, 8.5])
    donors = _merged(own, places, [Donors(np.array([3, 1])), Donors(np.array([0, 2]), representatives=True)])
    assert donors.rows.tolist() == [3, 0, 1, 2]
    assert donors.representatives
