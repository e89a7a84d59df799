"""Cost of `importance` beyond the predictions it needs.

Every number is a ratio of two times of the same run: the call, and the model's `predict` alone on the same rows in
large batches. 20 numeric columns, 10 repeats, subgroups found beforehand::

    python benchmarks/importance.py                        # everything, some minutes
    python benchmarks/importance.py --only models          # relative to predict alone, two models, two sizes
    python benchmarks/importance.py --only overhead        # a model that returns zeros, compared with scikit-learn
    python benchmarks/importance.py --only memory          # a million rows: peak memory above the inputs
    python benchmarks/importance.py --only wide            # a default call of 200,000 x 200: peak memory and time
    python benchmarks/importance.py --only fidelity_check  # the cost of fidelity checks in a call with a forest

Fidelity checks need no predictions and take the same time for any model. They are measured
separately and excluded from the first two sections.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import subgrove as sg

P, REPEATS = 20, 10
LIMITS = {10_000: 1.05, 1_000: 1.15}
Array = npt.NDArray[np.float64]


def data(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Return columns that depend on their neighbours, and a target with an interaction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P))
    for column in range(1, P):
        X[:, column] += 0.7 * X[:, column - 1]
    return X, X[:, 0] * X[:, 1] + X[:, :10].sum(axis=1) + rng.normal(size=n)


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the times of several calls, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return times


class Recorder:
    """A model that stores the tables it predicts."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tables: list[Array] = []

    def predict(self, X: Array) -> Any:
        """Predict and store the table."""
        self.tables.append(X.copy())
        return self.model.predict(X)


def bare(model: Any, X: Array, y: Array) -> Callable[[], None]:
    """Predict alone: the very rows that `importance` predicts, ready in batches of 100,000.

    Not the rows of X over and over: a forest predicts the same few rows again at up to twice the speed, because the
    nodes on their way stay in the cache.
    """
    recorder = Recorder(model)
    sg.importance(
        recorder,
        X,
        y,
        sampler="marginal",
        n_repeats=REPEATS,
        random_state=0,
        check_fidelity=False,
        loss="squared_error",
    )

    def call() -> None:
        for table in recorder.tables:
            model.predict(table)

    return call


def models(rounds: int) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    X, y = data(10_000)
    groups = sg.find_subgroups(data(5_000, seed=1)[0])
    fitted = {
        "HistGradientBoosting": HistGradientBoostingRegressor(random_state=0).fit(X, y),
        "forest of 100 trees": RandomForestRegressor(100, random_state=0).fit(X, y),
    }
    print(
        f"importance relative to predict alone ({P} columns, {REPEATS} repeats), minimum of {rounds} alternating rounds"
    )
    for name, model in fitted.items():
        for n, limit in LIMITS.items():
            rows, target = X[:n], y[:n]
            calls: dict[str, Callable[[], Any]] = {"predict": bare(model, rows, target)}
            for sampler, given in (("marginal", "marginal"), ("subgroups", groups)):
                options: dict[str, Any] = {
                    "sampler": given,
                    "n_repeats": REPEATS,
                    "random_state": 0,
                    "check_fidelity": False,
                }
                calls[sampler] = partial(sg.importance, model, rows, target, **options)
            times = interleaved(calls, rounds if n > 1_000 else 5 * rounds)
            least = {key: min(values) for key, values in times.items()}
            for sampler in ("marginal", "subgroups"):
                ratio = least[sampler] / least["predict"]
                verdict = "ok" if ratio <= limit else "MISSED"
                print(f"  {name:<22} n = {n:>6} {sampler:<10} {ratio:6.3f}  (at most {limit}: {verdict})", flush=True)


def overhead(rounds: int) -> None:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.inspection import permutation_importance

    class Zero(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Array, y: Array) -> Zero:
            return self

        def predict(self, X: Array) -> Array:
            return np.zeros(len(X))

    X, y = data(10_000)
    groups, model = sg.find_subgroups(data(5_000, seed=1)[0]), Zero()
    options: dict[str, Any] = {"n_repeats": REPEATS, "random_state": 0, "check_fidelity": False}
    calls: dict[str, Callable[[], Any]] = {
        "scikit-learn": lambda: permutation_importance(model, X, y, n_repeats=REPEATS, random_state=0),
        "marginal": lambda: sg.importance(model, X, y, sampler="marginal", **options),
        "subgroups": lambda: sg.importance(model, X, y, sampler=groups, **options),
    }
    times = interleaved(calls, 10 * rounds)
    least = {name: min(values) for name, values in times.items()}
    print(f"pure overhead at n = 10000, a model that returns zeros; scikit-learn {1e3 * least['scikit-learn']:.0f} ms")
    for name in ("marginal", "subgroups"):
        ratio = least[name] / least["scikit-learn"]
        print(f"  {name:<10} {ratio:.3f} of scikit-learn's  (at most 0.5: {'ok' if ratio <= 0.5 else 'MISSED'})")


