"""Cost of selecting the sampler: relative to growing the paper's trees, and as a share of a whole importance.

    python benchmarks/auto.py                   both parts
    python benchmarks/auto.py --only fit        one of them: fit, whole

fit     2,000 rows x 20 columns, every feature: `Auto` over `Subgroups` with trees of the same limits (max_depth=30) and
        of the default depth 2; least over rounds in turns, mean over five samples, several kinds of dependence
whole   importance of a forest of 100 trees at n = 10,000 x 20, 10 repeats, 10,000 training rows: the share of the time
        that is not spent in the model, with the default sampler and fidelity checks
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

_ROUNDS = 15
_SAMPLES = 5  # because the number of features that seem dependent by chance varies


def least(works: list[Callable[[], Any]]) -> list[float]:
    """Return the minimum time of each call over several alternating rounds."""
    found: list[list[float]] = [[] for _ in works]
    for _ in range(_ROUNDS):
        for times, work in zip(found, works, strict=True):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return [min(times) for times in found]


def correlated(n: int, p: int, seed: int) -> pd.DataFrame:
    """Return normal columns, each with correlation 0.7 to the previous one."""
    noise = np.random.default_rng(seed).standard_normal((n, p))
    for at in range(1, p):
        noise[:, at] = 0.7 * noise[:, at - 1] + np.sqrt(1 - 0.7**2) * noise[:, at]
    return pd.DataFrame(noise, columns=[f"x{at + 1}" for at in range(p)])


def curves(n: int, p: int, seed: int) -> pd.DataFrame:
    """Return columns, each a wave of the previous one plus noise."""
    x = np.random.default_rng(seed).standard_normal((n, p))
    for at in range(1, p):
        x[:, at] = np.sin(2 * x[:, at - 1]) + 0.5 * x[:, at]
    return pd.DataFrame(x, columns=[f"x{at + 1}" for at in range(p)])


def tables() -> dict[str, list[pd.DataFrame]]:
    """2,000 rows x 20 columns, several of each kind."""
    seeds = range(1, _SAMPLES + 1)
    names = sg.simulate.scenarios()
    made = {
        name: [sg.simulate.scenario(name, p=20).sample(2000, random_state=seed).X for seed in seeds] for name in names
    }
    made["correlated"] = [correlated(2000, 20, seed) for seed in seeds]
    return made | {"curves": [curves(2000, 20, seed) for seed in seeds]}


def fit() -> None:
    print("2,000 x 20, milliseconds for each feature, and as a multiple of the trees")
    print(f"{'dependence':14}{'auto':>8}{'trees':>8}{'times':>8}{'depth 2':>9}{'times':>8}")
    samplers = (sg.samplers.Auto(), sg.samplers.SubgroupSampler(max_depth=30), sg.samplers.SubgroupSampler())
    for name, made in tables().items():
        seconds = [least([partial(sampler.fit, X) for sampler in samplers]) for X in made]
        auto, trees, shallow = np.mean(seconds, axis=0) / made[0].shape[1] * 1e3
        times = f"{auto / trees:8.2f}{shallow:9.2f}{auto / shallow:8.2f}"
        print(f"{name:14}{auto:8.2f}{trees:8.2f}{times}", flush=True)


class Timed:
    """A model that measures the time of its predictions."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.seconds = 0.0

    def predict(self, X: Any) -> Any:
        """Predict and measure the time."""
        start = time.perf_counter()
        prediction = self.model.predict(X)
        self.seconds += time.perf_counter() - start
        return prediction


def whole() -> None:
    from sklearn.ensemble import RandomForestRegressor

    data = correlated(20_000, 20, 2)
    y = data["x1"] * data["x2"] + data.sum(axis=1) + np.random.default_rng(3).standard_normal(len(data))
    train, test = data.iloc[:10_000], data.iloc[10_000:]
    forest = RandomForestRegressor(100, min_samples_leaf=5, max_features=1 / 3, n_jobs=-1, random_state=1)
    forest.fit(train, y[:10_000])
    options: dict[str, dict[str, Any]] = {
        "auto, fidelity checks": {},
        "auto": {"check_fidelity": False},
        "subgroups": {"check_fidelity": False, "sampler": "subgroups"},
    }
    for name, settings in options.items():
        shares = []
        for _ in range(3):
            model = Timed(forest)
            start = time.perf_counter()
            sg.importance(model, test, y[10_000:], train=train, random_state=1, **settings)
            total = time.perf_counter() - start
            shares.append((1 - model.seconds / total, total))
        share, total = min(shares)
        print(f"forest of 100 trees, n = 10,000, {name}: {share:.1%} of {total:.1f} s is not the model", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["fit", "whole"])
    only = parser.parse_args().only
    for name, part in {"fit": fit, "whole": whole}.items():
        if only in (None, name):
            part()


if __name__ == "__main__":
    main()
