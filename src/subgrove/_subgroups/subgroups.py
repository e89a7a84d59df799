"""Subgroups of all features of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from subgrove._core.execution import RandomStateLike, effective_jobs, read_seed
from subgrove._core.html_views import html_of
from subgrove._core.text import count_of, lines_of
from subgrove._core.validate import reject_another_index, whole_number
from subgrove._core.weights import read_weights
from subgrove._data.table import ColumnInfo, fingerprint, read_like
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.stability import regrow_trees
from subgrove._subgroups.stability_result import Stability
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees.tree import FORMAT, restoring

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Subgroups(Mapping[str, Partition]):
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
        depths = [
            f" (depth {each.tree.parameters['max_depth']})" if depth == "auto" else "" for each in self.partitions
        ]
        texts = [f"{each._summary()}{note}" for each, note in zip(self.partitions, depths, strict=True)]
        return lines_of(head, list(zip(self, texts, strict=True)))

    def _repr_html_(self) -> str:
        return html_of(self)

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
