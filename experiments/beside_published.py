"""Simulated estimates summed up cell by cell, with the published numbers and the distance from them beside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

CELL = ["setting", "scenario", "n", "p"]
_FOLDER = Path(__file__).parent / "published"
_SCENARIOS = {"non-linear": "nonlinear", "multi. lin.": "multilinear"}  # published name -> ours
_CARRIED = ["truth", "reps", "mean", "sd", "q05", "median", "q95", "mse", "mse_se"]


@cache
def published(name: str) -> pd.DataFrame:
    """A table of published numbers, with the scenarios named as here."""
    table = pd.read_csv(_FOLDER / f"{name}.csv")
    return table.assign(scenario=table["scenario"].replace(_SCENARIOS))


def summed_up(results: pd.DataFrame) -> pd.DataFrame:
    """Mean, spread and mean squared error of each method in each cell, published numbers beside those of one redraw.

    The truth of a cell is the mean over repetitions of the true importance, as in the paper. It is an estimate too, so
    `mse_se` has the noise that it brings: repetition i adds (e_i - T)^2 - 2 (mean(e) - T) (t_i - T) to the mean squared
    error, to first order.

    `between_models` is the covariance of estimates and truths. Both are of the same model and of different rows, so it
    is the variance of what is true of each model, and a part of the mean squared error of any unbiased estimate.
    """
    lines = []
    for (*cell, method, m), part in results.groupby([*CELL, "method", "m"], sort=False):
        estimate, true = part["estimate"].to_numpy(float), part["truth"].to_numpy(float)
        truth, mean, reps = float(true.mean()), float(estimate.mean()), len(part)
        squares = (estimate - truth) ** 2
        parts = squares - 2 * (mean - truth) * (true - truth)
        products = (estimate - mean) * (true - truth)
        lines.append(
            {
                **dict(zip(CELL, cell, strict=True)),
                "method": method,
                "m": m,
                "reps": reps,
                "truth": truth,
                "between_models": float(products.sum() / (reps - 1)) if reps > 1 else np.nan,
                "between_models_se": _standard_error(products),
                "mean": mean,
                "mean_se": _standard_error(estimate),
                "sd": float(estimate.std(ddof=1)) if reps > 1 else np.nan,
                **{f"q{round(100 * q):02d}": float(np.quantile(estimate, q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
                "mse": float(squares.mean()),
                "mse_se": _standard_error(parts),
            }
        )
    return _with_published(pd.DataFrame(lines))


def _with_published(ours: pd.DataFrame) -> pd.DataFrame:
    theirs = published("ground_truth_summary").assign(m=1)
    theirs = theirs.rename(columns={name: f"published_{name}" for name in _CARRIED})
    both = ours.merge(theirs, on=[*CELL, "method", "m"], how="left", sort=False)
    their_mean_se = both["published_sd"] / np.sqrt(both["published_reps"])
    # Squared errors are skewed: of few repetitions, a mean that is small by chance has a standard error that is too
    # small. If both have the same distribution, their spread is best estimated from both together.
    reps, their_reps = both["reps"], both["published_reps"]
    squares = (reps - 1) * reps * both["mse_se"] ** 2 + (their_reps - 1) * their_reps * both["published_mse_se"] ** 2
    pooled = np.sqrt(squares / (reps + their_reps - 2) * (1 / reps + 1 / their_reps))
    return both.assign(
        z_mean=(both["mean"] - both["published_mean"]) / np.hypot(both["mean_se"], their_mean_se),
        z_mse=(both["mse"] - both["published_mse"]) / np.hypot(both["mse_se"], both["published_mse_se"]),
        z_pooled=(both["mse"] - both["published_mse"]) / pooled,
    )


def truths(results: pd.DataFrame, exact: dict[str, float]) -> pd.DataFrame:
    """The true importance of each cell beside the published one; in setting I beside the closed form as well."""
    lines = []
    theirs = published("ground_truth_summary").drop_duplicates(CELL).set_index(CELL)[["truth", "reps"]]
    known: dict[Any, dict[Any, Any]] = theirs.to_dict("index")
    for cell, part in results.drop_duplicates([*CELL, "rep"]).groupby(CELL, sort=False):
        true = part["truth"].to_numpy(float)
        error, spread = _standard_error(true), true.std(ddof=1) if len(true) > 1 else np.nan
        their_truth, their_reps = known[cell]["truth"], known[cell]["reps"]
        line: dict[str, Any] = dict(zip(CELL, cell, strict=True))
        line |= {"reps": len(true), "truth": true.mean(), "truth_se": error, "published_truth": their_truth}
        # The published standard error is not known; their repetitions spread as ours do.
        line["z_truth"] = (true.mean() - their_truth) / np.hypot(error, spread / np.sqrt(their_reps))
        line["exact"] = exact[str(line["scenario"])] if line["setting"] == "I" else np.nan
        line["z_exact"] = (true.mean() - line["exact"]) / error
        lines.append(line)
    return pd.DataFrame(lines)


def agreement(cells: pd.DataFrame, by: Sequence[str] = ("setting", "method"), within: float = 3.0) -> pd.DataFrame:
    """How many cells are within so many standard errors of the published number, own or pooled ones."""
    names = ("mse", "pooled", "mean")
    compared = cells.dropna(subset=[f"z_{name}" for name in names])
    lines = []
    for key, part in compared.groupby(list(by), sort=False):
        near = {f"{name}_within": int((part[f"z_{name}"].abs() <= within).sum()) for name in names}
        far = {f"{name}_largest_z": float(part[f"z_{name}"].abs().max()) for name in names}
        lines.append({**dict(zip(by, key, strict=True)), "cells": len(part), **near, **far})
    columns = [*by, "cells", *(f"{name}_within" for name in names), *(f"{name}_largest_z" for name in names)]
    return pd.DataFrame(lines, columns=columns)


def _standard_error(values: npt.NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
