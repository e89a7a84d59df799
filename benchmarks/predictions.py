"""Number of predictions for a given Monte-Carlo error: independent permutations and the draws of this package.

    python -m benchmarks.predictions            # about four minutes
    python -m benchmarks.predictions --quick    # fewer seeds

One feature is resampled on the same rows with many seeds. The variance v of one repeat of independent permutations is
estimated from many repeats; K repeats have variance v / K. Our estimate has variance u with M repeats, and its number
of predicted rows is counted. Independent permutations need v / u repeats for the same error. The factor is the ratio
of the numbers of predicted rows, with its standard error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np

import subgrove as sg
from benchmarks.machine import machine
from benchmarks.timing import interleaved, markdown, ratio

N = 500


class Counting:
    """A function of a table that counts rows: smooth in x0, which interacts with x1."""

    def __init__(self) -> None:
        self.rows = 0

    def predict(self, X: Any) -> Any:
        """Predict and count the rows."""
        self.rows += len(X)
        return 2 * X[:, 0] + X[:, 0] * X[:, 1] + np.sin(2 * X[:, 0]) + X[:, 2]


class Permuted:
    """Independent permutations of all rows or within subgroups."""

    learns = False

    def __init__(self, groups: Any = None) -> None:
        self.groups = groups

    def fit(self, X: Any, features: list[str]) -> Permuted:
        """Return the sampler, which has no parameters to fit."""
        return self

    def sample(self, X: Any, feature: str, rngs: Any) -> Iterator[Any]:
        """Yield permuted columns."""
        values = X[:, int(feature[1:])]
        code = np.zeros(len(X), dtype=int) if self.groups is None else self.groups[feature].assign(X)
        order = np.argsort(code, kind="stable")
        for rng in rngs:
            dealt = order[np.lexsort((rng.random(len(X)), code[order]))]
            column = np.empty_like(values)
            column[order] = values[dealt]
            yield column


@dataclass(frozen=True)
class Case:
    """A feature and its samplers: independent permutations and ours."""

    name: str
    way: str
    first: Callable[[Any, int], Any]  # values of x0
    sampler: str
    n: int = N


def correlated(rng: Any, n: int) -> Any:
    return rng.normal(size=n)


def levels(count: int) -> Callable[[Any, int], Any]:
    return lambda rng, n: rng.integers(0, count, n).astype(float)


def mostly_zero(rng: Any, n: int) -> Any:
    return np.where(rng.random(n) < 0.9, 0.0, np.round(rng.exponential(size=n), 2))


CASES = [
    Case("numeric", "balanced shifts", correlated, "marginal"),
    Case("numeric, in subgroups", "balanced shifts", correlated, "subgroups"),
    Case("numeric, in subgroups of about 13 rows", "balanced shifts", correlated, "small subgroups"),
    Case("numeric, conditional", "balanced points", correlated, "auto"),
    Case("30 levels", "balanced shifts", levels(30), "marginal"),
    Case("5 levels", "each value once", levels(5), "marginal"),
    Case("2 levels", "each value once", levels(2), "marginal"),
    Case("2 levels, in subgroups", "each value once", levels(2), "subgroups"),
    Case("90 % zeros", "balanced shifts, deduplicated", mostly_zero, "marginal", 4000),
]


def rows_of(case: Case, seed: int) -> Any:
    """Return three columns, of which x1 depends on x0."""
    rng = np.random.default_rng(seed)
    first = case.first(rng, case.n)
    return np.column_stack([first, 0.7 * first + rng.normal(size=case.n), rng.normal(size=case.n)])


def compared(case: Case, repeats: list[int], seeds: int, plain_repeats: int) -> list[list[str]]:
    """Return a row for each number of repeats."""
    X, train = rows_of(case, 1), rows_of(case, 2)
    y = Counting().predict(X) + np.random.default_rng(3).normal(size=case.n)
    ours, plain = _samplers(case, train)
    single = _single_repeats(case, plain, X, y, plain_repeats)
    lines = []
    for n_repeats in repeats:
        found, settings = _over_seeds(ours, X, y, n_repeats, seeds)
        exact = np.ptp(found) <= 1e-9 * max(1.0, abs(found).max())
        needed = np.inf if exact else single.var(ddof=1) / found.var(ddof=1)
        factor = needed * case.n / settings
        relative = 0.0 if exact else np.hypot(_relative_error(single), _relative_error(found))
        lines.append(
            [case.name, case.way, str(n_repeats), f"{settings:,.0f}", f"{100 * found.std() / abs(found.mean()):.3f} %"]
            + (
                ["none is enough", ""]
                if exact
                else [f"{needed * case.n:,.0f}", f"{factor:.1f} ± {factor * relative:.1f}"]
            )
        )
    return lines


def _samplers(case: Case, train: Any) -> tuple[Any, Any]:
    """Ours, fitted, and the plain one that it is compared with; None where that is ours with plain points."""
    if case.sampler == "marginal":
        return "marginal", Permuted()
    if case.sampler.endswith("subgroups"):
        small: dict[str, Any] = {"max_depth": 30, "min_samples_leaf": 10, "alpha": 1.0}
        options = small if case.sampler == "small subgroups" else {"max_depth": 2}
        groups = sg.find_subgroups(train, features=["x0"], **options)
        return groups, Permuted(groups)
    return sg.samplers.Auto().fit(train, ["x0"]), None


def _single_repeats(case: Case, plain: Any, X: Any, y: Any, n_repeats: int) -> Any:
    """Estimates of single plain repeats."""
    if plain is not None:
        found = sg.importance(
            Counting(),
            X,
            y,
            sampler=plain,
            features=["x0"],
            n_repeats=n_repeats,
            random_state=0,
            check_fidelity=False,
            loss="squared_error",
        )
        return found.scores[0].overall[0]
    independent = [
        patch(f"subgrove.samplers.{module}.balanced_points", _independent) for module in ("location_shift", "subgroups")
    ]
    with independent[0], independent[1]:
        sampler = _samplers(case, rows_of(case, 2))[0]
        found = sg.importance(
            Counting(),
            X,
            y,
            sampler=sampler,
            features=["x0"],
            n_repeats=n_repeats,
            random_state=0,
            check_fidelity=False,
            loss="squared_error",
        )
    return found.scores[0].overall[0]


def _independent(code: Any, n_groups: int, own: Any, rngs: Any) -> Iterator[Any]:
    """What balanced points are compared with."""
    for rng in rngs:
        yield rng.random(len(code))


def _over_seeds(sampler: Any, X: Any, y: Any, n_repeats: int, seeds: int) -> tuple[Any, float]:
    """Estimates with other seeds, and the rows predicted for each beyond the baseline."""
    model, found = Counting(), []
    for seed in range(seeds):
        result = sg.importance(
            model,
            X,
            y,
            sampler=sampler,
            features=["x0"],
            n_repeats=n_repeats,
            random_state=seed,
            check_fidelity=False,
            loss="squared_error",
        )
        found.append(result.scores[0].overall[0].mean())
    return np.array(found), model.rows / seeds - len(X)


def _relative_error(values: Any) -> float:
    """Relative standard error of a variance."""
    centred = values - values.mean()
    squares = np.mean(centred**2)
    return float(np.sqrt((np.mean(centred**4) / squares**2 - 1) / len(values)))


def budget(share: float) -> list[str]:
    """Rows predicted with adaptive repeats, against as many repeats for all features as the one that needs most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 10))
    weights = np.array([4, 3, 2, 1, 1, 0.5, 0.5, 0.2, 0.1, 0.0])
    y = X @ weights + rng.normal(size=2000)
    found = sg.importance(
        lambda rows: rows @ weights,
        X,
        y,
        sampler="marginal",
        n_repeats=sg.AdaptiveRepeats(share=share, start=2),
        random_state=0,
        check_fidelity=False,
        loss="squared_error",
    )
    used = found.settings["repeats_used"]
    everywhere = max(used.values()) * len(used)
    return [f"{share:g}", f"{min(used.values())} to {max(used.values())}", str(sum(used.values())), str(everywhere),
            f"{everywhere / sum(used.values()):.1f}"]  # fmt: skip


