"""Permutation test of whether a real value is exchangeable with its resampled copies, given the other columns.

Each row has its real value and some copies that were drawn given the other columns. If these are draws of the true
conditional distribution, the real value is one of them, in a random place. So the null distribution is known: a value
of each row, selected at random, is called the real one. Nothing else in the test depends on which one is real: values
are scored by further draws, the reference, which are independent of the copies. Hence the level is exact for copies
that are independent of each other. Samplers whose copies are spread evenly have a slightly smaller one. Where few
permutations show no difference, no more are drawn.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._scoring.two_sample import Points, Singles

_FEW_PERMUTATIONS, _N_PERMUTATIONS = 39, 199
_CLEARLY_ABOVE = 0.3  # p-value of few permutations from which more would not show a significant difference
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
    others: Points,
    values: Sequence[Points],
    reference: Sequence[Points],
    rng: np.random.Generator,
    kept: dict[Any, Any] | None = None,
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
    kept : dict, optional
        Keeps functions of the other columns for tests of other copies of the same rows by the same seed.
    """
    # Functions of many columns depend on the reference.
    known = {} if kept is None or others.matrix.shape[1] > _MAX_COLUMNS else kept
    if "functions" not in known:
        known["functions"] = list(_functions_of_others(others, reference, rng)), rng.bit_generator.state
    groups, rng.bit_generator.state = known["functions"]
    deviations = list(_deviations(values, reference))
    if not deviations:
        return 1.0, "", 0.0
    few = _permutation_test(groups, deviations, rng, _FEW_PERMUTATIONS)
    return few if few[0] > _CLEARLY_ABOVE else _permutation_test(groups, deviations, rng, _N_PERMUTATIONS)


def _deviations(values: Sequence[Points], reference: Sequence[Points]) -> Iterator[tuple[str, Singles]]:
    """Yield the name of each score that varies, and its deviations (rows, values) from the mean of each row."""
    for name, score in _scores(values, reference):
        deviations = score - score.mean(axis=1, keepdims=True)
        size = float(np.sqrt(np.mean(deviations**2)))
        if size >= _MIN_SCALE:
            yield name, (deviations / size).astype(np.float32)


def _permutation_test(
    groups: Sequence[_Waves | _Indicators],
    deviations: Sequence[tuple[str, Singles]],
    rng: np.random.Generator,
    n_permutations: int,
) -> tuple[float, str, float]:
    """Return the p-value, the score that differs most, and the size of the difference."""
    n, m = deviations[0][1].shape
    selected = np.vstack([np.zeros((1, n), dtype=np.intp), rng.integers(m, size=(n_permutations, n))])
    selected = np.ascontiguousarray((selected + m * np.arange(n)).T)
    statistics: dict[tuple[str, int], Floats] = {}
    largest = np.zeros(selected.shape[1])
    for name, own in deviations:
        drawn = own.ravel().take(selected)  # (rows, permutations)
        squared = drawn**2
        for at, functions in enumerate(groups):
            total, by_column = functions.sums(drawn, squared)
            largest = np.maximum(largest, by_column / n)
            statistics[name, at] = statistics.get((name, at), 0.0) + total
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
    squared = np.zeros((*numbers.shape[:2], drawn.shape[1]), dtype=np.float32)
    for own, draws in zip(np.moveaxis(numbers, 2, 0), np.moveaxis(drawn, 2, 0), strict=True):
        m = draws.shape[1]  # the mean distance of two draws follows from their order
        scale = np.sort(draws, axis=1) @ (2.0 * np.arange(1 - m, m, 2)) / (m * (m - 1))
        typical = float(np.median(np.abs(draws - np.median(draws)))) or 1.0
        scale = np.maximum(scale, _MIN_ROW_SCALE * scale.mean() + _MIN_SCALE * typical)[:, None]
        locations.append(np.clip((own - draws.mean(axis=1, keepdims=True)) / scale, -_CLIP, _CLIP))
        yield "shape", np.cos(_MODES * locations[-1])
        distances = (own / scale).astype(np.float32)[:, :, None] - (draws / scale).astype(np.float32)[:, None]
        squared += np.square(np.minimum(distances, _CLIP, out=distances), out=distances)
    squared /= max(1, numbers.shape[2])  # the mean over the members of a group, so that bandwidths are as wide
    same = np.ones(squared.shape, dtype=np.float32)
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
        kernel = squared * np.float32(-0.5 / width**2)
        yield name, (np.exp(kernel, out=kernel) * same).mean(axis=2)


@dataclass(frozen=True, eq=False)
class _Waves:
    """Smooth functions of all other columns (rows, functions)."""

    functions: Singles

    def sums(self, drawn: Singles, squared: Singles) -> tuple[Floats, Floats]:
        """Return the sum of the squared sums over rows, without those of single rows, and the size of waves."""
        own = (self.functions**2).sum(axis=1) @ squared  # only products of different rows have mean 0
        total = (((self.functions.T @ drawn) ** 2).sum(axis=0) - own).astype(np.float64)
        return total, total * (_WAVE_FACTOR / (_N_FREQUENCIES * len(drawn)))


