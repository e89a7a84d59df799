"""Frequencies give what duplicated rows give; relative weights have no scale; rows of weight 0 are not there.

How far their errors hold is in claims/test_importance_noise.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError, SubgroveWarning

Floats = npt.NDArray[np.float64]
N = 90
COLUMNS = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high", "mc_error", "n"]


def sample(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 4, n).astype(float)
    frame = pd.DataFrame({"level": level, "x": rng.normal(size=n) + level, "z": rng.normal(size=n)})
    return frame, model(frame) + rng.normal(size=n)


def model(X: Any) -> Floats:
    level, x, z = (np.asarray(X[name], dtype=np.float64) for name in ("level", "x", "z"))
    return level * z + x


X, Y = sample(N, 0)
TRAIN, _ = sample(500, 1)
GROUPS = sg.find_subgroups(TRAIN, max_depth=2)
TIMES = np.random.default_rng(2).integers(1, 5, N)
REPEATED = np.repeat(np.arange(N), TIMES)
SAMPLERS: dict[str, dict[str, Any]] = {
    "marginal": {"sampler": "marginal"},
    "subgroups": {"sampler": GROUPS},
    "training donors": {"sampler": sg.samplers.SubgroupSampler(groups=GROUPS, donors="train"), "train": TRAIN},
}
each_sampler = pytest.mark.parametrize("options", SAMPLERS.values(), ids=list(SAMPLERS))


def run(X: Any, y: Any, /, **options: Any) -> sg.ImportanceResult:
    return sg.importance(model, X, y, **{"n_repeats": 8, "random_state": 1, **options})


@each_sampler
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_weights_are_duplicated_rows_where_the_expectation_is_exact(options: dict[str, Any], loss: str) -> None:
    weighted = run(X, Y, features=["level"], sample_weight=sg.FrequencyWeights(TIMES), loss=loss, **options)
    repeated = run(X.iloc[REPEATED], Y[REPEATED], features=["level"], loss=loss, **options)
    assert weighted.scores[0].n_exact == N
    for one, two in ((weighted.overall, repeated.overall), (weighted.by_subgroup, repeated.by_subgroup)):
        # Influences are kept in single precision: the seventh digit of a standard error may differ.
        np.testing.assert_allclose(one[COLUMNS], two[COLUMNS], rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(one["estimate"], two["estimate"], rtol=1e-11)
    np.testing.assert_allclose(weighted.per_row["level"].to_numpy()[REPEATED], repeated.per_row["level"], rtol=1e-11)
    assert weighted.baseline == pytest.approx(repeated.baseline, rel=1e-12)


@each_sampler
def test_weights_are_duplicated_rows_in_expectation_where_rows_are_drawn(options: dict[str, Any]) -> None:
    """60 seeds each: four standard errors of the difference."""
    weighted, repeated = (
        [
            run(*rows, features=["x"], random_state=seed, n_repeats=3, **options, **more)
            .with_noise("test rows")
            .overall
            for seed in range(60)
        ]
        for rows, more in (
            ((X, Y), {"sample_weight": sg.FrequencyWeights(TIMES)}),
            ((X.iloc[REPEATED], Y[REPEATED]), {}),
        )
    )
    one, two = (np.array([table["estimate"][0] for table in tables]) for tables in (weighted, repeated))
    assert abs(one.mean() - two.mean()) < 4 * np.sqrt((one.var() + two.var()) / 60)
    errors = [np.mean([table["std_error"][0] ** 2 for table in tables]) for tables in (weighted, repeated)]
    assert errors[0] == pytest.approx(errors[1], rel=0.15)


@each_sampler
def test_equal_weights_of_one_are_no_weights_where_exact(options: dict[str, Any]) -> None:
    one = run(X, Y, features=["level"], sample_weight=np.ones(N), **options)
    two = run(X, Y, features=["level"], **options)
    np.testing.assert_allclose(one.overall[COLUMNS], two.overall[COLUMNS], rtol=1e-6)


@each_sampler
def test_rows_of_weight_zero_are_not_there(options: dict[str, Any]) -> None:
    weights = np.where(np.arange(N) % 4 == 0, 0, TIMES)
    kept = weights > 0
    call_options: list[int] = []

    def spy(table: Any) -> Floats:
        call_options.append(len(table))
        return model(table)

    weighted = sg.importance(spy, X, Y, sample_weight=weights, n_repeats=4, random_state=1, **options)
    without = run(X[kept], Y[kept], sample_weight=weights[kept], n_repeats=4, **options)
    pd.testing.assert_frame_equal(weighted.overall, without.overall, check_exact=True)
    assert sum(call_options) == without.settings["n_rows_predicted"]
    assert weighted.per_row.isna().all(axis=1).tolist() == (~kept).tolist()
    pd.testing.assert_frame_equal(weighted.per_row[kept], without.per_row, check_exact=True)


def test_fractions_count_in_the_means() -> None:
    weights = np.random.default_rng(3).uniform(0.2, 2.0, N)
    result = run(X, Y, sampler=GROUPS, sample_weight=weights)
    for line in result.overall.itertuples():
        mean = float(result.per_row[line.feature].to_numpy() @ weights / weights.sum())
        assert line.estimate == pytest.approx(mean, rel=1e-10)
        assert line.n == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize("container", ["polars", "pyarrow", "pandas"])
def test_whole_and_fractional_sums_of_weights_stand_in_one_column(container: str) -> None:
    """The user saw: an error of polars, since a subgroup weighed 14.25 and another 32."""
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    tables: dict[str, Any] = {"pandas": X, "polars": pl.from_pandas(X), "pyarrow": pa.Table.from_pandas(X)}
    weights = np.ones(N)
    weights[GROUPS["x"].assign(X) == 0] = 0.75
    table = run(tables[container], Y, sampler=GROUPS, features=["x"], sample_weight=weights).by_subgroup
    n = pd.Series(table["n"].to_pylist() if container == "pyarrow" else table["n"].to_list())
    shares = [weights[GROUPS["x"].assign(X) == k].sum() / weights.sum() for k in range(len(GROUPS["x"]))]
    np.testing.assert_allclose(n / n.sum(), shares, rtol=1e-12)


def test_row_that_counts_once_and_is_alone_is_warned_of_also_with_weights() -> None:
    """The user saw: an importance of 0 without the warning that comes without weights."""
    with pytest.warns(SubgroveWarning, match="one row"):
        run(X.head(1), Y[:1], sampler="marginal", features=["x"], sample_weight=[1.0])
    result = run(
        X.head(1), Y[:1], sampler="marginal", features=["x"], sample_weight=sg.FrequencyWeights([3])
    )  # three equal rows
    assert result.overall["estimate"][0] == 0


@each_sampler
def test_a_common_factor_of_weights_changes_nothing(options: dict[str, Any]) -> None:
    weights = np.random.default_rng(3).uniform(0.2, 2.0, N)
    one, two = (run(X, Y, sample_weight=factor * weights, **options) for factor in (1, 1024))
    pd.testing.assert_frame_equal(one.overall, two.overall, check_exact=True)
    pd.testing.assert_frame_equal(one.by_subgroup, two.by_subgroup, check_exact=True)


def test_no_row_of_relative_weight_is_its_own_donor() -> None:
    """Two rows of weights 1 and 9: each receives the other's value, whatever its weight."""
    rows = X.iloc[[0, 1]].assign(x=[0.0, 1.0])
    result = run(rows, model(rows), sampler="marginal", features=["x"], sample_weight=[1.0, 9.0])
    assert result.overall["estimate"][0] == pytest.approx(1.0)


