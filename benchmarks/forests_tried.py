"""Selection of forests by `Auto`: how often its rule and its small forest accept one, and how good full forests are.

    python -m benchmarks.forests_tried            scenarios, 2,000 x 20 and 3,000 x 10; curves and steps of few columns
    python -m benchmarks.forests_tried --data     data sets of OpenML-CC18 in the folder that SUBGROVE_DATA names

For features whose best candidate has four splits or more: how many a small forest is grown for (tried), for how many of
these it does well enough for a whole one (grown), and of the whole ones, how many have a better score than the best so
far; the same of those that are not tried, which is what the rule gives away.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove.samplers import candidates as candidates
from subgrove.samplers.candidates import Candidate, CandidateSet

CURVES: dict[str, Callable[[Floats], Any]] = {
    "a wave": lambda z: 3 * np.sin(3 * z[:, 0]),
    "a slow wave": lambda z: 3 * np.sin(1.5 * z[:, 0]),
    "two waves": lambda z: 2 * np.sin(1.5 * z[:, 0]) + 2 * np.cos(1.5 * z[:, 1]),
    "a wave and a step": lambda z: np.where(z[:, 0] > 0, 3, -3) + 2 * np.sin(3 * z[:, 1]),
    "a wave times a column": lambda z: 2 * np.sin(2 * z[:, 0]) * z[:, 1],
    "an absolute value": lambda z: 3 * np.abs(z[:, 0]),
    "a slope on one side": lambda z: 3 * (z[:, 0] > 0) * z[:, 1],
    "steps": lambda z: 1.5 * np.select([z[:, 0] > 1, z[:, 0] > 0, z[:, 1] > 0], [3.0, -2.0, 1.0], 0.0),
    "a disc": lambda z: 3.0 * (z[:, 0] ** 2 + z[:, 1] ** 2 < 2),
    "the larger of two": lambda z: 2 * np.maximum(z[:, 0], z[:, 1]),
}

Source = Iterator[tuple[str, pd.DataFrame, list[str]]]


def simulated() -> Source:
    """Training rows of scenarios with all their features, and one feature that is a curve of others."""
    for name in sg.simulate.scenarios():
        for n, p in ((2000, 20), (3000, 10)):
            for seed in range(1, 6):
                X = sg.simulate.scenario(name, p=p).sample(n, random_state=seed).X
                yield f"scenario: {name}", X, [str(column) for column in X]
    rng = np.random.default_rng(1)
    for name, curve in CURVES.items():
        for n in (500, 1000, 2000, 4000):
            for p in (4, 20):
                for noise in (0.3, 1.0, 2.0):
                    z = rng.uniform(-2, 2, size=(n, p))
                    x = curve(z) + noise * rng.normal(size=n)
                    yield f"curve: {name}", pd.DataFrame(z, columns=[f"z{k}" for k in range(p)]).assign(x=x), ["x"]


def data_sets() -> Source:
    """Training rows of each data set as the experiment on data fidelity draws them, and the features it redraws."""
    from experiments import data_fidelity

    for number, name in data_fidelity.data_sets().items():
        rows = data_fidelity.drawn_rows({"id": number, "name": name}, 3)
        yield "OpenML-CC18", rows.train, list(rows.features)


def gains_of(X: pd.DataFrame, features: list[str]) -> list[dict[str, bool]]:
    """Of each feature with four splits or more: is a forest tried, does a small one well, and is a whole one better."""
    rule, may_help = dict(candidates._FOREST_FROM), CandidateSet._forest_may_help
    predictions: list[dict[str, bool]] = []

    def noted(self: CandidateSet, best: Candidate) -> bool:
        known = ~np.isnan(best.scores)
        better = bool(self._forest().scores[known].mean() < best.score)
        predictions.append({"tried": best.splits >= rule[best.name], "well": may_help(self, best), "better": better})
        return False

    with (
        patch.dict(candidates._FOREST_FROM, dict.fromkeys(rule, 4)),
        patch.object(CandidateSet, "_forest_may_help", noted),
    ):
        sg.samplers.Auto().fit(X, features)
    return predictions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="store_true")
    sources = data_sets() if parser.parse_args().data else simulated()
    warnings.simplefilter("ignore")  # of data sets with few rows; here only the choice counts
    found = pd.DataFrame([{"rows": name, **one} for name, X, options in sources for one in gains_of(X, options)])
    grown, left_out = found["tried"] & found["well"], ~found["tried"]
    counts = {
        "features": pd.Series(True, index=found.index),
        "tried": found["tried"],
        "grown": grown,
        "of these better": grown & found["better"],
        "not tried": left_out,
        "would be grown": left_out & found["well"],
        "of those better": left_out & found["well"] & found["better"],
    }
    table = pd.DataFrame(counts).groupby(found["rows"]).sum()
    table.loc["all"] = table.sum()
    print(table.to_string())


if __name__ == "__main__":
    main()
