"""What the default call does if training and test rows are not of one source (docs/decisions/0032).

    python benchmarks/shifted_split.py                    400 samples of each line
    python benchmarks/shifted_split.py --quick            few samples: does it work? the numbers mean nothing

Rows of the independent scenario, 1,000 for training and 200 for the test, 20 redraws. In the training rows x2, by
which rows would be weighted, is moved by some standard errors of the difference of its means; in some lines x9, which
has nothing to do with the model, is moved twice as far, as many columns are that were not split at random. The model
is that of the scenario, in which x2 tells two fifths of what rows add; or `all by x2`, the sign of x1 times the root
of the rank of x2, in which it tells all of it. `weighted` is how often rows are weighted; `error` the mean squared
error as a multiple of that with `calibrate=False`; `coverage` how often the 95 % interval holds the truth, which is
that of the test rows' source, and `alike` the same with `calibrate=False`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

import subgrove as sg
from subgrove._core.kinds import Floats

_TRAIN, _TEST = 1000, 200
MOVED = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)


@dataclass(frozen=True)
class Cell:
    """A line of the table."""

    moved: float
    others: bool = False
    by_x2: bool = False


CELLS = [
    *(Cell(moved) for moved in MOVED),
    *(Cell(moved, others=True) for moved in MOVED[1:4]),
    *(Cell(moved, by_x2=True) for moved in MOVED),
]


def root_of_rank(X: pd.DataFrame) -> Floats:
    """The model in which all of what rows add is told by x2."""
    found: Floats = np.sign(X["x1"].to_numpy()) * np.sqrt(ndtr(X["x2"].to_numpy()))
    return found


def one_sample(cell: Cell, at: int) -> list[float]:
    """Of the default and with rows alike: the estimate and its bounds; and whether rows were weighted."""
    scenario = sg.simulate.scenario("independent")
    first, second, third = np.random.default_rng([8, at]).integers(2**62, size=3).tolist()
    train, test = scenario.sample(_TRAIN, random_state=first), scenario.sample(_TEST, random_state=second)
    by = cell.moved * np.sqrt(1 / _TRAIN + 1 / _TEST)
    rows = train.X.assign(x2=train.X["x2"] + by, x9=train.X["x9"] + (2 * by if cell.others else 0.0))
    X, y = test.X, np.asarray(test.y, dtype=np.float64)
    model: Any = scenario.model
    if cell.by_x2:
        rows, X = (one.assign(x1=np.sign(one["x1"])) for one in (rows, X))
        model, y = root_of_rank, root_of_rank(X)
    asked: dict[str, Any] = {
        "train": rows,
        "features": ["x1"],
        "n_repeats": 20,
        "random_state": third,
        "check_fidelity": False,
    }
    found: list[float] = []
    for calibrate in ("auto", False):
        imp = sg.importance(model, X, y, calibrate=calibrate, progress=False, **asked)
        found += imp.overall[["estimate", "conf_low", "conf_high"]].iloc[0].tolist()
        found += [float(len(imp.calibration) > 0)]
    return found[:-1]


def line_of(cell: Cell, samples: int) -> tuple[str, ...]:
    """A line of the table."""
    found: Floats = np.array([one_sample(cell, at) for at in range(samples)]).T
    after, low, high, weighted, before, low_before, high_before = found
    truth = 1.0 if cell.by_x2 else sg.simulate.scenario("independent").importance
    covered = ((low <= truth) & (truth <= high)).mean()
    covered_before = ((low_before <= truth) & (truth <= high_before)).mean()
    squares = (after - truth) ** 2, (before - truth) ** 2
    ratio = squares[0].mean() / squares[1].mean()
    noise = (squares[0] - ratio * squares[1]).std() / squares[1].mean() / np.sqrt(samples)
    return (
        "all by x2" if cell.by_x2 else "of the scenario",
        f"{cell.moved:g}",
        f"{2 * cell.moved:g}" if cell.others else "0",
        str(samples),
        f"{100 * weighted.mean():.0f} %",
        f"{ratio:.2f} ± {noise:.2f}",
        f"{100 * covered:.1f} ± {100 * np.sqrt(covered * (1 - covered) / samples):.1f} %",
        f"{100 * covered_before:.1f} %",
    )


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    samples = 5 if given.quick else given.samples
    show: Callable[..., None] = partial(print, flush=True)
    show("| model | x2 moved by | x9 moved by | samples | weighted | error | coverage | alike |")
    show("| --- | --: | --: | --: | --: | --: | --: | --: |")
    for cell in CELLS:
        show(f"| {' | '.join(line_of(cell, samples))} |")


if __name__ == "__main__":
    main()
