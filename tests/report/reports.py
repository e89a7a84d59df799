"""Reports that several tests read: small, with a model in closed form, computed once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

CREATED = "2026-01-01T00:00:00+00:00"
SCRIPT = "<script>alert(1)</script>"
ODD = "new\nline | `x`"


def rows(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Every kind of column: dependent, missing, constant, dates, booleans, levels, names that are code."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "a": a,
            "b": a + 0.3 * rng.normal(size=n),
            "level": pd.Categorical(np.where(a + 0.5 * rng.normal(size=n) > 0, "high", "low")),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "still": 1.0,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "flag": a + rng.normal(size=n) > 0,
            SCRIPT: rng.normal(size=n),
            ODD: rng.integers(0, 5, n),
            "nothing": np.full(n, np.nan),
        }
    )
    return X, pd.Series(2 * a + (X["level"] == "high") + 0.1 * rng.normal(size=n), name="y | z")


TRAIN, TEST = rows(300, 1), rows(150, 2)


def closed_form(X: Any) -> Any:
    """A model that uses two of the columns."""
    return 2 * np.asarray(X["a"], dtype=float) + (np.asarray(X["level"]).astype(str) == "high")


@cache
def odd_report() -> sg.Report:
    """All kinds of columns."""
    labels = {"created": CREATED, "columns": {"when": "read as dates"}}
    return sg.report(closed_form, TRAIN, TEST, n_repeats=3, random_state=1, labels=labels)


@cache
def bike_report() -> sg.Report:
    """The bike data, and a model that needs temp less where it is warm."""
    train, test = sg.datasets.bike(split=0.7, random_state=1)

    def model(X: pd.DataFrame) -> Any:
        return 1900 + 140 * X["temp"].clip(upper=24) + 1900 * (X["yr"] == "2012") - 12 * X["hum"]

    labels = {"created": CREATED}
    return sg.report(model, train, test, features=["temp", "hum", "yr"], n_repeats=5, random_state=1, labels=labels)
