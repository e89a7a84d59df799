"""Fidelity check of a resampled feature: are its rows realistic? It uses a few hundred rows, and no predictions.

Requirements this design meets:

- it checks the draws that the model is evaluated on; further ones, which score them, are never predicted;
- cost is bounded: at most 1,000 rows (600 of a classifier), 10 draws, 80 small trees, and some arrays of 250 x 250,
  for any number of rows;
- draws from the true conditional distribution differ from real values in 5 % of runs by construction, the level of a
  permutation test; the check fails if the difference is also large (`docs/decisions`, 0014);
- a sampler that was learned from few rows is checked on these, too, fitted on halves of them: the test rows alone are
  too few to find differences that are as large as the standard error;
- if it is not possible, the verdict is "unknown", with the reason; it never interrupts the computation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Literal

import numpy as np

from subgrove._core.execution import KeyedStreams, Keys, Streams, stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import PointEncoding, columns_with_missing
from subgrove._data.replace_columns import Changes, Frames, changes_of, concatenate_changes
from subgrove._data.table import Table, read_like, read_table
from subgrove._scoring.exchangeability import exchangeability_test
from subgrove._scoring.two_sample import PairedRows, Points, two_sample_test
from subgrove.exceptions import SubgroveError
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.fit import cross_fitted
from subgrove.samplers.resampled_feature import ResampledFeature
from subgrove.trees.training import select_columns

Verdict = Literal["passed", "uncertain sampler", "small difference", "failed", "unknown"]

MAX_ROWS = 1000
MIN_ROWS = 50
"""With fewer rows there is no check."""
MIN_ROWS_TO_PASS = 100
"""With fewer rows a check can fail, but not pass, since its power is too low."""
MAX_DRAWS = 10
"""Draws that are checked, and further ones that they are scored by."""
LEVEL = 0.05
"""Real and resampled values differ significantly if the p-value is at most this."""
LEVEL_OF_HALVES = 0.01
"""The same for samplers that are fitted on halves of the training rows, which are less accurate than the one in use."""
MAX_TRAINING_ROWS, MAX_TRAINING_CELLS = 1000, 6_000
"""With more training rows, or rows times columns, samplers are not fitted on halves of them, for the cost."""
LARGE, LARGE_AUC = 0.3, 0.75
"""A check fails if they do, and the size of the difference, or the AUC of the classifier, is at least this."""
_STREAM = "certificate"  # name of the random streams: part of the results for a given seed
_Z = 2.3  # standard errors of an AUC that is mentioned: 1.645 times the root of 2, as the two halves are correlated
_DIFFERENCES = {
    "location": "resampled values have another mean than real ones, given the other columns",
    "spread": "resampled values have another spread than real ones, given the other columns",
    "shape": "resampled values have another distribution than real ones, given the other columns",
}
_TOO_LARGE = 1e100  # squares of larger standardized values are inexact
_MIN_RATIO = 3.0  # smallest significant ratio of MMD to its noise, whose distribution has a heavy upper tail


@dataclass(frozen=True)
class FidelityCheck:
    """Result of the fidelity check of a resampled feature.

    Attributes
    ----------
    verdict : {"passed", "uncertain sampler", "small difference", "failed", "unknown"}
        Whether resampled rows are realistic; "uncertain sampler" if no difference was found, but one is found in the
        training rows for samplers that are fitted on halves of these; "unknown" if the check was not possible.
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
    p_value : float
        Of the permutation test of whether the real values are exchangeable with the resampled ones.
    size : float
        Size of the difference: how far real values are from resampled ones, on average within levels or ranges of
        another column, in standard deviations.
    """

    verdict: Verdict
    reason: str
    auc: float = float("nan")
    auc_std_error: float = float("nan")
    mmd: float = float("nan")
    n: int = 0
    p_value: float = float("nan")
    size: float = float("nan")


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
    resample : callable
        Resamples a feature of all rows, for further draws.
    seed : int
        Seed; the random streams differ from those of the samplers.
    keys : uint64 array or None
        Keys of all rows of large data.
    on_halves : callable or None
        Returns the checker of the training rows for a feature, whose sampler is fitted on halves of these.
    """

    frames: Frames
    rows: Rows
    table: Table
    resample: Callable[[Feature, Streams], ResampledFeature]
    seed: int
    keys: Keys | None = None
    on_halves: Callable[[Feature], FidelityChecker | None] | None = None

    @classmethod
    def of(
        cls,
        frames: Frames,
        table: Table,
        sampler: FittedSampler,
        sampled: Table,
        weights: Floats | None,
        seed: int,
        keys: Keys | None = None,
    ) -> FidelityChecker:
        """Select at most `MAX_ROWS` rows at random, with probabilities proportional to their weights.

        Of clusters of dependent rows one row each is selected: rows of a cluster have similar real values, which
        independent draws do not have.
        """
        rows, resample = np.arange(table.n_rows), partial(sampler.resample, sampled, weights=weights, exact=False)
        if table.clusters is not None:
            order = stream(seed, _STREAM).permutation(rows)
            rows = np.sort(order[np.unique(table.clusters[order], return_index=True)[1]])
        if len(rows) > MAX_ROWS:
            share = None if weights is None else weights[rows] / weights[rows].sum()
            rows = np.sort(stream(seed, _STREAM).choice(rows, MAX_ROWS, replace=False, p=share))
        on_halves = partial(_checker_of_halves, sampler, sampled, seed)
        return cls(frames, rows, table.rows(rows), resample, seed, keys, on_halves)

    def read(self, draws: Sequence[Changes], resample: Callable[[], ResampledFeature]) -> list[Table] | str:
        """Return the selected rows of draws, or the reason why not; without any, of those that `resample` makes."""
        n = len(self.rows)
        if n < MIN_ROWS:
            return f"there are {n} rows, but {MIN_ROWS} are needed"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the same values cause the same warnings in the predictions
                draws = draws or [changes_of(draw, self.rows) for draw in islice(resample().draws(), MAX_DRAWS)]
                changed = self.frames.changed(np.tile(self.rows, len(draws)), concatenate_changes(draws))
                table = read_like(changed, [column for column in self.table.columns if column.name in draws[0]])
        except Exception as error:  # an error must not interrupt; of the predictions it is raised with more context
            return f"the resampled values could not be read: {error}"
        return [table.rows(np.arange(at, at + n)) for at in range(0, len(draws) * n, n)]

    def check(self, feature: Feature, drawn: list[Table] | str) -> FidelityCheck:
        """Check draws, as returned by `read`, with the help of further ones."""
        n, points = len(self.rows), self._read_points(feature, drawn)
        if isinstance(points, str):
            return FidelityCheck("unknown", points, n=n)
        others, values, reference = points
        rng = stream(self.seed, f"{_STREAM} of {title(feature)}")
        auc, error, mmd = two_sample_test(PairedRows(others, values[0], values[1]), rng)
        p_value, score, size = exchangeability_test(others, values, reference, rng)
        position = mmd.squared / mmd.marginal if mmd.marginal > _MIN_RATIO * mmd.noise else float("nan")
        verdict, reason = _verdict(p_value, score, size, auc, auc - _Z * error > 0.5, n)
        if verdict == "passed":
            verdict, reason = self._verdict_of_halves(feature) or (verdict, reason)
        return FidelityCheck(verdict, reason, auc, error, position, n, p_value, size)

    def _verdict_of_halves(self, feature: Feature) -> tuple[Verdict, str] | None:
        """Return the verdict if draws of samplers that are fitted on halves of the training rows differ from these."""
        own = None if self.on_halves is None else self.on_halves(feature)
        if own is None:
            return None
        streams = Streams(self.seed, f"{_STREAM}, halves of {title(feature)}", MAX_DRAWS)
        points = own._read_points(feature, own.read((), partial(own.resample, feature, streams)))
        if isinstance(points, str):
            return None
        p_value, *_ = exchangeability_test(*points, stream(self.seed, f"{_STREAM} of halves of {title(feature)}"))
        if p_value > LEVEL_OF_HALVES:
            return None
        fitted = f"samplers fitted on halves of the {len(own.rows)} training rows differ from the other halves"
        return "uncertain sampler", f"no difference was found in these rows, but {fitted}; p = {p_value:.3f}"

    def _read_points(
        self, feature: Feature, drawn: list[Table] | str
    ) -> tuple[Points, list[Points], list[Points]] | str:
        """Return the other columns, the real and the drawn values, and further draws; or why this is not possible."""
        key = f"{_STREAM}, reference of {title(feature)}"
        streams = Streams(self.seed, key, MAX_DRAWS)
        if self.keys is not None:
            streams = KeyedStreams(self.seed, key, MAX_DRAWS, rows=self.keys)
        reference = drawn if isinstance(drawn, str) else self.read((), partial(self.resample, feature, streams))
        if isinstance(drawn, str) or isinstance(reference, str):
            return str(reference)
        others, *values = self._points(feature, [*drawn, *reference])
        if not all((np.abs(part.numbers) < _TOO_LARGE).all() for part in (others, *values)):
            return "values are too large for distances"
        return others, values[: 1 + len(drawn)], values[1 + len(drawn) :]

    def _points(self, feature: Feature, draws: Sequence[Table]) -> list[Points]:
        """Return the other columns, the real feature, and each draw."""
        own = select_columns(self.table, feature)
        with_missing, encoding = columns_with_missing([own, *draws]), PointEncoding.of(own)
        others = [name for name in self.table.names if name not in feature]
        arrays = [self._encoding.arrays(self.table, others, self._with_missing)]
        arrays += [encoding.arrays(table, feature, with_missing) for table in (own, *draws)]
        return [Points(numbers, labels) for numbers, labels in arrays]

    @cached_property
    def _encoding(self) -> PointEncoding:
        return PointEncoding.of(self.table)

    @cached_property
    def _with_missing(self) -> frozenset[str]:
        return columns_with_missing([self.table])


