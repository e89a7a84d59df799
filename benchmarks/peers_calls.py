"""The same quantity by each package: one function for each row of the tables of `benchmarks/peers.py`.

A call takes a `Task` (fitted model, test rows, training rows) and computes importance of all features, or curves of the
first ones. Every package runs in one process on one core, and is given the container it needs; ours is given the
same one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

REPEATS = 10
POINTS = 30  # fixed in effector's partial dependence
INTERVALS = 20
CURVES = 5  # features that have curves


@dataclass(frozen=True)
class Task:
    """A model and rows: arrays or frames."""

    model: Any
    X: Any
    y: Any
    train: Any
    y_train: Any

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [f"x{column}" for column in range(self.X.shape[1])]

    @cached_property
    def grids(self) -> dict[int, Any]:
        """Of each column equal steps from the least to the greatest value: where curves have points."""
        columns = np.asarray(self.X).T[:CURVES]
        return {at: np.linspace(column.min(), column.max(), POINTS) for at, column in enumerate(columns)}

    @cached_property
    def borders(self) -> dict[int, Any]:
        """Of each column its quantiles: borders of the intervals of accumulated local effects."""
        steps = np.linspace(0, 1, INTERVALS + 1)
        return {at: np.unique(np.quantile(column, steps)) for at, column in enumerate(np.asarray(self.X).T[:CURVES])}


@dataclass(frozen=True)
class Peer:
    """A package's way to do a job: which container it takes, whether it does the same work as ours, and how."""

    job: str
    name: str
    package: str
    call: Callable[[Task], Any]
    container: str = "array"
    same_work: bool = True
    ours: str = "ours"  # the row of ours that it is compared with
    differs: str = ""


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars and warnings; drawing them takes negligible time."""
    with (
        open(os.devnull, "w") as nowhere,
        redirect_stderr(nowhere),
        redirect_stdout(nowhere),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def ours_marginal(task: Task, *, check_fidelity: bool = False) -> Any:
    import subgrove as sg

    return sg.importance(
        task.model,
        task.X,
        task.y,
        sampler="marginal",
        n_repeats=REPEATS,
        random_state=0,
        check_fidelity=check_fidelity,
        loss="squared_error",
    )


def ours_with_fidelity_checks(task: Task) -> Any:
    return ours_marginal(task, check_fidelity=True)


def ours_conditional(task: Task, sampler: Any) -> Any:
    import subgrove as sg

    return sg.importance(
        task.model, task.X, task.y, sampler=sampler, train=task.train, n_repeats=REPEATS, random_state=0,
        check_fidelity=False,
         loss="squared_error",
    )  # fmt: skip


def ours_subgroups(task: Task) -> Any:
    return ours_conditional(task, "subgroups")


def ours_auto(task: Task) -> Any:
    return ours_conditional(task, "auto")


def ours_ridge(task: Task) -> Any:
    """hidimstat's sampler handed to our `importance` as a user's own."""
    return ours_conditional(task, RidgeResiduals())


def ours_gaussian(task: Task) -> Any:
    """fippy's sampler handed to our `importance` as a user's own."""
    return ours_conditional(task, Gaussian())


class RidgeResiduals:
    """Predict a column from the others by ridge regression, and add permuted residuals."""

    def fit(self, X: Any, features: list[str]) -> RidgeResiduals:
        """One regression for each feature."""
        from sklearn.linear_model import RidgeCV

        rows = np.asarray(X)
        names = [f"x{column}" for column in range(rows.shape[1])]
        fitted = RidgeResiduals()
        fitted.places = {name: names.index(name) for name in features}
        fitted.fits = {
            name: RidgeCV().fit(np.delete(rows, place, axis=1), rows[:, place]) for name, place in fitted.places.items()
        }
        return fitted

    def sample(self, X: Any, feature: str, rngs: Any) -> Iterator[Any]:
        """Predictions plus residuals."""
        rows, place = np.asarray(X), self.places[feature]
        predicted = self.fits[feature].predict(np.delete(rows, place, axis=1))
        residuals = rows[:, place] - predicted
        for rng in rngs:
            yield predicted + rng.permutation(residuals)

    places: dict[str, int]
    fits: dict[str, Any]


class Gaussian:
    """Draws a column given the others as if all were normal together."""

    def fit(self, X: Any, features: list[str]) -> Gaussian:
        """Mean and covariance of the training rows."""
        rows = np.asarray(X)
        fitted = Gaussian()
        fitted.places = {f"x{column}": column for column in range(rows.shape[1])}
        fitted.mean, fitted.precision = rows.mean(axis=0), np.linalg.pinv(np.cov(rows, rowvar=False))
        return fitted

    def sample(self, X: Any, feature: str, rngs: Any) -> Iterator[Any]:
        """Normal draws around the conditional mean."""
        rows, place = np.asarray(X), self.places[feature]
        own = self.precision[place, place]
        pull = self.precision[place] / own
        mean = rows[:, place] - (rows - self.mean) @ pull
        for rng in rngs:
            yield mean + rng.normal(scale=own**-0.5, size=len(rows))

    places: dict[str, int]
    mean: Any
    precision: Any


def sklearn_permutation(task: Task) -> Any:
    from sklearn.inspection import permutation_importance

    return permutation_importance(
        task.model, task.X, task.y, scoring="neg_mean_squared_error", n_repeats=REPEATS, random_state=0
    )


def hidimstat_marginal(task: Task) -> Any:
    from hidimstat import PFI

    with _quiet():
        return PFI(task.model, n_permutations=REPEATS, random_state=0).fit_importance(task.X, task.y)


def hidimstat_conditional(task: Task) -> Any:
    from hidimstat import CFI

    with _quiet():
        estimator = CFI(task.model, n_permutations=REPEATS, random_state=0, feature_types="continuous")
        return estimator.fit(task.train, task.y_train).importance(task.X, task.y)


def fippy_marginal(task: Task) -> Any:
    with _quiet():
        return _fippy(task, None).pfi(task.X, task.y, n_repeats=REPEATS)


def fippy_conditional(task: Task) -> Any:
    from fippy.samplers import GaussianSampler

    with _quiet():
        return _fippy(task, GaussianSampler(task.train)).cfi(task.X, task.y, n_repeats=REPEATS)


def _fippy(task: Task, sampler: Any) -> Any:
    from fippy.explainer import Explainer
    from fippy.losses import squared_error

    return Explainer(task.model.predict, task.train, squared_error, sampler=sampler)


def sage_values(task: Task) -> Any:
    """As many rows predicted as in n repeats: each row is unrolled once, with as many background rows."""
    import sage

    with _quiet():
        imputer = sage.MarginalImputer(task.model.predict, task.train[:REPEATS])
        estimate = sage.PermutationEstimator(imputer, "mse", random_state=0)
        return estimate(task.X, task.y, n_permutations=len(task.X), detect_convergence=False, bar=False)


def ours_pdp(task: Task) -> Any:
    import subgrove as sg

    grids = zip(task.names[:CURVES], task.grids.values(), strict=True)
    return [sg.effect(task.model, task.X, name, kind="pdp", grid=grid, subgroups=None) for name, grid in grids]


def ours_ale(task: Task) -> Any:
    import subgrove as sg

    grids = zip(task.names[:CURVES], task.borders.values(), strict=True)
    return [sg.effect(task.model, task.X, name, kind="ale", grid=grid) for name, grid in grids]


def sklearn_pdp(task: Task) -> Any:
    from sklearn.inspection import partial_dependence

    options: dict[str, Any] = {"method": "brute", "kind": "average", "percentiles": (0, 1), "grid_resolution": POINTS}
    return [partial_dependence(task.model, task.X, [at], **options)["average"][0] for at in task.grids]


def alibi_pdp(task: Task) -> Any:
    from alibi.explainers import PartialDependence

    with _quiet():
        explainer = PartialDependence(task.model.predict)
        found = explainer.explain(task.X, list(task.grids), grid_points=task.grids)
    return [values[0] for values in found.pd_values]


def effector_pdp(task: Task) -> Any:
    import effector

    with _quiet():
        found = effector.PDP(task.X, task.model.predict, nof_instances="all")
        return [found.eval(at, grid, centering=False) for at, grid in task.grids.items()]


def alibi_ale(task: Task) -> Any:
    from alibi.explainers import ALE

    with _quiet():
        explainer = ALE(task.model.predict, check_feature_resolution=False)
        found = explainer.explain(task.X, list(task.borders), grid_points=task.borders)
    return [values[:, 0] for values in found.ale_values]


def pyale_ale(task: Task) -> Any:
    from PyALE import ale

    with _quiet():
        found = [
            ale(task.X, task.model, [name], feature_type="continuous", grid_size=INTERVALS, include_CI=True, plot=False)
            for name in task.names[:CURVES]
        ]
    return [table["eff"].to_numpy() for table in found]


def effector_ale(task: Task) -> Any:
    import effector

    with _quiet():
        found = effector.ALE(task.X, task.model.predict, nof_instances="all")
        found.fit(
            list(task.borders),
            binning_method=effector.axis_partitioning.Fixed(nof_bins=INTERVALS, min_points_per_bin=0),
        )
        return [found.eval(at, grid, centering=True) for at, grid in task.borders.items()]


NO_SUBGROUPS = "no subgroups, no intervals"
JOBS: dict[str, str] = {
    "marginal": "importance by permutation",
    "conditional": "conditional importance, the sampler's fit included",
    "pdp": "partial dependence",
    "ale": "accumulated local effects",
}
PEERS: list[Peer] = [
    Peer("marginal", "ours", "subgrove", ours_marginal),
    Peer("marginal", "ours in a frame", "subgrove", ours_marginal, "frame"),
    Peer(
        "marginal",
        "ours, with fidelity checks",
        "subgrove",
        ours_with_fidelity_checks,
        differs="also checks the resampled rows",
    ),
    Peer(
        "marginal", "permutation_importance", "scikit-learn", sklearn_permutation, differs="no error of the test rows"
    ),
    Peer("marginal", "PFI", "hidimstat", hidimstat_marginal, differs="tests, over permutations"),
    Peer("marginal", "pfi", "fippy", fippy_marginal, "frame", ours="ours in a frame", differs="keeps every row's loss"),
    Peer("marginal", "SAGE", "sage-importance", sage_values, same_work=False, differs="Shapley values, as many rows"),
    Peer("conditional", "ours, subgroups", "subgrove", ours_subgroups, differs="trees of depth 2"),
    Peer("conditional", "ours, auto", "subgrove", ours_auto, differs="chooses the way for each feature"),
    Peer("conditional", "ours, CFI's sampler", "subgrove", ours_ridge),
    Peer("conditional", "ours, cfi's sampler", "subgrove", ours_gaussian, "frame"),
    Peer("conditional", "CFI", "hidimstat", hidimstat_conditional, ours="ours, CFI's sampler", differs="ridge, linear"),
    Peer("conditional", "cfi", "fippy", fippy_conditional, "frame", ours="ours, cfi's sampler", differs="normal"),
    Peer("pdp", "ours", "subgrove", ours_pdp, differs="standard errors, support"),
    Peer("pdp", "partial_dependence", "scikit-learn", sklearn_pdp, differs="the mean alone"),
    Peer("pdp", "PartialDependence", "alibi", alibi_pdp, differs="the mean alone"),
    Peer("pdp", "PDP", "effector", effector_pdp, differs="keeps all curves; their spread"),
    Peer("ale", "ours", "subgrove", ours_ale, differs="standard errors, support"),
    Peer("ale", "ours in a frame", "subgrove", ours_ale, "frame", differs="standard errors, support"),
    Peer("ale", "ALE", "alibi", alibi_ale, differs="the mean alone"),
    Peer("ale", "ale", "PyALE", pyale_ale, "frame", ours="ours in a frame", differs="interval of each step"),
    Peer("ale", "ALE", "effector", effector_ale, differs="equal steps; spread in each"),
]


def task_of(model: str, n: int, columns: int, container: str) -> Task:
    """Columns that depend on their neighbours, and a target with an interaction; as many training rows."""
    train, y_train = _rows(n, columns, 1)
    X, y = _rows(n, columns, 2)
    if container == "frame":
        names = [f"x{column}" for column in range(columns)]
        train, X = pd.DataFrame(train, columns=names), pd.DataFrame(X, columns=names)
    return Task(_model(model).fit(train, y_train), X, y, train, y_train)


def _rows(n: int, columns: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    for column in range(1, columns):
        X[:, column] += 0.7 * X[:, column - 1]
    return X, X[:, 0] * X[:, 1] + X.sum(axis=1) + rng.normal(size=n)


def _model(name: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LinearRegression

    models = {
        "linear": LinearRegression,
        "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
        "forest": lambda: RandomForestRegressor(100, random_state=0, n_jobs=1),
    }
    return models[name]()