MEMORY_SCRIPT = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
from importance import data
import subgrove as sg

class Zero:
    def predict(self, X):
        return np.zeros(len(X))

def peak():
    # For this process alone: the resource module also reports the peak of the process that started it.
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

X, y = data(1_000_000)
groups = sg.find_subgroups(X[:20_000] + 0.0)
sg.importance(Zero(), X[:2000], y[:2000], sampler=groups, n_repeats=2, random_state=0)
before = peak()
result = sg.importance(Zero(), X, y, sampler={sampler}, n_repeats=10, random_state=0)
after = peak()
print((after - before) / 1024, X.nbytes / 2**20)
"""


def memory(rounds: int) -> None:
    from pathlib import Path

    print("peak memory above the inputs at 1,000,000 x 20, 10 repeats (budget 512 MB)")
    for sampler in ('"marginal"', "groups"):
        script = MEMORY_SCRIPT.format(folder=str(Path(__file__).parent), sampler=sampler)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        extra, own = (float(number) for number in done.stdout.split())
        verdict = "ok" if extra <= 512 else "MISSED"
        print(f"  {sampler.strip(chr(34)):<10} {extra:6.0f} MB, with X of {own:.0f} MB  ({verdict})", flush=True)


WIDE_SCRIPT = """
import time
import numpy as np
import subgrove as sg

rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 200))
y = X[:, 0] + X[:, 1] + rng.normal(size=200_000)
start = time.process_time()
result = sg.importance(lambda X: X[:, :{used}].sum(axis=1), X, y, random_state=1)
taken = time.process_time() - start
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024, X.nbytes / 2**20, taken)
"""


def wide(rounds: int) -> None:
    print(
        "a call with defaults, 200,000 x 200: peak of the whole process (budget 900 MiB, 1,700 if all columns are used)"
    )
    for used, budget in ((2, 900), (200, 1700)):
        script = WIDE_SCRIPT.format(used=used)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        peak, own, taken = (float(number) for number in done.stdout.split())
        verdict = "ok" if peak <= budget else "MISSED"
        print(
            f"  {used:3} columns used {peak:6.0f} MiB, X is {own:.0f} of them, {taken:.0f} s  ({verdict})", flush=True
        )


def fidelity_check(rounds: int) -> None:
    from sklearn.ensemble import RandomForestRegressor

    class Zero:
        def predict(self, X: Array) -> Array:
            return np.zeros(len(X))

    n = 10_000
    X, y = data(n)
    train, target = data(n, seed=1)
    groups = sg.find_subgroups(train)
    forest = RandomForestRegressor(100, random_state=0).fit(train, target)
    options: dict[str, Any] = {"sampler": groups, "n_repeats": REPEATS, "random_state": 0}
    # The difference of two long times is mostly noise, so fidelity checks are timed with a model that takes none.
    calls: dict[str, Callable[[], Any]] = {
        "with": lambda: sg.importance(Zero(), X, y, **options),
        "without": lambda: sg.importance(Zero(), X, y, check_fidelity=False, **options),
    }
    least = {name: min(values) for name, values in interleaved(calls, 5 * rounds).items()}
    whole = min(interleaved({"forest": lambda: sg.importance(forest, X, y, **options)}, rounds)["forest"])
    added = least["with"] - least["without"]
    print(f"fidelity checks at n = {n}, {P} columns, {REPEATS} repeats: {1e3 * added / P:.1f} ms for each feature")
    verdict = "ok" if added <= 0.25 * whole else "MISSED"
    print(
        f"  with a forest of 100 trees: {added:.2f} s of {whole:.1f} s, {added / whole:.1%}  (at most 25 %: {verdict})"
    )


PARTS: dict[str, Callable[[int], None]] = {
    "models": models,
    "overhead": overhead,
    "memory": memory,
    "wide": wide,
    "fidelity_check": fidelity_check,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="which parts (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each call is timed (default: 3)")
    arguments = parser.parse_args()
    for name in arguments.only:
        PARTS[name](arguments.rounds)


if __name__ == "__main__":
    main()
