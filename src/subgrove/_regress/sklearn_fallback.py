"""The same forest grown by scikit-learn, for installations without a compiler: other trees, and more time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Floats

_MOST = 1e30


@dataclass(frozen=True, eq=False)
class SklearnForest:
    """A forest of scikit-learn that speaks like `Forest`."""

    forest: Any
    out_of_bag: Floats
    n_columns: int

    def predict(self, predictors: Floats) -> Floats:
        """The mean over trees, a row for each row and a column for each output."""
        found: Floats = np.asarray(self.forest.predict(_single(predictors)), dtype=np.float64)
        return found.reshape(len(predictors), self.out_of_bag.shape[1])


def grow_sklearn_forest(
    predictors: Floats,
    outputs: Floats,
    n_trees: int,
    min_node_size: int,
    tried: int,
    seed: int,
    n_jobs: int | None,
) -> SklearnForest:
    """Grow a forest with scikit-learn."""
    from sklearn.ensemble import RandomForestRegressor

    settings = {"min_samples_split": min_node_size + 1, "max_features": tried, "n_jobs": n_jobs}
    start = int(np.random.default_rng(seed).integers(2**31))
    forest = RandomForestRegressor(n_trees, **settings, random_state=start)
    given = _single(predictors)
    forest.fit(given, outputs if outputs.shape[1] > 1 else outputs[:, 0])
    # Trees then predict one after the other: sums over them depend on the order in the last digit.
    forest.set_params(n_jobs=None)
    return SklearnForest(forest, _out_of_bag(forest, given, outputs.shape[1]), predictors.shape[1])


def _single(predictors: Floats) -> npt.NDArray[np.float32]:
    """As trees take numbers, in single precision; what is too large for sums in it is cut off."""
    return np.clip(predictors, -_MOST, _MOST).astype(np.float32)


def _out_of_bag(forest: Any, predictors: npt.NDArray[np.float32], n_outputs: int) -> Floats:
    total, count = np.zeros((len(predictors), n_outputs)), np.zeros(len(predictors))
    for tree, seen in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        unseen = np.ones(len(predictors), dtype=np.bool_)
        unseen[seen] = False
        if unseen.any():
            found = tree.predict(predictors[unseen], check_input=False)
            total[unseen] += np.asarray(found).reshape(-1, n_outputs)
        count += unseen
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)
