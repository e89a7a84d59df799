"""What is known to be true, and how it is computed here: one function for each oracle.

Importances of simulated data come from closed forms, with f(x) = x1 x2 + x1 + ... + x10. Redrawn, x1 differs from what
it was by d, and f by d (1 + x2), so that the importance for the squared error is E[d^2 (1 + x2)^2]::

    conditional   2 E[Var(x1 | rest) (1 + x2)^2]                        (`Scenario.importance`)
    marginal      E[(E[x1^2] - 2 E[x1] m + m^2 + v) (1 + x2)^2]         with m, v mean and variance of x1 given the rest

Margins of estimates are four standard errors, that of the cuts of a tree stands there, and the others are rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove._fidelity.mmd import squared_mmd
from subgrove._native.loader import KERNELS, load_kernel

SURE = 4.0  # standard errors; a normal estimate is further off once in 16,000 times
ROUNDING = 1e-12  # of numbers about as large as 1
_ROWS, _TREE_ROWS = 20_000, 3000
_SCENARIOS = ("independent", "linear", "nonlinear")


@dataclass(frozen=True)
class Found:
    """What was computed, what is true, and how far apart they may be."""

    measured: float
    expected: float
    tolerance: float
    message: str = ""


@dataclass(frozen=True)
class Oracle:
    """Something that is known, and the way to compute it from a seed."""

    name: str
    what: str
    ask: Callable[[int], Found]


def conditional_importance(name: str, seed: int) -> Found:
    """Importance of x1 with its true sampler."""
    scenario = sg.simulate.scenario(name)
    return _estimated(scenario, scenario.sampler, scenario.importance, seed)


def marginal_importance(name: str, seed: int) -> Found:
    """Importance of x1, shuffled."""
    return _estimated(sg.simulate.scenario(name), "marginal", MARGINAL[name], seed)


def importance_of_nothing(seed: int) -> Found:
    """A model that uses x1 in place of x2, where x1 has nothing to say beside it."""
    null = sg.simulate.null_scenario("linear")
    test = null.sample(_ROWS, random_state=seed)

    def model(X: Any) -> Floats:
        return np.asarray(X["x1"] + X["x3"], dtype=np.float64)

    imp = sg.importance(model, test.X, test.y, sampler=null.sampler, features=["x1"], n_repeats=20, random_state=seed)
    return _within_noise(imp, 0.0)


def true_split(seed: int) -> Found:
    """The tree of x1, which changes where x2 is 0 and, below, where x3 is 0.

    A cut between two levels that are D apart, in noise of variance V, is off by about V / (D^2 n f), n f being the
    number of rows for each unit of the column: here 0.001 for the first and 0.01 for the second. The margin is 0.1.
    """
    train = sg.simulate.scenario("nonlinear").sample(_TREE_ROWS, random_state=seed)
    tree = sg.find_subgroups(train.X, features=["x1"], max_depth=2)["x1"].tree
    splits = [node.split for node in tree.nodes if node.split is not None][:2]
    columns = [split.column for split in splits]
    if columns != ["x2", "x3"]:
        raise ArithmeticError(f"the first splits should be on x2 and x3; they are on {' and '.join(columns) or 'none'}")
    return Found(max(abs(float(split.threshold or 0.0)) for split in splits), 0.0, 0.1)


def weighted_mean(seed: int) -> Found:
    """Importance of all rows from that of subgroups (Appendix A of the paper)."""
    conditional, _ = _bike(seed)
    worst = 0.0
    parts = conditional.by_subgroup
    for line in conditional.overall.to_dict("records"):
        own = parts[parts["feature"] == line["feature"]]
        mean = float((own["estimate"] * own["n"]).sum() / own["n"].sum())
        worst = max(worst, abs(mean - line["estimate"]) / max(abs(line["estimate"]), 1.0))
    return Found(worst, 0.0, ROUNDING)


def gap_adds_up(seed: int) -> Found:
    """Steps from marginal to conditional importance, along the tree and in the mean over orders."""
    conditional, marginal = _bike(seed)
    worst = 0.0
    for average in (False, True):
        gap = conditional.explain_gap(marginal, "temp", average=average)
        worst = max(worst, abs(sum(part.step for part in gap.parts) - gap.gap) / gap.marginal)
    return Found(worst, 0.0, ROUNDING)


def same_for_any_jobs(seed: int) -> Found:
    """Largest difference of two runs with the same seed, by one process and by two."""
    one, two = (_bike(seed, n_jobs=jobs)[0] for jobs in (1, 2))
    return Found(float(np.abs(one.per_row.to_numpy() - two.per_row.to_numpy()).max()), 0.0, 0.0)


def compiled_parts(seed: int) -> Found:
    """Compiled files that are there and cannot be loaded; none is needed, for NumPy does the same."""
    package = Path(sg.__file__).parent
    absent = [name for name in KERNELS if load_kernel(name) is None]
    files = {name: package / "_native" / f"_{name}" for name in absent}
    broken = [name for name, file in files.items() if any(map(_is_compiled, file.parent.glob(f"{file.name}.*")))]
    message = f"{len(KERNELS) - len(absent)} of {len(KERNELS)} compiled parts are in use."
    if absent:
        message += f" NumPy stands in, at lower speed, for {', '.join(absent)}."
    return Found(len(broken), 0.0, 0.0, message)


def knockoff_covariance(seed: int) -> Found:
    """Knockoffs as they are drawn: their covariances are those of the columns, less s with their own original.

    A row is mapped to mean + A (row - mean) and noise of covariance V is added, so the covariance of knockoffs is
    A S A' + V, which must be S, and that of rows and knockoffs S A', which must be S - diag(s).
    """
    fitted = sg.samplers.Knockoffs().fit(_dependent_columns(seed))
    scale = np.outer(fitted.scale, fitted.scale)
    covariance = scale * np.linalg.inv(fitted.precision)
    mapped = (fitted.conditional_mean(fitted.mean + np.eye(len(fitted.mean))) - fitted.mean).T
    own = mapped @ covariance @ mapped.T + fitted.conditional_covariance - covariance
    cross = covariance @ mapped.T - (covariance - np.diag(fitted.s * fitted.scale**2))
    return Found(float(max(np.abs(own / scale).max(), np.abs(cross / scale).max())), 0.0, 1e-10)


def equal_samples(seed: int) -> Found:
    """Squared MMD of a sample and itself."""
    sample = _normal(seed, 300, 3)
    return Found(squared_mmd(sample, sample), 0.0, ROUNDING)


def same_distribution(seed: int) -> Found:
    """Mean squared MMD of two samples of the same distribution, as a multiple of 2 / n: 1 - E k(x, x').

    The difference of two standard normal points has E exp(-g |d|^2) = (1 + 4 g)^(-p / 2): with g = 1/4 and p = 2, half.
    """
    n, n_pairs = 50, 300
    pairs = _normal(seed, 2 * n_pairs * n, 2).reshape(n_pairs, 2, n, 2)
    values = np.array([squared_mmd(one, two, gamma=0.25) for one, two in pairs]) * n / 2
    return Found(float(values.mean()), 0.5, SURE * float(values.std(ddof=1)) / sqrt(len(values)))


def linear_effect(kind: str, seed: int) -> Found:
    """Largest error of the slopes of a curve of a linear model, whose slope is 3 everywhere."""
    import pandas as pd

    X = pd.DataFrame(_dependent_columns(seed), columns=["a", "b", "c"])

    def model(X: Any) -> Floats:
        return np.asarray(3.0 * X["a"] - 2.0 * X["b"] + X["c"], dtype=np.float64)

    curve = sg.effect(model, X, "a", kind=kind, grid_resolution=15).curves  # type: ignore[arg-type]  # "pdp" or "ale"
    slopes = np.diff(curve["estimate"]) / np.diff(curve["x"])
    return Found(float(slopes[np.argmax(np.abs(slopes - 3.0))]), 3.0, 1e-9)


def saved_and_loaded(seed: int) -> Found:
    """Numbers that are not the same after a result was written and read."""
    conditional, _ = _bike(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "importance.json"
        conditional.save(path)
        again = sg.ImportanceResult.load(path)
    pairs = [(getattr(conditional, name), getattr(again, name)) for name in ("overall", "by_subgroup", "per_row")]
    differ = sum(int((~((one == two) | (one.isna() & two.isna()))).to_numpy().sum()) for one, two in pairs)
    return Found(differ, 0.0, 0.0)


def _is_compiled(file: Path) -> bool:
    return file.suffix in (".so", ".pyd")


def _estimated(scenario: sg.simulate.Scenario, sampler: Any, truth: float, seed: int) -> Found:
    test = scenario.sample(_ROWS, random_state=seed)
    asked: dict[str, Any] = {"features": ["x1"], "n_repeats": 20, "check_fidelity": False, "random_state": seed}
    return _within_noise(sg.importance(scenario.model, test.X, test.y, sampler=sampler, **asked), truth)


def _within_noise(imp: sg.ImportanceResult, truth: float) -> Found:
    line = imp.overall.to_dict("records")[0]
    return Found(line["estimate"], truth, SURE * line["std_error"])


def _bike(seed: int, n_jobs: int | None = None) -> tuple[sg.ImportanceResult, sg.ImportanceResult]:
    """Conditional and marginal importance of a function of the bike data."""
    train, test = sg.datasets.bike(split=0.7, random_state=seed)
    asked: dict[str, Any] = {
        "features": ["temp", "hum"],
        "n_repeats": 5,
        "check_fidelity": False,
        "random_state": seed,
        "n_jobs": n_jobs,
    }
    conditional = sg.importance(_bike_model, test.X, test.y, sampler="subgroups", train=train.X, **asked)
    return conditional, sg.importance(_bike_model, test.X, test.y, sampler="marginal", **asked)


def _bike_model(X: Any) -> Floats:
    return np.asarray(2000 + 100 * X["temp"] - 0.5 * X["temp"] * X["hum"], dtype=np.float64)


def _normal(seed: int, n: int, p: int) -> Floats:
    return np.random.default_rng(seed).standard_normal((n, p))


def _dependent_columns(seed: int) -> Floats:
    """Three normal columns of different scales that depend on each other."""
    mixed: Floats = _normal(seed, 500, 3) @ np.array([[1.0, 0.8, 0.3], [0.0, 0.6, 0.5], [0.0, 0.0, 2.0]])
    return mixed


def _nonlinear_marginal() -> float:
    """x1 is N(3, 1) if x2 > 0, which has half of the rows; else N(-3, sd 2) or N(0, sd 5), a quarter each.

    E[(1 + x2)^2] is 2, of which 1 + sqrt(2 / pi) comes from x2 > 0.
    """
    above = 1 + sqrt(2 / pi)
    shares, weights = (0.5, 0.25, 0.25), (above, (2 - above) / 2, (2 - above) / 2)
    means, variances = (3.0, -3.0, 0.0), (1.0, 4.0, 25.0)
    groups = list(zip(shares, weights, means, variances, strict=True))
    mean = sum(share * m for share, _, m, _ in groups)
    square = sum(share * (m**2 + v) for share, _, m, v in groups)
    return sum(weight * (square - 2 * mean * m + m**2 + v) for _, weight, m, v in groups)


# Independent: 2 Var(x1) E[(1 + x2)^2]. Linear: m is x2 and v is 1, and E[x2^2 (1 + x2)^2] is 1 + 3.
MARGINAL = {"independent": 2 * 1 * 2.0, "linear": (2 + 1) * 2.0 + 1 + 3, "nonlinear": _nonlinear_marginal()}


def _oracles() -> tuple[Oracle, ...]:
    def bound(function: Callable[[str, int], Found], name: str) -> Callable[[int], Found]:
        return lambda seed: function(name, seed)

    simulated = [
        Oracle(
            f"{kind} importance, {name}",
            f"The {kind} importance of x1 in the scenario '{name}' is its closed form, within four standard errors.",
            bound(function, name),
        )
        for kind, function in (("conditional", conditional_importance), ("marginal", marginal_importance))
        for name in _SCENARIOS
    ]
    effects = [
        Oracle(
            f"{kind} of a linear model",
            "Its slope is that of the model, everywhere.",
            bound(linear_effect, kind.lower()),
        )
        for kind in ("PDP", "ALE")
    ]
    return (
        *simulated,
        Oracle(
            "importance of nothing",
            "A feature that has nothing to say beside the others has conditional importance 0 for any model.",
            importance_of_nothing,
        ),
        Oracle("true split", "A transformation tree finds the cuts where the feature truly changes, at 0.", true_split),
        Oracle("weighted mean", "Importance of all rows is the weighted mean over subgroups.", weighted_mean),
        Oracle("steps of the gap", "They add up to marginal less conditional importance.", gap_adds_up),
        Oracle("one and two processes", "The same seed gives the same numbers, to the last digit.", same_for_any_jobs),
        Oracle("knockoffs", "Their covariances are those of the columns they stand for.", knockoff_covariance),
        Oracle("MMD of equal samples", "It is 0.", equal_samples),
        Oracle("MMD of one distribution", "Two samples of it have the mean that is known.", same_distribution),
        *effects,
        Oracle("saved and loaded", "A result that was written and read has the same numbers.", saved_and_loaded),
        Oracle("compiled parts", "Those that are there can be loaded.", compiled_parts),
    )


ORACLES = _oracles()
