"""What the motivating figures share: samples, and one redraw of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import subgrove as sg

Floats = npt.NDArray[np.float64]


def streams(seed: int, samples: int) -> list[np.random.Generator]:
    """A generator for each sample; the first is that of the sample which is drawn."""
    return [np.random.default_rng([seed, place]) for place in range(samples)]


def redrawn(sampler: Any, X: pd.DataFrame, feature: str, rng: np.random.Generator) -> Floats:
    """One redraw of a feature by a fitted sampler."""
    return np.asarray(next(iter(sampler.sample(X, feature, [rng]))), dtype=np.float64)


def marginally(X: pd.DataFrame, feature: str, rng: np.random.Generator) -> Floats:
    """The feature given to other rows at random."""
    return redrawn(sg.samplers.Marginal().fit(X), X, feature, rng)


def within(groups: sg.Subgroups, X: pd.DataFrame, feature: str, rng: np.random.Generator) -> Floats:
    """The feature given to other rows of the same subgroup at random."""
    return redrawn(sg.samplers.SubgroupSampler(groups=groups).fit(None), X, feature, rng)


def correlated(rng: np.random.Generator, n: int, rho: float) -> pd.DataFrame:
    """Two standard normal features."""
    x1, rest = rng.normal(size=(2, n))
    return pd.DataFrame({"x1": x1, "x2": rho * x1 + np.sqrt(1 - rho**2) * rest})