def repeated(name: str, sampler: str, model_name: str, rounds: int) -> list[str]:
    """Rows predicted and time with and without deduplication."""
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    if name == "1 column of 6 is 90 % zeros":
        X = rng.normal(size=(10_000, 6))
        X[:, 0] = mostly_zero(rng, 10_000)
    elif name == "6 columns of 3 levels":
        X = rng.integers(0, 3, size=(10_000, 6)).astype(float)
    else:
        X = rng.normal(size=(10_000, 6))
    y = X.sum(axis=1) + rng.normal(size=10_000)
    forest = RandomForestRegressor(100, random_state=0).fit(X[:2000], y[:2000])
    model: Any = forest if model_name == "forest of 100 trees" else lambda rows: np.zeros(len(rows))

    def call() -> Any:
        return sg.importance(
            model, X, y, sampler=sampler, n_repeats=10, random_state=0, check_fidelity=False, loss="squared_error"
        )

    def in_full() -> Any:
        with patch("subgrove._scoring.deduplicate.LEAST_ROWS", np.inf):
            return call()

    few, full = call(), in_full()
    if not few.overall.equals(full.overall):
        raise AssertionError("Deduplication has changed a number.")
    times = interleaved({"once": call, "in full": in_full}, rounds, time.process_time)
    settings = [f"{found.settings['n_rows_predicted']:,}" for found in (full, few)]
    taken = [f"{1000 * median(times[which]):.0f}" for which in ("in full", "once")]
    return [name, sampler, model_name, *settings, *taken, f"{ratio(times, 'once', 'in full'):.2f}"]


