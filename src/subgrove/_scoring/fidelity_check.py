"""Fidelity check of a resampled feature: are its rows realistic? It uses a few hundred rows, and no predictions.

Requirements this design meets:

- it checks the draw that the model is evaluated on; no further draw is made;
- cost is bounded: at most 400 rows, 60 small trees, and some arrays of 400 x 400, for any number of rows;
- draws from the true conditional distribution fail rarely, marginal draws of a dependent feature nearly always
  (`docs/decisions`, 0014);
- if it is not possible, the verdict is "unknown", with the reason; it never interrupts the computation.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.columns import ColumnInfo
from subgrove._data.replace_columns import Changes, Frames, changes_of
from subgrove._data.table import Table, read_like
from subgrove._scoring.two_sample import PairedRows, Points, two_sample_test
from subgrove.samplers.base import Feature, title
from subgrove.samplers.resampled_feature import ResampledFeature
from subgrove.trees.training import select_columns

Verdict = Literal["passed", "failed", "unknown"]

MAX_ROWS = 400
MIN_ROWS = 50
"""With fewer rows there is no check."""
MIN_ROWS_TO_PASS = 100
"""With fewer rows a check can fail, but not pass, since its power is too low."""
MIN_AUC = 0.55
"""A check fails if the lower confidence limit of the AUC exceeds it: importance of a normal feature is then 20% off."""
MAX_POSITION = 0.5
"""A check fails above this position between real rows (0) and marginal draws (1)."""
_STREAM = "certificate"  # name of the random streams: part of the results for a given seed
_Z = 1.645  # standard errors from the AUC to its lower 95 % limit
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
class PointEncoding:
    """Encodes rows as points, with columns standardized by the training rows.

    Numbers, ranks of ordered levels and dates have mean 0 and standard deviation 1 in the training rows; constant
    columns are only centred. Two different labels have distance 1, like two numbers that differ by one standard
    deviation. A missing label is a label of its own; a missing number is set to the mean and flagged in a further
    column by 1. Ordered levels unseen in training count as missing; unseen labels count as one label.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        Columns of the training rows.
    centre, spread : float array
        Mean and standard deviation of numeric columns, in the order of `Table.numbers`.
    """

    columns: tuple[ColumnInfo, ...]
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, train: Table) -> PointEncoding:
        """Compute means and standard deviations of the training rows."""
        numbers = _known(train.numbers)
        count = np.maximum((~np.isnan(numbers)).sum(axis=0), 1)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported with the distances
            centre = np.nansum(numbers, axis=0) / count
            spread = np.sqrt(np.nansum((numbers - centre) ** 2, axis=0) / np.maximum(count - 1, 1))
        return cls(train.columns, centre, np.where((spread > 0) & np.isfinite(spread), spread, 1.0))

    def points(self, table: Table, names: Collection[str], with_missing: Collection[str]) -> Points:
        """Encode some columns of rows; numeric columns in `with_missing` get an indicator of missing values."""
        places = zip(self.columns, table.positions(), strict=True)
        selected = [(column, at) for column, at in places if column.name in names]
        numeric = [at for column, at in selected if not column.is_nominal]
        nominal = [at for column, at in selected if column.is_nominal]
        flagged = [column.name in with_missing for column, _ in selected if not column.is_nominal]
        numbers = _known(table.numbers[:, numeric])
        missing = np.isnan(numbers)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(missing, 0.0, (numbers - self.centre[numeric]) / self.spread[numeric])
        labels = table.codes[:, nominal].astype(np.float64)
        return Points(np.hstack([scaled, missing[:, np.array(flagged, dtype=np.bool_)].astype(np.float64)]), labels)


def columns_with_missing(tables: Sequence[Table]) -> frozenset[str]:
    """Return the numeric columns with missing values in any of the tables."""
    incomplete: set[str] = set()
    for table in tables:
        names = [column.name for column in table.columns if not column.is_nominal]
        missing = np.isnan(_known(table.numbers))
        incomplete |= {name for at, name in enumerate(names) if missing[:, at].any()}
    return frozenset(incomplete)


def _known(numbers: Floats) -> Floats:
    return np.where(np.isinf(numbers), np.nan, numbers)


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
        real, resampled = (encoding.points(table, feature, with_missing) for table in (own, drawn))
        others = [name for name in self.table.names if name not in feature]
        return PairedRows(self._encoding.points(self.table, others, self._with_missing), real, resampled)

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
