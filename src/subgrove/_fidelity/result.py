"""What `fidelity` returns: numbers that are kept, and tables read from them. It is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import Floats
from subgrove._data.result_tables import Backend, make_table

UNCHANGED, MARGINAL = "unchanged", "marginal"
_SURE = 2.0  # standard errors that the bounds must be apart for a place between them to mean something


@dataclass(frozen=True, eq=False, repr=False)
class Fidelity:
    """How close redrawn rows stay to the data: what `subgrove.fidelity` returns.

    Tables are in the container of the test rows, pandas for arrays.

    Attributes
    ----------
    features : tuple of str
        Names of the features, in the order of the tables.
    samplers : tuple of str
        Names of the samplers; "unchanged" is the first, "marginal" the last.
    squared_mmd : float array (features, samplers, repeats)
        Squared MMD between reference rows and redrawn rows; NaN where a sampler failed.
    auc : float array (features, samplers, repeats) or None
        Held-out AUC of telling redrawn rows from reference rows; None if it was not asked for.
    notes : mapping
        (feature, sampler) -> why the sampler could not redraw the feature.
    n, n_reference : int
        Number of rows that are redrawn, and of rows that they are compared with, in each repeat.
    settings : mapping
        How it was computed: repeats, seed, number of rows given.
    backend : str
        Whose tables are given.

    Notes
    -----
    How to read it: `estimate` is -log of the squared MMD, so larger is better, and the difference of two estimates is
    the log of a ratio. No sampler can be expected to do better than leaving rows as they are ("unchanged"), and one
    that does no better than "marginal" keeps nothing of what the other columns tell. `position` says where between
    these two a sampler stands: 0 is marginal, 1 is unchanged. It is NaN if the two bounds are not clearly apart (two
    standard errors), as for a feature that depends on no other: any sampler will do there. Noise may put a sampler a
    little outside of 0 to 1; a sampler far below 0 makes rows that are worse than those of a permutation.

    `auc` is how well a classifier tells redrawn rows from real ones that it has not seen: 0.5 is not at all. It may see
    what MMD, which weighs all columns alike, does not, above all with many columns.

    Standard errors cover the noise of halving the rows and of drawing, for these test rows. All samplers are given the
    same halves, so `position_std_error` tells more about their differences than `std_error` does.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> found = sg.fidelity(train.X, test.X, samplers=["subgroups"], features="temp", classifier=False, random_state=1)
    >>> found.table[["feature", "sampler", "n", "estimate", "position"]].round(2)
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
        values, (position, noise) = self.estimates, self._placed(self.estimates)
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
        """One row for each sampler: means over the features that all samplers could redraw, best first.

        `mean_rank` is the mean over these features and repeats of the rank among the samplers, 1 being the best;
        `failed` counts the features that the sampler could not redraw. A sampler that could redraw none has no means,
        and does not keep others from having theirs. `position` is that of the mean estimate between the mean bounds,
        so features whose bounds are far apart count most.
        """
        able = ~np.isnan(self.squared_mmd[:, :, 0])  # a sampler that failed once has no number at all
        judged = able.any(axis=0)
        common = able[:, judged].all(axis=1)
        n_common = int(common.sum())
        values = self.estimates[common].sum(axis=0) / (n_common or np.nan)
        positions = self._placed(values[None])[0][0]
        ranks = _mean_ranks(self.squared_mmd[common][:, judged])
        lines = []
        for rank, k in zip(ranks.tolist(), np.flatnonzero(judged).tolist(), strict=True):
            line: dict[str, Any] = {"sampler": self.samplers[k], "n_features": n_common, "estimate": _mean(values[k])}
            line |= {"position": float(positions[k]), "mean_rank": rank}
            if self.auc is not None:
                line["auc"] = _mean(self.auc[common, k].ravel())
            lines.append({**line, "failed": int((~able[:, k]).sum())})
        lines.sort(key=lambda line: -line["estimate"] if line["estimate"] == line["estimate"] else np.inf)
        for k in np.flatnonzero(~judged).tolist():
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
        """Where each sampler stands for each feature between marginal, 0, and unchanged, 1."""
        return self._placed(self.estimates)[0]

    def _placed(self, values: Floats) -> tuple[Floats, Floats]:
        """Positions of estimates (features, samplers, repeats) between their bounds, and their standard errors.

        Both come from what samplers gain over marginal in the same repeat, so the noise of halving goes out as far as
        it is common to all. A position is a ratio of two means; its noise is that of the numerator less the position
        times the denominator.
        """
        gain = values - values[:, [self.samplers.index(MARGINAL)]]
        most = gain[:, [self.samplers.index(UNCHANGED)]]
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = most.mean(axis=2)
            gap = np.where((gap > _SURE * np.nan_to_num(_errors(most))) & np.isfinite(gap), gap, np.nan)
            positions: Floats = gain.mean(axis=2) / gap
            noise: Floats = _errors(gain - positions[:, :, None] * most) / gap
        return positions, noise

    def __repr__(self) -> str:
        kept = [name for name in self.samplers if name not in (UNCHANGED, MARGINAL)]
        text = f"<Fidelity of {', '.join(kept)}: {_count(len(self.features), 'feature')}"
        failed = f", {_count(len(self.notes), 'redraw')} failed" if self.notes else ""
        return f"{text}, {self.n} rows against {self.n_reference}{failed}>"

    def _repr_html_(self) -> str:
        return html_of(self)


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _errors(values: Floats) -> Floats:
    """Standard errors of means over the last axis; NaN if there is one value only."""
    n = values.shape[-1]
    if n < 2:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        errors: Floats = values.std(axis=-1, ddof=1) / np.sqrt(n)
    return errors


def _mean_ranks(squared: Floats) -> Floats:
    """Mean rank of each sampler; equal ones share the mean of their ranks."""
    from scipy.stats import rankdata

    if not len(squared):
        return np.full(squared.shape[1], np.nan)
    ranks: Floats = rankdata(squared, axis=1).mean(axis=(0, 2))
    return ranks


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
