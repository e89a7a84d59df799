"""Shifts that are found: the terms of known sums, honest residuals, and an estimate of the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._core.kinds import Floats
from subgrove._data.table import read_table
from subgrove._regress import linear as fitting
from subgrove._regress.gram import FoldGrams
from subgrove._regress.linear import LinearFit, fit_dense_linear, fit_sparse_linear


def columns(n: int, p: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, p)), columns=[f"z{k}" for k in range(p)])
    return frame.assign(kind=np.array(["u", "v", "w"])[rng.integers(0, 3, n)])


def found(frame: pd.DataFrame, x: Any, seed: int = 0, **options: Any) -> LinearFit | None:
    table = read_table(frame.assign(x=x))
    return fit_sparse_linear(FoldGrams.of(table, seed), "x", np.asarray(x, dtype=float), list(frame.columns), **options)


def noise(n: int, seed: int) -> Floats:
    return np.random.default_rng(1000 + seed).normal(size=n)


def test_terms_of_a_known_sum_with_signs_and_sizes() -> None:
    Z = columns(800, 8, 0)
    x = 5 + 3 * Z["z0"] - 2 * Z["z1"] + 4 * (Z["kind"] == "v") + noise(800, 0)
    shift = found(Z, x)
    assert shift is not None
    terms = {term.label: term for term in shift.predictor.terms}
    assert {term.label for term in shift.predictor.terms[:3]} == {"z0", "z1", "[kind = v]"}
    # Coefficients of least squares have a standard error of about 1 / sqrt(800) = 0.035; sparse ones are a bit shrunk.
    assert terms["z0"].coefficient == pytest.approx(3, abs=0.15)
    assert terms["z1"].coefficient == pytest.approx(-2, abs=0.15)
    assert terms["[kind = v]"].coefficient == pytest.approx(4, abs=0.35)
    assert terms["z0"].size == pytest.approx(3, abs=0.3)
    assert max((term.size for label, term in terms.items() if label not in {"z0", "z1", "[kind = v]"}), default=0) < 0.2
    assert shift.noise == pytest.approx(1, abs=4 * np.sqrt(2 / 800))


def test_a_product_that_matters_is_a_term() -> None:
    Z = columns(600, 6, 1)
    x = Z["z0"] + 2 * Z["z1"] * Z["z2"] + noise(600, 1)
    shift = found(Z, x)
    assert shift is not None
    assert shift.predictor.terms[0].label == "z1 x z2"
    assert shift.predictor.terms[0].coefficient == pytest.approx(2, abs=0.2)
    assert shift.predictor.columns[:2] == ("z1", "z2")
    without = found(Z, x, products=False)
    assert without is None or all(len(term.parts) == 1 for term in without.predictor.terms)


def test_a_square_is_a_product_with_itself() -> None:
    Z = columns(600, 6, 2)
    shift = found(Z, 1.5 * Z["z3"] ** 2 + noise(600, 2))
    assert shift is not None
    assert shift.predictor.terms[0].label == "z3 x z3"


def test_what_is_predicted_is_the_sum_of_the_terms() -> None:
    Z = columns(400, 5, 3)
    x = 2 * Z["z0"] - (Z["kind"] == "w") + Z["z1"] * Z["z2"] + noise(400, 3)
    shift = found(Z, x)
    assert shift is not None
    table = read_table(Z.assign(x=x))
    total = np.full(400, shift.predictor.intercept)
    for term in shift.predictor.terms:
        factors = []
        for part in term.parts:
            raw = Z[part.column] if part.is_value else (Z[part.column] == part.level).astype(float)
            factors.append(raw if len(term.parts) == 1 else raw - part.mean)
        total += term.coefficient * np.prod(factors, axis=0)
    np.testing.assert_allclose(shift.predictor.predict(table), total, rtol=1e-9)
    assert np.mean(x - shift.predictor.predict(table)) == pytest.approx(0, abs=1e-9)


def test_independent_columns_have_no_shift_in_most_runs() -> None:
    runs = 60
    none = sum(found(columns(300, 9, 100 + seed), noise(300, seed)) is None for seed in range(runs))
    # A shift by chance in at most a quarter of the runs: 0.25 + 3 standard errors, sqrt(0.25 * 0.75 / 60) = 0.056.
    assert runs - none <= runs * (0.25 + 3 * 0.056)


def test_residuals_are_held_out() -> None:
    """Moving the value of one row far away moves its own residual as far: no shift runs after it."""
    Z = columns(200, 4, 5)
    x = np.asarray(2 * Z["z0"] + noise(200, 5))
    moved = x.copy()
    moved[17] += 50
    one, two = found(Z, x, products=False), found(Z, moved, products=False)
    assert one is not None
    assert two is not None
    assert two.residuals[17] - one.residuals[17] == pytest.approx(50, abs=1.0)


def test_held_out_residuals_are_larger_than_those_of_fitted_rows() -> None:
    Z = columns(150, 40, 6)
    x = np.asarray(Z.filter(like="z").to_numpy()[:, :20].sum(axis=1) + noise(150, 6))
    shift = found(Z, x)
    assert shift is not None
    fitted = x - shift.predictor.predict(read_table(Z.assign(x=x)))
    assert (shift.residuals**2).mean() > 1.1 * (fitted**2).mean()
    assert (shift.residuals**2).mean() > shift.noise


@pytest.mark.parametrize("p", [5, 40])
def test_noise_is_unbiased(p: int) -> None:
    """Its mean over runs is the true variance 1, although shifts are sparse and estimated from 120 rows."""
    runs, n = 150, 120
    weights = np.linspace(1, 0.2, p)
    estimates = []
    for seed in range(runs):
        Z = columns(n, p, 500 + seed).drop(columns="kind")
        shift = found(Z, Z.to_numpy() @ weights + noise(n, seed), products=False)
        assert shift is not None
        estimates.append(shift.noise)
    # One estimate has variance 2 / (n - p - 1).
    margin = 3.5 * np.sqrt(2 / (n - p - 1) / runs)
    assert np.mean(estimates) == pytest.approx(1, abs=margin)


def test_a_dense_shift_uses_all_columns_and_is_better_where_all_matter_a_little() -> None:
    Z = columns(300, 60, 7).drop(columns="kind")
    x = 0.15 * Z.to_numpy().sum(axis=1) + noise(300, 7)
    table = read_table(Z.assign(x=x))
    grams = FoldGrams.of(table, 0)
    dense, sparse = (
        fit_dense_linear(grams, "x", x, list(Z.columns)),
        fit_sparse_linear(grams, "x", x, list(Z.columns)),
    )
    assert dense is not None
    assert sparse is not None
    assert len(dense.predictor.terms) == 60
    assert (dense.residuals**2).mean() < (sparse.residuals**2).mean()
    np.testing.assert_allclose((x - dense.predictor.predict(table)).mean(), 0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_units_do_not_matter(scale: float) -> None:
    Z = columns(300, 5, 8)
    x = np.asarray(2 * Z["z0"] + Z["z1"] * Z["z2"] + noise(300, 8))
    one, two = found(Z, x), found(Z.assign(z0=scale * Z["z0"]), scale * x)
    assert one is not None
    assert two is not None
    assert [term.label for term in one.predictor.terms] == [term.label for term in two.predictor.terms]
    np.testing.assert_allclose(two.residuals, scale * one.residuals, rtol=1e-6, atol=1e-9 * scale)


def test_a_duplicate_of_the_feature_leaves_nothing() -> None:
    Z = columns(200, 3, 9)
    shift = found(Z, Z["z1"])
    assert shift is not None
    assert shift.predictor.columns == ("z1",)
    assert np.abs(shift.residuals).max() < 0.05


def test_nothing_is_known_of_noise_that_is_but_rounding() -> None:
    Z = columns(300, 3, 9)
    shift = found(Z, 1e5 * (Z["z1"] - 0.3 * Z["z2"]))
    assert shift is not None
    assert (shift.residuals**2).mean() < shift.noise < 1e-11 * 1e10 * (1 + 0.3**2) * 1.5


def test_a_path_that_leaves_the_products_out_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may seem to be related by heavy tails; without them in the sum, their noise would not be that of the sum."""
    Z = columns(250, 4, 9)
    x = 0.8 * Z["z0"] + noise(250, 9)
    without = found(Z, x, products=False)
    monkeypatch.setattr(fitting, "_significant_products", lambda *_: [(1, 2), (2, 2)])
    monkeypatch.setattr(
        fitting, "exceeds_standard_error", lambda *_: True
    )  # as rounding may have it where both are the same
    problem = found(Z, x)
    assert problem is not None
    assert without is not None
    assert problem.predictor.terms == without.predictor.terms
    assert problem.noise == without.noise


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_few_rows_have_no_shift(n: int) -> None:
    Z = columns(n, 3, 10)
    assert found(Z, Z["z0"]) is None


