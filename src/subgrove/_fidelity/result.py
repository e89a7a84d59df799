"""The result of `fidelity`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from subgrove._core.html_views import ResultView
from subgrove._core.kinds import Floats
from subgrove._core.text import count_of
from subgrove._data.to_containers import Backend, make_table, table_of_lines

UNCHANGED, MARGINAL = "unchanged", "marginal"
_MIN_GAP = 2.0  # smallest difference of the bounds, in standard errors, for which positions are defined


@dataclass(frozen=True, eq=False, repr=False)
class Fidelity(ResultView):
    """Realism of resampled rows, as returned by `subgrove.fidelity`.

    Tables are frames of the same library as the test rows, pandas for arrays.

    Attributes
    ----------
    features : tuple of str
        Names of the features, in the order of the tables.
    samplers : tuple of str
        Names of the samplers; "unchanged" is the first, "marginal" the last.
    squared_mmd : float array (features, samplers, repeats)
        Squared MMD between reference and resampled rows; NaN where a sampler failed.
    auc : float array (features, samplers, repeats) or None
        Held-out AUC of a classifier for resampled against reference rows; None with `classifier=False`.
    notes : mapping
        (feature, sampler) -> reason why the sampler could not resample the feature.
    n, n_reference : int
        Number of resampled rows and of reference rows in each repeat.
    settings : mapping
        Settings of the computation: repeats, seed, numbers of rows.
    backend : str
        Library of the tables.

    Notes
    -----
    How to read it: `estimate` is -log of the squared MMD, so larger is better, and the difference of two estimates is
    the log of a ratio. Unchanged test rows are the upper bound. A sampler no better than "marginal" ignores the
    dependence of the feature on other columns. `position` is the position between these bounds: 0 is marginal, 1 is
    unchanged. It is NaN if the bounds differ by less than two standard errors, as for a feature that is independent of
    the others: any sampler is sufficient there. Noise can push a position slightly outside of 0 to 1; far below 0, rows
    are less realistic than permuted ones.

    `auc` is the held-out AUC of a classifier for resampled against real rows; 0.5 means that they are
    indistinguishable. It can detect differences that the MMD, which weights all columns equally, misses, above all
    with many columns.

    Standard errors cover the random splits and draws, for the given test rows. All samplers share the same splits, so
    `position_std_error` is more informative about their differences than `std_error`.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> options = {"features": "temp", "classifier": False, "random_state": 1}
    >>> fid = sg.fidelity(train.X, test.X, samplers=["subgroups"], **options)
    >>> fid.table[["feature", "sampler", "n", "estimate", "position"]].round(2)
      feature    sampler    n  estimate  position
    0    temp  unchanged  109      5.18       1.0
    1    temp  subgroups  109      5.11       0.7
    2    temp   marginal  109      4.95       0.0
    """

    _tables = ("table", "overall", "repeats")

    features: tuple[str, ...]
    samplers: tuple[str, ...]
    squared_mmd: Floats
    auc: Floats | None
    notes: Mapping[tuple[str, str], str]
    n: int
    n_reference: int
    settings: Mapping[str, Any]
    backend: Backend = "pandas"

    @property
    def table(self) -> Any:
        """One row for each feature and sampler."""
        values, (position, noise) = self.estimates, self._positions(self.estimates)
        pairs = list(product(self.features, self.samplers))
        columns: dict[str, Any] = {
            "feature": [feature for feature, _ in pairs],
            "sampler": [sampler for _, sampler in pairs],
            "n": [self.n] * len(pairs),
        }
        numbers = {"estimate": values.mean(axis=2), "std_error": _errors(values)}
        numbers |= {"position": position, "position_std_error": noise}
        if self.auc is not None:
            numbers |= {"auc": self.auc.mean(axis=2), "auc_std_error": _errors(self.auc)}
        columns |= {name: each.ravel() for name, each in numbers.items()}
        return make_table(self.backend, {**columns, "note": [self.notes.get(pair, "") for pair in pairs]})

    @property
    def overall(self) -> Any:
        """One row for each sampler: means over the `n_features` features that it can resample, best first.

        `position` is that of its mean estimate between the mean bounds of the same features, so that samplers with
        different features can be compared; features whose bounds are far apart have the largest weight. `mean_rank` is
        the mean rank among the samplers that can resample a feature, over features and repeats (1 is best). `estimate`
        is larger for features that depend little on others: compare it only if `n_features` is the same. `failed`
        counts the features that the sampler cannot resample.
        """
        able = ~np.isnan(self.squared_mmd[:, :, 0])  # a sampler that failed in one repeat is NaN in all
        ranks, lines = _ranks(self.squared_mmd), []
        for k, (name, own) in enumerate(zip(self.samplers, able.T, strict=True)):
            n = int(own.sum())
            values = self.estimates[own].sum(axis=0) / (n or np.nan)
            line: dict[str, Any] = {"sampler": name, "n_features": n, "estimate": _mean(values[k])}
            line |= {
                "position": float(self._positions(values[None])[0][0, k]),
                "mean_rank": _mean(ranks[own, k].ravel()),
            }
            if self.auc is not None:
                line["auc"] = _mean(self.auc[own, k].ravel())
            lines.append({**line, "failed": len(own) - n})
        last = float("inf")
        lines.sort(key=lambda line: tuple(last if np.isnan(v) else v for v in (-line["position"], line["mean_rank"])))
        return table_of_lines(self.backend, lines)

    @property
    def repeats(self) -> Any:
        """One row for each feature, sampler and repeat."""
        where = product(self.features, self.samplers, range(self.squared_mmd.shape[2]))
        columns: dict[str, Any] = dict(zip(("feature", "sampler", "repeat"), zip(*where, strict=True), strict=True))
        columns |= {"squared_mmd": self.squared_mmd.ravel(), "estimate": self.estimates.ravel()}
        if self.auc is not None:
            columns["auc"] = self.auc.ravel()
        return make_table(self.backend, columns)

    @property
    def estimates(self) -> Floats:
        """-log of the squared MMD of each feature, sampler and repeat."""
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(self.squared_mmd))

    @property
    def positions(self) -> Floats:
        """Position of each sampler for each feature between marginal (0) and unchanged (1)."""
        return self._positions(self.estimates)[0]

    def _positions(self, values: Floats) -> tuple[Floats, Floats]:
        """Return positions of estimates (features, samplers, repeats) between the bounds, and their standard errors.

        Both use differences to marginal in the same repeat, which cancels the noise that the samplers share. A position
        is a ratio of means; its standard error is that of numerator - position * denominator (delta method).
        """
        gain = values - values[:, [self.samplers.index(MARGINAL)]]
        most = gain[:, [self.samplers.index(UNCHANGED)]]
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = most.mean(axis=2)
            gap = np.where((gap > _MIN_GAP * np.nan_to_num(_errors(most))) & np.isfinite(gap), gap, np.nan)
            positions: Floats = gain.mean(axis=2) / gap
            noise: Floats = _errors(gain - positions[:, :, None] * most) / gap
        return positions, noise

    def __repr__(self) -> str:
        compared = [name for name in self.samplers if name not in (UNCHANGED, MARGINAL)]
        text = f"<Fidelity of {', '.join(compared)}: {count_of(len(self.features), 'feature')}"
        failed = f", {count_of(len(self.notes), 'resampling')} failed" if self.notes else ""
        return f"{text}, {self.n} rows against {self.n_reference}{failed}>"


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _errors(values: Floats) -> Floats:
    """Return standard errors of means over the last axis; NaN for a single value."""
    n = values.shape[-1]
    if n < 2:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(n))


def _ranks(squared: Floats) -> Floats:
    """Return the rank of each sampler among those that can resample a feature; ties share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(squared, axis=1, nan_policy="omit"))
