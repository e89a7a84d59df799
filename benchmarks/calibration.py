"""Effect of calibrated test rows on estimates, standard errors and coverage (docs/decisions/0026).

    python benchmarks/calibration.py                        all cells, 1000 samples of each
    python benchmarks/calibration.py --quick                few samples: does it work? the numbers mean nothing
    python benchmarks/calibration.py --cells "*true*"       some of the cells

Each sample has 1000 training rows (200 where a forest is fitted on them) and 20 redraws. `moved` is the calibrated
estimate less the one before, on average over samples; `error` the mean squared error as a multiple of the one before;
`coverage` how often the 95 % interval holds the truth. The truth is known exactly for the true model and squared error,
and from fresh rows for each forest; elsewhere it is the mean of the estimates before, which are not biased.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from subgrove._core.kinds import Floats

_FRESH_ROWS = 20_000  # for the true importance of a forest


@dataclass(frozen=True)
class Cell:
    """One line of the table: the source of the rows, the model, and the sampler of x1."""

    scenario: str
    model: str
    sampler: str
    n: int

    @property
    def name(self) -> str:
        """Name of the cell, as in `--cells`."""
        return f"{self.scenario}-{self.model}-{self.sampler}-{self.n}"


CELLS = [
    *(Cell(name, "true model", "true", n) for name in ("independent", "linear", "nonlinear") for n in (200, 1000)),
    *(Cell("independent", "true model", "marginal", n) for n in (200, 1000)),
    *(Cell(name, "true model", "auto", n) for name in ("independent", "linear") for n in (200, 1000)),
    *(Cell("independent", "waves, absolute error", sampler, 200) for sampler in ("true", "marginal", "auto")),
    *(Cell("linear", "classes, log loss", sampler, 200) for sampler in ("true", "auto")),
    *(Cell(name, "forest", "auto", 100) for name in ("independent", "linear")),
]


def waves(X: pd.DataFrame) -> Floats:
    """A model that is far from linear."""
    x = X.to_numpy(np.float64)
    found: Floats = np.sin(2 * x[:, 0]) * (1 + x[:, 1] ** 2) + np.abs(x[:, 0] - x[:, 2])
    return found


class Classes:
    """A model that gives probabilities of two classes."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Classes:
        """Return the model, which is already fitted."""
        return self

    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return the probabilities of both classes."""
        x = X.to_numpy(np.float64)
        high = 1 / (1 + np.exp(-(1.5 * x[:, 0] * (x[:, 1] > 0) + x[:, 2])))
        return np.column_stack([1 - high, high])


def options(cell: Cell, train: sg.datasets.Dataset, test: sg.datasets.Dataset, seed: int) -> tuple[Any, Any, str]:
    """Return the model, the target of the test rows, and the loss."""
    rng = np.random.default_rng(seed)
    if cell.model == "true model":
        return sg.simulate.scenario(cell.scenario).model, test.y, "squared_error"
    if cell.model == "forest":
        from sklearn.ensemble import RandomForestRegressor

        return (
            RandomForestRegressor(30, min_samples_leaf=3, random_state=0).fit(train.X, train.y),
            test.y,
            "squared_error",
        )
    if cell.model.startswith("waves"):
        return waves, waves(test.X) + rng.normal(size=len(test.X)), "absolute_error"
    return Classes(), (rng.random(len(test.X)) < Classes().predict_proba(test.X)[:, 1]).astype(int), "log_loss"


def one_sample(cell: Cell, at: int) -> list[float]:
    """Estimate, its bounds, the estimate before, and the truth (0 where it is not known)."""
    scenario = sg.simulate.scenario(cell.scenario)
    first, second, third = np.random.default_rng([7, at]).integers(2**62, size=3).tolist()
    train = scenario.sample(200 if cell.model == "forest" else 1000, random_state=first)
    test = scenario.sample(cell.n, random_state=second)
    model, y, loss = options(cell, train, test, third)
    redrawn: dict[str, Any] = {"sampler": cell.sampler, "train": train.X}
    if cell.sampler == "true":
        redrawn["sampler"] = scenario.sampler
    elif cell.sampler == "marginal":
        redrawn["train"] = None
    imp = sg.importance(
        model,
        test.X,
        y,
        features=["x1"],
        n_repeats=20,
        loss=loss,
        random_state=third,
        check_fidelity=False,
        **redrawn,
    ).calibrated(train.X)
    line, truth = imp.overall.iloc[0], 0.0
    if cell.model == "true model":
        truth = scenario.importance
    elif cell.model == "forest":  # each sample has its own forest
        truth = scenario.true_importance(model, n=_FRESH_ROWS, random_state=third)
    before = imp.calibration["uncalibrated_estimate"].iloc[0]
    return [line["estimate"], line["conf_low"], line["conf_high"], before, truth]


def line_of(cell: Cell, samples: int) -> tuple[str, ...]:
    """Return a row of the table."""
    after, low, high, before, truth = np.array([one_sample(cell, at) for at in range(samples)]).T
    if not truth.any():
        truth = np.full(samples, before.mean())
    moved = after - before
    covered = ((low <= truth) & (truth <= high)).mean()
    ratio = ((after - truth) ** 2).mean() / ((before - truth) ** 2).mean()
    return (
        cell.scenario,
        cell.model,
        cell.sampler,
        str(cell.n),
        str(samples),
        f"{truth.mean():.3g}",
        f"{moved.mean():+.4f} ± {moved.std() / np.sqrt(samples):.4f}",
        f"{ratio:.2f}",
        f"{100 * covered:.1f} ± {100 * np.sqrt(covered * (1 - covered) / samples):.1f} %",
    )


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--cells", nargs="+", default=["*"], metavar="PATTERN")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    samples = 5 if given.quick else given.samples
    show: Callable[..., None] = partial(print, flush=True)
    show("| scenario | model, loss | sampler | test rows | samples | truth | moved | error | coverage |")
    show("| --- | --- | --- | --: | --: | --: | --: | --: | --: |")
    for cell in CELLS:
        if any(fnmatchcase(cell.name, pattern) for pattern in given.cells):
            show(f"| {' | '.join(line_of(cell, samples))} |")


if __name__ == "__main__":
    main()
