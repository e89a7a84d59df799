"""Conditional importance by other packages, on the rows of the ground-truth simulation.

Each explains x1 in the true model (setting I), with its own sampler fitted on the training rows, and its own arithmetic
where it has some. `python -m pip install --group peers` installs them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

import subgrove as sg
from experiments.beside_published import CELL
from experiments.beside_true import beside_true
from experiments.ground_truth import FEATURES, ROWS, in_order, rows_of
from experiments.ground_truth_methods import FEATURE, redrawn
from experiments.ground_truth_rows import REPEATS, Repetition, drawn_repetition
from experiments.ground_truth_samplers import one_unit
from experiments.peers_report import draw, section
from experiments.units import Size, Unit, seed_of
from subgrove._core.kinds import Floats

BEYOND = "other packages on the rows of ground_truth, setting I (needs the group peers)"

_REPETITIONS = {300: 100, 3000: 30}


def units(size: Size) -> list[Unit]:
    """Repetitions of the paper's sixteen cells of setting I, the first of each before the second of any."""
    missing = missing_packages()
    if missing:
        labels = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        raise ModuleNotFoundError(f"{labels}. Run `python -m pip install --group peers`.")
    cells = [("linear", 300, 10)] if size.quick else list(product(sg.simulate.PAPER, ROWS, FEATURES))
    listed = [(at, one_unit(size, "I", *cell, at)) for cell in cells for at in range(_repetitions(size, cell[1]))]
    return [unit for _, unit in sorted(listed, key=lambda one: one[0])]


def missing_packages() -> list[str]:
    """Which of the packages are not installed."""
    return [name for name in ("fippy", "hidimstat", "knockpy") if find_spec(name) is None]


def _repetitions(size: Size, n: int) -> int:
    if size.reps is not None:
        return size.reps if n == min(ROWS) else ceil(size.reps / 3)
    return 2 if size.quick else _REPETITIONS[n]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Estimates of each package, of the true sampler and of our default call, on the rows of that unit's key."""
    one = drawn_repetition(unit.params, seed_of("ground_truth", unit.key))
    estimates = {name: estimate(one) for name, estimate in PEERS.items()}
    drawn = redrawn(one.scenario.sampler, one.train, one.test, REPEATS, one.seeds[1])
    theirs = rows_of(unit.params, one.truth, estimates | {"true": one.rises(drawn.columns)})
    return theirs + [theirs[0] | {"method": "auto", "m": m, "estimate": _default_call(one, m)} for m in (1, REPEATS)]


def _default_call(one: Repetition, n_repeats: int) -> float:
    imp = sg.importance(
        one.predict,
        one.test,
        one.y,
        train=one.train,
        features=[FEATURE],
        n_repeats=n_repeats,
        random_state=one.seeds[1],
        check_fidelity=False,
        loss="squared_error",
    )
    return float(imp.overall["estimate"].iloc[0])


def _hidimstat_ridge(one: Repetition) -> Floats:
    from sklearn.linear_model import RidgeCV

    return _hidimstat(one, RidgeCV())  # the package's default


def _hidimstat_forest(one: Repetition) -> Floats:
    from sklearn.ensemble import RandomForestRegressor

    return _hidimstat(one, RandomForestRegressor(random_state=one.seeds[0] % 2**32))


