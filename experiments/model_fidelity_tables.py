"""Losses of effect curves summed up: medians over features beside the published ones, and which method is best."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

_PUBLISHED = Path(__file__).parent / "published" / "model_fidelity_rf.csv"
CELL = ["data", "model", "against"]
METHODS = ("pdp", "ale", "cs_trtr_1", "cs_cart_1", "cs_trtr_2", "cs_cart_2")
FLAT = "flat"  # the mean prediction for every row: what knows nothing of the feature
DEEP = ("cs_trtr_2", "cs_cart_2")
HALF_DIGIT = 0.005  # published numbers have two decimals
_TIED = 2.0  # standard errors


@cache
def published() -> dict[tuple[str, str], float]:
    """The published medians by method and data set; of forests, against the target."""
    table = pd.read_csv(_PUBLISHED)
    return {
        (method, name): float(value)
        for name in table.columns.drop("method")
        for method, value in zip(table["method"], table[name], strict=True)
    }


def medians(results: pd.DataFrame) -> pd.DataFrame:
    """For each data set, model and method the median over features, mean over repetitions, with the published one.

    `deviation` is how far ours is from what was rounded to the published number, as a share of it.
    """
    each = results.groupby([*CELL, "method", "repetition"])["loss"].median().reset_index()
    grouped = each.groupby([*CELL, "method"])
    summed = grouped.agg(repetitions=("loss", "size"), estimate=("loss", "mean"), std_error=("loss", "sem"))
    lines: list[dict[Any, Any]] = summed.reset_index().to_dict("records")
    for line in lines:
        comparable = (line["model"], line["against"]) == ("forest", "target")
        known = published().get((line["method"], line["data"]), np.nan) if comparable else np.nan
        away = line["estimate"] - known
        line["published"] = known
        line["deviation"] = np.sign(away) * max(abs(away) - HALF_DIGIT, 0.0) / known
    table = pd.DataFrame(lines)
    place = {method: at for at, method in enumerate((*METHODS, FLAT))}
    return table.sort_values(
        [*CELL, "method"], key=lambda column: column.replace(place), kind="stable", ignore_index=True
    )


def best(results: pd.DataFrame) -> pd.DataFrame:
    """Whether cs-PDPs of depth 2 are best: the better of both trees less the best of the other methods.

    The difference is taken in each repetition, on the same rows. Up to two standard errors to either side it is "tied",
    beyond "best" or "beaten"; with one repetition its sign decides.
    """
    each = results.groupby([*CELL, "repetition", "method"])["loss"].median().unstack("method")
    lines = []
    for (data, model, against), part in each.groupby(level=CELL):
        means = part.mean()
        deep = min(DEEP, key=lambda method: means[method])
        other = min((method for method in METHODS if method not in DEEP), key=lambda method: means[method])
        difference = part[deep] - part[other]
        error = float(difference.std() / np.sqrt(len(difference)))
        line: dict[str, Any] = {"data": data, "model": model, "against": against, "depth_2": deep, "other": other}
        line |= {"loss_depth_2": means[deep], "loss_other": means[other], "loss_pdp": means["pdp"]}
        line |= {"difference": difference.mean(), "std_error": error}
        lines.append(line | {"verdict": _verdict(float(difference.mean()), error)})
    return pd.DataFrame(lines)


def _verdict(difference: float, error: float) -> str:
    if difference == 0 or abs(difference) <= _TIED * error:  # of one repetition no error is known
        return "tied"
    return "best" if difference < 0 else "beaten"


def by_feature(results: pd.DataFrame) -> pd.DataFrame:
    """Losses of each feature, mean over repetitions."""
    some = results[results["method"] != FLAT]
    grouped = some.groupby([*CELL, "feature", "method"])
    table = grouped.agg(estimate=("loss", "mean"), subgroups=("subgroups", "mean"), repetitions=("loss", "size"))
    return table.reset_index().assign(estimate=lambda found: found["estimate"].map(lambda loss: float(f"{loss:.6g}")))
