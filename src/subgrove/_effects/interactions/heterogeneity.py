"""Which splits make single curves agree, and for which reason they were made: a table and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._data.result_tables import Backend, make_table
from subgrove._effects.tables import counts_as_integers

DEPENDENCE, INTERACTION, NONE = "dependence", "interaction", "none"


@dataclass(frozen=True)
class ExplainedSplit:
    """One split, its reason, and what it explains.

    Attributes
    ----------
    node : str
        The rule of the rows that are split.
    column : str
        What they are split on.
    reason : {"dependence", "interaction"}
        Whether the feature depends on the column there, or the curves do.
    n : float
        Rows that are split.
    share : float
        Share of the disagreement of single curves that it explains.
    p_value : float or None
        How often curves dealt at random are split as well; of interaction splits.
    """

    node: str
    column: str
    reason: str
    n: float
    share: float
    p_value: float | None = None


@dataclass(frozen=True)
class Heterogeneity:
    """How far single curves disagree, and what splits explain of that.

    Attributes
    ----------
    feature : str
        The feature.
    splits : tuple of ExplainedSplit
        Those of dependence first, then those of interaction; nearest to the root first.
    additive : bool
        Whether there is nothing to explain: all curves have the same shape.
    n : float
        Rows that have curves.
    """

    feature: str
    splits: tuple[ExplainedSplit, ...]
    additive: bool
    n: float

    def explained(self, reason: str) -> float:
        """Share of the disagreement that splits with this reason explain."""
        return sum(split.share for split in self.splits if split.reason == reason)

    @property
    def left(self) -> float:
        """Share that no split explains."""
        return 0.0 if self.additive else max(1.0 - self.explained(DEPENDENCE) - self.explained(INTERACTION), 0.0)

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.additive:
            return f"{self.feature}: all curves have the same shape, so there is no interaction to split on."
        parts = []
        if any(split.reason == DEPENDENCE for split in self.splits):
            parts.append(f"{self.explained(DEPENDENCE):.0%} by splits of dependence")
        made = [split for split in self.splits if split.reason == INTERACTION]
        if made:
            columns = ", ".join(dict.fromkeys(split.column for split in made))
            parts.append(f"{self.explained(INTERACTION):.0%} by {len(made)} of interaction on {columns}")
        else:
            parts.append("no split of interaction holds")
        return f"{self.feature}: of the disagreement of curves, {', '.join(parts)}; {self.left:.0%} is left."

    def table(self, backend: Backend) -> Any:
        """A row for each split: feature, node, column, reason, n, share, p_value; the last one is what is left."""
        rows = [*self.splits, ExplainedSplit("", "", NONE, self.n, self.left)]
        columns: dict[str, Any] = {"feature": [self.feature] * len(rows)}
        columns |= {name: [getattr(row, name) for row in rows] for name in ("node", "column", "reason", "n", "share")}
        columns["n"] = counts_as_integers(np.array(columns["n"]))
        columns["p_value"] = [np.nan if row.p_value is None else row.p_value for row in rows]
        return make_table(backend, columns)