def _hidimstat(one: Repetition, imputer: Any) -> Floats:
    """Residuals of x1 in the test rows, permuted and added to the predictions of a model fitted on the training rows.

    The importance is the mean rise of the loss as here; this version does not halve it.
    """
    from hidimstat import CFI

    options = CFI(
        _Fitted(one.predict, one.train.shape[1]),
        n_permutations=REPEATS,
        imputation_model_continuous=imputer,
        features_groups={FEATURE: [0]},
        random_state=one.seeds[1] % 2**32,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of features in X", UserWarning)  # x1 alone is evaluated
        options.fit(one.train.to_numpy(), one.y_train)
        options.importance(one.test.to_numpy(), one.y)
    rise: Floats = np.asarray(options.loss_[0], dtype=np.float64) - options.loss_reference_
    return rise


def _fippy_gaussian(one: Repetition) -> Floats:
    """x1 redrawn from its distribution given the others if all of them were normal together."""
    from fippy.explainer import Explainer
    from fippy.losses import squared_error
    from fippy.samplers import GaussianSampler

    def predict(X: pd.DataFrame) -> Floats:
        return one.predict(X.to_numpy())

    with _global_seed(one.seeds[1]), redirect_stderr(StringIO()):  # it counts repeats there
        explainer = Explainer(predict, one.train, squared_error, sampler=GaussianSampler(one.train))
        scores = explainer.cfi(one.test, one.y, n_repeats=REPEATS, features=[FEATURE]).scores
    rise: Floats = scores[0, :, :, 0].mean(axis=1)
    return rise


def _knockpy_sdp(one: Repetition) -> Floats:
    """x1 replaced by its knockoff, of the training rows' moments; the package has no importance, so ours is used."""
    from knockpy.knockoffs import GaussianSampler
    from knockpy.utilities import estimate_covariance

    train = one.train.to_numpy()
    covariance, precision = estimate_covariance(train, tol=1e-2)  # as the package does if it is given none
    with _global_seed(one.seeds[1]):
        sampler = GaussianSampler(
            one.test.to_numpy(),
            mu=train.mean(axis=0),
            Sigma=covariance,
            invSigma=precision,
            method="sdp",
            dsdp_warning=False,  # which solver is used changes the time alone
        )
        columns = np.stack([sampler.sample_knockoffs()[:, 0] for _ in range(REPEATS)])
    return one.rises(columns)


PEERS = {
    "hidimstat_ridge": _hidimstat_ridge,
    "hidimstat_forest": _hidimstat_forest,
    "fippy_gaussian": _fippy_gaussian,
    "knockpy_sdp": _knockpy_sdp,
}


class _Fitted(BaseEstimator):  # type: ignore[misc]  # scikit-learn is shipped without types
    """The true model as a fitted estimator."""

    def __init__(self, function: Any, n_features_in_: int) -> None:
        self.function, self.n_features_in_ = function, n_features_in_

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> _Fitted:
        """It is fitted already."""
        return self

    def predict(self, X: Any) -> Floats:
        """What the true model says."""
        predicted: Floats = self.function(np.asarray(X, dtype=np.float64))
        return predicted


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """NumPy's global generator, which some packages draw from, at a seed; afterwards it is as it was."""
    state = np.random.get_state()  # noqa: NPY002  # theirs, not ours
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def beside(results: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Results with those of samplers of the package added, for the repetitions that packages were evaluated on."""
    if results.empty or ours.empty:
        return results
    keys = [*CELL, "rep", "truth"]  # the same truth is the same rows
    shared = ours[ours["method"] != "true"].merge(results[keys].drop_duplicates(), on=keys)
    both = pd.concat([results, shared[results.columns]], ignore_index=True)
    return both.drop_duplicates([*keys, "method", "m"], ignore_index=True)


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`cells`: every package in every cell, beside the true sampler; `pairs`: ours beside the best, row by row."""
    results = results.assign(order=in_order(results)).sort_values(["order", "rep"], kind="stable")
    found = {"cells": beside_true(results)}
    pairs = _pairs(results)
    return found | ({"pairs": pairs} if len(pairs) else {})


def _pairs(results: pd.DataFrame) -> pd.DataFrame:
    """Squared errors of our samplers less those of the best package, of the same repetitions."""
    lines = []
    for key, part in results.groupby([*CELL, "m"], sort=False):
        squares = part.assign(square=(part["estimate"] - part["truth"].mean()) ** 2)
        wide = squares.pivot_table(index="rep", columns="method", values="square")
        theirs = [name for name in PEERS if name in wide]
        for ours in (name for name in wide if name not in (*PEERS, "true")):
            shared = wide[[ours, *theirs]].dropna()
            if shared.empty or not theirs:
                continue
            best = str(shared[theirs].mean().idxmin())
            more = shared[ours] - shared[best]
            labels = dict(zip([*CELL, "m"], key if isinstance(key, tuple) else (key,), strict=True))
            error = float(more.std() / np.sqrt(len(more)))
            lines.append(
                {**labels, "method": ours, "best": best, "reps": len(more), "more": more.mean(), "more_se": error}
            )
    return pd.DataFrame(lines)


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """All of them in one picture."""
    return [draw(tables(results)["cells"], folder)]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the page on what goes past the paper."""
    return section(tables)
