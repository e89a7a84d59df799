"""The test that does not trust the sampler: arithmetic, and what is rejected; its size is in tests/claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove._core.weights import as_relative
from subgrove._data.table import read_table
from subgrove._importance.independence_test import OtherColumns, _line, lack_of_fit, residualize
from subgrove._regress.gram import FoldGrams
from subgrove.exceptions import InputError, ParameterError

N = 300
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "level": RNG.choice(["u", "v", "w"], N)})
Y = X["a"] + (X["level"] == "u") + RNG.normal(size=N)


def model(X: Any) -> Floats:
    return np.asarray(X["a"] + (X["level"] == "u"), dtype=float)


def run(counting: Any = model, y: Any = Y, **options: Any) -> sg.ImportanceResult:
    return sg.importance(
        counting,
        X,
        y,
        **{"sampler": "marginal", "n_repeats": 10, "random_state": 1, "loss": "squared_error", **options},
    )


RESULT = run()


def test_estimate_is_the_importance_where_the_sampler_is_right() -> None:
    """Independent features: both estimate the same; they differ by noise, far less than their standard errors."""
    one, two = RESULT.overall, RESULT.independence_test(X)
    assert list(two.columns) == [*(name for name in one.columns if name in two.columns), "decision", "reason"]
    assert two["decision"].tolist() == ["rejected", "not rejected", "rejected"]
    for k in (0, 2):
        assert abs(one["estimate"][k] - two["estimate"][k]) < one["std_error"][k]
        assert two["p_holm"][k] < 1e-6
    assert two.loc[1, ["estimate", "std_error", "p_value"]].tolist() == [0, 0, 1]  # the model does not look at b


def test_noise_of_few_redraws_is_taken_off() -> None:
    """f = a, y = noise: the product of both factors would have mean Var(a) / M, 0.5 with two redraws.

    The mean of 400 products has a standard error of about 0.09; four of them.
    """
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    imp = sg.importance(
        lambda X: np.asarray(X["a"]),
        rows,
        rng.normal(size=400),
        sampler="marginal",
        features=["a"],
        n_repeats=2,
        random_state=1,
    )
    line = imp.independence_test(rows).iloc[0]
    assert abs(line["estimate"]) < 4 * line["std_error"]
    assert line["std_error"] < 0.12


def test_subgroups_are_tested_one_by_one() -> None:
    train = X.assign(a=X["a"] + 2 * (X["level"] == "u"))
    imp = sg.importance(
        model, train, Y, sampler=sg.samplers.SubgroupSampler(min_samples_leaf=20), features=["a"], random_state=1
    )
    table = imp.independence_test(train, by_subgroup=True)
    assert table["rule"].tolist() == imp.by_subgroup["rule"].tolist()
    assert {"fold", "subgroup"} <= set(table.columns)
    whole = imp.independence_test(train)["estimate"][0]
    assert (table["n"] * table["estimate"]).sum() / N == pytest.approx(whole)


def test_probabilities_of_two_and_of_three_classes() -> None:
    for classes in (2, 3):
        y = np.digitize(Y, [0.0, 1.0][: classes - 1])
        encoded = X.assign(level=(X["level"] == "u").astype(int))
        fitted = LogisticRegression().fit(encoded, y)
        imp = sg.importance(fitted, encoded, y, sampler="marginal", random_state=1)
        assert imp.predictions is not None
        assert imp.predictions.shape == (N, 1 if classes == 2 else 3)
        assert imp.independence_test(encoded)["p_value"][0] < 1e-6


def test_weights_count_rows_and_rows_of_weight_zero_are_not_there() -> None:
    weights = np.where(np.arange(N) % 3 == 0, 0, 2)
    kept = weights > 0
    weighted = run(sample_weight=sg.FrequencyWeights(weights)).independence_test(X)
    without = sg.importance(
        model,
        X[kept],
        Y[kept],
        sample_weight=sg.FrequencyWeights(weights[kept]),
        sampler="marginal",
        n_repeats=10,
        random_state=1,
    ).independence_test(X[kept])
    pd.testing.assert_frame_equal(weighted, without, check_exact=True)
    assert weighted["n"][0] == 2 * kept.sum()


def test_error_with_relative_weights_is_that_of_a_weighted_mean() -> None:
    """Where the noise depends on the weight, sum w (v - mean)^2 is not the variance, but sum w^2 (v - mean)^2 is."""
    weights = np.exp(0.8 * RNG.normal(size=N))
    products = weights * RNG.normal(size=N)
    found = _line(products, as_relative(weights), 0.95)
    shares, n = weights / weights.sum(), weights.sum() ** 2 / (weights**2).sum()
    sandwich = 4 * (shares**2 * (products - shares @ products) ** 2).sum() * n / (n - 1)
    assert found["estimate"] == pytest.approx(2 * shares @ products)
    assert found["std_error"] == pytest.approx(np.sqrt(sandwich))


def test_jobs_and_order_of_features_change_no_digit() -> None:
    again = run(features=["level", "a"], n_jobs=2).independence_test(X).set_index("feature")
    for column in ("estimate", "p_value"):
        assert again.loc["a", column] == RESULT.independence_test(X)[column][0]


def test_other_rows_are_rejected() -> None:
    with pytest.raises(InputError, match="other rows than the result"):
        RESULT.independence_test(X.iloc[::-1])
    with pytest.raises(InputError, match="other rows than the result"):
        RESULT.independence_test(X.iloc[:-1])


def test_results_that_cannot_be_tested_are_rejected() -> None:
    with pytest.raises(ParameterError, match="at least two resamples"):
        run(n_repeats=1, features=["a"]).independence_test(X)
    labels = np.where(Y > 0, "yes", "no")
    said = run(lambda X: np.where(model(X) > 0, "yes", "no"), labels, loss="zero_one")
    with pytest.raises(ParameterError, match="predictions and a target that are numbers"):
        said.independence_test(X)
    numbers = X[["a", "b"]]
    left_out = sg.loco(LinearRegression().fit(numbers, Y), numbers, Y, train=(numbers, Y))
    with pytest.raises(ParameterError, match="loco"):
        left_out.independence_test(numbers)


def test_two_rows_decide_nothing() -> None:
    imp = sg.importance(model, X[:2], Y[:2], sampler="marginal", n_repeats=2, features=["a"], random_state=1)
    line = imp.independence_test(X[:2]).iloc[0]
    assert (line["decision"], line["reason"]) == ("undecided", "there are too few rows")


def other_columns(columns: Floats) -> OtherColumns:
    frame = pd.DataFrame(columns, columns=[f"z{at}" for at in range(columns.shape[1])])
    table = read_table(frame, lenient=True)
    return OtherColumns.of(table, FoldGrams.of(table, 1), ("x",), None, 1)


def test_predictable_values_are_removed_and_noise_is_not() -> None:
    """Bounds are a little above what each regression attains; the sine has three periods within the data."""
    rng = np.random.default_rng(5)
    columns = rng.normal(size=(500, 4))
    columns[::7, 3] = np.nan
    noise = rng.normal(size=500)
    line, step, wave = 3 * columns[:, 0], 3.0 * (columns[:, 1] > 0), 3 * np.sin(4 * columns[:, 2])
    nothing, others = [np.zeros(500)], other_columns(columns)
    for signal, most in ((line, 0.15), (step, 0.3), (wave, 0.2)):
        left, start = residualize(signal + noise, nothing, others)
        assert start == 0
        assert np.mean((left - noise) ** 2) < most
    left, start = residualize(line + noise, [np.zeros(500), line], others)
    assert start == 1
    assert np.mean((left - noise) ** 2) < 0.02


def test_dependence_that_regressions_missed_is_named() -> None:
    rng = np.random.default_rng(6)
    columns = rng.normal(size=(300, 3))
    noise = rng.normal(size=(2, 300))
    others = other_columns(columns)
    wave, product = np.sin(5 * columns[:, 1]), np.sign(columns[:, 0] * columns[:, 2])
    for missed, names in ((wave, "z1"), (product, "z0 and z2")):
        assert names in lack_of_fit([(missed + noise[0], missed + noise[1])], others)
    assert not lack_of_fit([(wave + noise[0], product + noise[1])], others)  # no bias: they do not vary together
    assert not lack_of_fit([(noise[0], noise[0] + noise[1])], others)  # dependence within rows is what is tested


def test_noise_is_rarely_taken_for_missed_dependence() -> None:
    """200 runs at 5 %: 10 expected, with standard error 3; four of them."""
    rng = np.random.default_rng(7)
    others = other_columns(rng.normal(size=(100, 4)))
    reasons = [lack_of_fit([(rng.normal(size=100), rng.normal(size=100))], others) for _ in range(200)]
    assert sum(map(bool, reasons)) < 22


def test_where_the_regressions_fail_there_is_no_p_value() -> None:
    """Thirty periods of a wave in 300 rows, and six columns of noise: no regression finds it, neighbours share it."""
    rng = np.random.default_rng(8)
    z = rng.random(300)
    wave = np.sin(60 * np.pi * z)
    rows = pd.DataFrame({"x": wave + 0.3 * rng.normal(size=300), "z": z})
    rows = rows.assign(**{f"w{at}": rng.normal(size=300) for at in range(6)})
    y = wave + rng.normal(size=300)
    imp = sg.importance(lambda X: np.asarray(X["x"]), rows, y, sampler="marginal", features=["x"], random_state=1)
    assert imp.overall["p_value"][0] < 1e-6
    line = imp.independence_test(rows).iloc[0]
    assert line["decision"] == "undecided"
    assert "depend on z" in line["reason"]
    assert np.isnan(line[["p_value", "p_holm", "p_bh"]].astype(float)).all()
