"""Fidelity check of a resampled feature: are its rows realistic? It uses a few hundred rows, and no predictions.

Requirements this design meets:

- it checks the draw that the model is evaluated on; no further draw is made;
- cost is bounded: at most 1,000 rows, 60 small trees, and some arrays of 400 x 400, for any number of rows;
- draws from the true conditional distribution fail rarely, marginal draws of a dependent feature nearly always
  (`docs/decisions`, 0014);
- if it is not possible, the verdict is "unknown", with the reason; it never interrupts the computation.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import PointEncoding, columns_with_missing
from subgrove._data.replace_columns import Changes, Frames, changes_of
from subgrove._data.table import Table, read_like
from subgrove._scoring.two_sample import PairedRows, Points, two_sample_test
from subgrove.samplers.base import Feature, title
from subgrove.samplers.resampled_feature import ResampledFeature
from subgrove.trees.training import select_columns

Verdict = Literal["passed", "failed", "unknown"]

MAX_ROWS = 1000
MIN_ROWS = 50
"""With fewer rows there is no check."""
MIN_ROWS_TO_PASS = 100
"""With fewer rows a check can fail, but not pass, since its power is too low."""
MIN_AUC = 0.5
"""A check fails if the AUC exceeds it significantly: with draws of the true distribution in about one of 20 runs."""
MAX_POSITION = 0.5
"""A check fails above this position between real rows (0) and marginal draws (1)."""
_STREAM = "certificate"  # name of the random streams: part of the results for a given seed
_Z = 2.2  # standard errors from the AUC to its lower limit; its standard error ignores how classifiers vary
_TOO_LARGE = 1e100  # squares of larger standardized values are inexact
_MIN_RATIO = 3.0  # smallest significant ratio of MMD to its noise, whose distribution has a heavy upper tail


@dataclass(frozen=True)
class FidelityCheck:
    """Result of the fidelity check of a resampled feature.

    Attributes
    ----------
    verdict : {"passed", "failed", "unknown"}
        Whether resampled rows are realistic; "unknown" if the check was not possible.
    reason : str
        Reason of the verdict.
    auc : float
        Held-out AUC of a classifier for resampled against real rows; 0.5 if they are indistinguishable.
    auc_std_error : float
        Its standard error.
    mmd : float
        Position of the squared MMD between real rows (0) and marginal draws (1). NaN if these bounds do not differ
        significantly, as for a feature that is independent of the others.
    n : int
        Number of rows in the check.
    """

    verdict: Verdict
    reason: str
    auc: float = float("nan")
    auc_std_error: float = float("nan")
    mmd: float = float("nan")
    n: int = 0


@dataclass(frozen=True, eq=False)
class FidelityChecker:
    """Checks resampled features of a table.

    Attributes
    ----------
    frames : Frames
        All rows, in the user's container.
    rows : int array
        Indices of the rows in the check.
    table : Table
        These rows.
    seed : int
        Seed; the random streams differ from those of the samplers.
    """

    frames: Frames
    rows: Rows
    table: Table
    seed: int

    @classmethod
    def of(cls, frames: Frames, table: Table, weights: Floats | None, seed: int) -> FidelityChecker:
        """Select at most `MAX_ROWS` rows at random, with probabilities proportional to their weights."""
        rows = np.arange(table.n_rows)
        if table.n_rows > MAX_ROWS:
            share = None if weights is None else weights / weights.sum()
            rows = np.sort(stream(seed, _STREAM).choice(table.n_rows, MAX_ROWS, replace=False, p=share))
        return cls(frames, rows, table.rows(rows), seed)

    def first_draw(self, resampled: ResampledFeature) -> Table | str:
        """Return the selected rows of the first draw, where the model is not evaluated on draws."""
        try:
            changes = next(resampled.draws())
        except Exception as error:  # importance does not need draws here, so an error must not interrupt it
            return f"the feature could not be drawn: {error}"
        return self.read_draw(changes)

    def read_draw(self, changes: Changes) -> Table | str:
        """Return the resampled feature in the selected rows, or the reason why it cannot be read."""
        if len(self.rows) < MIN_ROWS:
            return f"there are {len(self.rows)} rows, but {MIN_ROWS} are needed"
        columns = [column for column in self.table.columns if column.name in changes]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the same values cause the same warnings in the predictions
                return read_like(self.frames.changed(self.rows, changes_of(changes, self.rows)), columns)
        except Exception as error:  # the predictions raise it for the same values, with more context
            return f"the resampled values could not be read: {error}"

    def check(self, feature: Feature, drawn: Table | str | None) -> FidelityCheck:
        """Check a draw, as returned by `read_draw` or `first_draw`."""
        if drawn is None or isinstance(drawn, str):
            return FidelityCheck("unknown", drawn or "nothing was drawn", n=len(self.rows))
        pairs = self._pair(feature, drawn)
        if not all((np.abs(part.numbers) < _TOO_LARGE).all() for part in (pairs.others, pairs.real, pairs.resampled)):
            return FidelityCheck("unknown", "values are too large for distances", n=len(pairs))
        auc, error, mmd = two_sample_test(pairs, stream(self.seed, f"{_STREAM} of {title(feature)}"))
        dependent = mmd.marginal > _MIN_RATIO * mmd.noise
        position = mmd.squared / mmd.marginal if dependent else float("nan")
        separable = auc - _Z * error > MIN_AUC
        distant = dependent and position > MAX_POSITION and mmd.squared > _MIN_RATIO * mmd.noise
        verdict, reason = _verdict(separable, distant, auc, position, len(pairs))
        return FidelityCheck(verdict, reason, auc, error, position, len(pairs))

    def _pair(self, feature: Feature, drawn: Table) -> PairedRows:
        own = select_columns(self.table, feature)
        with_missing, encoding = columns_with_missing([own, drawn]), PointEncoding.of(own)
        real, resampled = (Points(*encoding.arrays(table, feature, with_missing)) for table in (own, drawn))
        others = [name for name in self.table.names if name not in feature]
        return PairedRows(Points(*self._encoding.arrays(self.table, others, self._with_missing)), real, resampled)

    @cached_property
    def _encoding(self) -> PointEncoding:
        return PointEncoding.of(self.table)

    @cached_property
    def _with_missing(self) -> frozenset[str]:
        return columns_with_missing([self.table])


def _verdict(separable: bool, distant: bool, auc: float, position: float, n: int) -> tuple[Verdict, str]:
    """Return the verdict and its reason."""
    if separable:
        return "failed", f"a classifier separates resampled from real rows (AUC {auc:.2f})"
    if distant:
        return "failed", f"resampled rows are {position:.0%} as far from real rows as marginal draws are"
    if n < MIN_ROWS_TO_PASS:
        return "unknown", f"no difference was found, but there are {n} rows, and {MIN_ROWS_TO_PASS} are needed to pass"
    if np.isnan(position):
        return "passed", "resampled rows are realistic; the feature does not significantly depend on the others"
    return "passed", "resampled rows are realistic"
