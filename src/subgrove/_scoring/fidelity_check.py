"""Fidelity check of a resampled feature: are its rows realistic? It uses a few hundred rows, and no predictions.

Requirements this design meets:

- it checks the draws that the model is evaluated on; further ones, which score them, are never predicted;
- cost is bounded: at most 1,000 rows (600 of a classifier), 10 draws, 80 small trees, and some arrays of 250 x 250,
  for any number of rows;
- draws from the true conditional distribution differ from real values in 5 % of runs by construction, the level of a
  permutation test; the check fails if the difference is also large (`docs/decisions`, 0014);
- a sampler that was learned from few rows is fitted on quarters of them, too: the test rows alone are too few to find
  differences that are as large as the standard error (`sampler_change.py`);
- if it is not possible, the verdict is "unknown", with the reason; it never interrupts the computation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, Literal

import numpy as np

from subgrove._core.execution import KeyedStreams, Keys, Streams, stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import PointEncoding, columns_with_missing
from subgrove._data.from_containers import names_and_rows
from subgrove._data.replace_columns import Changes, Frames, changes_of, concatenate_changes
from subgrove._data.table import Table, kept_with, read_like
from subgrove._scoring.exchangeability import exchangeability_test
from subgrove._scoring.sampler_change import N_DRAWS, EvaluatedRows, quarter_samplers, relative_change
from subgrove._scoring.two_sample import PairedRows, Points, two_sample_test
from subgrove.samplers.base import Feature, FittedSampler, title
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
UNCERTAIN = 0.4
"""Standard errors by which the importance may change if the sampler is fitted on a quarter of the training rows."""
MAX_TRAINING_ROWS, MAX_TRAINING_CELLS = 1000, 6_000
"""With more training rows, or rows times columns, samplers are not fitted on quarters of them, for the cost."""
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
        Whether resampled rows are realistic; "uncertain sampler" if no difference was found, but the importance changes
        if the sampler is fitted on quarters of the training rows; "unknown" if the check was not possible.
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
    sampler_change : float
        Change of the importance if the sampler is fitted on quarters of the training rows, in standard errors; NaN if
        it was not.
    """

    verdict: Verdict
    reason: str
    auc: float = float("nan")
    auc_std_error: float = float("nan")
    mmd: float = float("nan")
    n: int = 0
    p_value: float = float("nan")
    size: float = float("nan")
    sampler_change: float = float("nan")


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
    sampler, sampled : FittedSampler, Table
        The sampler, and all rows as it reads them.
    n_independent : int
        Number of rows, or of clusters of dependent rows, that the importance is the mean of.
    kept : dict
        What checks of other samplers need, too.
    """

    frames: Frames
    rows: Rows
    table: Table
    resample: Callable[[Feature, Streams], ResampledFeature]
    seed: int
    sampler: FittedSampler
    sampled: Table
    n_independent: int
    keys: Keys | None = None
    kept: dict[Any, Any] = field(default_factory=dict)

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
        n_independent = len(rows)
        if len(rows) > MAX_ROWS:
            share = None if weights is None else weights[rows] / weights[rows].sum()
            rows = np.sort(stream(seed, _STREAM).choice(rows, MAX_ROWS, replace=False, p=share))
        kept = kept_with(table)
        return cls(frames, rows, table.rows(rows), resample, seed, sampler, sampled, n_independent, keys, kept)

    def takes_increases(self, feature: Feature) -> bool:
        """Return whether `check` takes the increases of the loss: the sampler may be fitted on quarters of its rows."""
        if len(self.rows) < MIN_ROWS_TO_PASS or len(feature) > 1 or self.sampled.clusters is not None:
            return False
        fitted = self.sampler.of_feature(self.sampled, feature)[0]
        if fitted.unfitted is None:  # nothing was learned
            return False
        names, n = names_and_rows(fitted.train)
        return MIN_ROWS_TO_PASS <= n <= MAX_TRAINING_ROWS and n * len(names) <= MAX_TRAINING_CELLS

    def read(
        self, draws: Sequence[Changes], resample: Callable[[], ResampledFeature], most: int = MAX_DRAWS
    ) -> list[Table] | str:
        """Return the selected rows of draws, or the reason why not; without any, of those that `resample` makes."""
        n = len(self.rows)
        if n < MIN_ROWS:
            return f"there are {n} rows, but {MIN_ROWS} are needed"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                draws = draws or self.draws_of(resample(), most)
                table = self._read_rows(np.tile(self.rows, len(draws)), draws)
        except Exception as error:  # an error must not interrupt; of the predictions it is raised with more context
            return f"the resampled values could not be read: {error}"
        return [table.rows(np.arange(at, at + n)) for at in range(0, len(draws) * n, n)]

    def draws_of(self, resampled: ResampledFeature, most: int = MAX_DRAWS) -> list[Changes]:
        """Return the first draws, in the rows of the check."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same values cause the same warnings in the predictions
            return [changes_of(draw, self.rows) for draw in islice(resampled.draws(), most)]

    def _read_rows(self, rows: Rows, changes: Sequence[Changes]) -> Table:
        """Return the replaced columns of some rows, as a table."""
        changed = self.frames.changed(rows, concatenate_changes(changes))
        return read_like(changed, [column for column in self.table.columns if column.name in changes[0]])

    def check(
        self,
        feature: Feature,
        drawn: list[Table] | str,
        evaluated: Sequence[EvaluatedRows] = (),
        donor_variance: float = 0.0,
    ) -> FidelityCheck:
        """Check draws, as returned by `read`, with the help of further ones.

        `evaluated` are increases of the loss, `donor_variance` is that of the importance over other training donors.
        """
        n, points = len(self.rows), self._read_points(feature, drawn)
        if isinstance(points, str):
            return FidelityCheck("unknown", points, n=n)
        others, values, reference = points
        rng = stream(self.seed, f"{_STREAM} of {title(feature)}")
        kept = self.kept.setdefault((_STREAM, self.seed, feature, self.rows.tobytes()), {})
        auc, error, mmd = two_sample_test(PairedRows(others, values[0], values[1]), rng, kept)
        p_value, score, size = exchangeability_test(others, values, reference, rng, kept)
        position = mmd.squared / mmd.marginal if mmd.marginal > _MIN_RATIO * mmd.noise else float("nan")
        verdict, reason = _verdict(p_value, score, size, auc, auc - _Z * error > 0.5, n)
        change = float("nan")
        if verdict == "passed" and evaluated:
            change = self._sampler_change(feature, evaluated, donor_variance)
        if change > UNCERTAIN:
            reason = (
                f"no difference was found, but the importance changes by {change:.1f} standard errors if the sampler "
                f"is fitted on a quarter of its training rows"
            )
            verdict = "uncertain sampler"
        return FidelityCheck(verdict, reason, auc, error, position, n, p_value, size, change)

    def _sampler_change(self, feature: Feature, evaluated: Sequence[EvaluatedRows], donor_variance: float) -> float:
        """Return the change of the importance if the sampler is fitted on quarters of its training rows."""
        streams = Streams(self.seed, f"{_STREAM}, quarters of {title(feature)}", N_DRAWS)
        samplers = quarter_samplers(self.sampler, self.sampled, feature, self.seed)
        X = self.frames.changed(self.rows, {})
        drawn = [self.read((), partial(self.resample, feature, streams), N_DRAWS)]
        for quarter in samplers:
            own = Frames(X, self.table.columns, quarter.train)
            resample = partial(_resampled, quarter, X, feature, streams)
            drawn.append(replace(self, frames=own, rows=np.arange(len(self.rows))).read((), resample, N_DRAWS))
        tables = [draw for draws in drawn if not isinstance(draws, str) for draw in draws]
        if not samplers or len(tables) < N_DRAWS * len(drawn):
            return float("nan")
        known = [self._read_rows(self.rows[part.rows], [part.changes]) for part in evaluated]
        rows = np.concatenate([np.arange(len(self.rows)), *(part.rows for part in evaluated)])
        increases = np.concatenate([np.zeros(len(self.rows)), *(part.increases for part in evaluated)])
        own_values, *points = self._encoded(feature, [*known, *tables])
        values = Points.joined([own_values, *points[: len(known)]])
        draws = [points[at : at + N_DRAWS] for at in range(len(known), len(points), N_DRAWS)]
        return relative_change((rows, values, increases), draws[0], draws[1:], self.n_independent, donor_variance)

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
        others = [name for name in self.table.names if name not in feature]
        return [
            Points(*self._encoding.arrays(self.table, others, self._with_missing)),
            *self._encoded(feature, draws),
        ]

    def _encoded(self, feature: Feature, draws: Sequence[Table]) -> list[Points]:
        """Return the real feature, and each draw."""
        own = select_columns(self.table, feature)
        with_missing, encoding = columns_with_missing([own, *draws]), PointEncoding.of(own)
        return [Points(*encoding.arrays(table, feature, with_missing)) for table in (own, *draws)]

    @cached_property
    def _encoding(self) -> PointEncoding:
        return PointEncoding.of(self.table)

    @cached_property
    def _with_missing(self) -> frozenset[str]:
        return columns_with_missing([self.table])


def _resampled(sampler: FittedSampler, X: Any, feature: Feature, streams: Streams) -> ResampledFeature:
    return sampler.resample(sampler.read(X), feature, streams, exact=False)


def _verdict(p_value: float, score: str, size: float, auc: float, separable: bool, n: int) -> tuple[Verdict, str]:
    """Return the verdict and its reason."""
    if p_value <= LEVEL:
        seen = f"a classifier separates resampled from real rows (AUC {auc:.2f})" if separable else _DIFFERENCES[score]
        small = size < LARGE and auc < LARGE_AUC
        return "small difference" if small else "failed", f"{seen}; p = {p_value:.3f}"
    if n < MIN_ROWS_TO_PASS:
        return "unknown", f"no difference was found, but there are {n} rows, and {MIN_ROWS_TO_PASS} are needed to pass"
    return "passed", "resampled rows are realistic"
