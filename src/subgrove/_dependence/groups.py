"""`find_groups`: groups of features that are redundant with each other, as one feature can replace another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import count_of
from subgrove._core.validate import number_in
from subgrove._data.columns import NamedGroup, parse_features
from subgrove._data.table import Table, TypedColumn, read_table
from subgrove._data.to_containers import Backend, backend_of, make_table
from subgrove.exceptions import ParameterError

Mask = npt.NDArray[np.bool_]
DEFAULT_THRESHOLD = 0.5
_MAX_ROWS = 4000
_MIN_ROWS = 30  # with a value of both features
_MAX_BINS, _ROWS_PER_BIN = 20, 15


@dataclass(frozen=True, eq=False, repr=False)
class FeatureGroups(Mapping[str, tuple[str, ...]]):
    """Groups of mutually redundant features: the result of `subgrove.find_groups`.

    A mapping from the name of a group, such as "carat, x, y, z", to its columns. Features that belong to no group are
    groups of their own, so that the result can be passed to `importance` as `features`.

    Attributes
    ----------
    groups : tuple of tuple of str
        Columns of each group, in the order of the table.
    threshold : float
        The share of variance from which on features are merged.
    shared : float array
        For each pair of features the share of variance that they have in common.
    features : tuple of str
        Names of its rows and columns.
    backend : str
        Container of the tables.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> groups = sg.find_groups(X, threshold=0.3)
    >>> groups.redundant
    (('season', 'temp'), ('hum', 'weather'))
    >>> groups.table.round(2).head(3)
              group  n_features  least_shared
    0  season, temp           2          0.35
    1            yr           1           NaN
    2       holiday           1           NaN
    """

    groups: tuple[tuple[str, ...], ...]
    threshold: float
    shared: Floats
    features: tuple[str, ...]
    backend: Backend

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return {group_name(group): group for group in self.groups}[name]

    def __iter__(self) -> Iterator[str]:
        return map(group_name, self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def redundant(self) -> tuple[tuple[str, ...], ...]:
        """The groups of at least two features."""
        return tuple(group for group in self.groups if len(group) > 1)

    @property
    def table(self) -> Any:
        """One row for each group: its name, number of features, and the smallest share that two of them have in common.

        The latter is NaN for a single feature.
        """
        columns: dict[str, list[Any]] = {"group": [], "n_features": [], "least_shared": []}
        for group in self.groups:
            at = [self.features.index(name) for name in group]
            pairs = self.shared[np.ix_(at, at)][np.triu_indices(len(at), 1)]
            row = (group_name(group), len(group), float(pairs.min()) if len(pairs) else float("nan"))
            for values, value in zip(columns.values(), row, strict=True):
                values.append(value)
        return make_table(self.backend, columns)

    def __repr__(self) -> str:
        lines = [f"<FeatureGroups of {count_of(len(self.features), 'feature')}: {len(self.redundant)} redundant>"]
        return "\n".join([*lines, *(f"  {group_name(group)}" for group in self.redundant)])


def group_name(group: tuple[str, ...]) -> str:
    """Return the name of a group: its columns."""
    return ", ".join(group)


def named_group(group: tuple[str, ...]) -> tuple[str, ...]:
    """Return a group as `importance` takes it, with its name in tables."""
    return group if len(group) == 1 else NamedGroup(group_name(group), group)


def find_groups(
    X: Any, *, features: Any = None, threshold: float = DEFAULT_THRESHOLD, kinds: Mapping[str, Any] | None = None
) -> FeatureGroups:
    """Find groups of features that are redundant with each other: each can replace the others.

    Two features share as much as the one that is predicted worse: the share of its variance (of its ranks; of
    indicators for levels) that the other one alone explains, as any function of it. Features are merged by average
    linkage, as long as the features of two groups share at least `threshold` on average.

    Parameters
    ----------
    X : pandas or polars frame, pyarrow table or 2-d array
        Rows, usually the training rows. A random subset of 4,000 is used if there are more.
    features : list of str, optional
        Columns to group; all by default.
    threshold : float, default 0.5
        Share of variance, between 0 and 1; 0.5 is a correlation of 0.71. With a larger one groups are smaller.
    kinds : mapping, optional
        Kinds of columns ("numeric", "ordered" or "nominal") that differ from those of their dtypes.

    Returns
    -------
    FeatureGroups
        A mapping from names to columns; pass it to `importance` as `features`.

    Notes
    -----
    The conditional importance of a feature is what it adds to all others. Two copies of a column add nothing to each
    other, however much the model uses them; the importance of both together says what they are worth.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import subgrove as sg
    >>> rng = np.random.default_rng(1)
    >>> size = rng.normal(size=500)
    >>> X = pd.DataFrame({"length": size, "width": size + 0.2 * rng.normal(size=500), "age": rng.normal(size=500)})
    >>> groups = sg.find_groups(X)
    >>> groups
    <FeatureGroups of 3 features: 1 redundant>
      length, width
    >>> y = size + X["age"]
    >>> imp = sg.importance(lambda X: (X["length"] + X["width"]) / 2 + X["age"], X, y, features=groups, random_state=1)
    >>> list(imp.overall["feature"])
    ['length, width', 'age']
    """
    table = read_table(X, kinds=kinds, lenient=True)
    names = tuple(name for (name, *more) in _single(features, table))
    return groups_of(table, names, number_in("threshold", threshold, low=0, high=1), backend_of(X))


def groups_of(
    table: Table, names: tuple[str, ...], threshold: float = DEFAULT_THRESHOLD, backend: Backend = "pandas"
) -> FeatureGroups:
    """Return the groups of some columns of a table."""
    if table.n_rows > _MAX_ROWS:
        table = table.rows(np.sort(stream(0, "groups").choice(table.n_rows, _MAX_ROWS, replace=False)))
    shared = shared_variance([table.series(name) for name in names])
    code = _clusters(shared, threshold)
    groups = [tuple(name for name, own in zip(names, code, strict=True) if own == one) for one in dict.fromkeys(code)]
    return FeatureGroups(tuple(groups), threshold, shared, names, backend)


def _single(features: Any, table: Table) -> tuple[tuple[str, ...], ...]:
    parsed = parse_features(features, table.names)
    if any(len(group) > 1 for group in parsed):
        raise ParameterError("features has groups already. Name single columns, or omit features for all of them.")
    return parsed


def _clusters(shared: Floats, threshold: float) -> list[int]:
    """Return the cluster of each feature by average linkage."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(shared) < 2:
        return [0] * len(shared)
    distances = (1 - shared)[np.triu_indices(len(shared), 1)]
    code: list[int] = fcluster(linkage(distances, "average"), 1 - threshold + 1e-12, "distance").tolist()
    return code


