"""The subgroups of all features of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from subgrove._core.html_views import html_of
from subgrove._data.table import ColumnInfo
from subgrove._subgroups.partition import Partition
from subgrove.exceptions import FormatError
from subgrove.trees.structure import column_dict, column_from

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
_SHOWN = 20  # features that the text of an object lists


@dataclass(frozen=True, repr=False)
class Subgroups(Mapping[str, Partition]):
    """Subgroups of each feature: what `find_subgroups` returns, a mapping from feature to `Partition`.

    A group of features is found by its name, `groups["temp + hum"]`, or by its features, `groups["temp", "hum"]`.

    Attributes
    ----------
    partitions : tuple of Partition
        In the order of the features asked for.
    columns : tuple of ColumnInfo
        Name, kind and levels of all columns of the training table.
    fingerprint : str
        Tells the training table from others.
    parameters : mapping
        What `find_subgroups` was given, as plain values.

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
    def _found(self) -> dict[str | frozenset[str], Partition]:
        """Partitions by the name of the feature and by the set of its members."""
        by_members: dict[str | frozenset[str], Partition] = {frozenset(each.members): each for each in self.partitions}
        return by_members | {each.feature: each for each in self.partitions}

    def __getitem__(self, feature: str | tuple[str, ...]) -> Partition:
        # Labels of pandas columns may be numbers; as names they are text.
        names = frozenset(map(str, feature)) if isinstance(feature, tuple | list) else str(feature)
        found = self._found.get(names)
        if found is None:
            raise KeyError(f"There are no subgroups of {feature!r}; there are some of {', '.join(map(repr, self))}.")
        return found

    def __iter__(self) -> Iterator[str]:
        return (partition.feature for partition in self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.partitions))

    def __repr__(self) -> str:
        count = "1 feature" if len(self) == 1 else f"{len(self)} features"
        depth = self.parameters["max_depth"]
        lines = [f"<Subgroups of {count}: {self.parameters['tree']} trees, max_depth {depth}>"]
        shown = self.partitions[:_SHOWN]
        width = max(len(partition.feature) for partition in shown)
        notes = [f" (depth {each.tree.parameters['max_depth']})" if depth == "auto" else "" for each in shown]
        lines += [
            f"  {each.feature:<{width}}  {each._summary()}{note}" for each, note in zip(shown, notes, strict=True)
        ]
        more = len(self) - len(shown)
        return "\n".join([*lines, f"  and {more} more"] if more else lines)

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def table(self) -> pd.DataFrame:
        """One row for each subgroup: feature, subgroup (its position, from 0), rule, n (training rows)."""
        import pandas as pd

        rows = [
            (partition.feature, position, rule, size)
            for partition in self.partitions
            for position, (rule, size) in enumerate(zip(partition.rules, partition.sizes, strict=True))
        ]
        return pd.DataFrame(rows, columns=["feature", "subgroup", "rule", "n"])

    def at_depth(self, depth: int) -> Subgroups:
        """The subgroups that `max_depth=depth` would have given, at no cost.

        Deeper than they were grown, trees stay as they are.

        Parameters
        ----------
        depth : int
            Splits from the root to the deepest leaf, at most; 0 leaves one subgroup.

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
        deepest = max(partition.tree.parameters["max_depth"] for partition in self.partitions)
        shallower = min(int(depth), deepest if grown == "auto" else grown)
        return replace(self, partitions=partitions, parameters={**self.parameters, "max_depth": shallower})

    def at_selected_depth(self) -> Subgroups:
        """Each feature with the depth that its `choice` says is enough."""
        partitions = tuple(partition.at_selected_depth() for partition in self.partitions)
        return replace(self, partitions=partitions, parameters={**self.parameters, "max_depth": "auto"})

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values that JSON can hold.

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
            "parameters": deepcopy(dict(self.parameters)),
            "fingerprint": self.fingerprint,
            "columns": [column_dict(column) for column in self.columns],
            "partitions": [partition.to_dict() for partition in self.partitions],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Subgroups:
        """The subgroups that `to_dict` wrote.

        Parameters
        ----------
        values : dict
            What `to_dict` of subgroups gave, also after a way through JSON.
        """
        if not isinstance(values, Mapping) or values.get("format") != FORMAT:
            found = values.get("format") if isinstance(values, Mapping) else type(values).__name__
            raise FormatError(f"Expected a dictionary of Subgroups.to_dict() in format {FORMAT}; got {found!r}.")
        try:
            columns = tuple(column_from(column) for column in values["columns"])
            partitions = tuple(Partition.from_dict(partition) for partition in values["partitions"])
            return cls(partitions, columns, str(values["fingerprint"]), dict(values["parameters"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"The dictionary is not one of Subgroups.to_dict(): {error!r}.") from error
