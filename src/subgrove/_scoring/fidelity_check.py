"""Fidelity check of a resampled feature: are its rows realistic? It uses a few hundred rows, and no predictions.

Requirements this design meets:

- it checks the draws that the model is evaluated on; further ones, which score them, are never predicted;
- cost is bounded: at most 1,000 rows, 10 draws, 60 small trees, and some arrays of 250 x 250, for any number of rows;
- draws from the true conditional distribution differ from real values in 5 % of runs by construction, the level of a
  permutation test; the check fails if the difference is also large (`docs/decisions`, 0014);
- if it is not possible, the verdict is "unknown", with the reason; it never interrupts the computation.

Where there are copies, the test is a permutation test of whether the real value is exchangeable with them, given the
other columns. Each row has its real value and some copies that were drawn given the other columns. If these are draws
of the true conditional distribution, the real value is one of them, in a random place. So the null distribution is
known: a value of each row, selected at random, is called the real one. Nothing else in the test depends on which one is
real: values are scored by further draws, the reference, which are independent of the copies. Hence the level is exact
for copies that are independent of each other. Samplers whose copies are spread evenly have a slightly smaller one.

Scores of a value: its distance from the mean of the reference (location), the density of the reference at the value for
two bandwidths (shape, spread), and a cosine of the distance, which differs for two modes (shape). Their deviations from
the mean over the values of a row are summed over all rows, over groups of rows with similar values of another column,
and over smooth functions of all other columns.

The size of a difference is the root mean square, over such groups of rows, of the mean deviation of the real value from
those of its row, in standard deviations of the score; the largest over scores and columns, less what is expected of
correct draws. Waves count with a factor, since they spread a smooth function over many waves. The size does not grow
with the number of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations, islice
from typing import Literal

import numpy as np

from subgrove._core.execution import KeyedStreams, Keys, Streams, stream
from subgrove._core.kinds import Floats, Rows
from subgrove._data.encode import PointEncoding, columns_with_missing
from subgrove._data.replace_columns import Changes, Frames, changes_of, concatenate_changes
from subgrove._data.table import Table, read_like
from subgrove._scoring.two_sample import PairedRows, Points, Singles, two_sample_test
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.resampled_feature import ResampledFeature
from subgrove.trees.training import select_columns

_N_PERMUTATIONS = 199
_BANDWIDTHS = {"shape": 0.3, "spread": 1.0}  # in units of the mean distance of two draws of the row
_MIN_SCALE = 0.01  # of the feature: errors of exact relations are no differences
_MIN_ROW_SCALE = 0.1  # of the mean over rows: a few draws of a row may be equal by chance
_CLIP = 5.0
_MODES = 3.5  # frequency at which a distribution with two modes differs most from one with one mode
_MAX_LABELS = 8  # labels with a score of their own
_MAX_COLUMNS = 20  # other columns in the test: those that are most correlated with the reference
_N_BINS, _MAX_VALUES = 8, 30  # a column with more distinct values is binned
_TIED = 0.7  # distinct values by row, up to which rows with the same value are a group, too
_WAVE_FACTOR = 12.0  # by which waves count in the size of a difference
_N_FREQUENCIES = 64  # of cosine and sine waves, whose products approximate a Gaussian kernel


def exchangeability_test(
    others: Points, values: Sequence[Points], reference: Sequence[Points], rng: np.random.Generator
) -> tuple[float, str, float]:
    """Return the p-value, the score that differs most, and the size of the difference.

    Parameters
    ----------
    others : Points
        The other columns.
    values : list of Points
        The feature: real, then each copy.
    reference : list of Points
        Further draws.
    rng : numpy Generator
        Of the permutations.
    """
    n, m = len(others), len(values)
    selected = np.vstack([np.zeros((1, n), dtype=np.intp), rng.integers(m, size=(_N_PERMUTATIONS, n))])
    selected += m * np.arange(n)
    groups = list(_functions_of_others(others, reference, rng))
    statistics: dict[tuple[str, int], Floats] = {}
    largest = np.zeros(len(selected))
    for name, score in _scores(values, reference):
        deviations = score - score.mean(axis=1, keepdims=True)
        size = float(np.sqrt(np.mean(deviations**2)))
        if size < _MIN_SCALE:
            continue
        drawn = (deviations / size).astype(np.float32).ravel().take(selected)
        for at, (functions, starts) in enumerate(groups):
            own = (drawn**2) @ (functions**2).sum(axis=1)  # only products of different rows have mean 0
            squares = (drawn @ functions) ** 2
            total = squares.sum(axis=1) - own
            if len(starts):
                by_column = np.add.reduceat(squares - drawn**2 @ functions**2, starts, axis=1).max(axis=1) / n
            else:
                by_column = total * (_WAVE_FACTOR / (_N_FREQUENCIES * n**2))
            largest = np.maximum(largest, by_column)
            statistics[name, at] = statistics.get((name, at), 0.0) + total.astype(np.float64)
    if not statistics:
        return 1.0, "", 0.0
    array = np.array(list(statistics.values()))
    spread = array.std(axis=1, keepdims=True)
    array = (array - array.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    combined = (np.maximum(array, 0.0) ** 2).sum(axis=0)
    p_value = float(np.mean(combined >= combined[0] * (1 - 1e-9)))
    size = np.sqrt(max(0.0, float(largest[0] - largest[1:].mean())))
    return p_value, list(statistics)[int(array[:, 0].argmax())][0], float(size)


def _scores(values: Sequence[Points], reference: Sequence[Points]) -> Iterator[tuple[str, Floats]]:
    """Yield the name and values (rows, values) of each score."""
    numbers, drawn = (np.stack([each.numbers for each in part], axis=1) for part in (values, reference))
    labels, drawn_labels = (np.stack([each.labels for each in part], axis=1) for part in (values, reference))
    locations: list[Floats] = []
    squared = np.zeros((*numbers.shape[:2], drawn.shape[1]))
    for own, draws in zip(np.moveaxis(numbers, 2, 0), np.moveaxis(drawn, 2, 0), strict=True):
        scale = np.abs(draws[:, :, None] - draws[:, None]).sum(axis=(1, 2)) / (draws.shape[1] * (draws.shape[1] - 1))
        typical = float(np.median(np.abs(draws - np.median(draws)))) or 1.0
        scale = np.maximum(scale, _MIN_ROW_SCALE * scale.mean() + _MIN_SCALE * typical)[:, None]
        locations.append(np.clip((own - draws.mean(axis=1, keepdims=True)) / scale, -_CLIP, _CLIP))
        yield "shape", np.cos(_MODES * locations[-1])
        squared += np.minimum((own[:, :, None] - draws[:, None]) / scale[:, :, None], _CLIP) ** 2
    squared /= max(1, numbers.shape[2])  # the mean over the members of a group, so that bandwidths are as wide
    same = np.ones(squared.shape)
    for own, draws in zip(np.moveaxis(labels, 2, 0), np.moveaxis(drawn_labels, 2, 0), strict=True):
        distinct, counts = np.unique(draws, return_counts=True)
        frequent = distinct[np.argsort(-counts, kind="stable")[:_MAX_LABELS]]
        locations += [(own == label) - (draws == label).mean(axis=1, keepdims=True) for label in frequent]
        same *= own[:, :, None] == draws[:, None]
    yield from (("location", score) for score in locations)
    if numbers.shape[2] + labels.shape[2] > 1:  # how the columns of a group depend on each other
        products = (one * two for one, two in combinations(locations[:6], 2))
        yield from (("shape", np.sign(each) * np.sqrt(np.abs(each))) for each in products)  # few values must not decide
    for name, width in _BANDWIDTHS.items():
        yield name, (np.exp(-0.5 * squared / width**2) * same).mean(axis=2)


def _functions_of_others(
    others: Points, reference: Sequence[Points], rng: np.random.Generator
) -> Iterator[tuple[Singles, list[int]]]:
    """Yield groups of functions of the other columns (rows, functions): constant, bins, equal values, and waves.

    Beside them where the functions of each column start, if they are indicators of groups of rows.
    """
    n = len(others)
    yield np.full((n, 1), 1 / np.sqrt(n), dtype=np.float32), [0]
    matrix = others.matrix
    is_label = np.arange(matrix.shape[1]) >= others.numbers.shape[1]
    if matrix.shape[1] > _MAX_COLUMNS:
        mean = np.mean([draw.matrix for draw in reference], axis=(0, 2))
        size = np.abs((mean - mean.mean()) @ matrix) / (matrix.std(axis=0) + 1e-12)
        kept = np.argsort(-size, kind="stable")[:_MAX_COLUMNS]
        matrix, is_label = matrix[:, kept], is_label[kept]
    bins: list[Floats] = []
    values: list[Floats] = []
    bin_starts, value_starts, angle = [], [], np.zeros((n, _N_FREQUENCIES))
    width = max(1.0, np.sqrt(matrix.shape[1]) / 2)  # of the kernel: wider for more columns
    for column, labelled in zip(matrix.T, is_label, strict=True):
        distinct, code = np.unique(column, return_inverse=True)
        if len(distinct) == 1:
            continue
        if labelled:
            angle += rng.normal(size=(len(distinct), _N_FREQUENCIES))[code] / width
        else:
            angle += column[:, None] * rng.normal(size=_N_FREQUENCIES) / width
        if len(distinct) > _MAX_VALUES:
            if len(distinct) < _TIED * n:
                value_starts.append(len(values))
                values += _indicators(code)
            if labelled:
                continue
            code = np.searchsorted(np.quantile(column, np.arange(1, _N_BINS) / _N_BINS), column)
        bin_starts.append(len(bins))
        bins += _indicators(code)
    waves = [*np.cos(angle).T, *np.sin(angle).T] if angle.any() else []
    for functions, starts in ((bins, bin_starts), (values, value_starts), (waves, [])):
        if functions:
            group = np.column_stack(functions)
            yield (group - group.mean(axis=0)).astype(np.float32), starts


def _indicators(code: Rows) -> list[Floats]:
    counts = np.bincount(code)
    return [(code == at) / np.sqrt(counts[at]) for at in np.flatnonzero(counts > 1)]


Verdict = Literal["passed", "small difference", "failed", "unknown"]

MAX_ROWS = 1000
MIN_ROWS = 50
"""With fewer rows there is no check."""
MIN_ROWS_TO_PASS = 100
"""With fewer rows a check can fail, but not pass, since its power is too low."""
MAX_DRAWS = 10
"""Draws that are checked, and further ones that they are scored by."""
LEVEL = 0.05
"""Real and resampled values differ significantly if the p-value is at most this."""
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
    verdict : {"passed", "small difference", "failed", "unknown"}
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
    """

    frames: Frames
    rows: Rows
    table: Table
    resample: Callable[[Feature, Streams], ResampledFeature]
    seed: int
    keys: Keys | None = None

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
        return cls(frames, rows, table.rows(rows), resample, seed, keys)

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
        n, key = len(self.rows), f"{_STREAM}, reference of {title(feature)}"
        streams = Streams(self.seed, key, MAX_DRAWS)
        if self.keys is not None:
            streams = KeyedStreams(self.seed, key, MAX_DRAWS, rows=self.keys)
        reference = drawn if isinstance(drawn, str) else self.read((), partial(self.resample, feature, streams))
        if isinstance(drawn, str) or isinstance(reference, str):
            return FidelityCheck("unknown", str(reference), n=n)
        others, real, *draws = self._points(feature, [*drawn, *reference])
        if not all((np.abs(part.numbers) < _TOO_LARGE).all() for part in (others, real, *draws)):
            return FidelityCheck("unknown", "values are too large for distances", n=n)
        rng = stream(self.seed, f"{_STREAM} of {title(feature)}")
        auc, error, mmd = two_sample_test(PairedRows(others, real, draws[0]), rng)
        p_value, score, size = exchangeability_test(others, [real, *draws[: len(drawn)]], draws[len(drawn) :], rng)
        position = mmd.squared / mmd.marginal if mmd.marginal > _MIN_RATIO * mmd.noise else float("nan")
        verdict, reason = _verdict(p_value, score, size, auc, auc - _Z * error > 0.5, n)
        return FidelityCheck(verdict, reason, auc, error, position, n, p_value, size)

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


def _verdict(p_value: float, score: str, size: float, auc: float, separable: bool, n: int) -> tuple[Verdict, str]:
    """Return the verdict and its reason."""
    if p_value <= LEVEL:
        seen = f"a classifier separates resampled from real rows (AUC {auc:.2f})" if separable else _DIFFERENCES[score]
        small = size < LARGE and auc < LARGE_AUC
        return "small difference" if small else "failed", f"{seen}; p = {p_value:.3f}"
    if n < MIN_ROWS_TO_PASS:
        return "unknown", f"no difference was found, but there are {n} rows, and {MIN_ROWS_TO_PASS} are needed to pass"
    return "passed", "resampled rows are realistic"
