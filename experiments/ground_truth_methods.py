"""The samplers of the ground-truth simulation, set as in the paper, and what they redraw."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.running import threads
from subgrove import samplers
from subgrove._core.kinds import Floats
from subgrove.exceptions import SubgroveWarning

FEATURE = "x1"
_NO_LIMIT = 30  # depth of a tree that is stopped by other rules


def _cart(seed: int, trees: int) -> samplers.SubgroupSampler:
    # At least 30 rows in a leaf and 90 in a node that is split, complexity 0.01.
    return samplers.SubgroupSampler(tree="cart", max_depth=_NO_LIMIT, min_samples_leaf=30)


def _transformation(seed: int, trees: int) -> samplers.SubgroupSampler:
    return samplers.SubgroupSampler(tree="transformation", max_depth=_NO_LIMIT, min_samples_leaf=30, alpha=0.05)


# Name -> sampler, from a seed and the number of trees of a forest.
METHODS: Mapping[str, Callable[[int, int], Any]] = {
    "cs_cart": _cart,
    "cs_trtr": _transformation,
    "imp": lambda seed, trees: samplers.Imputation(
        n_trees=trees, residuals="test", random_state=seed, n_jobs=threads()
    ),
    "ko": lambda seed, trees: samplers.Knockoffs(method="sdp"),
    "marg": lambda seed, trees: samplers.Marginal(),
}


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A feature redrawn several times.

    Attributes
    ----------
    columns : float array (repeats, rows)
        New values.
    subgroups : int or None
        Number of subgroups, if the sampler has some.
    chosen : str or None
        What a sampler that chooses among others has chosen.
    """

    columns: Floats
    subgroups: int | None = None
    chosen: str | None = None


def redrawn(sampler: Any, train: pd.DataFrame, test: pd.DataFrame, repeats: int, seed: int) -> Redrawn:
    """The feature of the test rows, redrawn by a sampler that was fitted on the training rows."""
    rngs = [np.random.default_rng((seed, repeat)) for repeat in range(repeats)]
    with warnings.catch_warnings():
        # Knockoffs that are nearly copies and rows without a donor are part of what is compared here.
        warnings.simplefilter("ignore", SubgroveWarning)
        fitted = sampler.fit(train, [FEATURE])
        columns = np.stack([np.asarray(column) for column in fitted.sample(test, FEATURE, rngs)])
    groups, choices = getattr(fitted, "groups", None), getattr(fitted, "choices", None)
    subgroups = len(groups[FEATURE].rules) if groups is not None and FEATURE in groups else None
    return Redrawn(columns, subgroups, None if choices is None else str(choices[FEATURE].selected))


def rises(predict: Callable[[Floats], Floats], test: Floats, y: Floats, columns: Floats) -> Floats:
    """For each redrawn column the mean rise of the squared error; the feature is the first column of the rows."""
    repeats, n = columns.shape
    before = (predict(test) - y) ** 2
    rows = np.tile(test, (repeats, 1))
    rows[:, 0] = columns.ravel()
    after = (predict(rows).reshape(repeats, n) - y) ** 2
    rise: Floats = (after - before).mean(axis=1)
    return rise
