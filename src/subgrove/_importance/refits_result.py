"""What `importance_over_refits` returns: the estimate of each refit, and tables read from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._core.files import write_text
from subgrove._core.html_views import html_of
from subgrove._core.kinds import Floats
from subgrove._data.result_tables import table_of_lines
from subgrove._importance.inference.intervals import adjusted_p_values, interval_columns
from subgrove._importance.inference.variance_components import SOURCES, label
from subgrove._importance.storage import packed, unpacked
from subgrove._importance.tables import loss_column
from subgrove.exceptions import FormatError, ParameterError

_SHOWN = 20  # features in the text of a result
_KIND = "subgrove importance over refits"


@dataclass(frozen=True, eq=False)
class RefitsResult:
    """Importance of features for a way of fitting models.

    Attributes
    ----------
    features : tuple of str
        Names of the features, in the order of the tables.
    losses : tuple of str
        Names of the losses.
    estimates : float array (losses, features, refits)
        Importance in each refit.
    mc_error : float array (losses, features)
        Standard error of the mean that is due to the draws.
    baseline : tuple of float
        Mean loss of the rows as they are, one for each loss.
    settings : mapping
        How it was computed.
    backend : str
        Whose tables are given.
    level : float
        Level of the intervals.

    Notes
    -----
    `estimate` is the mean over refits, `std_error` the root of (1 / J + n_test / n_train) s², with s² the variance over
    the J refits. Test, interval and p-value are those of Student's t with J - 1 degrees of freedom.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> bike = sg.datasets.bike()
    >>> tree = DecisionTreeRegressor(min_samples_leaf=20)
    >>> X = bike.X[["temp", "wind"]]
    >>> found = sg.importance_over_refits(tree, X, bike.y, n_refits=4, random_state=1)
    >>> found.refits.groupby("feature").size().to_dict()
    {'temp': 4, 'wind': 4}
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
        """The same result with intervals of another level.

        Parameters
        ----------
        level : float
            How often such intervals cover, between 0 and 1.
        """
        if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
            raise ParameterError(f"level must be a number between 0 and 1; got {level!r}.")
        return replace(self, level=float(level))

    def save(self, path: str | Path) -> None:
        """Write the result as JSON; a file that is there is replaced once the new one is complete.

        Parameters
        ----------
        path : str or path
            Where to write, such as "refits.json".
        """
        values = {
            "kind": _KIND,
            "format": 1,
            "features": list(self.features),
            "losses": list(self.losses),
            "estimates": packed(self.estimates),
            "mc_error": packed(self.mc_error),
            "baseline": list(self.baseline),
            "settings": dict(self.settings),
            "backend": self.backend,
            "level": self.level,
        }
        write_text(Path(path), json.dumps(values, allow_nan=True))

    @classmethod
    def load(cls, path: str | Path) -> RefitsResult:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path
            A file that `save` wrote.
        """
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
            if values.pop("kind") != _KIND or values.pop("format") != 1:
                raise ValueError("it is of another kind or format")
            return cls(**{name: unpacked(value) for name, value in values.items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{path} is not a file that `RefitsResult.save` wrote: {error!r}.") from error

    def __repr__(self) -> str:
        lines = [f"<RefitsResult: {len(self.features)} features, {self.estimates.shape[2]} refits>"]
        found = self._largest_first()
        shown, width = found[:_SHOWN], max(map(len, self.features))
        lines += [
            f"  {line['feature']:<{width}}  {line['estimate']:>12.6g}  +- {line['std_error']:.3g}" for line in shown
        ]
        return "\n".join([*lines, *([f"  ... and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])])

    def _repr_html_(self) -> str:
        return html_of(self)

    def _largest_first(self) -> list[dict[str, Any]]:
        """The lines of `overall` for the first loss."""
        table = replace(self, backend="pandas").overall
        table = table[table["loss"] == self.losses[0]] if "loss" in table else table
        lines: list[dict[str, Any]] = table.sort_values("estimate", ascending=False, kind="stable").to_dict("records")
        return lines
