"""Share of failed fidelity checks: for the true sampler, where they should pass, and for the marginal sampler.

`python benchmarks/fidelity_check.py --runs 100` prints the shares of runs in which resampled x1 fails, in the
scenarios of `sg.simulate`, for normal features of several correlations, all with 10 columns, and for labels that
equal another label in some share of the rows, with 4 columns. `--only labels` runs data whose names start with
"labels". `--wrong` prints instead the shares for draws that are wrong in one respect.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.9)
SHARES = (0.0, 0.3, 0.5, 0.7)
LEVELS = 6


class NormalGivenNext:
    """Sample x1 given x2 from a bivariate normal distribution."""

    def __init__(self, correlation: float) -> None:
        self.correlation = correlation

    def fit(self, X: Any, features: Any) -> NormalGivenNext:
        """Return the sampler, which has no parameters to fit."""
        return self

    def sample(self, X: Any, feature: str, rngs: Any) -> Any:
        """Yield new values of x1."""
        for rng in rngs:
            noise = np.sqrt(1 - self.correlation**2) * rng.normal(size=len(X))
            yield self.correlation * X["x2"].to_numpy() + noise


def normal(n: int, correlation: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 10))
    values[:, 0] = correlation * values[:, 1] + np.sqrt(1 - correlation**2) * values[:, 0]
    return pd.DataFrame(values, columns=[f"x{number + 1}" for number in range(10)])


class WithinLabels:
    """Permute x1 within the levels of x2."""

    def fit(self, X: Any, features: Any) -> WithinLabels:
        """Return the sampler, which has no parameters to fit."""
        return self

    def sample(self, X: Any, feature: str, rngs: Any) -> Any:
        """Yield permuted values of x1."""
        values, label = X[feature].to_numpy(), X["x2"].to_numpy()
        for rng in rngs:
            order = np.lexsort([rng.random(len(X)), label])
            drawn = values.copy()
            drawn[np.argsort(label, kind="stable")] = values[order]
            yield drawn


def labels(n: int, share: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    codes = rng.integers([LEVELS, LEVELS, 80], size=(n, 3))
    codes[:, 0] = np.where(rng.random(n) < share, codes[:, 1], codes[:, 0])
    X = pd.DataFrame({f"x{at + 1}": [f"level {code}" for code in codes[:, at]] for at in range(3)})
    return X.assign(x4=rng.normal(size=n))


def fails(X: pd.DataFrame, sampler: Any, seed: int, n_repeats: int = 10) -> bool:
    options: dict[str, Any] = {"features": ["x1"], "n_repeats": n_repeats, "random_state": seed}
    found = sg.importance(lambda X: np.zeros(len(X)), X, np.zeros(len(X)), sampler=sampler, **options)
    return bool(found.fidelity_checks["fidelity"][0] in ("failed", "small difference"))


class Given:
    """Sample x1 by a function of the other columns, as an array, and a generator."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw

    def fit(self, X: Any, features: Any) -> Given:
        """Return the sampler, which has no parameters to fit."""
        return self

    def sample(self, X: Any, feature: str, rngs: Any) -> Any:
        """Yield new values of x1."""
        others = X.drop(columns="x1").to_numpy(float)
        for rng in rngs:
            yield self.draw(others, rng)


def plus_noise(mean: Callable[[Any], Any], noise: float) -> Callable[..., Any]:
    return lambda z, rng: mean(z) + noise * rng.normal(size=len(z))


def two_modes(z: Any, rng: Any) -> Any:
    return z[:, 0] + rng.choice([-1.0, 1.0], len(z)) + 0.3 * rng.normal(size=len(z))


