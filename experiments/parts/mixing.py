"""Figure 2 and the M-plot figure of the paper: conditional effects mix what features do that depend on each other.

As in `extrapolation`, the claims are checked on several samples, and compared with closed forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

import subgrove as sg
from experiments.parts.rows import Row, claim, points
from experiments.parts.sampling import Floats, correlated, streams

_RHO = 0.978
_UNUSED = 0.72


def linear_model(seed: int, samples: int) -> list[Row]:
    """The model is x1 - 0.1 x2 + x3, and x1, x2 are nearly the same: the conditional effect of x2 is positive."""

    def model(X: pd.DataFrame) -> Any:
        return X["x1"] - 0.1 * X["x2"] + X["x3"]

    slopes: dict[str, list[float]] = {"pdp": [], "mplot": []}
    scores: dict[tuple[str, str], list[float]] = {}
    rows: list[Row] = []
    for place, rng in enumerate(streams(seed, samples)):
        train, X = (correlated(rng, 1000, _RHO).assign(x3=rng.normal(size=1000)) for _ in range(2))
        curves = {
            kind: sg.effect(model, X, "x2", kind=kind, grid_resolution=12, subgroups=None).curves
            for kind in ("pdp", "mplot")
        }
        for kind, table in curves.items():
            slopes[kind].append(float(np.polyfit(table["x"], table["estimate"], 1)[0]))
        samplers = {
            "PFI": sg.samplers.Marginal(),
            "cs-PFI": sg.samplers.SubgroupSampler(max_depth=30),
            "conditional PFI": _Gaussian(_RHO),
        }
        for label, sampler in samplers.items():
            found = sg.importance(
                model, X, model(X), sampler=sampler, train=train, n_repeats=5, random_state=place, loss="squared_error"
            ).overall
            for name, estimate in zip(found["feature"], found["estimate"], strict=True):
                scores.setdefault((label, name), []).append(float(estimate))
        if not place:
            rows += points("curve", "PDP", curves["pdp"]["x"], curves["pdp"]["estimate"])
            rows += points("curve", "conditional PDP", curves["mplot"]["x"], curves["mplot"]["estimate"])
            rows += points("data", "observed", X["x2"][:300], model(X)[:300])
    for (label, name), values in scores.items():
        low, high = np.quantile(values, [0.05, 0.95])
        rows.append({"part": "bar", "series": label, "label": name, "value": np.mean(values), "low": low, "high": high})
    return [
        *rows,
        claim("slope of the PDP of x2, as its coefficient", slopes["pdp"], "near", -0.1),
        claim("slope of the conditional PDP of x2", slopes["mplot"], "near", _RHO - 0.1),
        *_importance_claims(scores),
    ]


def _importance_claims(scores: dict[tuple[str, str], list[float]]) -> Iterator[Row]:
    """Squared error grows by 2 beta^2 Var(x | rest)."""
    left = 1 - _RHO**2
    for name, beta, variance in (("x1", 1.0, left), ("x2", -0.1, left), ("x3", 1.0, 1.0)):
        yield claim(f"PFI of {name}", scores["PFI", name], "near", 2 * beta**2)
        yield claim(f"conditional PFI of {name}", scores["conditional PFI", name], "near", 2 * beta**2 * variance)
    fallen = [a / b for a, b in zip(scores["cs-PFI", "x1"], scores["PFI", "x1"], strict=True)]
    yield claim("cs-PFI of x1 as a share of its PFI", fallen, "below", 0.2)
    kept = [a / b for a, b in zip(scores["cs-PFI", "x3"], scores["PFI", "x3"], strict=True)]
    yield claim("cs-PFI of x3 as a share of its PFI", kept, "near", 1.0, tolerance=0.02)


class _Gaussian:
    """The true conditional distribution of x1 given x2, of x2 given x1, and of x3, which is independent."""

    def __init__(self, rho: float) -> None:
        self.rho = rho

    def fit(self, X: Any, features: Any) -> _Gaussian:
        return self

    def sample(self, X: pd.DataFrame, feature: str, rngs: Sequence[np.random.Generator]) -> Iterator[Floats]:
        rho = 0.0 if feature == "x3" else self.rho
        given = X["x2" if feature == "x1" else "x1"].to_numpy()
        for rng in rngs:
            yield rho * given + np.sqrt(1 - rho**2) * rng.normal(size=len(X))


def mplot(seed: int, samples: int) -> list[Row]:
    """y is x1 plus noise, x2 correlates with x1 (0.72): the conditional PDP of x2 rises, its cs-PDPs are level."""
    kinds = ("pdp", "mplot", "cs")
    slopes: dict[str, list[float]] = {kind: [] for kind in kinds}
    heights: list[float] = []
    rows: list[Row] = []
    for place, rng in enumerate(streams(seed, samples)):
        train, X = (correlated(rng, 2000, _UNUSED) for _ in range(2))
        model = LinearRegression().fit(train, train["x1"] + rng.normal(size=len(train)))
        within = sg.effect(model, X, "x2", subgroups=sg.find_subgroups(train, features="x2"))
        found = {
            kind: sg.effect(model, X, "x2", kind=kind, grid_resolution=12, subgroups=None).curves
            for kind in ("pdp", "mplot")
        }
        for kind, table in found.items():
            slopes[kind].append(float(np.polyfit(table["x"], table["estimate"], 1)[0]))
        curves = [table for _, table in within.curves.groupby("rule", sort=False)]
        slopes["cs"].append(float(np.mean([np.polyfit(table["x"], table["estimate"], 1)[0] for table in curves])))
        middles = [float(table["estimate"].mean()) for table in curves]
        heights.append(max(middles) - min(middles))
        if not place:
            rows = _mplot_rows(X, np.asarray(model.predict(X)), found, within)
    return [
        *rows,
        claim("slope of the conditional PDP of x2", slopes["mplot"], "near", _UNUSED, tolerance=0.01),
        claim("slope of the PDP of x2, which has no effect", slopes["pdp"], "near", 0.0),
        claim("mean slope of the cs-PDPs of x2", slopes["cs"], "near", 0.0),
        claim("highest less lowest cs-PDP, which is the effect of x1", heights, "above", 1.0),
    ]


def _mplot_rows(X: pd.DataFrame, predicted: Floats, found: dict[str, Any], within: sg.Effect) -> list[Row]:
    rows = points("data", "observed", X["x2"][:400], predicted[:400])
    rows += points("curve", "conditional PDP", found["mplot"]["x"], found["mplot"]["estimate"])
    rows += points("curve", "PDP", found["pdp"]["x"], found["pdp"]["estimate"])
    for rule, table in within.curves.groupby("rule", sort=False):
        rows += points("cs-PDP", str(rule), table["x"], table["estimate"], in_box=table["in_box"].astype(int))
    return rows
