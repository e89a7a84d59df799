"""Data and models that the tests of effects share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
SEASONS = ["WINTER", "SPRING", "SUMMER", "FALL"]
SIZES = ["s", "m", "l"]


def rows(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """One column of each kind; the season and the flag depend on the temperature."""
    rng = np.random.default_rng(seed)
    temp = rng.normal(15, 8, n).round(1)
    season = np.clip((temp + rng.normal(0, 6, n)) // 8, 0, 3).astype(int)
    return pd.DataFrame(
        {
            "temp": temp,
            "count": rng.integers(0, 9, n),
            "flag": temp + rng.normal(0, 4, n) > 15,
            "season": pd.Categorical([SEASONS[code] for code in season], SEASONS),
            "size": pd.Categorical([SIZES[code] for code in rng.integers(0, 3, n)], SIZES, ordered=True),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
            "hum": rng.uniform(20, 100, n),
        }
    )


def model(X: pd.DataFrame) -> Floats:
    """Uses every column, with interactions."""
    season = X["season"].astype(str).map({"WINTER": -4.0, "SPRING": 0.0, "SUMMER": 2.0, "FALL": 1.0}).to_numpy()
    size = X["size"].astype(str).map({"s": 1.0, "m": 2.0, "l": 4.0}).to_numpy()
    days = (X["day"] - pd.Timestamp("2020-01-01")).dt.total_seconds().to_numpy() / 86400
    value = X["temp"].to_numpy() * (1 + 0.1 * size) + np.sin(X["count"].to_numpy()) * season
    value = value + X["flag"].to_numpy() * X["hum"].to_numpy() / 50 + season * X["temp"].to_numpy() / 10
    return np.asarray(value + 0.01 * days, dtype=np.float64)


AGAIN = 10  # rows that are predicted once more, to see whether the model predicts the same


class Counting:
    """A model that counts the rows and the calls that it is options for."""

    def __init__(self, function: Any = model) -> None:
        self.function = function
        self.n_rows = 0
        self.sizes: list[int] = []

    def predict(self, X: Any) -> Any:
        self.n_rows += len(X)
        self.sizes.append(len(X))
        return self.function(X)
