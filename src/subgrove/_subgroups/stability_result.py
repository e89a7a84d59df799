"""Result of `Subgroups.stability`: how often splits recur on halves of the rows, as tables and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import HtmlView
from subgrove._core.moments import quantile_values
from subgrove._core.text import count_of, lines_of, percent
from subgrove._data.columns import number_text
from subgrove._subgroups.partition import Partition
from subgrove.trees import Split
from subgrove.trees.nodes import ALL_ROWS, level_text, rule_text

if TYPE_CHECKING:
    import pandas as pd

_RANGE = np.array([0.05, 0.95])


@dataclass(frozen=True)
class RegrownTree:
    """Comparison of a tree grown on half of the rows with the tree on all rows.

    Attributes
    ----------
    splits : tuple of Split or None
        For each split of the tree on all rows: the split of the node at the same depth that shares most rows with it;
        None if there is none.
    depths : tuple of pairs (column, depth)
        Smallest depth at which each column is split on.
    n_subgroups : int
        Number of leaves.
    rand : float
        Adjusted Rand index of the two partitions, over all rows: 1 if identical, about 0 if unrelated.
    together : float
        Share of the pairs of rows in the same subgroup that are in the same subgroup again.
    """

    splits: tuple[Split | None, ...]
    depths: tuple[tuple[str, int], ...]
    n_subgroups: int
    rand: float
    together: float


@dataclass(frozen=True)
class SplitStability:
    """Stability of one split of a tree.

    Attributes
    ----------
    node : str
        Rule of the node that is split; "all rows" for the root.
    depth : int
        Number of splits above.
    split : Split
        Split of the tree on all rows.
    recurring : tuple of Split
        Splits on the same column in the matching nodes of the resamples.
    levels : tuple of str
        Levels of the column present in the node.
    """

    node: str
    depth: int
    split: Split
    recurring: tuple[Split, ...]
    levels: tuple[str, ...]

    @cached_property
    def cuts(self) -> tuple[float, float]:
        """Range of the split point over the central 90 % of these resamples; NaN if the column has none."""
        cuts = np.array([each.threshold for each in self.recurring if each.threshold is not None], dtype=np.float64)
        if not len(cuts):
            return (np.nan, np.nan)
        low, high = quantile_values(cuts, None, _RANGE)
        return (float(low), float(high))

    @cached_property
    def pairs(self) -> tuple[tuple[str, str, bool, float], ...]:
        """For each pair of levels: whether the split keeps it together, and the share of resamples that do."""
        return tuple(
            (one, two, _together(self.split, one, two), _mean([_together(each, one, two) for each in self.recurring]))
            for one, two in combinations(self.levels, 2)
        )

    @property
    def pair_agreement(self) -> float:
        """Share of the pairs of levels that are kept together, or apart, as in the tree; NaN without levels."""
        return _mean([share if together else 1 - share for _, _, together, share in self.pairs])


@dataclass(frozen=True, repr=False)
class FeatureStability:
    """Stability of the subgroups of one feature.

    Attributes
    ----------
    partition : Partition
        Subgroups on all rows.
    levels : tuple of tuples of str
        For each split, the levels of its column present in its node.
    regrown : tuple of Regrown
        Comparison of the tree on each half of the rows with the tree on all rows.
    """

    partition: Partition
    levels: tuple[tuple[str, ...], ...]
    regrown: tuple[RegrownTree, ...]

    @property
    def feature(self) -> str:
        """Name of the feature."""
        return self.partition.feature

    @cached_property
    def splits(self) -> tuple[SplitStability, ...]:
        """Splits of the tree by depth."""
        tree = self.partition.tree
        paths = tree._paths()
        inner = [(node, node.split) for node in tree.nodes if node.split is not None]
        splits = []
        for at, (node, split) in enumerate(inner):
            matching = [regrown.splits[at] for regrown in self.regrown]
            recurring = tuple(each for each in matching if each is not None and each.column == split.column)
            splits.append(SplitStability(rule_text(paths[node.id]), node.depth, split, recurring, self.levels[at]))
        return tuple(sorted(splits, key=lambda split: split.depth))

    @property
    def rand(self) -> float:
        """Mean adjusted Rand index."""
        return _mean([each.rand for each in self.regrown])

    @property
    def together(self) -> float:
        """Mean share of the pairs of rows of one subgroup that stay together."""
        return _mean([each.together for each in self.regrown])

    def columns(self) -> list[dict[str, Any]]:
        """Return a row for each column with a split, the most frequent first."""
        in_tree, rows = self.partition.conditioning, []
        names = dict.fromkeys([*in_tree, *(name for each in self.regrown for name, _ in each.depths)])
        for name in names:
            depths = [depth for each in self.regrown for column, depth in each.depths if column == name]
            share, first = len(depths) / len(self.regrown), depths.count(0) / len(self.regrown)
            row = {"feature": self.feature, "column": name, "in_tree": name in in_tree, "share": share, "first": first}
            rows.append(row | {"depth": _mean(depths)})
        return sorted(rows, key=lambda row: (-float(row["first"]), -float(row["share"])))

    def sentences(self) -> list[str]:
        """Describe the stability: a sentence for each split, and one for the subgroups."""
        n = len(self.regrown)
        if not self.splits:
            split = sum(each.n_subgroups > 1 for each in self.regrown)
            return [f"{self.feature}: one subgroup; a tree splits in {split} of {n} resamples."]
        clauses = [self._describe(split, n) for split in self.splits]
        together = f"two rows of one subgroup stay together in {percent(self.together)} of cases"
        clauses.append(f"{together} (adjusted Rand index {self.rand:.2f})")
        return [f"{self.feature}: {clause}." for clause in clauses]

    def summary(self) -> str:
        """Return the share of the first split and the adjusted Rand index in one line."""
        n, first = len(self.regrown), self.splits[0] if self.splits else None
        if first is None:
            return f"1 subgroup in {sum(each.n_subgroups == 1 for each in self.regrown)} of {n}"
        return f"{first.split.column} first in {len(first.recurring)} of {n}, adjusted Rand index {self.rand:.2f}"

    def __repr__(self) -> str:
        return f"<FeatureStability of {self.feature!r}: {self.summary()}>"

    def _describe(self, split: SplitStability, n: int) -> str:
        column, count = split.split.column, len(split.recurring)
        if split.node == ALL_ROWS:
            text = f"{column} is the first split in {count} of {n} resamples"
        else:
            text = f"where {split.node}, {column} is split on in {count} of {n}"
        if len(split.pairs) > 1 and count:
            return f"{text} and separates {percent(split.pair_agreement)} of the pairs of its levels in the same way"
        if np.isnan(split.cuts[0]):
            return text
        low, high = (self._value(column, cut) for cut in split.cuts)
        position = f"at {low}" if low == high else f"between {low} and {high}"
        return f"{text}, with the split point {position} in 9 of 10 of these"

    def _value(self, column: str, cut: float) -> str:
        info = next(each for each in self.partition.tree.columns if each.name == column)
        if info.kind == "ordered":
            return level_text(info.levels[int(cut) - 1])
        return number_text(cut, info) if info.is_date or info.is_duration else f"{cut:.4g}"


@dataclass(frozen=True, repr=False)
class Stability(HtmlView):
    """Stability of subgroups on halves of the rows; returned by `Subgroups.stability`.

    Attributes
    ----------
    features : tuple of FeatureStability
        Stability of each feature.
    n_resamples : int
        Number of halves drawn.
    seed : int
        Random seed that gives the same halves again.
    sentences : tuple of str
        Description of the results.
    splits, columns, levels, overall : pandas.DataFrame
        Tables of splits, columns, pairs of levels and features.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> groups = sg.find_subgroups(X, features=["temp"])
    >>> stability = groups.stability(X, n_resamples=20, random_state=1)
    >>> stability.overall.round(2)
      feature  n_subgroups  n_low  n_high  together  rand
    0    temp            4      3       4      0.87  0.81
    >>> stability.columns.round(2)
      feature  column  in_tree  share  first  depth
    0    temp  season     True   1.00    1.0    0.0
    1    temp     hum     True   0.35    0.0    1.0
    """

    features: tuple[FeatureStability, ...]
    n_resamples: int
    seed: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """Description of the results: for each feature a sentence for each split, and one for the subgroups."""
        return tuple(sentence for each in self.features for sentence in each.sentences())

    @property
    def splits(self) -> pd.DataFrame:
        """One row per split of the trees.

        Columns: feature; node, the rule of the node; depth, the number of splits above; column; share of the resamples
        that split the matching node on it; cut, the split point of the tree; cut_low and cut_high, its range in the
        central 90 % of these resamples; pair_agreement, the share of pairs of levels kept together, or apart, as in
        the tree.
        """
        rows = []
        for each in self.features:
            for split in each.splits:
                share, threshold = len(split.recurring) / self.n_resamples, split.split.threshold
                cuts = (np.nan if threshold is None else threshold, *split.cuts)
                rows.append(
                    (each.feature, split.node, split.depth, split.split.column, share, *cuts, split.pair_agreement)
                )
        return _frame(rows, "feature node depth column share cut cut_low cut_high pair_agreement")

    @property
    def columns(self) -> pd.DataFrame:
        """One row per feature and column that some tree splits on.

        Columns: feature; column; in_tree, whether the tree on all rows splits on it; share of the resamples that split
        on it anywhere; first, the share with it at the root; depth, the mean of its smallest depth.
        """
        rows = [row for each in self.features for row in each.columns()]
        return _frame(rows, "feature column in_tree share first depth")

    @property
    def levels(self) -> pd.DataFrame:
        """One row per split on a nominal column and pair of levels present in the node.

        Columns: feature, node, column, level, other; together, whether the split of the tree keeps the pair together;
        share of the resamples with a split on the column in which it does.
        """
        rows = [
            (each.feature, split.node, split.split.column, *pair)
            for each in self.features
            for split in each.splits
            for pair in split.pairs
        ]
        return _frame(rows, "feature node column level other together share")

    @property
    def overall(self) -> pd.DataFrame:
        """One row per feature.

        Columns: feature; n_subgroups of the tree on all rows; n_low and n_high, its range in the central 90 % of the
        resamples; together, the share of pairs of rows of one subgroup that stay together; rand, the mean adjusted Rand
        index (1 for identical subgroups, 0 on average for unrelated ones).
        """
        rows = []
        for each in self.features:
            counts = np.array([float(regrown.n_subgroups) for regrown in each.regrown])
            low, high = quantile_values(counts, None, _RANGE).astype(int).tolist()
            rows.append((each.feature, len(each.partition), low, high, each.together, each.rand))
        return _frame(rows, "feature n_subgroups n_low n_high together rand")

    def __repr__(self) -> str:
        head = f"<Stability of {count_of(len(self.features), 'feature')}: {self.n_resamples} halves of the rows>"
        return lines_of(head, [(each.feature, each.summary()) for each in self.features])


def _together(split: Split, one: str, two: str) -> bool:
    return (one in split.levels[0]) == (two in split.levels[0])


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _frame(rows: list[Any], columns: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns.split())