def test_error_of_relative_weights_is_the_sandwich() -> None:
    """Two scores without draws: loco. n_eff / (n_eff - 1) sum w^2 (v - mean)^2 / (sum w)^2."""
    weights = np.random.default_rng(3).exponential(size=N)
    result = sg.loco(
        model, X, Y, train=(TRAIN, model(TRAIN)), refit=lambda X, y: lambda Z: np.zeros(len(Z)), sample_weight=weights
    )
    values = result.per_row["z"].to_numpy()
    mean, kish = values @ weights / weights.sum(), weights.sum() ** 2 / (weights**2).sum()
    sandwich = weights**2 @ (values - mean) ** 2 / weights.sum() ** 2 * kish / (kish - 1)
    line = result.overall.set_index("feature").loc["z"]
    assert line["estimate"] == pytest.approx(mean)
    assert line["std_error"] == pytest.approx(np.sqrt(sandwich))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exponential", "log-normal", "survey by z", "survey by x"])
def test_intervals_of_relative_weights_cover(kind: str) -> None:
    # 400 samples: a coverage of 0.95 has a standard error of 0.011; bounds are three of them.
    from benchmarks.weights import KINDS
    from benchmarks.weights import model as linear
    from benchmarks.weights import sample as draw

    covered = []
    for seed in range(400):
        rows, y, weights = draw(kind, 300, np.random.default_rng([seed, KINDS.index(kind)]))
        imp = sg.importance(
            linear, rows, y, sampler="marginal", features=[0], sample_weight=weights, random_state=seed,
            check_fidelity=False, loss="squared_error",
        )  # fmt: skip
        line = imp.overall.iloc[0]
        covered.append(line["conf_low"] <= 2 <= line["conf_high"])
    assert 0.917 < np.mean(covered) < 0.983


def test_weights_of_a_score_are_rejected() -> None:
    with pytest.raises(ParameterError, match="weights cannot be used with root_mean_squared_error"):
        run(X, Y, sampler="marginal", loss="root_mean_squared_error", sample_weight=TIMES)
