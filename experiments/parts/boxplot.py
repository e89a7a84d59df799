"""The boxplot-PDP figure of the paper: a curve that shows where the data are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.parts.rows import Row, claim, points
from experiments.parts.sampling import streams


def boxplot_pdp(seed: int, samples: int) -> list[Row]:
    """The curve is log(x) + 4.5 on 100 draws of Gamma(1), drawn like a boxplot of x."""

    def model(X: pd.DataFrame) -> Any:
        return np.log(X["x"]) + 4.5

    low, high, beyond = [], [], []
    rows: list[Row] = []
    for place, rng in enumerate(streams(seed, samples)):
        X = pd.DataFrame({"x": rng.gamma(1.0, size=100)})
        found = sg.effect(model, X, "x", grid_resolution=400 if place == 0 else 2, subgroups=None)
        box = found.support.iloc[0]
        low.append(float(box["q1"]))
        high.append(float(box["q3"]))
        beyond.append(float(np.mean((X["x"] < box["whisker_low"]) | (X["x"] > box["whisker_high"]))))
        if not place:
            rows = points("data", "observed", X["x"], model(X))
            rows += points("curve", "PDP", found.curves["x"], found.curves["estimate"])
            names = ("low", "whisker_low", "q1", "median", "q3", "whisker_high", "high")
            rows += [{"part": "box", "series": "x", "label": name, "value": box[name]} for name in names]
    tail = 0.25 * np.exp(-1.5 * np.log(3))  # of the exponential distribution beyond q3 + 1.5 IQR, IQR = log 3
    return [
        *rows,
        claim("where the bold part begins (lower quartile)", low, "near", np.log(4 / 3), tolerance=0.02),
        claim("where the bold part ends (upper quartile)", high, "near", np.log(4), tolerance=0.02),
        claim("share of rows drawn as outliers", beyond, "near", tail, tolerance=0.005),
    ]
