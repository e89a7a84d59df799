"""Coverage of 95 % intervals of an importance by several methods (docs/decisions/0023).

    python benchmarks/skewness.py                  all four cells, about two minutes
    python benchmarks/skewness.py --samples 200    fewer samples of each

The true model and the true sampler of the linear and the non-linear scenario, 20 repeats; the true importance is
known exactly.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.special import stdtrit

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove._scoring.estimate_variance import interval_multipliers, skewness_correction
from subgrove._scoring.feature_result import with_rows

_BOOTSTRAPPED = 600  # samples at most, because it is slow
_RESAMPLES = 400
_LEAST_SHARE = 0.1  # as in subgrove._importance.intervals

Sides = tuple[Floats, Floats]  # how many standard errors an interval reaches below and above


def increases(scenario: sg.simulate.Scenario, n: int, samples: int) -> tuple[Floats, Floats, Floats]:
    """Rows' increases, estimates and standard errors of several samples."""
    rows, estimates, errors = [], [], []
    for at in range(samples):
        one, two = np.random.default_rng([5, at]).integers(2**62, size=2).tolist()
        test, train = scenario.sample(n, random_state=one), scenario.sample(50, random_state=two)
        imp = sg.importance(
            scenario.model, test.X, test.y, sampler=scenario.sampler, train=train.X, features=["x1"], n_repeats=20,
            random_state=two, check_fidelity=False, loss="squared_error",
        )  # fmt: skip
        (score,) = with_rows(imp.scores, "skewness_correction")
        values = score.influence[0].astype(np.float64)
        spread = values.var(ddof=1)
        rows.append(values)
        estimates.append(float(score.overall[0].mean()))
        errors.append(np.sqrt(max(spread - float(score.excess[0, 0]), _LEAST_SHARE * spread) / n))
    return np.array(rows), np.array(estimates), np.array(errors)


def student(rows: Floats, errors: Floats) -> Sides:
    t = np.full(len(rows), stdtrit(rows.shape[1] - 1, 0.975))
    return t, t


def cornish_fisher(rows: Floats, errors: Floats) -> Sides:
    t, _ = student(rows, errors)
    moved = _skewness(rows) * (2 * t**2 + 1) / 6
    return t - moved, t + moved


def hall(rows: Floats, errors: Floats) -> Sides:
    t, _ = student(rows, errors)
    a = _skewness(rows)
    below, above = ((3 / a) * (np.cbrt(1 + a * (w - a / 6)) - 1) for w in (t, -t))
    return below, -above


def bootstrap(rows: Floats, errors: Floats) -> Sides:
    rng, sides = np.random.default_rng(0), np.full((2, len(rows)), np.nan)
    n = rows.shape[1]
    for at, values in enumerate(rows[:_BOOTSTRAPPED]):
        drawn = values[rng.integers(n, size=(_RESAMPLES, n))]
        t = (drawn.mean(axis=1) - values.mean()) / (drawn.std(axis=1, ddof=1) / np.sqrt(n))
        low, high = np.quantile(t, [0.025, 0.975])
        sides[:, at] = high, -low
    return sides[0], sides[1]


def chosen(rows: Floats, errors: Floats) -> Sides:
    return interval_multipliers(errors, np.full(len(rows), rows.shape[1] - 1.0), 0.95, skewness_correction(rows, None))


WAYS: dict[str, Callable[[Floats, Floats], Sides]] = {
    "Student": student,
    "Cornish-Fisher": cornish_fisher,
    "Hall": hall,
    "bootstrap-t": bootstrap,
    "chosen": chosen,
}


def _skewness(rows: Floats) -> Floats:
    """Of the mean."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray((centred**3).mean(axis=1) / rows.var(axis=1, ddof=1) ** 1.5 / np.sqrt(rows.shape[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, help="of each cell (default: 2,000 of 200 rows, 1,000 of 1,000 rows)")
    options = parser.parse_args().samples
    for name in ("linear", "nonlinear"):
        for n in (200, 1000):
            scenario = sg.simulate.scenario(name)
            rows, estimates, errors = increases(scenario, n, options or (2000 if n == 200 else 1000))
            distance = (estimates - scenario.importance) / errors
            print(f"{name}, {n} rows, {len(rows)} samples")
            for way, sides in WAYS.items():
                below, above = sides(rows, errors)
                known = ~np.isnan(below)
                misses = distance[known] > below[known], -distance[known] > above[known]
                width = ((below + above)[known] / (2 * stdtrit(n - 1, 0.975))).mean()
                low, high = misses[0].mean(), misses[1].mean()
                print(
                    f"  {way:15} covers {1 - low - high:6.1%}  below {low:5.1%}  above {high:5.1%}  width {width:.2f}"
                )


if __name__ == "__main__":
    main()
