"""The result of `fidelity`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import Floats
from subgrove._data.to_containers import Backend, make_table

UNCHANGED, MARGINAL = "unchanged", "marginal"
_MIN_GAP = 2.0  # smallest difference of the bounds, in standard errors, for which positions are defined


@dataclass(frozen=True, eq=False, repr=False)
class Fidelity:
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
        errors = _errors(values)
        pairs = [(i, k) for i in range(len(self.features)) for k in range(len(self.samplers))]
        columns: dict[str, Any] = {
            "feature": [self.features[i] for i, _ in pairs],
            "sampler": [self.samplers[k] for _, k in pairs],
            "n": [self.n] * len(pairs),
            "estimate": [_mean(values[i, k]) for i, k in pairs],
            "std_error": [float(errors[i, k]) for i, k in pairs],
            "position": [float(position[i, k]) for i, k in pairs],
            "position_std_error": [float(noise[i, k]) for i, k in pairs],
        }
        if self.auc is not None:
            columns["auc"] = [_mean(self.auc[i, k]) for i, k in pairs]
            columns["auc_std_error"] = [float(each) for each in _errors(self.auc).ravel()]
        columns["note"] = [self.notes.get((self.features[i], self.samplers[k]), "") for i, k in pairs]
        return make_table(self.backend, columns)

    @property
    def overall(self) -> Any:
        """One row for each sampler: means over the features that all samplers can resample, best first.

        `mean_rank` is the mean rank among the samplers, over these features and repeats (1 is best); `failed` counts
        the features that the sampler cannot resample. A sampler that failed for all features has no means and does not
        restrict the others. `position` is that of the mean estimate between the mean bounds, so features whose bounds
        are far apart have the largest weight.
        """
        able = ~np.isnan(self.squared_mmd[:, :, 0])  # a sampler that failed in one repeat is NaN in all
        usable = able.any(axis=0)
        common = able[:, usable].all(axis=1)
        n_common = int(common.sum())
        values = self.estimates[common].sum(axis=0) / (n_common or np.nan)
        positions = self._positions(values[None])[0][0]
        ranks = _mean_ranks(self.squared_mmd[common][:, usable])
        lines = []
        for rank, k in zip(ranks.tolist(), np.flatnonzero(usable).tolist(), strict=True):
            line: dict[str, Any] = {"sampler": self.samplers[k], "n_features": n_common, "estimate": _mean(values[k])}
            line |= {"position": float(positions[k]), "mean_rank": rank}
            if self.auc is not None:
                line["auc"] = _mean(self.auc[common, k].ravel())
            lines.append({**line, "failed": int((~able[:, k]).sum())})
        lines.sort(key=lambda line: -line["estimate"] if line["estimate"] == line["estimate"] else np.inf)
        for k in np.flatnonzero(~usable).tolist():
            empty = dict.fromkeys(lines[0], float("nan"))
            lines.append({**empty, "sampler": self.samplers[k], "n_features": 0, "failed": len(self.features)})
        return make_table(self.backend, {name: [line[name] for line in lines] for name in lines[0]})

    @property
    def repeats(self) -> Any:
        """One row for each feature, sampler and repeat."""
        where = list(np.ndindex(*self.squared_mmd.shape))
        columns: dict[str, Any] = {
            "feature": [self.features[i] for i, _, _ in where],
            "sampler": [self.samplers[k] for _, k, _ in where],
            "repeat": [r for _, _, r in where],
            "squared_mmd": self.squared_mmd.ravel(),
            "estimate": self.estimates.ravel(),
        }
        if self.auc is not None:
            columns["auc"] = self.auc.ravel()
        return make_table(self.backend, columns)

    @property
    def estimates(self) -> Floats:
        """-log of the squared MMD of each feature, sampler and repeat."""
        with np.errstate(divide="ignore"):
            estimates: Floats = -np.log(self.squared_mmd)
        return estimates

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
        text = f"<Fidelity of {', '.join(compared)}: {_count(len(self.features), 'feature')}"
        failed = f", {_count(len(self.notes), 'resampling')} failed" if self.notes else ""
        return f"{text}, {self.n} rows against {self.n_reference}{failed}>"

    def _repr_html_(self) -> str:
        return html_of(self)


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _errors(values: Floats) -> Floats:
    """Return standard errors of means over the last axis; NaN for a single value."""
    n = values.shape[-1]
    if n < 2:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        errors: Floats = values.std(axis=-1, ddof=1) / np.sqrt(n)
    return errors


def _mean_ranks(squared: Floats) -> Floats:
    """Return the mean rank of each sampler; ties share their mean rank."""
    from scipy.stats import rankdata

    if not len(squared):
        return np.full(squared.shape[1], np.nan)
    ranks: Floats = rankdata(squared, axis=1).mean(axis=(0, 2))
    return ranks


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
