"""A small table and a model in closed form, for pictures of effects."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import subgrove as sg
from subgrove import Effect, Partition

SEASONS = ("WINTER", "SPRING", "SUMMER", "FALL")


@cache
def table(seed: int = 3) -> pd.DataFrame:
    """200 rows: temp depends on season, and has an outlier."""
    rng = np.random.default_rng(seed)
    season = np.repeat(np.arange(4), 50)
    temp = 5.0 + 7 * np.minimum(season, 4 - season) + rng.normal(0, 2, 200)
    temp[0] = 40.0
    return pd.DataFrame(
        {
            "temp": temp,
            "season": pd.Categorical([SEASONS[k] for k in season], categories=list(SEASONS)),
            "hum": rng.uniform(30, 90, 200),
            "place": pd.Categorical([f"Station no. {k:02d}" for k in rng.integers(0, 40, 200)]),
            "when": pd.date_range("2023-03-01", periods=200),
            "wait": pd.to_timedelta(rng.uniform(0, 20, 200), unit="h"),
            "constant": np.full(200, 3.0),
            "gaps": np.where(np.arange(200) % 4 == 0, np.nan, rng.normal(size=200)),
        }
    )


def model(X: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Rentals, which depend on temp and season."""
    return np.asarray(100 * X["temp"] - 2 * X["hum"] + 500 * (X["season"] == "SUMMER"), dtype=np.float64)


def classes(X: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Three numbers for each row."""
    return np.column_stack([k * model(X) + k for k in range(3)])


@cache
def subgroups(feature: str, depth: int = 2) -> Partition:
    """Subgroups of a feature by the season, the temperature and the humidity, grown on other rows."""
    columns = ["temp", "season", "hum"]
    columns += [] if feature in columns else [feature]
    return sg.find_subgroups(table(4)[columns], features=feature, max_depth=depth)[feature]


def effect_of(feature: Any, kind: str = "pdp", depth: int | None = None, **options: Any) -> Effect:
    """An effect, in subgroups if a depth is given."""
    groups = None if depth is None else subgroups(feature, depth)
    evaluated = options.pop("model", model)
    return sg.effect(evaluated, table(), feature, kind=kind, subgroups=groups, grid_resolution=8, **options)  # type: ignore[arg-type]
