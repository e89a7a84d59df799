"""Mean squared errors beside those of the true sampler on the same rows, and beside the best that was published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.beside_published import CELL, published, summed_up
from subgrove._core.kinds import Floats

_RESULTS = Path(__file__).parent / "results"


def beside_true(results: pd.DataFrame, results_folder: Path = _RESULTS) -> pd.DataFrame:
    """What `summed_up` gives, and more columns.

    `ratio_true` is the mean squared error as a multiple of the true sampler's on the same rows with as many redraws,
    with its standard error. `best_published` is the smallest mean squared error that was published for the cell, of
    whatever method (marginal included), `best_repeated` that of our own run of these methods with as many redraws.
    """
    cells = summed_up(results).merge(_ratios(results), on=[*CELL, "method", "m"], how="left", sort=False)
    theirs = _smallest(published("ground_truth_summary"), CELL, "best_published")
    cells = cells.merge(theirs, on=CELL, how="left", sort=False)
    repeated = results_folder / "ground_truth_cells.csv"
    if repeated.exists():
        own = pd.read_csv(repeated)
        best = _smallest(own[own["method"] != "true"], [*CELL, "m"], "best_repeated")
        cells = cells.merge(best, on=[*CELL, "m"], how="left", sort=False)
    below = (cells["mse"] < cells["best_published"]).astype(object)
    return cells.assign(below_published=below.where(cells["best_published"].notna(), None))


def _smallest(table: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    best = table.loc[table.groupby(keys)["mse"].idxmin(), [*keys, "mse", "mse_se", "method"]]
    return best.rename(columns={"mse": name, "mse_se": f"{name}_se", "method": f"{name}_method"})


def _ratios(results: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (*cell, m), part in results.groupby([*CELL, "m"], sort=False):
        by_rep = {name: own.set_index("rep") for name, own in part.groupby("method", sort=False)}
        if "true" not in by_rep:
            continue
        for method, own in by_rep.items():
            ratio, error = mse_ratio(own, by_rep["true"])
            line: dict[str, Any] = dict(zip(CELL, cell, strict=True))
            lines.append(line | {"method": method, "m": m, "ratio_true": ratio, "ratio_true_se": error})
    return pd.DataFrame(lines, columns=[*CELL, "method", "m", "ratio_true", "ratio_true_se"])


def mse_ratio(own: pd.DataFrame, true: pd.DataFrame) -> tuple[float, float]:
    """Ratio of two mean squared errors over the repetitions that both have, and its standard error.

    With a_i and b_i what repetition i adds to either (see `summed_up`), the ratio R of the means has, to first order,
    the standard error of the mean of (a_i - R b_i) / mean(b).
    """
    shared = own.index.intersection(true.index)
    truth = own.loc[shared, "truth"].to_numpy(np.float64)
    above, above_parts = _squared_errors(own.loc[shared, "estimate"].to_numpy(np.float64), truth)
    below, below_parts = _squared_errors(true.loc[shared, "estimate"].to_numpy(np.float64), truth)
    ratio = above / below if below else float("nan")
    if len(shared) < 2 or not below:
        return ratio, float("nan")
    spread = (above_parts - ratio * below_parts).std(ddof=1) / below
    return ratio, float(spread / np.sqrt(len(shared)))


def _squared_errors(estimate: Floats, true: Floats) -> tuple[float, Floats]:
    truth = true.mean()
    squares = (estimate - truth) ** 2
    return float(squares.mean()), squares - 2 * (estimate.mean() - truth) * (true - truth)


def choices(results: pd.DataFrame) -> pd.DataFrame:
    """Of samplers that choose, how often each candidate was chosen, and what the error is where it was.

    `mse` is the mean squared error of the repetitions with that choice, from the truth of the whole cell, with the most
    redraws that there are. Weighted by their shares, these sum to the error of the cell.
    """
    columns = [*CELL, "method", "candidate", "share", "mse"]
    if "chosen" not in results:
        return pd.DataFrame(columns=columns)
    made = results[results["chosen"].notna() & (results["chosen"] != "") & (results["m"] == results["m"].max())]
    lines = []
    for (*cell, method), part in made.groupby([*CELL, "method"], sort=False):
        squares = (part["estimate"] - part["truth"].mean()) ** 2
        for candidate, share in part["chosen"].value_counts(normalize=True).items():
            line: dict[str, Any] = dict(zip(CELL, cell, strict=True))
            mse = float(squares[part["chosen"] == candidate].mean())
            lines.append(line | {"method": method, "candidate": candidate, "share": float(share), "mse": mse})
    return pd.DataFrame(lines, columns=columns)


def with_choices(cells: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """Cells with the column `chosen`: candidates and their shares, the most frequent first."""
    keys = [*CELL, "method"]
    labels = {
        key: "; ".join(f"{one['candidate']} {one['share']:.3g}" for one in part.to_dict("records"))
        for key, part in chosen.sort_values("share", ascending=False, kind="stable").groupby(keys)
    }
    return cells.assign(chosen=[labels.get(key, "") for key in zip(*(cells[name] for name in keys), strict=True)])
