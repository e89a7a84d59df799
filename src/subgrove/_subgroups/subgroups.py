"""`find_subgroups`, which grows one tree per feature, and the subgroups of all features of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from subgrove._core.execution import RandomStateLike, effective_jobs, one_blas_thread, parallel_map, read_seed
from subgrove._core.html_views import HtmlView
from subgrove._core.text import count_of, lines_of
from subgrove._core.validate import names_arguments, reject_another_index, whole_number
from subgrove._core.weights import read_weights
from subgrove._data.columns import allowed_columns, parse_features
from subgrove._data.table import ColumnInfo, Kind, fingerprint, read_like, read_table
from subgrove._subgroups.depth import AUTO_MAX_DEPTH
from subgrove._subgroups.partition import Partition, TreeSettings, named_partition, without_unusable
from subgrove._subgroups.stability import regrow_trees
from subgrove._subgroups.stability_result import Stability
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees.training import SortedTable, select_columns
from subgrove.trees.tree import FORMAT, restoring

if TYPE_CHECKING:
    import pandas as pd

AUTO = "auto"


@dataclass(frozen=True, repr=False)
class Subgroups(Mapping[str, Partition], HtmlView):
    """Mapping from feature to `Partition`; returned by `find_subgroups`.

    A group of features is looked up by its name, `groups["temp + hum"]`, or its features, `groups["temp", "hum"]`.

    Attributes
    ----------
    partitions : tuple of Partition
        One per feature, in the order of `features`.
    columns : tuple of ColumnInfo
        Name, kind and levels of all columns of the training table.
    fingerprint : str
        Hash of the training table.
    parameters : mapping
        Arguments of `find_subgroups` as plain values.

    Examples
    --------
    >>> import subgrove as sg
    >>> groups = sg.find_subgroups(sg.datasets.bike().X, features=["temp", "hum", "yr"], max_depth=1)
    >>> groups
    <Subgroups of 3 features: transformation trees, max_depth 1>
      temp  2 subgroups by season
      hum   2 subgroups by weather
      yr    2 subgroups by hum
    >>> groups["hum"].rules
    ('weather in {GOOD}', 'weather in {BAD}')
    >>> groups.table
      feature  subgroup                              rule    n
    0    temp         0  season in {WINTER, SPRING, FALL}  543
    1    temp         1                season in {SUMMER}  188
    2     hum         0                 weather in {GOOD}  463
    3     hum         1                  weather in {BAD}  268
    4      yr         0                      hum <= 84.75  683
    5      yr         1                       hum > 84.75   48
    """

    partitions: tuple[Partition, ...]
    columns: tuple[ColumnInfo, ...]
    fingerprint: str
    parameters: Mapping[str, Any]

    @cached_property
    def _by_name(self) -> dict[str | frozenset[str], Partition]:
        """Partitions by the name of the feature and by the set of its members."""
        by_members: dict[str | frozenset[str], Partition] = {frozenset(each.members): each for each in self.partitions}
        return by_members | {each.feature: each for each in self.partitions}

    def __getitem__(self, feature: str | tuple[str, ...]) -> Partition:
        # Labels of pandas columns may be numbers; as names they are text.
        names = frozenset(map(str, feature)) if isinstance(feature, tuple | list) else str(feature)
        partition = self._by_name.get(names)
        if partition is None:
            raise KeyError(f"There are no subgroups of {feature!r}, only of {', '.join(map(repr, self))}.")
        return partition

    def __iter__(self) -> Iterator[str]:
        return (partition.feature for partition in self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.partitions))

    def __repr__(self) -> str:
        depth = self.parameters["max_depth"]
        head = f"<Subgroups of {count_of(len(self), 'feature')}: {self.parameters['tree']} trees, max_depth {depth}>"
        texts = [each._summary() for each in self.partitions]
        if depth == AUTO:
            selected = (each.tree.parameters["max_depth"] for each in self.partitions)
            texts = [f"{text} (depth {own})" for text, own in zip(texts, selected, strict=True)]
        return lines_of(head, list(zip(self, texts, strict=True)))

    @property
    def table(self) -> pd.DataFrame:
        """One row per subgroup: feature, subgroup (its position, from 0), rule, n (training rows)."""
        import pandas as pd

        rows = [
            (partition.feature, position, rule, size)
            for partition in self.partitions
            for position, (rule, size) in enumerate(zip(partition.rules, partition.sizes, strict=True))
        ]
        return pd.DataFrame(rows, columns=["feature", "subgroup", "rule", "n"])

    def at_depth(self, depth: int) -> Subgroups:
        """Return the subgroups that `max_depth=depth` gives, by pruning.

        Trees that are not deeper than `depth` are returned unchanged.

        Parameters
        ----------
        depth : int
            Maximum number of splits from the root to a leaf; 0 gives one subgroup.

        Examples
        --------
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> deep = sg.find_subgroups(X, max_depth=5)
        >>> deep.at_depth(2) == sg.find_subgroups(X, max_depth=2)
        True
        """
        partitions = tuple(partition.at_depth(depth) for partition in self.partitions)
        grown = self.parameters["max_depth"]
        if grown == "auto":
            grown = max(partition.tree.parameters["max_depth"] for partition in self.partitions)
        return replace(self, partitions=partitions, parameters={**self.parameters, "max_depth": min(int(depth), grown)})

    def at_selected_depth(self) -> Subgroups:
        """Return the subgroups of each feature at the depth selected by its `choice`."""
        partitions = tuple(partition.at_selected_depth() for partition in self.partitions)
        return replace(self, partitions=partitions, parameters={**self.parameters, "max_depth": "auto"})

    def stability(
        self,
        X: Any,
        *,
        n_resamples: int = 50,
        sample_weight: Any = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> Stability:
        """Grow the trees again on random halves of the rows, and report how often the splits recur.

        Parameters
        ----------
        X : pandas or polars frame, pyarrow table or 2-d array
            Training rows that were passed to `find_subgroups`.
        n_resamples : int, default 50
            Number of halves to draw.
        sample_weight : 1-d array, optional
            Sample weights, if they were passed to `find_subgroups`.
        random_state : int, RandomState instance or Generator, optional
            Seed of the halves. The result does not depend on `n_jobs`; the halves of a smaller `n_resamples` are the
            first ones of a larger number.
        n_jobs : int, optional
            Number of processes.

        Returns
        -------
        Stability
            Tables `splits`, `columns`, `levels` and `overall`; `sentences` describe them.

        Notes
        -----
        Each tree has the parameters and depth of the original tree and half its `min_samples_leaf`, so that subgroups
        may have the same share of the rows. A split recurs if the node of the same depth that shares most rows with
        the original node splits on the same column.

        How to read it: a first split that recurs in every half is not an artefact of these rows. If two columns are
        redundant, they may replace each other: each recurs rarely, while the subgroups hardly change and the adjusted
        Rand index remains high.

        Examples
        --------
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> groups = sg.find_subgroups(X, features=["temp", "wind"])
        >>> stability = groups.stability(X, n_resamples=20, random_state=1)
        >>> stability
        <Stability of 2 features: 20 halves of the rows>
          temp  season first in 20 of 20, adjusted Rand index 0.81
          wind  season first in 12 of 20, adjusted Rand index 0.41
        >>> print(stability.sentences[3])
        temp: two rows of one subgroup stay together in 87 % of cases (adjusted Rand index 0.81).
        >>> stability.splits[["feature", "node", "column", "share", "cut_low", "cut_high"]].round(2)
          feature                                node  column  share  cut_low  cut_high
        0    temp                            all rows  season   1.00      NaN       NaN
        1    temp    season in {WINTER, SPRING, FALL}  season   1.00      NaN       NaN
        2    temp                  season in {SUMMER}     hum   0.35    58.33     67.29
        3    wind                            all rows  season   0.60      NaN       NaN
        4    wind  season in {WINTER, SPRING, SUMMER}     hum   0.45    39.67     81.50
        """
        n = whole_number("n_resamples", n_resamples, least=1)
        effective_jobs(n_jobs)  # raises if n_jobs is invalid
        seed = read_seed(random_state)
        table = read_like(X, self.columns)
        if fingerprint(table) != self.fingerprint:
            raise InputError(
                f"X is not the table that the subgroups were found on: its {table.n_rows} rows have other values or "
                f"another order. Pass the training rows that were passed to find_subgroups."
            )
        if table.n_rows < 2:
            raise InputError("X has one row, which cannot be halved. Pass more rows to find_subgroups.")
        reject_another_index(X, sample_weight=sample_weight)
        if bool(self.parameters.get("weighted")) != (sample_weight is not None):
            which = "without" if sample_weight is not None else "with"
            remedy = "Omit sample_weight" if sample_weight is not None else "Pass the same sample_weight"
            raise ParameterError(f"The subgroups were found {which} sample_weight. {remedy}.")
        weights = read_weights(sample_weight, table.n_rows)
        return regrow_trees(self.partitions, table, weights, self.parameters, n, seed, n_jobs)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain values that JSON can hold.

        Examples
        --------
        >>> import json
        >>> import subgrove as sg
        >>> groups = sg.find_subgroups(sg.datasets.bike().X, max_depth=1)
        >>> sg.Subgroups.from_dict(json.loads(json.dumps(groups.to_dict()))) == groups
        True
        """
        return {
            "format": FORMAT,
            "parameters": msgspec.to_builtins(self.parameters),
            "fingerprint": self.fingerprint,
            "columns": msgspec.to_builtins(self.columns),
            "partitions": [partition.to_dict() for partition in self.partitions],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Subgroups:
        """Restore subgroups from `to_dict`.

        Parameters
        ----------
        values : dict
            Output of `to_dict`, possibly after a round trip through JSON.
        """
        with restoring("Subgroups", values):
            partitions = tuple(Partition.from_dict(partition) for partition in values["partitions"])
            columns = msgspec.convert(values["columns"], tuple[ColumnInfo, ...])
            subgroups = cls(partitions, columns, str(values["fingerprint"]), dict(values["parameters"]))
            repr(subgroups)  # which needs all parameters
        return subgroups


@names_arguments()
def find_subgroups(
    X: Any,
    *,
    features: Any = None,
    tree: Literal["transformation", "cart"] = "transformation",
    max_depth: int | Literal["auto"] = 2,
    min_samples_leaf: int = 30,
    alpha: float = 0.05,
    given: Any = None,
    kinds: Mapping[str, Kind] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Subgroups:
    """Find subgroups of each feature in which it hardly depends on the other columns.

    Parameters
    ----------
    X : pandas or polars frame, pyarrow table or 2-d array
        Training rows; columns of an array are called x0, x1, and so on. Missing values are allowed.
    features : str or list, optional
        Features to find subgroups for: a name or a list of names; every column by default. A tuple or list of names
        inside the list is a group of features that will be resampled jointly: it has one tree, on the columns outside
        the group.
    tree : {"transformation", "cart"}, default "transformation"
        "transformation" splits by the whole distribution of a numeric feature, the frequencies of a nominal feature,
        the mean of an ordered feature and the share of a binary one (conditional inference). "cart" splits by means
        and frequencies; it does not support groups of features.
    max_depth : int or "auto", default 2
        Maximum number of splits from the root to a leaf, so that there are at most `2 ** max_depth` subgroups; 0
        gives one. "auto" selects for each feature the smallest depth up to 6 whose held-out score is within one
        standard error of the best (`Partition.choice` gives the scores), at the cost of five more trees per feature.
    min_samples_leaf : int, default 30
        Minimum number of rows in a subgroup; with relative weights, of effective rows.
    alpha : float, default 0.05
        Significance level of the tests, after adjustment for the number of columns; not used by CART.
    given : str or list of str, optional
        Columns that rules may use; every column by default. A feature is never used in its own rules.
    kinds : mapping, optional
        Column name -> "numeric", "ordered" or "nominal", to override the kind that the dtype implies.
    sample_weight : 1-d array or FrequencyWeights, optional
        Relative weights, or frequencies of rows.
    n_jobs : int, optional
        Number of processes, as in joblib: -1 for all cores; None is one, unless `joblib.parallel_config` sets another
        number. The result does not depend on it.

    Returns
    -------
    Subgroups
        Mapping from feature to `Partition`.

    Notes
    -----
    How to read it: a feature with one subgroup, "all rows", shows no dependence on other columns that the tree can
    detect. `stop` of its only leaf gives the reason: "not significant"; or "constant", "no columns" (to split on) or
    "few rows" if no tree could grow.

    Rows with a missing value of a feature are left out when its tree grows; `assign` assigns them to a subgroup
    nevertheless.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> groups = sg.find_subgroups(X)
    >>> groups
    <Subgroups of 9 features: transformation trees, max_depth 2>
      season   4 subgroups by temp
      yr       2 subgroups by hum
      holiday  3 subgroups by work, weekday
      weekday  2 subgroups by work
      temp     4 subgroups by season, hum
      hum      4 subgroups by weather, wind, temp
      work     3 subgroups by weekday
      weather  4 subgroups by hum, temp
      wind     3 subgroups by season, hum
    >>> groups["temp"].rules[2]
    'season in {SUMMER} and hum <= 67.292'

    Features that are resampled jointly have one tree:

    >>> both = sg.find_subgroups(X, features=[("temp", "hum")], given=["season", "yr"], max_depth=1)
    >>> both["temp", "hum"].rules
    ('season in {WINTER, SPRING, FALL}', 'season in {SUMMER}')

    Select the depth of each feature by cross-validation:

    >>> sg.find_subgroups(X, features=["hum", "wind"], max_depth="auto")
    <Subgroups of 2 features: transformation trees, max_depth auto>
      hum   8 subgroups by weather, wind, temp, season (depth 4)
      wind  3 subgroups by season, hum (depth 2)
    """
    selects_depth = isinstance(max_depth, str)
    if selects_depth and max_depth != AUTO:
        raise ParameterError(f"max_depth must be a whole number >= 0, or {AUTO!r}; got {max_depth!r}.")
    depth = AUTO_MAX_DEPTH if selects_depth else max_depth
    settings = replace(TreeSettings.checked(tree, depth, min_samples_leaf, alpha), select_depth=selects_depth)
    subgroups = grow_all_trees(X, settings, features, given, kinds, sample_weight, n_jobs)
    return subgroups.at_selected_depth() if selects_depth else subgroups


def grow_all_trees(
    X: Any, settings: TreeSettings, features: Any, given: Any, kinds: Any, sample_weight: Any, n_jobs: int | None
) -> Subgroups:
    """Grow a tree for each feature; with the selection of the depth, trees have the maximum depth and its scores."""
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    table = read_table(X, kinds=kinds, lenient=True)
    groups, allowed = parse_features(features, table.names), allowed_columns(given, table.names)
    allowed = without_unusable(table, allowed, given)
    settings.reject_groups(groups)
    reject_another_index(X, sample_weight=sample_weight)
    weights = None if sample_weight is None else read_weights(sample_weight, table.n_rows)
    columns = SortedTable.of(select_columns(table, allowed), shared=True)
    if len(groups) > 1 and effective_jobs(n_jobs) > 1:
        columns = columns.filled()  # once here instead of in every process
    task = partial(named_partition, columns, table, weights, settings)
    with one_blas_thread():  # around all trees, since threads would reset it for one another
        partitions = tuple(parallel_map(task, groups, n_jobs))
    parameters = {
        "features": None if features is None else [each[0] if len(each) == 1 else [*each] for each in groups],
        "tree": settings.tree,
        "max_depth": settings.rules.max_depth,
        "min_samples_leaf": settings.rules.min_samples_leaf,
        "alpha": settings.rules.alpha,
        "given": None if given is None else [*allowed],
        "kinds": None if kinds is None else dict(kinds),
        "weighted": sample_weight is not None,
    }
    return Subgroups(partitions, table.columns, fingerprint(table), parameters)
