"""What `stability` returns: how often splits come back, as tables and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.quantiles import quantile_values
from subgrove._data.columns import number_text
from subgrove._subgroups.partition import Partition
from subgrove._subgroups.regrowth import RegrownTree
from subgrove.trees import Node, Split
from subgrove.trees.conditions import ALL_ROWS, level_text, rule_text

if TYPE_CHECKING:
    import pandas as pd

_RANGE = np.array([0.05, 0.95])
_SHOWN = 20  # features that the text of an object lists


@dataclass(frozen=True)
class SplitStability:
    """How one split of a tree fares.

    Attributes
    ----------
    node : str
        The rule of the rows that are split; "all rows" for the first split.
    depth : int
        Splits above it.
    split : Split
        The split of the tree on all rows.
    found : tuple of Split
        The splits on the same column at its place, of the resamples that have one.
    levels : tuple of str
        Levels of the column that rows of the node have.
    """

    node: str
    depth: int
    split: Split
    found: tuple[Split, ...]
    levels: tuple[str, ...]

    @cached_property
    def cuts(self) -> tuple[float, float]:
        """The cut in 9 of 10 of the resamples that split there: from, to; NaN if the column has no cuts."""
        cuts = np.array([each.threshold for each in self.found if each.threshold is not None], dtype=np.float64)
        if not len(cuts):
            return (np.nan, np.nan)
        low, high = quantile_values(cuts, None, _RANGE)
        return (float(low), float(high))

    @cached_property
    def pairs(self) -> tuple[tuple[str, str, bool, float], ...]:
        """For two levels each: whether the split keeps them together, and in which share of the resamples."""
        return tuple(
            (one, two, _together(self.split, one, two), _mean([_together(each, one, two) for each in self.found]))
            for one, two in combinations(self.levels, 2)
        )

    @property
    def alike(self) -> float:
        """Share of the pairs of levels that are kept together, or apart, as in the tree; NaN without levels."""
        return _mean([share if kept else 1 - share for _, _, kept, share in self.pairs])


@dataclass(frozen=True, repr=False)
class FeatureStability:
    """How the subgroups of one feature fare.

    Attributes
    ----------
    partition : Partition
        The subgroups that were found on all rows.
    levels : tuple of tuples of str
        For each split the levels of its column that its rows have.
    regrown : tuple of Regrown
        What was found on each half of the rows.
    """

    partition: Partition
    levels: tuple[tuple[str, ...], ...]
    regrown: tuple[RegrownTree, ...]

    @property
    def feature(self) -> str:
        """The feature."""
        return self.partition.feature

    @cached_property
    def splits(self) -> tuple[SplitStability, ...]:
        """Each split of the tree, the first one first."""
        tree = self.partition.tree
        paths = tree._paths()
        inner = [node for node in tree.nodes if node.split is not None]
        made = [self._split(node, at, rule_text(paths[node.id])) for at, node in enumerate(inner)]
        return tuple(sorted(made, key=lambda split: split.depth))

    def _split(self, node: Node, at: int, rule: str) -> SplitStability:
        assert node.split is not None
        there = [regrown.splits[at] for regrown in self.regrown]
        found = tuple(each for each in there if each is not None and each.column == node.split.column)
        return SplitStability(rule, node.depth, node.split, found, self.levels[at])

    @property
    def rand(self) -> float:
        """Mean adjusted Rand index."""
        return _mean([each.rand for each in self.regrown])

    @property
    def together(self) -> float:
        """Mean share of the pairs of rows of one subgroup that stay together."""
        return _mean([each.together for each in self.regrown])

    def columns(self) -> list[dict[str, Any]]:
        """A row for each column that is split on, those that come back most often first."""
        mine, rows = self.partition.conditioning, []
        names = dict.fromkeys([*mine, *(name for each in self.regrown for name, _ in each.depths)])
        for name in names:
            depths = [depth for each in self.regrown for column, depth in each.depths if column == name]
            share, first = len(depths) / len(self.regrown), depths.count(0) / len(self.regrown)
            columns = {"feature": self.feature, "column": name, "in_tree": name in mine, "share": share, "first": first}
            rows.append(columns | {"depth": _mean(depths)})
        return sorted(rows, key=lambda row: (-float(row["first"]), -float(row["share"])))

    def sentences(self) -> list[str]:
        """How often splits come back, in words: a sentence for each, and one for all rows."""
        n = len(self.regrown)
        if not self.splits:
            split = sum(each.n_subgroups > 1 for each in self.regrown)
            return [f"{self.feature}: one subgroup; a tree splits in {split} of {n} resamples."]
        said = [self._said(split, n) for split in self.splits]
        kept = f"two rows of one subgroup stay together in {self.together:.0%} of cases"
        return [f"{self.feature}: {each}." for each in [*said, f"{kept} (adjusted Rand index {self.rand:.2f})"]]

    def summary(self) -> str:
        """The first split, and how alike subgroups are, in a line."""
        n, first = len(self.regrown), self.splits[0] if self.splits else None
        if first is None:
            return f"1 subgroup in {sum(each.n_subgroups == 1 for each in self.regrown)} of {n}"
        return f"{first.split.column} first in {len(first.found)} of {n}, adjusted Rand index {self.rand:.2f}"

    def __repr__(self) -> str:
        return f"<FeatureStability of {self.feature!r}: {self.summary()}>"

    def _said(self, split: SplitStability, n: int) -> str:
        column, count = split.split.column, len(split.found)
        if split.node == ALL_ROWS:
            what = f"{column} is the first split in {count} of {n} resamples"
        else:
            what = f"where {split.node}, {column} is split on in {count} of {n}"
        if len(split.pairs) > 1 and count:
            return f"{what} and sorts {split.alike:.0%} of pairs of its levels alike"
        if np.isnan(split.cuts[0]):
            return what
        low, high = (self._value(column, cut) for cut in split.cuts)
        where = f"at {low}" if low == high else f"between {low} and {high}"
        return f"{what}, its cut {where} in 9 of 10 of these"

    def _value(self, column: str, cut: float) -> str:
        info = next(each for each in self.partition.tree.columns if each.name == column)
        if info.kind == "ordered":
            return level_text(info.levels[int(cut) - 1])
        return number_text(cut, info) if info.is_date or info.is_duration else f"{cut:.4g}"


@dataclass(frozen=True, repr=False)
class Stability:
    """How often splits come back on halves of the rows: what `stability` returns.

    Attributes
    ----------
    features : tuple of FeatureStability
        What was found for each feature.
    n_resamples : int
        Number of halves that were drawn.
    seed : int
        The seed; give it again to draw the same halves.
    sentences : tuple of str
        The same in words.
    splits, columns, levels, overall : pandas.DataFrame
        Tables; see there.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> groups = sg.find_subgroups(X, features=["temp"])
    >>> found = sg.stability(groups, X, n_resamples=20, random_state=1)
    >>> found.overall.round(2)
      feature  n_subgroups  n_low  n_high  together  rand
    0    temp            4      3       4      0.87  0.81
    >>> found.columns.round(2)
      feature  column  in_tree  share  first  depth
    0    temp  season     True   1.00    1.0    0.0
    1    temp     hum     True   0.35    0.0    1.0
    """

    features: tuple[FeatureStability, ...]
    n_resamples: int
    seed: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """How often splits come back: for each feature a sentence for each split, and one for all rows."""
        return tuple(sentence for each in self.features for sentence in each.sentences())

    @property
    def splits(self) -> pd.DataFrame:
        """A row for each split of the trees.

        Columns: feature; node, the rule of the rows that are split; depth, splits above; column; share of the
        resamples that split on it there; cut of the tree; cut_low and cut_high, where it lies in 9 of 10 of these;
        pairs_alike, of levels: share of their pairs that are kept together, or apart, as in the tree.
        """
        rows = [
            {
                "feature": each.feature,
                "node": split.node,
                "depth": split.depth,
                "column": split.split.column,
                "share": len(split.found) / self.n_resamples,
                "cut": np.nan if split.split.threshold is None else split.split.threshold,
                "cut_low": split.cuts[0],
                "cut_high": split.cuts[1],
                "pairs_alike": split.alike,
            }
            for each in self.features
            for split in each.splits
        ]
        return _frame(rows, "feature node depth column share cut cut_low cut_high pairs_alike")

    @property
    def columns(self) -> pd.DataFrame:
        """A row for each feature and column that some tree splits on.

        Columns: feature; column; in_tree, whether the tree on all rows splits on it; share of the resamples that split
        on it anywhere; first, share in which it is the first split; depth, the mean of the least depth where it is.
        """
        rows = [row for each in self.features for row in each.columns()]
        return _frame(rows, "feature column in_tree share first depth")

    @property
    def levels(self) -> pd.DataFrame:
        """A row for each split on a nominal column and pair of levels that its rows have.

        Columns: feature, node, column, level, other; together, whether the split of the tree keeps them together; share
        of the resamples that split on the column there in which they are together.
        """
        rows = [
            {
                "feature": each.feature,
                "node": split.node,
                "column": split.split.column,
                "level": one,
                "other": two,
                "together": kept,
                "share": share,
            }
            for each in self.features
            for split in each.splits
            for one, two, kept, share in split.pairs
        ]
        return _frame(rows, "feature node column level other together share")

    @property
    def overall(self) -> pd.DataFrame:
        """A row for each feature.

        Columns: feature; n_subgroups, of the tree on all rows; n_low and n_high, in 9 of 10 resamples; together, how
        often two rows of one subgroup stay together; rand, mean adjusted Rand index (1 for the same subgroups, 0 for
        such as chance would give).
        """
        rows = []
        for each in self.features:
            counts = np.array([float(regrown.n_subgroups) for regrown in each.regrown])
            low, high = quantile_values(counts, None, _RANGE).astype(int).tolist()
            known = {"feature": each.feature, "n_subgroups": len(each.partition), "n_low": low, "n_high": high}
            rows.append(known | {"together": each.together, "rand": each.rand})
        return _frame(rows, "feature n_subgroups n_low n_high together rand")

    def __repr__(self) -> str:
        count, shown = len(self.features), self.features[:_SHOWN]
        head = f"<Stability of {count} feature{'s' * (count != 1)}: {self.n_resamples} halves of the rows>"
        width = max((len(each.feature) for each in shown), default=0)
        lines = [f"  {each.feature:<{width}}  {each.summary()}" for each in shown]
        return "\n".join([head, *lines, *([f"  and {count - _SHOWN} more"] if count > _SHOWN else [])])

    def _repr_html_(self) -> str:
        return html_of(self)


def _together(split: Split, one: str, two: str) -> bool:
    return (one in split.levels[0]) == (two in split.levels[0])


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _frame(rows: list[dict[str, Any]], columns: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns.split())