TABLES = ("1 column of 6 is 90 % zeros", "6 columns of 3 levels", "6 columns of numbers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--plain", type=int, default=3000, help="plain repeats")
    parser.add_argument(
        "--only", nargs="+", choices=["draws", "budget", "repeated"], default=["draws", "budget", "repeated"]
    )
    parser.add_argument("--quick", action="store_true", help="30 seeds, 300 plain repeats")
    arguments = parser.parse_args()
    seeds, plain = (30, 300) if arguments.quick else (arguments.seeds, arguments.plain)
    print(machine())
    if "draws" in arguments.only:
        print(f"\n{N} rows ({CASES[-1].n:,} in the last case), {seeds} seeds, {plain:,} plain repeats.\n")
        lines = [line for case in CASES for line in compared(case, arguments.repeats, seeds, plain)]
        head = ["feature", "way", "repeats", "rows predicted", "Monte-Carlo error", "plain permutations", "factor"]
        print(markdown(head, lines), flush=True)
    if "budget" in arguments.only:
        print("\nAdaptive repeats, 10 features, 2,000 rows:\n")
        head = ["budget", "repeats of a feature", "sum", "the most for all", "factor"]
        print(markdown(head, [budget(share) for share in (0.2, 0.1, 0.05)]), flush=True)
    if "repeated" in arguments.only:
        print("\nDeduplicated predictions: 10,000 rows, 10 repeats, processor time.\n")
        models = ("no time at all", "forest of 100 trees")
        rounds = 1 if arguments.quick else 5
        lines = [repeated(name, "marginal", model, rounds) for name in TABLES for model in models]
        head = ["table", "sampler", "model", "rows in full", "once", "ms in full", "once", "ratio"]
        print(markdown(head, lines))


if __name__ == "__main__":
    main()
