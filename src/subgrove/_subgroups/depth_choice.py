"""Which depth a feature's tree needs: scores by depth, and the reason in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from subgrove._core.html_views import html_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class DepthChoice:
    """How well the subgroups of a feature foretell it at each depth, and which depth is enough.

    The smallest depth is chosen whose score is within one standard error of the best, or gives up no more than the
    share `tolerance` of what the best gains over one subgroup.

    Attributes
    ----------
    feature : str
        The feature, or the names of a group joined by " + ".
    measure : str
        "CRPS" (numbers and ordered levels, in units of the feature), "log score" (levels), or "relative score" (a
        group of features: the mean over its features of the score, divided by that of one subgroup). Less is better.
    scores : tuple of float
        The mean score at depth 0, 1, and so on, in held-out rows; empty where the tree did not split, so that there was
        nothing to compare.
    std_errors : tuple of float
        The standard error of the difference from the best, over rows.
    n_subgroups : tuple of int
        Subgroups at each depth, of the tree that grew on all rows.
    limit : int
        The greatest depth that was allowed.
    n_rows : int
        Rows that were scored.
    n_folds : int
        Parts that were held out in turn.
    tolerance : float
        Share of the gain that a smaller depth may give up.

    Examples
    --------
    >>> import subgrove as sg
    >>> temp = sg.find_subgroups(sg.datasets.bike().X, features="temp", max_depth="auto")["temp"]
    >>> print(temp.choice.reason)
    temp: depth 4 of at most 6 (8 subgroups) has the best CRPS in held-out rows, 2.637; one subgroup has 4.965.
    """

    feature: str
    measure: str
    scores: tuple[float, ...]
    std_errors: tuple[float, ...]
    n_subgroups: tuple[int, ...]
    limit: int
    n_rows: int
    n_folds: int
    tolerance: float = 0.0

    @property
    def best(self) -> int:
        """The depth with the least score, the smaller of two alike."""
        return self.scores.index(min(self.scores)) if self.scores else 0

    @property
    def depth(self) -> int:
        """The smallest depth that is enough."""
        if not self.scores:
            return 0
        least = min(self.scores)
        allowed = self.tolerance * (self.scores[0] - least)
        enough = (
            score - least <= max(error, allowed) for score, error in zip(self.scores, self.std_errors, strict=True)
        )
        return next(depth for depth, fine in enumerate(enough) if fine)

    @property
    def reason(self) -> str:
        """Why this depth, in a sentence."""
        if not self.scores:
            return f"{self.feature}: depth 0, one subgroup, since its tree does not split."
        chosen, best = self.depth, self.best
        count, own, least = self.n_subgroups[chosen], self.scores[chosen], self.scores[best]
        what = f"{self.feature}: depth {chosen} of at most {self.limit} ({count} subgroup{'s' * (count != 1)}) has"
        whole = f"; one subgroup has {self.scores[0]:.4g}." if chosen else "."
        if chosen == best:
            return f"{what} the best {self.measure} in held-out rows, {own:.4g}{whole}"
        why = f"one standard error ({self.std_errors[chosen]:.2g})"
        if own - least > self.std_errors[chosen]:
            why = f"{self.tolerance:.3g} of the gain"
        near = f"within {why} of the best, {least:.4g} at depth {best}"
        return f"{what} a {self.measure} of {own:.4g} in held-out rows, {near}{whole}"

    @property
    def table(self) -> pd.DataFrame:
        """A row for each depth: n_subgroups, score, difference (from the best) and its std_error, selected."""
        import pandas as pd

        n = len(self.n_subgroups)
        scores = self.scores or (float("nan"),) * n
        errors = self.std_errors or (float("nan"),) * n
        columns = {
            "feature": [self.feature] * n,
            "depth": range(n),
            "n_subgroups": self.n_subgroups,
            "score": scores,
            "difference": [score - min(scores) for score in scores],
            "std_error": errors,
            "selected": [depth == self.depth for depth in range(n)],
        }
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        return f"<DepthChoice of {self.reason}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    def to_dict(self) -> dict[str, Any]:
        """A dictionary of plain values that JSON can hold."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DepthChoice:
        """The choice that `to_dict` wrote.

        Parameters
        ----------
        values : dict
            What `to_dict` of a choice gave, also after a way through JSON.
        """
        plain: dict[str, Any] = {}
        for name, value in values.items():
            plain[name] = tuple(value) if isinstance(value, list) else value
        return cls(**plain)