LEVEL_MEANS = 1.5 * np.sin(2.4 * np.arange(100))
WRONG: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "spread 10 % too large": (plus_noise(lambda z: z[:, 0], 0.5), plus_noise(lambda z: z[:, 0], 0.55)),
    "spread 20 % too large": (plus_noise(lambda z: z[:, 0], 0.5), plus_noise(lambda z: z[:, 0], 0.6)),
    "spread 30 % too large": (plus_noise(lambda z: z[:, 0], 0.5), plus_noise(lambda z: z[:, 0], 0.65)),
    "spread 20 % too small": (plus_noise(lambda z: z[:, 0], 0.5), plus_noise(lambda z: z[:, 0], 0.4)),
    "product of two missed": (plus_noise(lambda z: z[:, 0] * z[:, 1], 0.5), plus_noise(lambda z: 0.0, 1.12)),
    "product of three missed": (plus_noise(lambda z: z[:, :3].prod(axis=1), 0.5), plus_noise(lambda z: 0.0, 1.12)),
    "periodic term missed": (plus_noise(lambda z: np.sin(4 * z[:, 0]), 0.5), plus_noise(lambda z: 0.0, 0.87)),
    "one mode for two": (two_modes, plus_noise(lambda z: z[:, 0], np.sqrt(1.09))),
    "scale given x3 missed": (
        lambda z, rng: np.exp(0.5 * z[:, 1]) * rng.normal(size=len(z)),
        plus_noise(lambda z: 0.0, 1.28),
    ),
    "100 level means missed": (
        plus_noise(lambda z: LEVEL_MEANS[z[:, 3].astype(int)], 0.5),
        plus_noise(lambda z: 0.0, 1.17),
    ),
}
"""How x1 is drawn given the others, and wrong draws of about the same variance."""


def report_wrong(n: int, runs: int) -> None:
    for name, (true, wrong) in WRONG.items():
        failed = []
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            others = np.column_stack([rng.normal(size=(n, 3)), rng.integers(100, size=n)])
            X = pd.DataFrame(others, columns=["x2", "x3", "x4", "x5"])
            X.insert(0, "x1", true(others, rng))
            failed.append([fails(X, Given(draw), seed) for draw in (true, wrong)])
        shares = np.mean(failed, axis=0)
        print(f"{n:>5}  {name:<24} {shares[0]:>10.1%} {shares[1]:>15.1%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs of each cell (default: 100)")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000], help="test rows")
    parser.add_argument("--only", default="", help="how names of the data start that are run (default: all)")
    parser.add_argument("--wrong", action="store_true", help="draws that are wrong in one respect")
    arguments = parser.parse_args()
    if arguments.wrong:
        print(f"{'rows':>5}  {'draws':<24} {'true fails':>10} {'wrong fails':>15}", flush=True)
        for n in arguments.rows:
            report_wrong(n, arguments.runs)
        return
    print(f"{'rows':>5}  {'data':<22} {'true fails':>10} {'marginal fails':>15}", flush=True)
    for n in arguments.rows:
        for name, (sample, sampler) in cases().items():
            if name.startswith(arguments.only):
                report(n, name, [sample(n, seed=seed) for seed in range(arguments.runs)], sampler)


def scenario(name: str, n: int, seed: int) -> pd.DataFrame:
    X: pd.DataFrame = sg.simulate.scenario(name).sample(n, random_state=seed).X
    return X


def cases() -> dict[str, tuple[Callable[..., pd.DataFrame], Any]]:
    """Name of the data -> how they are drawn, and the true sampler of x1."""
    found: dict[str, tuple[Callable[..., pd.DataFrame], Any]] = {}
    for name in sg.simulate.scenarios():
        found[name] = (partial(scenario, name), sg.simulate.scenario(name).sampler)
    for r in CORRELATIONS:
        found[f"normal, r = {r}"] = (partial(normal, correlation=r), NormalGivenNext(r))
    for share in SHARES:
        found[f"labels, share = {share}"] = (partial(labels, share=share), WithinLabels())
    return found


def report(n: int, name: str, tables: list[pd.DataFrame], true: Any) -> None:
    shares = [np.mean([fails(X, sampler, seed) for seed, X in enumerate(tables)]) for sampler in (true, "marginal")]
    print(f"{n:>5}  {name:<22} {shares[0]:>10.1%} {shares[1]:>15.1%}", flush=True)


if __name__ == "__main__":
    main()