@dataclass(frozen=True, eq=False)
class _Indicators:
    """Centred indicators of groups of rows, divided by the root of their size; sums over few rows each are cheap.

    Attributes
    ----------
    groups : sparse array (groups, rows)
        1 where a row is in a group.
    centre : float array (groups, 1)
        Subtracted from each.
    columns : sparse array (columns, groups)
        One divided by the size of a group, where it is of a column.
    of_rows : float array (columns, rows)
        Weights of the squares of rows in the squared sums, from which they are subtracted.
    of_sum : float array (columns, 1)
        Weights of the sum of these squares.
    """

    groups: Any
    centre: Singles
    columns: Any
    of_rows: Singles
    of_sum: Singles

    @classmethod
    def of(cls, codes: Sequence[Rows], *, centred: bool = True) -> _Indicators:
        """Return the groups of rows with equal codes of a column; single rows are none."""
        from scipy.sparse import csr_array

        n, (column, row) = len(codes[0]), np.indices((len(codes), len(codes[0]))).reshape(2, -1)
        counts = [np.bincount(code) for code in codes]
        number = np.concatenate(codes) + np.repeat(np.cumsum([0, *map(len, counts[:-1])]), n)
        count = np.concatenate(counts)
        kept = count[number] > 1
        group, column, row = (np.cumsum(count > 1) - 1)[number[kept]], column[kept], row[kept]
        share, size = (1 / count[count > 1]).astype(np.float32), int((count > 1).sum())
        centre = (count[count > 1] / n * centred).astype(np.float32)
        groups = csr_array((np.ones(len(row), dtype=np.float32), (group, row)), shape=(size, n))
        of_group, of_rows = np.zeros(size, dtype=np.intp), np.zeros((len(codes), n), dtype=np.float32)
        of_group[group], of_rows[column, row] = column, (share * (1 - 2 * centre))[group]
        columns = csr_array((share, (of_group, np.arange(size))), shape=(len(codes), size))
        return cls(groups, centre[:, None], columns, of_rows, (columns @ centre**2)[:, None])

    def sums(self, drawn: Singles, squared: Singles) -> tuple[Floats, Floats]:
        """Return the sum of the squared sums over rows, without those of single rows, and the largest of a column."""
        inside = self.groups @ drawn
        inside -= self.centre * drawn.sum(axis=0)
        by_column = (self.columns @ np.square(inside, out=inside)).astype(np.float64)
        by_column -= self.of_rows @ squared
        by_column -= self.of_sum * squared.sum(axis=0)
        return by_column.sum(axis=0), by_column.max(axis=0)


def _functions_of_others(
    others: Points, reference: Sequence[Points], rng: np.random.Generator
) -> Iterator[_Waves | _Indicators]:
    """Yield groups of functions of the other columns: constant, bins, equal values, and waves."""
    n = len(others)
    yield _Indicators.of([np.zeros(n, dtype=np.intp)], centred=False)
    matrix = others.matrix
    is_label = np.arange(matrix.shape[1]) >= others.numbers.shape[1]
    if matrix.shape[1] > _MAX_COLUMNS:
        mean = np.mean([draw.matrix for draw in reference], axis=(0, 2))
        size = np.abs((mean - mean.mean()) @ matrix) / (matrix.std(axis=0) + 1e-12)
        kept = np.argsort(-size, kind="stable")[:_MAX_COLUMNS]
        matrix, is_label = matrix[:, kept], is_label[kept]
    bins: list[Rows] = []
    values: list[Rows] = []
    angle = np.zeros((n, _N_FREQUENCIES))
    width = max(1.0, np.sqrt(matrix.shape[1]) / 2)  # of the kernel: wider for more columns
    columns = np.ascontiguousarray(matrix.T)
    cuts = np.quantile(columns, np.arange(1, _N_BINS) / _N_BINS, axis=1) if len(columns) else columns.T
    binned = sum((columns > each[:, None] for each in cuts), start=np.zeros(columns.shape, dtype=np.uint8))
    for column, labelled, bin_code in zip(columns, is_label, binned, strict=True):
        distinct, code = np.unique(column, return_inverse=True)
        if len(distinct) == 1:
            continue
        if labelled:
            angle += rng.normal(size=(len(distinct), _N_FREQUENCIES))[code] / width
        else:
            angle += column[:, None] * rng.normal(size=_N_FREQUENCIES) / width
        if len(distinct) > _MAX_VALUES:
            if len(distinct) < _TIED * n:
                values.append(code)
            if labelled:
                continue
            code = bin_code
        bins.append(code)
    for codes in (bins, values):
        repeated = [code for code in codes if np.bincount(code).max() > 1]
        if repeated:
            yield _Indicators.of(repeated)
    if angle.any():
        single = angle.astype(np.float32)
        group = np.column_stack([np.cos(single), np.sin(single)])
        yield _Waves(group - group.mean(axis=0))
