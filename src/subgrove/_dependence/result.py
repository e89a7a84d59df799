"""Result of `dependence`: how well each feature is predicted by the others, and by which."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from subgrove._core.html_views import ResultView
from subgrove._core.kinds import Floats
from subgrove._core.text import count_of, first_of, listing, percent
from subgrove._data.to_containers import Backend, make_table

FEW = 3  # columns that a tree of depth 2, the default, can split on
_MAIN_SHARE = 0.9  # share of the explained loss of the main predictors
_NOISE = 0.01  # smaller decreases of the explained loss are noise
_DETERMINED = 0.99
_NAMED = 3  # predictors listed in a table


@dataclass(frozen=True, eq=False, repr=False)
class FeatureDependence:
    """How well one feature is predicted by the other columns.

    Attributes
    ----------
    feature : str
        Name of the feature.
    kind : {"numeric", "ordered", "nominal"}
        Kind of the feature.
    n : int
        Number of rows with a value.
    columns : tuple of str
        Predictors.
    folds : float array (halves, 1 + columns)
        For each half of each repeat the held-out share of loss explained, then its decrease when each of the columns
        is permuted.
    note : str
        Remark, such as excluded rows.
    """

    feature: str
    kind: str
    n: int
    columns: tuple[str, ...]
    folds: Floats
    note: str

    @property
    def explained(self) -> float:
        """Share of the loss explained, mean over halves; NaN if it is undefined in all."""
        return float(self._means[0])

    @property
    def std_error(self) -> float:
        """Standard error of this mean, treating halves as independent."""
        values = self.folds[:, 0][~np.isnan(self.folds[:, 0])]
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")

    @cached_property
    def drops(self) -> dict[str, float]:
        """Decrease of `explained` when each column is permuted; it may exceed `explained`."""
        return dict(zip(self.columns, self._means[1:].tolist(), strict=True))

    @cached_property
    def shares(self) -> dict[str, float]:
        """`explained`, divided among the columns in proportion to `drops`.

        Drops below 1 % of the loss are treated as noise.
        """
        if np.isnan(self.explained):
            return dict.fromkeys(self.columns, float("nan"))
        known = {name: drop if drop >= _NOISE else 0.0 for name, drop in self.drops.items()}
        total = sum(known.values())
        return {name: max(self.explained, 0.0) * drop / total if total else 0.0 for name, drop in known.items()}

    @cached_property
    def predictors(self) -> tuple[str, ...]:
        """The fewest columns with 90 % of `explained`, strongest first."""
        positive = {name: share for name, share in self.shares.items() if share > 0}
        strongest = sorted(positive, key=lambda name: (-positive[name], self.columns.index(name)))
        parts = np.cumsum([positive[name] for name in strongest])
        return tuple(strongest[: int(np.searchsorted(parts, _MAIN_SHARE * sum(positive.values()) * (1 - 1e-12))) + 1])

    def named(self, *, parts: bool = True) -> str:
        """Return the main predictors as text, with or without their shares of `explained`."""
        named = [f"{name} ({self.shares[name]:.2f})" if parts else name for name in self.predictors]
        return first_of(named, most=_NAMED)

    def __repr__(self) -> str:
        return f"<FeatureDependence of {self.feature!r}: R2 {percent(self.explained)}, {self.n} rows>"

    @cached_property
    def _means(self) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the mean of an empty slice is NaN, as intended
            return np.asarray(np.nanmean(self.folds, axis=0))


@dataclass(frozen=True, eq=False)
class Dependence(ResultView):
    """How well each feature is predicted by the other columns: the result of `subgrove.dependence`.

    Tables are in the container of X, pandas for arrays.

    Attributes
    ----------
    found : tuple of FeatureDependence
        Result of each feature.
    columns : tuple of str
        All columns of X.
    threshold : float
        A feature counts as dependent from this share of explained loss on.
    settings : mapping
        Settings of the forests.
    backend : str
        Container of the tables.
    table : table
        A row for each feature: `feature`, `kind`, `n`, `explained` (share of loss explained by the other columns),
        `std_error`, `predictors` (the columns with 90 % of the share, and their shares),
        `sampler` ("marginal" if it is sufficient, else "auto", which is conditional; empty if unknown) and `note`.
    matrix : table
        A row for each feature, a column for each column of X: `explained`, divided among the columns in proportion
        to its decrease when each is permuted. A row sums to `explained`, if that is positive. NaN for a feature and
        itself.
    folds : table
        A row for each feature, repeat and half: `explained`.
    advice : tuple of str
        Recommendation for each dependent feature.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> found = sg.dependence(X, features=["temp", "yr"], n_trees=50, random_state=1)
    >>> found.dependent
    ('temp',)
    >>> found.table["sampler"].tolist()
    ['auto', 'marginal']
    """

    _tables = ("table", "matrix", "folds")

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
        """Dependent features, for which conditional methods are recommended, the most dependent first."""
        dependent = [each for each in self.found if each.explained >= self.threshold]
        return tuple(each.feature for each in sorted(dependent, key=lambda each: -each.explained))

    @property
    def table(self) -> Any:
        """R2 of each feature, its predictors and the recommended sampler."""
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
        """Share of each column in the prediction of each feature."""
        head = "feature"
        while head in self.columns:
            head += "_"
        columns: dict[str, Any] = {head: list(self.features)}
        for name in self.columns:
            columns[name] = [each.shares.get(name, float("nan")) for each in self.found]
        return make_table(self.backend, columns)

    @property
    def folds(self) -> Any:
        """Share of loss explained in each half."""
        rows = [
            (each.feature, at // 2, at % 2, value) for each in self.found for at, value in enumerate(each.folds[:, 0])
        ]
        names = ("feature", "repeat", "half", "explained")
        return make_table(self.backend, {name: [row[at] for row in rows] for at, name in enumerate(names)})

    @property
    def advice(self) -> tuple[str, ...]:
        """Recommendation for each dependent feature."""
        by_name = {each.feature: each for each in self.found}
        return tuple(self._sentence(by_name[name]) for name in self.dependent)

    def _sampler(self, each: FeatureDependence) -> str:
        if np.isnan(each.explained):
            return ""
        if each.explained < self.threshold:
            return "marginal"
        return "auto"

    def _sentence(self, each: FeatureDependence) -> str:
        by = f" by {each.named(parts=False)}" if each.predictors else ""
        finding = f"{each.feature}: {percent(each.explained)} explained{by}."
        if each.explained >= _DETERMINED:
            return f"{finding} Given these it hardly varies: expect a conditional importance near 0."
        if len(each.predictors) > FEW:
            return f"{finding} It depends on many columns: use the default sampler, 'auto', or 'imputation'."
        return f"{finding} Use the default sampler, 'auto', or 'subgroups'."

    def __repr__(self) -> str:
        dependent = f"{len(self.dependent)} with R2 of at least {percent(self.threshold)}"
        return listing(f"<Dependence of {count_of(len(self.found), 'feature')}: {dependent}>", self.advice)