def test_constant_features_and_no_columns_have_no_shift() -> None:
    Z = columns(100, 3, 11)
    assert found(Z, np.ones(100)) is None
    table = read_table(Z.assign(x=Z["z0"]))
    assert fit_sparse_linear(FoldGrams.of(table, 0), "x", Z["z0"].to_numpy(), []) is None
    assert fit_dense_linear(FoldGrams.of(table, 0), "x", Z["z0"].to_numpy(), []) is None


def test_more_columns_than_are_looked_at() -> None:
    Z = columns(200, 330, 12)
    shift = found(Z, 3 * Z["z7"] + noise(200, 12))
    assert shift is not None
    assert shift.predictor.columns[0] == "z7"


def test_the_same_seed_gives_the_same_shift_and_only_folds_depend_on_it() -> None:
    Z = columns(300, 6, 13)
    x = 2 * Z["z0"] + noise(300, 13)
    one, two, other = (found(Z, x, seed) for seed in (1, 1, 2))
    assert one is not None
    assert two is not None
    assert other is not None
    assert one.predictor.terms == two.predictor.terms
    np.testing.assert_array_equal(one.residuals, two.residuals)
    assert other.predictor.terms[0].coefficient == pytest.approx(one.predictor.terms[0].coefficient, abs=0.2)
