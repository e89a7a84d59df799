"""How often certificates fail: of redraws from the true distribution, which should pass, and of marginal ones.

`python benchmarks/certificate.py --runs 100` prints the shares of runs in which the redraw of x1 fails, in the
scenarios of `sg.simulate` and for normal features of several correlations, all with 10 columns.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg

CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.9)


class NormalGivenNext:
    """Redraws x1, normal with some correlation to x2, given x2."""

    def __init__(self, correlation: float) -> None:
        self.correlation = correlation

    def fit(self, X: Any, features: Any) -> NormalGivenNext:
        """Nothing is to be learned."""
        return self

    def redraw(self, X: Any, feature: str, rngs: Any) -> Any:
        """New values of x1."""
        for rng in rngs:
            noise = np.sqrt(1 - self.correlation**2) * rng.normal(size=len(X))
            yield self.correlation * X["x2"].to_numpy() + noise


def normal(n: int, correlation: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 10))
    values[:, 0] = correlation * values[:, 1] + np.sqrt(1 - correlation**2) * values[:, 0]
    return pd.DataFrame(values, columns=[f"x{number + 1}" for number in range(10)])


def fails(X: pd.DataFrame, sampler: Any, seed: int) -> bool:
    options: dict[str, Any] = {"features": ["x1"], "n_repeats": 1, "seed": seed}
    found = sg.importance(lambda X: X["x1"], X, X["x1"], sampler=sampler, **options)
    return bool(found.certificates["certificate"][0] == "fails")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs of each cell (default: 100)")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000], help="test rows")
    arguments = parser.parse_args()
    print(f"{'rows':>5}  {'data':<22} {'true fails':>10} {'marginal fails':>15}", flush=True)
    for n in arguments.rows:
        for name in sg.simulate.scenarios():
            scenario = sg.simulate.scenario(name)
            tables = [scenario.sample(n, seed=seed).X for seed in range(arguments.runs)]
            report(n, name, tables, scenario.sampler)
        for correlation in CORRELATIONS:
            tables = [normal(n, correlation, seed) for seed in range(arguments.runs)]
            report(n, f"normal, r = {correlation}", tables, NormalGivenNext(correlation))


def report(n: int, name: str, tables: list[pd.DataFrame], true: Any) -> None:
    shares = [np.mean([fails(X, sampler, seed) for seed, X in enumerate(tables)]) for sampler in (true, "marginal")]
    print(f"{n:>5}  {name:<22} {shares[0]:>10.1%} {shares[1]:>15.1%}", flush=True)


if __name__ == "__main__":
    main()