def _checker_of_halves(sampler: FittedSampler, sampled: Table, seed: int, feature: Feature) -> FidelityChecker | None:
    """Return the checker of the training rows, each half of which is resampled by a sampler fitted on the other half.

    None for samplers that are not learned, many or dependent rows, and groups of features.
    """
    fitted = sampler.of_feature(sampled, feature)[0]
    if fitted.unfitted is None or len(feature) > 1 or sampled.clusters is not None:
        return None
    try:
        table = read_table(fitted.train, lenient=True)
        n, cells = table.n_rows, table.n_rows * len(table.names)
        if not (MIN_ROWS_TO_PASS <= n <= MAX_TRAINING_ROWS and cells <= MAX_TRAINING_CELLS):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            halves = cross_fitted(fitted.unfitted, fitted.train, table, list(feature), seed)
    except SubgroveError:  # half of the rows may be too few
        return None
    return FidelityChecker.of(Frames(fitted.train, table.columns), table, halves, table, None, seed)


def _verdict(p_value: float, score: str, size: float, auc: float, separable: bool, n: int) -> tuple[Verdict, str]:
    """Return the verdict and its reason."""
    if p_value <= LEVEL:
        seen = f"a classifier separates resampled from real rows (AUC {auc:.2f})" if separable else _DIFFERENCES[score]
        small = size < LARGE and auc < LARGE_AUC
        return "small difference" if small else "failed", f"{seen}; p = {p_value:.3f}"
    if n < MIN_ROWS_TO_PASS:
        return "unknown", f"no difference was found, but there are {n} rows, and {MIN_ROWS_TO_PASS} are needed to pass"
    return "passed", "resampled rows are realistic"
