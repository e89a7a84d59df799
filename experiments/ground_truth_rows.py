"""The rows of one repetition of the ground-truth simulation, the model to explain, and the true importance.

Whatever is compared there (the paper's methods, later samplers, other packages) requests a repetition by the
same seed and gets the same rows, the same model and the same truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.conditional_forest import ModelForest, grown
from experiments.ground_truth_methods import FEATURE, rises
from experiments.running import threads
from subgrove._core.kinds import Floats
from subgrove.simulate import Scenario

REPEATS = 20  # redraws of an estimate; the first of them alone is the paper's estimate
_FRESH_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Repetition:
    """Rows, model and truth.

    Attributes
    ----------
    setting : {"I", "II"}
        Whether the true model is explained, or a forest.
    scenario : Scenario
        Where rows come from.
    train, test : frame
        Two thirds and one third of the rows.
    y_train, y : float array
        Their targets.
    forest : ModelForest or None
        The forest of setting II, where it is our own.
    predict : callable
        The model; takes an array, or a frame where there are labels.
    truth : float
        Importance of x1 for the model on fresh rows, redrawn from its true distribution.
    seeds : list of int
        Of the methods, of their redraws, and of one thing more.
    """

    setting: str
    scenario: Scenario
    train: pd.DataFrame
    test: pd.DataFrame
    y_train: Floats
    y: Floats
    forest: ModelForest | None
    predict: Callable[[Any], Floats]
    truth: float
    seeds: list[int]

    def rises(self, columns: Floats) -> Floats:
        """For each redrawn column of the test rows the mean rise of the squared error."""
        if self.scenario.name == "mixed":  # labels have no place in an array
            before = (self.predict(self.test) - self.y) ** 2
            after = [(self.predict(self.test.assign(**{FEATURE: column})) - self.y) ** 2 for column in columns]
            return np.array([(one - before).mean() for one in after])
        x = self.test.to_numpy(np.float64)
        # The true model has no use for more than ten columns.
        return rises(self.predict, x[:, :10] if self.setting == "I" else x, self.y, columns)


def drawn_repetition(options: Mapping[str, Any], seed: int) -> Repetition:
    """A repetition of a cell, from its parameters and its seed."""
    scenario = sg.simulate.scenario(options["scenario"], p=options["p"])
    seeds = [int(one) for one in np.random.default_rng(seed).integers(2**62, size=6)]
    data = scenario.sample(options["n"], random_state=seeds[0])
    cut = 2 * options["n"] // 3
    train, test = data.X.iloc[:cut], data.X.iloc[cut:]
    y: Floats = np.asarray(data.y, dtype=np.float64)
    predict, forest = scenario.model, None
    if options["setting"] == "II":
        x = train.to_numpy(np.float64)
        if options.get("forest", "own") == "own":
            forest = grown(x, y[:cut], options["trees"], seeds[1])
            predict = forest.predict
        else:
            predict = _of_scikit_learn(x, y[:cut], options["trees"], seeds[1])
    labels: Any = predict if scenario.name == "mixed" else lambda X: predict(X.to_numpy())
    truth = scenario.true_importance(labels, n=_FRESH_ROWS, random_state=seeds[2])
    return Repetition(options["setting"], scenario, train, test, y[:cut], y[cut:], forest, predict, truth, seeds[3:])


def _of_scikit_learn(x: Floats, y: Floats, trees: int, seed: int) -> Callable[[Any], Floats]:
    """A forest of scikit-learn with a third of the columns tried at each split and leaves of five rows or more."""
    from sklearn.ensemble import RandomForestRegressor

    tried = max(1, x.shape[1] // 3)
    forest = RandomForestRegressor(
        trees, max_features=tried, min_samples_leaf=5, random_state=seed % 2**32, n_jobs=threads()
    )
    # Growing it with several threads changes nothing; predicting with several varies the order of the sum over trees.
    predict: Callable[[Any], Floats] = forest.fit(x, y).set_params(n_jobs=1).predict
    return predict
