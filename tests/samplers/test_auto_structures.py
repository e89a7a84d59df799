"""The default sampler is near the true one on dependence structures of many kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import subgrove as sg

REPETITIONS = 4
SMOOTH = [
    "trend and season",
    "hour",
    "sine times cosine",
    "two bumps",
    "saturating curve",
    "weekday and hour",
    "sum of curves",
    "log-normal",
    "censored",
    "missing values",
    "mixture",
]


def some_quick(names: Sequence[str], every: int) -> list[Any]:
    """Simulations: one of `every` runs with the quick tests, the others with the slow ones."""
    return [name if not at % every else pytest.param(name, marks=pytest.mark.slow) for at, name in enumerate(names)]


@pytest.mark.parametrize("name", some_quick(SMOOTH, 4))
def test_the_importance_is_near_the_truth(name: str) -> None:
    structure = sg.simulate.structure(name)
    estimates, errors = [], []
    for seed in range(REPETITIONS):
        train = structure.sample(1000, random_state=seed)
        test = structure.sample(500, random_state=100 + seed)
        imp = sg.importance(
            structure.model,
            test.X,
            test.y,
            train=train.X,
            features=["x1"],
            n_repeats=10,
            random_state=seed,
            loss="squared_error",
        )
        estimates.append(imp.overall["estimate"].iloc[0])
        errors.append(imp.overall["std_error"].iloc[0])
    # The mean of four estimates: three standard errors, and 15 % for the error of the fitted sampler.
    margin = 3 * np.mean(errors) / np.sqrt(REPETITIONS) + 0.15 * structure.importance
    assert np.mean(estimates) == pytest.approx(structure.importance, abs=margin)


@pytest.mark.parametrize("name", ["exact exp", "exact product", "exact sum"])
def test_exact_relations_are_found_exactly(name: str) -> None:
    structure = sg.simulate.structure(name)
    train, test = structure.sample(1000, random_state=1), structure.sample(300, random_state=2)
    imp = sg.importance(
        structure.model, test.X, test.y, train=train.X, features=["x1"], random_state=1, loss="squared_error"
    )
    spread = float(train.X["x1"].var())
    assert abs(imp.overall["estimate"].iloc[0]) < 1e-5 * spread


@pytest.mark.parametrize("name", some_quick(sg.simulate.structures(), 6))
def test_the_true_sampler_gives_the_true_importance(name: str) -> None:
    structure = sg.simulate.structure(name, model="saturating")
    test = structure.sample(4000, random_state=1)
    imp = sg.importance(
        structure.model,
        test.X,
        test.y,
        sampler=structure.sampler,
        features=["x1"],
        n_repeats=4,
        random_state=1,
        loss="squared_error",
    )
    found = imp.overall.iloc[0]
    # Four and a half standard errors: 37 structures.
    assert found["estimate"] == pytest.approx(structure.importance, abs=4.5 * found["std_error"] + 1e-9)
