"""What `dependence` returns: how well each feature is foretold, by which columns, and what follows. It is frozen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import Floats
from subgrove._data.to_containers import Backend, make_table

FEW = 3  # columns that a tree of depth 2, the default, can ask for
_MOST_OF_IT = 0.9  # of what columns tell
_LEAST = 0.01  # of the loss: what is less is taken for noise
_WHOLE = 0.99
_NAMED = 3  # columns that a table names
_SHOWN = 20  # features that the text of an object lists


@dataclass(frozen=True, eq=False, repr=False)
class FeatureDependence:
    """How well one feature is foretold.

    Attributes
    ----------
    feature : str
        Its name.
    kind : {"numeric", "ordered", "nominal"}
        What it holds.
    n : int
        Rows that have a value of it.
    columns : tuple of str
        The other columns.
    folds : float array (halves, 1 + columns)
        For each half of each repeat the share of loss explained in it, and then what is lost of this share when each
        of the columns is shuffled.
    note : str
        What is to be known besides.
    """

    feature: str
    kind: str
    n: int
    columns: tuple[str, ...]
    folds: Floats
    note: str

    @property
    def explained(self) -> float:
        """Share of the loss explained, mean over halves; NaN if it is not defined in any."""
        return float(self._means[0])

    @property
    def std_error(self) -> float:
        """Standard error of this mean, as if halves were independent of each other."""
        values = self.folds[:, 0][~np.isnan(self.folds[:, 0])]
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")

    @cached_property
    def drops(self) -> dict[str, float]:
        """What is lost of `explained` when each column is shuffled; may be more than all, for wrong values mislead."""
        return dict(zip(self.columns, self._means[1:].tolist(), strict=True))

    @cached_property
    def shares(self) -> dict[str, float]:
        """`explained`, divided among the columns in proportion to `drops`; 0 where there is nothing to divide.

        Drops below 1 % of the loss are taken for noise.
        """
        if np.isnan(self.explained):
            return dict.fromkeys(self.columns, float("nan"))
        known = {name: drop if drop >= _LEAST else 0.0 for name, drop in self.drops.items()}
        whole = sum(known.values())
        return {name: max(self.explained, 0.0) * drop / whole if whole else 0.0 for name, drop in known.items()}

    @cached_property
    def predictors(self) -> tuple[str, ...]:
        """The columns that make up most of `explained`, the strongest first: as few as have 90 % of it."""
        told = {name: share for name, share in self.shares.items() if share > 0}
        strongest = sorted(told, key=lambda name: (-told[name], self.columns.index(name)))
        parts = np.cumsum([told[name] for name in strongest])
        return tuple(strongest[: int(np.searchsorted(parts, _MOST_OF_IT * sum(told.values()) * (1 - 1e-12))) + 1])

    def named(self, *, parts: bool = True) -> str:
        """The columns that tell most of the feature, in words, with or without their parts of `explained`."""
        named = [f"{name} ({self.shares[name]:.2f})" if parts else name for name in self.predictors[:_NAMED]]
        more = len(self.predictors) - len(named)
        return ", ".join(named) + (f" and {more} more" if more else "")

    def __repr__(self) -> str:
        return f"<FeatureDependence of {self.feature!r}: {self.explained:.0%} foretold, {self.n} rows>"

    @cached_property
    def _means(self) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing is NaN, which is meant
            return np.asarray(np.nanmean(self.folds, axis=0))


@dataclass(frozen=True, eq=False)
class Dependence:
    """How well each feature can be foretold from the other columns: what `subgrove.dependence` returns.

    Tables are in the container of X, pandas for arrays.

    Attributes
    ----------
    found : tuple of FeatureDependence
        What the tables are made of.
    columns : tuple of str
        All columns of X.
    threshold : float
        Share of loss from which on a feature is held for dependent.
    settings : mapping
        What the forests were grown with.
    backend : str
        Whose tables are given.
    table : table
        A row for each feature: `feature`, `kind`, `n`, `explained` (share of loss explained by the other columns),
        `std_error`, `predictors` (the columns that make up 90 % of the share, and their parts of it),
        `sampler` ("marginal" will do, or the conditional one that is advised; empty if unknown) and `note`.
    matrix : table
        A row for each feature, a column for each column of X: `explained`, divided among the columns in proportion
        to what is lost when each is shuffled. A row adds up to `explained`, if that is above 0. NaN for a feature and
        itself.
    folds : table
        A row for each feature, repeat and half: `explained`.
    advice : tuple of str
        What follows for each dependent feature, in sentences.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> found = sg.dependence(X, features=["temp", "yr"], n_trees=50, random_state=1)
    >>> found.dependent
    ('temp',)
    >>> found.table["sampler"].tolist()
    ['subgroups', 'marginal']
    """

    found: tuple[FeatureDependence, ...]
    columns: tuple[str, ...]
    threshold: float
    settings: Mapping[str, Any]
    backend: Backend

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(each.feature for each in self.found)

    @property
    def dependent(self) -> tuple[str, ...]:
        """Features for which conditional methods are worth their while, the most dependent first."""
        chosen = [each for each in self.found if each.explained >= self.threshold]
        return tuple(each.feature for each in sorted(chosen, key=lambda each: -each.explained))

    @property
    def table(self) -> Any:
        """How well each feature is foretold, by which columns, and what follows."""
        columns = {
            "feature": list(self.features),
            "kind": [each.kind for each in self.found],
            "n": [each.n for each in self.found],
            "explained": [each.explained for each in self.found],
            "std_error": [each.std_error for each in self.found],
            "predictors": [each.named() for each in self.found],
            "sampler": [self._sampler(each) for each in self.found],
            "note": [each.note for each in self.found],
        }
        return make_table(self.backend, columns)

    @property
    def matrix(self) -> Any:
        """What each column tells of each feature."""
        head = "feature"
        while head in self.columns:
            head += "_"
        columns: dict[str, Any] = {head: list(self.features)}
        for name in self.columns:
            columns[name] = [each.shares.get(name, float("nan")) for each in self.found]
        return make_table(self.backend, columns)

    @property
    def folds(self) -> Any:
        """The share of loss explained in each half."""
        rows = [
            (each.feature, at // 2, at % 2, value) for each in self.found for at, value in enumerate(each.folds[:, 0])
        ]
        names = ("feature", "repeat", "half", "explained")
        return make_table(self.backend, {name: [row[at] for row in rows] for at, name in enumerate(names)})

    @property
    def advice(self) -> tuple[str, ...]:
        """What follows for each dependent feature."""
        by_name = {each.feature: each for each in self.found}
        return tuple(self._sentence(by_name[name]) for name in self.dependent)

    def _sampler(self, each: FeatureDependence) -> str:
        if np.isnan(each.explained):
            return ""
        if each.explained < self.threshold:
            return "marginal"
        return "imputation" if len(each.predictors) > FEW else "subgroups"

    def _sentence(self, each: FeatureDependence) -> str:
        by = f" by {each.named(parts=False)}" if each.predictors else ""
        said = f"{each.feature}: {each.explained:.0%} foretold{by}."
        if each.explained >= _WHOLE:
            return f"{said} Given these it can hardly vary: expect a conditional importance near 0."
        if self._sampler(each) == "imputation":
            return f"{said} Many columns at once: use imputation."
        return f"{said} Use subgroups."

    def __repr__(self) -> str:
        count = len(self.found)
        lines = [
            f"<Dependence of {count} feature{'s' * (count != 1)}: {len(self.dependent)} "
            f"foretold by at least {self.threshold:.0%}>"
        ]
        said = self.advice
        more = [f"  and {len(said) - _SHOWN} more"] if len(said) > _SHOWN else []
        return "\n".join([*lines, *(f"  {sentence}" for sentence in said[:_SHOWN]), *more])

    def _repr_html_(self) -> str:
        return html_of(self)
