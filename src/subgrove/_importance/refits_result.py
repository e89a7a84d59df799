"""`RefitsResult`, returned by `importance_over_refits`: the estimate of each refit, and tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import Floats
from subgrove._data.to_containers import table_of_lines
from subgrove._importance.inference.intervals import adjusted_p_values, interval_columns
from subgrove._importance.inference.variance_components import SOURCES, label
from subgrove._importance.result_data import checked_level, loss_column
from subgrove._importance.storage import REFITS, read_values, readable, write_values

_MAX_SHOWN = 20  # features in the text of a result


@dataclass(frozen=True, eq=False)
class RefitsResult:
    """Importance of features for a model class: the mean over models fitted on random splits.

    Attributes
    ----------
    features : tuple of str
        Names of the features, in the order of the tables.
    losses : tuple of str
        Names of the losses.
    estimates : float array (losses, features, refits)
        Importance in each refit.
    mc_error : float array (losses, features)
        Monte Carlo error of the mean.
    baseline : tuple of float
        Mean baseline loss, one for each loss.
    settings : mapping
        How it was computed.
    backend : str
        Library of the tables.
    level : float
        Confidence level of the intervals.

    Notes
    -----
    `estimate` is the mean over refits, `std_error` the root of (1 / J + n_test / n_train) s², with s² the variance over
    the J refits. Test, interval and p-value are those of Student's t with J - 1 degrees of freedom.
    """

    features: tuple[str, ...]
    losses: tuple[str, ...]
    estimates: Floats
    mc_error: Floats
    baseline: tuple[float, ...]
    settings: Mapping[str, Any]
    backend: str = "pandas"
    level: float = 0.95

    @property
    def overall(self) -> Any:
        """One row for each feature (and loss): the mean over refits, with the noise of all sources."""
        n_refits = self.estimates.shape[2]
        ratio = 1.0 / n_refits + self.settings["n_test"] / self.settings["n_train"]
        errors = np.sqrt(ratio * self.estimates.var(axis=2, ddof=1))
        freedom = np.full(len(self.features), n_refits - 1.0)
        lines = []
        for at in range(len(self.losses)):
            columns = interval_columns(self.estimates[at].mean(axis=1), errors[at], freedom, self.level)
            for k, feature in enumerate(self.features):
                lines.append(
                    {
                        **loss_column(self.losses, at),
                        "feature": feature,
                        "n": int(self.settings["n_test"]),
                        **{name: float(values[k]) for name, values in columns.items()},
                        "mc_error": float(self.mc_error[at, k]),
                        "noise": label(SOURCES),
                    }
                )
        return table_of_lines(self.backend, adjusted_p_values(lines))

    @property
    def refits(self) -> Any:
        """One row for each feature and refit (and loss)."""
        lines = [
            {**loss_column(self.losses, at), "feature": feature, "refit": number, "estimate": float(value)}
            for at in range(len(self.losses))
            for k, feature in enumerate(self.features)
            for number, value in enumerate(self.estimates[at, k])
        ]
        return table_of_lines(self.backend, lines)

    def with_level(self, level: float) -> RefitsResult:
        """Return the same result with intervals of another confidence level.

        Parameters
        ----------
        level : float
            Coverage of the intervals, between 0 and 1.
        """
        return replace(self, level=checked_level(level))

    def save(self, path: str | Path) -> None:
        """Write the result as JSON; a file that exists is replaced once the new one is complete.

        Parameters
        ----------
        path : str or path
            Where to write, such as "refits.json".
        """
        write_values(REFITS, {one.name: getattr(self, one.name) for one in fields(self)}, path)

    @classmethod
    def load(cls, path: str | Path) -> RefitsResult:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        """
        with readable(path):
            return cls(**read_values(REFITS, path))

    def __repr__(self) -> str:
        lines = [f"<RefitsResult: {len(self.features)} features, {self.estimates.shape[2]} refits>"]
        found = self._largest_first()
        shown, width = found[:_MAX_SHOWN], max(map(len, self.features))
        lines += [
            f"  {line['feature']:<{width}}  {line['estimate']:>12.6g}  +- {line['std_error']:.3g}" for line in shown
        ]
        return "\n".join([*lines, *([f"  ... and {len(found) - _MAX_SHOWN} more"] if len(found) > _MAX_SHOWN else [])])

    def _repr_html_(self) -> str:
        return html_of(self)

    def _largest_first(self) -> list[dict[str, Any]]:
        """Return the lines of `overall` for the first loss."""
        table = replace(self, backend="pandas").overall
        table = table[table["loss"] == self.losses[0]] if "loss" in table else table
        lines: list[dict[str, Any]] = table.sort_values("estimate", ascending=False, kind="stable").to_dict("records")
        return lines
