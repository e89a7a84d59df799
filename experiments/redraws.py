"""The ways to redraw a numeric column that the experiment on data fidelity compares, as the authors set them up.

Where the code of the paper leaves a choice open, or differs from the defaults of this package:

- CART has the defaults of rpart (leaves of 7 rows, nodes of 20), transformation trees leaves of 30 rows and level 0.05;
  both are grown to depth 30 once, and shallower trees are what they are at that depth.
- Knockoffs are fitted on the test rows, so they have seen what they are judged on; all else is fitted on train rows.
- Imputation adds residuals of train rows that the forest has seen (`imp`). `imp_oob` is ours: the same forest, with the
  out-of-bag residuals of the training rows.
- ALE: 30 borders, type-1 quantiles of the train rows, so at most 29 intervals, closed on the left; every test row is
  there twice, at either border.
- CVIRF: one conditional inference tree on the target, from all columns but the feature.
- A column that is constant in the train rows has one subgroup.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import subgrove as sg
from experiments.running import threads
from subgrove._regress.forest import grow_forest

DEPTHS = (1, 2, 3, 4, 5, 30)
METHODS = ("none", "perm", "cs_cart_30", "cs_trtr_30", "ko", "imp", "ale", "cvirf")
OURS = ("imp_oob",)
TREES = tuple(f"cs_{tree}_{depth}" for tree in ("cart", "trtr") for depth in DEPTHS)
VARIANTS = (*dict.fromkeys((*METHODS, *OURS, *TREES)),)
_N_BORDERS = 30

Floats = npt.NDArray[np.float64]
Copies = Sequence[Floats]  # values for the test rows; each row is there once for every array


@dataclass(frozen=True, eq=False)
class Redraws:
    """Train and test rows of a data set, and what was learned of them for all features together.

    Attributes
    ----------
    train, test : frame
        Numeric columns.
    target : column
        Labels of the train rows.
    features : list of str
        The columns that will be redrawn.
    n_trees : int
        Of each forest.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    target: pd.Series[Any]
    features: Sequence[str]
    n_trees: int = 500

    def of(self, feature: str, seed: int) -> dict[str, Copies]:
        """The values of a feature in the test rows that each variant draws; each has a stream of its own."""
        ways = self._ways(feature, seed)
        return {name: ways[name](stream_of(seed, feature, name)) for name in VARIANTS}

    def _ways(self, feature: str, seed: int) -> Mapping[str, Callable[[np.random.Generator], Copies]]:
        own = self.test[feature].to_numpy()
        marginal = sg.samplers.Marginal().fit(self.train)
        imputed = self._imputed(feature, seed)
        return {
            "none": lambda rng: [own],
            "perm": partial(self._drawn, marginal, feature),
            "ko": partial(self._drawn, self._knockoffs, feature),
            "cvirf": partial(self._drawn, self._target_leaves, feature),
            "ale": lambda rng: at_borders(self.train[feature].to_numpy(), own),
            "imp": partial(_imputation, *imputed["train"]),
            "imp_oob": partial(_imputation, *imputed["oob"]),
            **self._subgroups(feature),
        }

    def _drawn(self, sampler: Any, feature: str, rng: np.random.Generator) -> Copies:
        return [np.asarray(column, dtype=np.float64) for column in sampler.sample(self.test, feature, [rng])]

    def _subgroups(self, feature: str) -> dict[str, Callable[[np.random.Generator], Copies]]:
        grown = {"cart": cart(self.train, feature), "trtr": transformation_tree(self.train, feature)}
        return {
            f"cs_{tree}_{depth}": partial(
                self._drawn, sg.samplers.SubgroupSampler(groups=groups.at_depth(depth)).fit(None), feature
            )
            for tree, groups in grown.items()
            for depth in DEPTHS
        }

    def _imputed(self, feature: str, seed: int) -> dict[str, tuple[Floats, Floats]]:
        """Predictions for the test rows, and residuals of two kinds, of one forest."""
        train, test = (rows.drop(columns=feature).to_numpy() for rows in (self.train, self.test))
        values = self.train[[feature]].to_numpy()
        start = int(stream_of(seed, feature, "forest").integers(2**31))
        forest = grow_forest(train, values, n_trees=self.n_trees, seed=start, n_jobs=threads())
        predicted = forest.predict(test)[:, 0]
        residuals = {"train": values - forest.predict(train), "oob": values - forest.out_of_bag}
        return {name: (predicted, these[~np.isnan(these)]) for name, these in residuals.items()}

    @cached_property
    def _knockoffs(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.exceptions.SubgroveWarning)  # that some are nearly copies
            return sg.samplers.Knockoffs(method="sdp").fit(self.test, list(self.features))

    @cached_property
    def _target_leaves(self) -> Any:
        return sg.samplers.ForestNodes(target=self.target).fit(self.train, list(self.features))


def cart(train: pd.DataFrame, feature: str) -> sg.Subgroups:
    """Subgroups by CART with the defaults of rpart."""
    if train[feature].nunique() < 2:
        return sg.find_subgroups(train, features=feature, tree="cart")  # one subgroup
    grower = sg.trees.CartTree(max_depth=30, min_samples_leaf=7, min_samples_split=20, cp=0.01)
    tree = grower.fit(train.drop(columns=feature), train[feature])
    found = sg.find_subgroups(train, features=feature, given=[], tree="cart", max_depth=0)
    return sg.Subgroups((sg.Partition((feature,), tree),), found.columns, found.fingerprint, found.parameters)


def transformation_tree(train: pd.DataFrame, feature: str) -> sg.Subgroups:
    """Subgroups by a transformation tree as in the paper; by conditional inference if there are two values only."""
    return sg.find_subgroups(train, features=feature, max_depth=30, min_samples_leaf=30, alpha=0.05)


def at_borders(train: Floats, test: Floats) -> Copies:
    """The test rows at the left and at the right border of their intervals."""
    borders = np.unique(np.quantile(train, np.linspace(0, 1, _N_BORDERS), method="inverted_cdf"))
    left = np.clip(np.searchsorted(borders, test, side="right") - 1, 0, max(len(borders) - 2, 0))
    return [borders[left], borders[np.minimum(left + 1, len(borders) - 1)]]


def _imputation(predicted: Floats, residuals: Floats, rng: np.random.Generator) -> Copies:
    return [predicted + rng.choice(residuals, len(predicted), replace=len(residuals) < len(predicted))]


def stream_of(seed: int, feature: str, what: str) -> np.random.Generator:
    """The generator of one variant for one feature."""
    return np.random.default_rng([seed, *f"{feature}/{what}".encode()])
