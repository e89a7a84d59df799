"""Samplers of the package on the rows of the data-fidelity experiment, ranked among the paper's methods.

`python -m experiments data_fidelity --sampler auto`. Units have the keys of `data_fidelity`, and so its rows; tables
put what that experiment has stored beside them. Nothing of it is computed again but `none`, by which it is checked that
the rows are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import data_fidelity
from experiments.data_fidelity import drawn_rows, fidelities
from experiments.fidelity_beside import choices, data_sets, pairs, ranks
from experiments.fidelity_beside_report import draw, section
from experiments.redraws import stream_of
from experiments.units import Size, Unit, seed_of
from subgrove.samplers.fit import samplers_by_name

_SAME = 1e-6  # relative: sums may be made in another order on another machine


def units(size: Size) -> list[Unit]:
    """The units of `data_fidelity`, for samplers."""
    return [Unit(one.key, one.cell, {**one.params, "samplers": size.samplers}) for one in data_fidelity.units(size)]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Squared MMD and fidelity of each feature and sampler, and of unchanged rows."""
    seed = seed_of("data_fidelity", unit.key)
    rows = drawn_rows(unit.params, seed)
    fitted = {name: samplers_by_name()[name]().fit(rows.train, list(rows.features)) for name in unit.params["samplers"]}
    lines = []
    for feature in rows.features:
        drawn = {
            name: [np.asarray(column, dtype=np.float64) for column in one.sample(rows.test, feature, [rng])]
            for name, one in fitted.items()
            for rng in [stream_of(seed, feature, name)]
        }
        drawn["none"] = [rows.test[feature].to_numpy()]
        for line in fidelities(unit.params, rows, feature, drawn):
            choice = getattr(fitted.get(line["variant"]), "choices", {}).get(feature)
            lines.append(line | _labels(choice))
    return lines


def _labels(choice: Any) -> dict[str, Any]:
    if choice is None:
        return {"chosen": None, "subgroups": None, "kept": None, "scores": None}
    scores = "; ".join(f"{one.name} {one.score:.5g}" for one in choice.scores)
    return {
        "chosen": choice.selected,
        "subgroups": choice.n_subgroups,
        "kept": choice.residual_retention,
        "scores": scores,
    }


def beside(results: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Results with those of the paper's methods added, for the repetitions that both have."""
    if results.empty:
        return results
    if theirs.empty:
        raise SystemExit(
            "The paper's methods have no stored units. Run `python -m experiments data_fidelity run` first."
        )
    keys = ["name", "feature", "repetition"]
    both = results[results["variant"] == "none"].merge(theirs[theirs["variant"] == "none"], on=keys)
    other = ~np.isclose(both["mmd2_x"], both["mmd2_y"], rtol=_SAME, atol=0)
    if other.any():
        names = ", ".join(sorted(set(both.loc[other, "name"])))
        raise SystemExit(f"The stored units of the paper's methods are of other rows in {names}. Run both anew.")
    ours = results[results["variant"] != "none"].merge(both[keys], on=keys)
    shared = theirs.merge(both[keys], on=keys)
    return pd.concat([ours, shared.reindex(columns=results.columns)], ignore_index=True)


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean ranks with each sampler among the paper's methods, wins and losses, data sets, and what was chosen."""
    return {
        "ranks": ranks(results),
        "pairs": pairs(results),
        "data_sets": data_sets(results),
        "choices": choices(results),
    }


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """One figure for each sampler: its mean rank in each data set beside the paper's methods."""
    found = tables(results)
    return [draw(found["data_sets"], name, folder) for name in dict.fromkeys(found["ranks"]["sampler"])]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the page on what goes past the paper."""
    return section(tables)
