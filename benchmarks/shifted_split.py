"""What the default call does if training and test rows are not of one source (docs/decisions/0032).

    python benchmarks/shifted_split.py                    600 samples of each line
    python benchmarks/shifted_split.py --quick            few samples: does it work? the numbers mean nothing

Independent scenario, 1,000 training and 200 test rows, 20 redraws. In the training rows x2, by which rows would be
weighted, is moved by some standard errors of the difference of its means; in half of the lines x9, which has nothing to
do with the model, is moved twice as far, as many columns are that were not split at random. `weighted` is how often
rows are weighted; `error` the mean squared error as a multiple of that with `calibrate=False`; `coverage` how often the
95 % interval holds the truth, which is that of the test rows' source.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

import subgrove as sg
from subgrove._kinds import Floats

_TRAIN, _TEST = 1000, 200
MOVED = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)


def one_sample(moved: float, at: int, *, others: bool) -> list[float]:
    """Estimate, its bounds, the estimate of rows alike, and whether rows were weighted."""
    scenario = sg.simulate.scenario("independent")
    first, second, third = np.random.default_rng([8, at]).integers(2**62, size=3).tolist()
    train, test = scenario.sample(_TRAIN, seed=first), scenario.sample(_TEST, seed=second)
    by = moved * np.sqrt(1 / _TRAIN + 1 / _TEST)
    rows = train.X.assign(x2=train.X["x2"] + by, x9=train.X["x9"] + (2 * by if others else 0.0))
    imp = sg.importance(
        scenario.model,
        test.X,
        test.y,
        train=rows,
        features=["x1"],
        n_repeats=20,
        seed=third,
        certify=False,
        progress=False,
    )
    line = imp.overall.iloc[0]
    weighted = len(imp.calibration) > 0
    before = imp.calibration["estimate_before"].iloc[0] if weighted else line["estimate"]
    return [line["estimate"], line["conf_low"], line["conf_high"], before, float(weighted)]


def line_of(moved: float, samples: int, *, others: bool) -> tuple[str, ...]:
    """A line of the table."""
    found: Floats = np.array([one_sample(moved, at, others=others) for at in range(samples)]).T
    after, low, high, before, weighted = found
    truth = sg.simulate.scenario("independent").importance
    covered = ((low <= truth) & (truth <= high)).mean()
    squares = (after - truth) ** 2, (before - truth) ** 2
    ratio = squares[0].mean() / squares[1].mean()
    noise = (squares[0] - ratio * squares[1]).std() / squares[1].mean() / np.sqrt(samples)
    return (
        f"{moved:g}",
        f"{2 * moved:g}" if others else "0",
        str(samples),
        f"{100 * weighted.mean():.0f} %",
        f"{ratio:.2f} ± {noise:.2f}",
        f"{100 * covered:.1f} ± {100 * np.sqrt(covered * (1 - covered) / samples):.1f} %",
    )


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=600)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    samples = 5 if given.quick else given.samples
    show: Callable[..., None] = partial(print, flush=True)
    show("| x2 moved by | x9 moved by | samples | weighted | error | coverage |")
    show("| --: | --: | --: | --: | --: | --: |")
    for others in (False, True):
        for moved in MOVED if not others else MOVED[1:]:
            show(f"| {' | '.join(line_of(moved, samples, others=others))} |")


if __name__ == "__main__":
    main()
