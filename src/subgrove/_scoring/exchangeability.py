"""Permutation test of whether a real value is exchangeable with its resampled copies, given the other columns.

Each row has its real value and some copies that were drawn given the other columns. If these are draws of the true
conditional distribution, the real value is one of them, in a random place. So the null distribution is known: a value
of each row, selected at random, is called the real one. Nothing else in the test depends on which one is real: values
are scored by further draws, the reference, which are independent of the copies. Hence the level is exact for copies
that are independent of each other. Samplers whose copies are spread evenly have a slightly smaller one.

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
from itertools import combinations

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._scoring.two_sample import Points, Singles

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
