"""Knockoffs against R's knockoff (0.3.6, with Rdsdp 1.0.5.1): s, conditional mean and conditional covariance."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from subgrove._core.kinds import Floats
from subgrove.samplers.knockoff_solver import drawn_in, equal_s, largest_s
from subgrove.samplers.knockoffs import FittedKnockoffs, Knockoffs

from .cases import FOLDER, frame

HERE = FOLDER.parent / "knockoff"
pytestmark = [
    pytest.mark.skipif(not HERE.exists(), reason="the outputs of R's knockoff are not beside the repository"),
    pytest.mark.filterwarnings("ignore:Knockoffs of"),  # some of R's s are 0 too
]
TABLES = ["bike_numeric", "sim_linear_n200_p10", "spacega_scaled", "wine"]
MATRICES = ["ar1_p30_rho0.3", "ar1_p30_rho0.7", "ar1_p30_rho0.95", "equicorr_p8_rho0.5", "equicorr_p8_rho0.9"]
Method = Literal["sdp", "equi"]
METHODS: list[Method] = ["sdp", "equi"]
# DSDP stops at a gap of 1e-6 in the objective; the entries of s can be off by more.
S_TOLERANCE = {"sdp": 1e-4, "equi": 1e-12}


@cache
def theirs(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return loaded


@cache
def table(name: str) -> pd.DataFrame:
    file = {"bike_numeric": "bike_full", "spacega_scaled": "openml_spacega", "wine": "openml_wine"}.get(name, name)
    X: pd.DataFrame = frame(file)[theirs(name)["columns"]].astype(float)
    return (X - X.mean()) / X.std() if name == "spacega_scaled" else X


@cache
def ours(name: str, method: Method) -> FittedKnockoffs:
    return Knockoffs(method).fit(table(name))


def correlations(name: str) -> Floats:
    kind, p, rho = name.split("_")
    size, value = int(p.removeprefix("p")), float(rho.removeprefix("rho"))
    if kind == "equicorr":
        return (1 - value) * np.eye(size) + value
    return np.asarray(value ** np.abs(np.subtract.outer(np.arange(size), np.arange(size))), dtype=np.float64)


@pytest.mark.parametrize("name", TABLES)
def test_mean_and_covariance_are_those_of_r(name: str) -> None:
    fitted, expected = ours(name, "equi"), theirs(name)
    covariance = np.array(expected["Sigma"])
    assert fitted.shrinkage == 0
    assert (fitted.mean - expected["mu"]) / fitted.scale == pytest.approx(np.zeros(len(fitted.mean)), abs=1e-12)
    assert fitted.scale**2 == pytest.approx(np.diag(covariance), rel=1e-12)
    identity = fitted.precision @ (covariance / np.outer(fitted.scale, fitted.scale))
    assert identity == pytest.approx(np.eye(len(fitted.mean)), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TABLES)
def test_s_is_that_of_r(name: str, method: Method) -> None:
    expected = theirs(name)[method]["s_correlation_scale"]
    assert ours(name, method).s == pytest.approx(expected, rel=0, abs=S_TOLERANCE[method])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MATRICES)
def test_s_of_a_given_matrix_is_that_of_r(name: str, method: Method) -> None:
    matrix = correlations(name)
    s = drawn_in(largest_s(matrix).s if method == "sdp" else equal_s(matrix), matrix)
    assert s == pytest.approx(theirs("toeplitz")[name][method], rel=0, abs=S_TOLERANCE[method])


@pytest.mark.parametrize("name", TABLES)
def test_our_sum_of_s_is_within_the_gap_of_r(name: str) -> None:
    # Both are multiplied by 1 - 1e-8 or less to be safe; that, not the solver, makes up most of the difference.
    assert ours(name, "sdp").s.sum() == pytest.approx(theirs(name)["sdp"]["objective_sum_s_corr"], abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TABLES)
def test_conditional_mean_and_covariance_at_their_s_are_theirs(name: str, method: Method) -> None:
    expected = theirs(name)[method]
    fitted = replace(ours(name, method), s=np.array(expected["s_correlation_scale"]))
    assert mean_distance(fitted, name, expected) < 1e-6
    assert covariance_distance(fitted, expected) < 1e-6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TABLES)
def test_conditional_mean_and_covariance_at_our_s_are_near_theirs(name: str, method: Method) -> None:
    fitted, expected = ours(name, method), theirs(name)[method]
    # An s that is off by d moves the mean by d times Sigma^-1 (x - mu), in standard deviations, and the covariance by
    # at most 2 d (1 + |G^-1| s).
    off = np.abs(fitted.s - expected["s_correlation_scale"]).max() + 1e-9
    standard = (first_rows(name) - fitted.mean) / fitted.scale
    assert mean_distance(fitted, name, expected) < off * np.abs(standard @ fitted.precision).max() + 1e-6
    assert covariance_distance(fitted, expected) < 2 * off * (1 + np.abs(fitted.precision * fitted.s).max()) + 1e-6


def first_rows(name: str) -> Floats:
    return np.asarray(table(name).head(5).to_numpy(), dtype=np.float64)


def mean_distance(fitted: FittedKnockoffs, name: str, expected: dict[str, Any]) -> float:
    """In standard deviations of the columns."""
    difference = fitted.conditional_mean(first_rows(name)) - np.array(expected["cond_mean_first5"])
    return float(np.abs(difference / fitted.scale).max())


def covariance_distance(fitted: FittedKnockoffs, expected: dict[str, Any]) -> float:
    """On the scale of correlations."""
    difference = fitted.conditional_covariance - np.array(expected["cond_cov"])
    return float(np.abs(difference / np.outer(fitted.scale, fitted.scale)).max())


def test_unscaled_columns_that_r_cannot_invert_give_the_same_s() -> None:
    X = frame("openml_spacega")[theirs("spacega_scaled")["columns"]].astype(float)
    fitted = Knockoffs().fit(X)
    assert fitted.shrinkage == 0
    assert fitted.s == pytest.approx(ours("spacega_scaled", "sdp").s, abs=1e-6)
