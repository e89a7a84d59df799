"""Data fidelity: seconds for one feature of 10,000 rows and 20 columns with the 19 samplers of the experiment.

4,000 rows for fitting, 3,000 to resample, 3,000 to compare with, on one core; times include fitting of trees, forest
and knockoffs. `--numpy` disables the compiled kernels.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments lie beside this folder

from experiments.redraws import Redraws
from subgrove._fidelity.mmd import SamplePairs, squared_mmd
from subgrove._native import loader

LIMIT_S, LIMIT_EACH_S = 20.0, 0.5


def rows(n: int, p: int, seed: int = 0) -> pd.DataFrame:
    """Columns that depend on each other, some of them not linearly."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, p)) @ np.linalg.cholesky(0.5 * np.eye(p) + 0.5).T
    values[:, 0] = np.sin(2 * values[:, 1]) + 0.3 * values[:, 2] + 0.3 * values[:, 0]
    return pd.DataFrame(values, columns=[f"x{k}" for k in range(p)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numpy", action="store_true", help="without the compiled loops over pairs")
    parser.add_argument("--trees", type=int, default=500, help="of the forest of imputation")
    options = parser.parse_args()
    if options.numpy:
        loader.mmd_pairs = None
    table = rows(10_000, 20)
    train, test, reference = (part.reset_index(drop=True) for part in (table[:4000], table[4000:7000], table[7000:]))
    target = pd.Series(np.where(train["x1"] + train["x3"] > 0, "yes", "no"))
    with threadpool_limits(1):
        start = time.perf_counter()
        drawn = Redraws(train, test, target, ["x0"], options.trees).of("x0", seed=1)
        redrawn = time.perf_counter()
        others = [name for name in table if name != "x0"]
        found = SamplePairs.of(reference[others].to_numpy(), test[others].to_numpy())
        kept = time.perf_counter()
        times = {}
        for variant, copies in drawn.items():
            begun = time.perf_counter()
            found.squared_mmd(reference[["x0"]].to_numpy(), [column[:, None] for column in copies])
            times[variant] = time.perf_counter() - begun
        end = time.perf_counter()
        squared_mmd(table[:5000].to_numpy(), table[5000:].to_numpy())
        last = time.perf_counter()
    once = [seconds for variant, seconds in times.items() if variant != "ale"]
    print(f"{len(times)} variants of one feature, in all     {end - start:6.2f} s (limit {LIMIT_S:g})")
    print(f"  redrawn (trees, forest, knockoffs)    {redrawn - start:6.2f} s")
    print(f"  distances of the columns that stay    {kept - redrawn:6.2f} s")
    print(f"  MMD of a variant, mean and largest    {np.mean(once):6.2f} s, {max(once):.2f} s (limit {LIMIT_EACH_S:g})")
    print(f"  MMD of ale, with every row twice      {times['ale']:6.2f} s")
    print(f"squared_mmd of 10,000 rows              {last - end:6.2f} s")


if __name__ == "__main__":
    main()
