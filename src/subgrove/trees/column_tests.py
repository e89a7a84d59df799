"""Permutation tests of scores against every candidate column, for many nodes at once.

For scores s_i and a column's g(x_i), the linear statistic is T = sum g(x_i) s_i'. Given the values, over
all permutations, its mean is E = n gbar sbar' and its covariance V = [sum (s - sbar)(s - sbar)' / n] (x)
[n / (n - 1) sum (g - gbar)(g - gbar)']. The statistic (T - E)' V^+ (T - E) is referred to chi-square with
rank(V) degrees of freedom (Strasser and Weber 1999).

g is the value of a numeric column, the number of the level of an ordered column, and the indicators of all levels of a
nominal column. A missing value is a category of its own: an indicator in addition to a value of 0 after centring, or
one more level. Because V is a Kronecker product, its eigenvalues are the products of those of its factors: the scores
are whitened once, and a numeric column costs one row of a matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subgrove._data.table import Floats
from subgrove._native import loader
from subgrove.trees.training import Block, Candidates, NominalColumn, power_of_two

TOLERANCE = float(np.sqrt(np.finfo(np.float64).eps))  # relative to the largest eigenvalue
_CONSTANT = 16 * np.finfo(np.float64).eps  # relative deviations that are due to rounding
_CANCELLED = 1e-8  # share of the sum of squares below which the variance is computed in two passes
_INDICATORS = 1 << 18  # size of an indicator matrix up to which a product may be faster than counting
_FEW_LEVELS = 2  # for each line of scores: with more levels counting is faster
_CHUNK = 8192  # rows gathered at a time in a large node
_SMALLEST = 1e-290  # upper tail probability below which its logarithm is computed directly


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """Test of one candidate column in one node.

    Attributes
    ----------
    column : str
        Name of the column.
    statistic : float
        Quadratic test statistic.
    df : int
        Degrees of freedom.
    p_value : float
        P-value adjusted for the number of columns.
    log_p_unadjusted : float
        Logarithm of the unadjusted p-value.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="temp"), X["temp"])
    >>> test = tree.nodes[0].tests["season"]
    >>> test.column, test.df, test.p_value < 0.001
    ('season', 18, True)
    """

    column: str
    statistic: float
    df: int
    p_value: float
    log_p_unadjusted: float


@dataclass(frozen=True, eq=False, slots=True)
class ColumnTests(Mapping[str, ColumnTest]):
    """Tests of all candidate columns in a node: a mapping from column name to `ColumnTest`.

    Columns that are constant in the node are not tested and not counted in the adjustment.

    Attributes
    ----------
    columns : tuple of str
        Names of the candidate columns.
    statistic : float array
        Quadratic test statistic; NaN if the column was not tested.
    df : int array
        Degrees of freedom; 0 if not tested.
    log_p : float array
        Logarithm of the unadjusted p-value.
    log1m_p_adjusted : float array
        log(1 - p) after the Sidak adjustment, by which columns are ranked.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> tree = sg.trees.TransformationTree(max_depth=1).fit(X.drop(columns="temp"), X["temp"])
    >>> tests = tree.nodes[0].tests
    >>> len(tests), min(tests, key=lambda name: tests[name].p_value)
    (8, 'season')
    """

    columns: tuple[str, ...]
    statistic: npt.NDArray[np.float64]
    df: npt.NDArray[np.int64]
    log_p: npt.NDArray[np.float64]
    log1m_p_adjusted: npt.NDArray[np.float64]

    @property
    def p_value(self) -> npt.NDArray[np.float64]:
        """P-values with the Sidak adjustment for the number of columns tested in the node."""
        return np.asarray(np.where(self.df > 0, -np.expm1(self.log1m_p_adjusted), np.nan))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, column: str) -> ColumnTest:
        if column not in self.columns:
            raise KeyError(f"{column!r} is not among the candidate columns {', '.join(map(repr, self.columns))}")
        at = self.columns.index(column)
        return ColumnTest(
            column, float(self.statistic[at]), int(self.df[at]), float(self.p_value[at]), float(self.log_p[at])
        )


@dataclass(frozen=True, eq=False)
class WhitenedScores:
    """Scores of a block, centred and whitened by their covariance, times weights.

    Attributes
    ----------
    stacked : float array (nodes, q + 1, m)
        The scores `z`, with padding and dropped directions set to 0, and the weights in the last row.
    eigenvalues : float array (nodes, q)
        Eigenvalues of the covariance of the scores, ascending; 0 if dropped.
    rank : int array (nodes,)
        Rank of the covariance.
    condition : float array (nodes,)
        Smallest retained eigenvalue divided by the largest.
    """

    stacked: Floats
    eigenvalues: Floats
    rank: npt.NDArray[np.int64]
    condition: Floats

    @property
    def z(self) -> Floats:
        """The scores without the weights: (nodes, q, m)."""
        return self.stacked[:, :-1]


@dataclass(frozen=True, eq=False)
class BlockTests:
    """Tests of all columns in all nodes of a block; arrays (nodes, columns).

    For nominal columns, `sums` and `counts` are the whitened scores and weights by level, from which the split is found
    without another pass over the rows.
    """

    statistic: Floats
    df: npt.NDArray[np.int64]
    log_p: Floats
    criterion: Floats
    sums: dict[int, Floats]
    counts: dict[int, Floats]


def whiten(scores: Floats, block: Block) -> WhitenedScores:
    """Centre and whiten scores (nodes, q, m) that are multiplied by the square roots of the weights."""
    nodes, q, m = scores.shape
    n = block.n[:, None]
    total = scores.sum(axis=2) if block.roots is None else np.matmul(scores, block.roots[:, :, None])[:, :, 0]
    mean = total / n
    covariance = np.matmul(scores, np.swapaxes(scores, 1, 2)) / n[:, :, None]
    covariance -= mean[:, :, None] * mean[:, None, :]
    values, vectors = np.linalg.eigh(covariance)
    retained = values > TOLERANCE * values[:, -1:]
    values = np.where(retained, values, 0.0)
    roots = np.where(retained, 1.0 / np.sqrt(np.where(retained, values, 1.0)), 0.0)
    axes = np.swapaxes(vectors * roots[:, None, :], 1, 2)
    stacked = np.empty((nodes, q + 1, m))
    z = stacked[:, :q]
    np.matmul(axes, scores, out=z)
    origin = np.matmul(axes, mean[:, :, None])
    if block.weights is None or block.roots is None:
        z -= origin
        stacked[:, q] = 1.0
    else:
        z -= origin * block.roots[:, None, :]
        stacked[:, q] = block.weights
        if block.roots is not block.weights:
            z *= block.roots[:, None, :]
    largest = np.where(values[:, -1] > 0, values[:, -1], 1.0)
    condition = np.where(retained, values, np.inf).min(axis=1) / largest
    return WhitenedScores(stacked, values, retained.sum(axis=1), condition)


def test_columns(candidates: Candidates, block: Block, white: WhitenedScores) -> BlockTests:
    """Test every candidate column in every node of a block."""
    shape = (len(block.n), candidates.n_columns)
    statistic, df = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    sums: dict[int, Floats] = {}
    counts: dict[int, Floats] = {}
    if candidates.complete.size:
        _test_complete(candidates, block, white, statistic, df)
    for index, values in candidates.partial.items():
        _test_partial(index, values, block, white, statistic, df)
    for column in candidates.nominal:
        sums[column.index], counts[column.index] = _test_nominal(column, block, white, statistic, df)
    log_p, log_cdf = log_tails(statistic, df)
    tested = df > 0
    criterion = np.where(tested, log_cdf, -np.inf) * np.maximum(tested.sum(axis=1), 1)[:, None]
    statistic[~tested] = np.nan
    log_p[~tested] = np.nan
    for result in (statistic, df, log_p, criterion):
        result.flags.writeable = False  # frozen nodes have views of them
    return BlockTests(statistic, df, log_p, criterion, sums, counts)


def _test_complete(
    candidates: Candidates, block: Block, white: WhitenedScores, statistic: Floats, df: npt.NDArray[np.int64]
) -> None:
    n = block.n[:, None]
    sums, squares = column_sums(candidates, block, white.stacked)
    linear, totals = sums[:, :-1], sums[:, -1]
    spread = squares - totals**2 / n
    length = (linear * linear).sum(axis=1)
    for node, column in np.argwhere(spread < _CANCELLED * squares):
        # The column is constant, or its mean is large relative to its spread: compute the variance in two passes.
        rows = block.rows[node, : block.sizes[node]]
        values = candidates.scaled_values(column, rows)
        level = _CONSTANT * np.abs(values[0])
        weights = white.stacked[node, -1, : len(rows)]
        values = values - weights @ values / block.n[node]
        values -= weights @ values / block.n[node]
        spread[node, column] = np.where(np.abs(values).max() > level, weights @ values**2, 0.0)
        length[node, column] = ((white.z[node, :, : len(rows)] @ values) ** 2).sum()
    varies = spread > 0
    ratio = length * (n - 1) / (n * np.where(varies, spread, 1.0))
    statistic[:, candidates.complete] = np.where(varies, ratio, 0.0)
    df[:, candidates.complete] = np.where(varies, white.rank[:, None], 0)


def _test_partial(
    index: int, values: Floats, block: Block, white: WhitenedScores, statistic: Floats, df: npt.NDArray[np.int64]
) -> None:
    """Test a numeric column with missing values: value and missingness, which are uncorrelated after centring."""
    numbers = np.asarray(block.gather(values), dtype=np.float64) * power_of_two(values)
    missing = np.isnan(numbers)
    weights = np.ones_like(numbers) if block.weights is None else block.weights
    observed = np.where(missing, 0.0, weights)
    n_observed = observed.sum(axis=1)
    numbers[missing] = 0.0
    mean = (numbers * observed).sum(axis=1) / np.maximum(n_observed, 1e-300)
    centred = np.where(missing, 0.0, numbers - mean[:, None])
    parts = (
        (centred, (centred * centred * observed).sum(axis=1), n_observed * (_CONSTANT * mean) ** 2),
        (missing.astype(np.float64), (block.n - n_observed) * n_observed / block.n, 0.25 / block.n),
    )
    for g, spread, least in parts:
        linear = np.matmul(white.z, g[:, :, None])[:, :, 0]
        varies = spread > least
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (linear * linear).sum(axis=1) * (block.n - 1) / (block.n * spread)
        statistic[:, index] += np.where(varies, ratio, 0.0)
        df[:, index] += np.where(varies, white.rank, 0)


def _test_nominal(
    column: NominalColumn, block: Block, white: WhitenedScores, statistic: Floats, df: npt.NDArray[np.int64]
) -> tuple[Floats, Floats]:
    sums, counts = _sums_by_level(column, block, white)
    present = counts > 0
    n_present = present.sum(axis=1)
    shares = np.where(present, counts, np.inf)
    # If no product of eigenvalues is below the tolerance, the pseudo-inverse has this closed form.
    ratio = (sums**2 / shares[:, None, :]).sum(axis=(1, 2)) * (block.n - 1) / block.n
    statistic[:, column.index] = ratio
    df[:, column.index] = white.rank * (n_present - 1)
    least = white.condition * (shares.min(axis=1) / counts.max(axis=1))
    for node in np.flatnonzero((least < 4 * TOLERANCE) & (n_present > 1)):
        levels = present[node]
        statistic[node, column.index], df[node, column.index] = _by_eigenvalues(
            sums[node][:, levels], counts[node, levels], white.eigenvalues[node]
        )
    return sums, counts


def _sums_by_level(column: NominalColumn, block: Block, white: WhitenedScores) -> tuple[Floats, Floats]:
    """Return whitened scores (nodes, q, levels) and weights (nodes, levels) of the levels of a column."""
    codes, levels = np.asarray(block.gather(column.codes)), column.n_levels
    nodes, lines, _ = white.stacked.shape
    if levels <= _FEW_LEVELS * lines and codes.size * levels <= _INDICATORS:
        indicators = codes[:, None] == np.arange(levels, dtype=codes.dtype)[:, None]
        both = np.matmul(white.stacked, indicators.astype(np.float64).transpose(0, 2, 1))
        return both[:, :-1], both[:, -1]
    flat = (codes + levels * np.arange(nodes)[:, None]).ravel()
    sums = np.empty((nodes, lines, levels))
    for line in range(lines):
        weights = white.stacked[:, line].ravel()
        sums[:, line] = np.bincount(flat, weights=weights, minlength=nodes * levels).reshape(nodes, levels)
    return sums[:, :-1], sums[:, -1]


def _by_eigenvalues(sums: Floats, counts: Floats, eigenvalues: Floats) -> tuple[float, int]:
    """Return the statistic and rank of one node from the eigenvalues of the whole Kronecker product."""
    n = counts.sum()
    values, vectors = np.linalg.eigh(np.diag(counts) - np.outer(counts, counts) / n)
    products = eigenvalues[:, None] * values[None, :]
    retained = products > TOLERANCE * products.max()
    on_axes = (sums @ vectors) ** 2 / np.where(values > 0, values, 1.0)
    return float(on_axes[retained].sum() * (n - 1) / n), int(retained.sum())


def column_sums(candidates: Candidates, block: Block, stacked: Floats) -> tuple[Floats, Floats]:
    """Return sums of scores times each complete column, and of the squared columns times the weights.

    Parameters
    ----------
    candidates : Candidates
    block : Block
    stacked : float array (nodes, lines, m)
        Whitened scores and, last, weights; 0 for padding.

    Returns
    -------
    sums : float array (nodes, lines, columns)
    squares : float array (nodes, columns)
    """
    nodes, lines, _ = stacked.shape
    width = len(candidates.places)
    if loader.tree_sums is None or lines > loader.MAX_COEFFICIENTS + 1:
        return _column_sums_numpy(candidates, block, stacked)
    sums, squares = np.empty((nodes, lines, width)), np.empty((nodes, width))
    rows, scores = np.ascontiguousarray(block.rows, dtype=np.int64), np.ascontiguousarray(stacked)
    columns = (candidates.places, candidates.scale, candidates.shift)
    of_nodes = (candidates.shared.table.numbers, rows, scores, block.sizes.astype(np.float64))
    loader.tree_sums.sums(*of_nodes, *columns, *stacked.shape, width, sums, squares)
    return sums, squares


def _column_sums_numpy(candidates: Candidates, block: Block, stacked: Floats) -> tuple[Floats, Floats]:
    nodes, lines, m = stacked.shape
    width = len(candidates.places)
    sums, squares = np.zeros((nodes, lines, width)), np.zeros((nodes, width))
    for start in range(0, m, _CHUNK):
        part = slice(start, start + _CHUNK)
        by_column = candidates.shared.table.numbers.T[candidates.places[:, None, None], block.rows[:, part]]
        numbers, own = by_column.transpose(1, 2, 0), stacked[:, :, part]
        if candidates.scale is not None and candidates.shift is not None:
            numbers *= candidates.scale
            numbers -= candidates.shift
        sums += np.matmul(own, numbers)
        numbers *= numbers
        squares += np.matmul(own[:, -1:], numbers)[:, 0]
    return sums, squares


def log_tails(statistic: Floats, df: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return log P(chi2 > statistic) and log P(chi2 <= statistic), elementwise; df of 0 gives log 1 and log 0."""
    from scipy.special import gammainc, gammaincc

    shape, half = np.maximum(df, 1) / 2.0, np.where(df > 0, statistic, 0.0) / 2.0
    upper = gammaincc(shape, half)
    lower = gammainc(shape, half)
    with np.errstate(divide="ignore"):
        log_upper = np.log(upper)
        # The smaller tail has full precision.
        log_lower = np.where(upper < 0.5, np.log1p(-upper), np.log(lower))
    tiny = upper < _SMALLEST
    if tiny.any():
        log_upper[tiny] = _log_upper_far(shape[tiny], half[tiny])
        log_lower[tiny] = -np.exp(log_upper[tiny])
    return log_upper, log_lower


def _log_upper_far(shape: Floats, half: Floats) -> Floats:
    """Return the log of the regularised upper incomplete gamma function in the far tail, by a continued fraction."""
    from scipy.special import gammaln

    b = half + 1.0 - shape
    c = np.full_like(b, 1e300)
    d = 1.0 / b
    fraction = d.copy()
    for i in range(1, 200):
        a = -i * (i - shape)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        fraction *= d * c
        if np.all(np.abs(d * c - 1.0) < 1e-15):
            break
    return np.asarray(shape * np.log(half) - half - gammaln(shape) + np.log(fraction))
