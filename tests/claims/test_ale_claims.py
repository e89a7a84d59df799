"""Errors of accumulated local effects are the spread of the curve over samples, its centre included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._effects import effect

RUNS, N = 400, 200
# A standard deviation of RUNS estimates is known to 1 / sqrt(2 RUNS) = 3.5 %, the mean of as many errors much better.
# Three points or levels or more: 4 of these.
MARGIN = 4 / np.sqrt(2 * RUNS)
HEIGHT = {"p": 0.0, "q": 5.0, "r": 12.0}

Draw = Callable[[np.random.Generator], pd.DataFrame]


def numbers(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame({"x": rng.uniform(size=N), "z": rng.normal(size=N)})


def levels(rng: np.random.Generator) -> pd.DataFrame:
    """Rows of levels differ in z, so that rows of both neighbours do not agree on a step."""
    level = rng.choice(list(HEIGHT), N, p=[0.2, 0.5, 0.3])
    return pd.DataFrame({"x": level, "z": rng.normal(size=N) + (level == "r")})


def of_numbers(X: pd.DataFrame) -> Any:
    return 5 * X["x"] + X["x"] * X["z"]


def of_levels(X: pd.DataFrame) -> Any:
    return X["x"].map(HEIGHT).to_numpy() * (1 + 0.2 * X["z"].to_numpy())


def spread_and_error(draw: Draw, model: Any, grid: list[Any] | None, at: Any) -> tuple[Any, Any]:
    estimates, errors = [], []
    for seed in range(RUNS):
        found = effect(model, draw(np.random.default_rng(seed)), "x", kind="ale", grid=grid)
        estimates.append(found.predict(at))
        curves = found.curves
        errors.append(curves["std_error"] if grid else np.interp(at, curves["x"], curves["std_error"]))
    return np.std(estimates, axis=0, ddof=1), np.sqrt(np.mean(np.square(errors), axis=0))


@pytest.mark.parametrize(
    ("draw", "model", "grid", "at"),
    [
        (numbers, of_numbers, [0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.25, 0.5, 0.75, 1.0]),
        (numbers, of_numbers, None, [0.1, 0.3, 0.5, 0.7, 0.9]),
        (levels, of_levels, list(HEIGHT), list(HEIGHT)),
    ],
    ids=["own borders", "quantiles", "levels"],
)
def test_standard_error_is_the_spread_over_samples(draw: Draw, model: Any, grid: Any, at: Any) -> None:
    spread, error = spread_and_error(draw, model, grid, at)
    np.testing.assert_allclose(error, spread, rtol=MARGIN)
