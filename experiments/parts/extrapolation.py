"""Figures 1, 4 and 5 of the paper: shuffling one column makes rows that cannot be, and subgroups make fewer.

A figure shows one sample. Its caption is checked on this and on `samples - 1` further ones of the same distribution,
so that each number has a standard error; where it has a closed form, that is what it is compared with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.integrate import quad
from scipy.special import expi
from scipy.stats import norm

import subgrove as sg
from experiments.parts.rows import Row, claim, points
from experiments.parts.sampling import Floats, correlated, marginally, streams, within


def misleading_pdp(seed: int, samples: int) -> list[Row]:
    """x2 is at most 1 - x1, the model is exp(x1 + x2): the PDP rises above all that is predicted for data."""

    def model(X: pd.DataFrame) -> Any:
        return np.exp(X["x1"] + X["x2"])

    crossings, outside = [], []
    for rng in streams(seed, samples):
        X = _triangle(rng, 100)
        pdp = sg.effect(model, X, "x1", grid=np.linspace(0, 1, 41).tolist(), subgroups=None).curves
        most = float(model(X).max())
        crossings.append(float(np.interp(most, pdp["estimate"], pdp["x"])))
        moved = marginally(X, "x1", rng)
        outside.append(float(np.mean(moved + X["x2"] > 1)))
        if len(crossings) == 1:
            first, curve, highest, shuffled = X, pdp, most, moved
    surface = sg.effect(
        model, first, ("x1", "x2"), grid={name: np.linspace(0, 1, 41).tolist() for name in first}, subgroups=None
    )
    table = surface.curves
    limit = 1 - np.log(expi(1) - np.euler_gamma)  # PDP = e^x E[e^x2], which is e from here on
    return [
        *points("data", "observed", first["x1"], first["x2"], z=model(first)),
        *points("data", "shuffled", shuffled, first["x2"]),
        *points("surface", "prediction", table["x1"], table["x2"], z=table["estimate"]),
        *points("curve", "PDP", curve["x"], curve["estimate"]),
        *points("mark", "highest prediction", [crossings[0]], [highest]),
        claim("x1 from which the PDP is above every prediction for data", crossings, "below", 0.75, published=0.75),
        claim(
            "x1 from which the PDP is above, beside its limit for many rows", crossings, "near", limit, tolerance=0.01
        ),
        claim("share of rows with shuffled x1 where no row can be (x1 + x2 > 1)", outside, "near", 0.25),
    ]


def _triangle(rng: np.random.Generator, n: int) -> pd.DataFrame:
    x1 = rng.uniform(size=n)
    return pd.DataFrame({"x1": x1, "x2": rng.uniform(0, 1 - x1)})


def split_density(seed: int, samples: int) -> list[Row]:
    """x1 is N(0, 1) where x2 < 0.5 and N(4, sd 4) elsewhere: shuffling in the subgroups keeps it there."""
    cuts, marginal, inner = [], [], []
    rows: list[Row] = []
    for place, rng in enumerate(streams(seed, samples)):
        X = _two_parts(rng, 400)
        groups = sg.find_subgroups(X, features="x1", max_depth=1)
        split = groups["x1"].tree.nodes[0].split
        cuts.append(np.nan if split is None or split.threshold is None else split.threshold)
        everywhere = marginally(X, "x1", rng)
        inside = within(groups, X, "x1", rng)
        left = (X["x2"] < 0.5).to_numpy()
        marginal.append(float(np.mean(np.abs(everywhere[left]) > 3)))
        inner.append(float(np.mean(np.abs(inside[left]) > 3)))
        if not place:
            rows = _split_rows(X, everywhere, inside, groups["x1"])
    expected = norm.sf(3) + 0.5 * (1 - (norm.cdf(-0.25) - norm.cdf(-1.75)))
    return [
        *rows,
        claim("where the tree splits x2", cuts, "near", 0.5, published=0.5, tolerance=0.01),
        claim("share of shuffled rows beyond 3 sd where x2 < 0.5", marginal, "near", expected),
        claim("share of rows beyond 3 sd where x2 < 0.5, shuffled within subgroups", inner, "below", 0.02),
    ]


def _two_parts(rng: np.random.Generator, n: int) -> pd.DataFrame:
    x2 = rng.uniform(size=n)
    x1 = np.where(x2 < 0.5, rng.normal(0, 1, n), rng.normal(4, 4, n))
    return pd.DataFrame({"x1": x1, "x2": x2})


def _split_rows(X: pd.DataFrame, everywhere: Floats, inside: Floats, partition: sg.Partition) -> list[Row]:
    """Points of the upper panels, and fitted densities of the lower ones."""
    code = partition.assign(X)
    rows = points("data", "observed", X["x1"], X["x2"], group=code)
    rows += points("data", "permuted", everywhere, X["x2"], group=code)
    rows += points("data", "permuted in subgroups", inside, X["x2"], group=code)
    x = np.linspace(X["x1"].min(), X["x1"].max(), 200)
    parts: list[tuple[str, npt.NDArray[np.bool_]]] = [("all rows", np.ones(len(X), dtype=np.bool_))]
    parts += [(rule, code == k) for k, rule in enumerate(partition.rules)]
    for label, mine in parts:
        model = sg.trees.TransformationModel(support=(float(x[0]), float(x[-1]))).fit(X["x1"][mine])
        rows += points("density", label, x, model.pdf(x))
    return rows


def gaussian(seed: int, samples: int) -> list[Row]:
    """x1 and x2 have covariance 0.9; x2 is shuffled everywhere, and within the leaves of CART on x1."""
    rho, radius = 0.9, -2 * np.log(0.01)  # the ellipse that holds 99 % of rows
    kinds = ("data", "permuted", "permuted in subgroups")
    outside: dict[str, list[float]] = {kind: [] for kind in kinds}
    together: dict[str, list[float]] = {kind: [] for kind in kinds}
    remaining: list[float] = []
    rows: list[Row] = []
    for place, rng in enumerate(streams(seed, samples)):
        X = correlated(rng, 500, rho)
        groups = sg.find_subgroups(X, features="x2", tree="cart", max_depth=30)
        drawn = {
            "data": X["x2"].to_numpy(),
            "permuted": marginally(X, "x2", rng),
            "permuted in subgroups": within(groups, X, "x2", rng),
        }
        x1, code = X["x1"].to_numpy(), groups["x2"].assign(X)
        for kind, x2 in drawn.items():
            outside[kind].append(float(np.mean((x1**2 - 2 * rho * x1 * x2 + x2**2) / (1 - rho**2) > radius)))
            together[kind].append(float(np.corrcoef(x1, x2)[0, 1]))
        inside = [np.corrcoef(x1[code == k], drawn["data"][code == k])[0, 1] for k in range(len(groups["x2"]))]
        remaining.append(float(np.average(inside, weights=np.bincount(code))))
        if not place:
            borders = sorted(float(x1[code == k].max()) for k in range(len(groups["x2"])))[:-1]
            rows += [row for kind, x2 in drawn.items() for row in points("data", kind, x1, x2)]
            rows += points("border", "CART", borders, [0.0] * len(borders))
    far = _share_far(rho, radius)
    return [
        *rows,
        claim("correlation after shuffling x2", together["permuted"], "near", 0.0),
        claim("correlation after shuffling x2 within subgroups", together["permuted in subgroups"], "above", 0.7),
        claim("share outside the ellipse that holds 99 %: data", outside["data"], "near", 0.01),
        claim("share outside the ellipse: x2 shuffled", outside["permuted"], "near", far),
        claim(
            "share outside the ellipse: x2 shuffled within subgroups",
            outside["permuted in subgroups"],
            "below",
            far / 5,
        ),
        claim(
            "share outside the ellipse: x2 shuffled within subgroups, since some stays",
            outside["permuted in subgroups"],
            "above",
            0.01,
        ),
        claim("mean correlation of x1 and x2 that remains in a subgroup", remaining, "above", 0.0),
    ]


def _share_far(rho: float, radius: float) -> float:
    """P(u / (1 + rho) + v / (1 - rho) > radius) for the squares u, v of two independent standard normals."""

    def beyond(z: float) -> float:
        left = (radius - z**2 / (1 + rho)) * (1 - rho)
        return float(norm.pdf(z) * (2 * norm.sf(np.sqrt(left)) if left > 0 else 1.0))

    return float(2 * quad(beyond, 0, 12, points=[np.sqrt(radius * (1 + rho))])[0])