def shared_variance(columns: list[TypedColumn]) -> Floats:
    """Return for each pair of columns the smaller of the shares of variance that one explains of the other."""
    bins = [_bins(column) for column in columns]
    outputs = [_outputs(column) for column in columns]
    explained = np.eye(len(columns))
    for at, (code, n_bins) in enumerate(bins):
        for other, output in enumerate(outputs):
            if other != at:
                explained[at, other] = _explained(code, n_bins, *output)
    shared: Floats = np.minimum(explained, explained.T)
    return shared


def _bins(column: TypedColumn) -> tuple[Rows, int]:
    """Return the bin of each row, -1 if the value is missing, and their number."""
    known = np.flatnonzero(~column.missing)
    code = np.full(len(column.values), -1, dtype=np.intp)
    distinct, own = np.unique(column.values[known], return_inverse=True)
    n_bins = int(np.clip(len(known) // _ROWS_PER_BIN, 2, _MAX_BINS))
    if not column.info.is_nominal and len(distinct) > n_bins:
        edges = np.quantile(own, np.arange(1, n_bins) / n_bins)
        own = np.searchsorted(np.unique(edges), own)
    code[known] = own
    return code, int(own.max(initial=0)) + 1


def _outputs(column: TypedColumn) -> tuple[Floats, Mask]:
    """Return the values to be explained, ranks or indicators of levels, and which rows have them."""
    known = ~column.missing
    values = np.zeros(len(known))
    distinct, own = np.unique(column.values[known], return_inverse=True)
    if column.info.is_nominal:
        indicators = np.zeros((len(known), len(distinct)))
        indicators[np.flatnonzero(known), own] = 1.0
        return indicators, known
    counts = np.bincount(own, minlength=1)
    values[known] = (np.cumsum(counts) - counts / 2)[own]  # mean ranks
    return values[:, None], known


def _explained(code: Rows, n_bins: int, outputs: Floats, known: Mask) -> float:
    """Return the share of variance between bins, adjusted for their number; 0 if it is undefined."""
    rows = known & (code >= 0)
    n = int(rows.sum())
    if n < _MIN_ROWS:
        return 0.0
    own, values = code[rows], outputs[rows]
    counts = np.bincount(own, minlength=n_bins)
    used = int((counts > 0).sum())
    total = float(((values - values.mean(axis=0)) ** 2).sum())
    if used < 2 or n <= used or total <= 0:
        return 0.0
    sums = np.stack([np.bincount(own, weights=column, minlength=n_bins) for column in values.T])
    within = float((values**2).sum() - (sums**2 / np.maximum(counts, 1)).sum())
    return float(np.clip(1 - (within / (n - used)) / (total / (n - 1)), 0.0, 1.0))
