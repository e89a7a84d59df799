"""Coverage of the default interval where donors are training rows, with and without their noise.

    python benchmarks/donor_noise.py [--runs 300] [--least 20] [--jobs 2]

A normal column that is independent of the others, squared error, true importance 2; several numbers of training and
test rows. Fewer runs for the larger ones.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import subgrove as sg

SIZES = ((100, 200), (100, 1000), (100, 5000), (300, 3000), (1000, 1000), (1000, 10_000))
TRUTH = 2.0


def model(rows: Any) -> Any:
    return rows[:, 0] + rows[:, 1]


def covered(seed: int, n_train: int, n_test: int) -> tuple[bool, bool]:
    """Return whether the default interval covers the truth, and the interval without the noise of donors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_train + n_test, 3))
    y = model(X) + rng.normal(size=len(X))
    options: dict[str, Any] = {"features": ["x0"], "loss": "squared_error", "check_fidelity": False}
    imp = sg.importance(model, X[n_train:], y[n_train:], train=X[:n_train], random_state=seed, **options)
    lines = [imp.overall.iloc[0], imp.with_noise("test rows", "Monte Carlo").overall.iloc[0]]
    with_donors, without = (bool(line["conf_low"] <= TRUTH <= line["conf_high"]) for line in lines)
    return with_donors, without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--least", type=int, default=20, help="runs of the largest tables")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    print("| training rows | test rows | runs | covered | without the noise of donors |\n|--:|--:|--:|--:|--:|")
    for n_train, n_test in SIZES:
        own = max(arguments.least, arguments.runs * 1000 // max(n_test, 1000))
        found = np.array(
            Parallel(arguments.jobs)(delayed(covered)(seed, n_train, n_test) for seed in range(own)), dtype=float
        )
        shares = " | ".join(f"{100 * share:.1f} %" for share in found.mean(axis=0))
        print(f"| {n_train:,} | {n_test:,} | {own} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
