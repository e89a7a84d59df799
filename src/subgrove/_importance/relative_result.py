"""What `relative_importance` returns: importance, step by step, from no conditioning column to all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._data.result_tables import make_table
from subgrove._importance.result import ImportanceResult


@dataclass(frozen=True, eq=False, repr=False)
class RelativeImportance:
    """Importance of a feature for growing sets of conditioning columns.

    Attributes
    ----------
    feature : str
        Its name.
    added : tuple of str
        What each step adds; nothing in the first.
    given : tuple of tuples of str
        The columns of each step.
    results : tuple of ImportanceResult
        One for each step.
    backend : str
        Whose tables are given.

    Notes
    -----
    How to read it: the first row is the marginal importance, the last one the conditional importance. Where `estimate`
    falls, the column that was added tells part of what the feature tells, given the columns before it. `change` is
    the difference to the row above, with the standard error of the paired difference.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"]
    >>> asked = {"sampler": "subgroups", "loss": "absolute_error", "random_state": 1}
    >>> found = sg.relative_importance(model, test.X, test.y, "temp", train=train.X, **asked)
    >>> found
    <RelativeImportance of 'temp': absolute_error>
      given nothing               439.931  +- 45.2
      + season                    164.421  +- 31.6
      + hum                       157.436  +- 30.4
      + weather                   157.436  +- 30.4
      + wind                      157.436  +- 30.4
      + holiday                   157.436  +- 30.4
      + the other 3 columns       157.436  +- 30.4
    """

    feature: str
    added: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    results: tuple[ImportanceResult, ...]
    backend: str = "pandas"

    @property
    def table(self) -> Any:
        """One row for each step (and loss): the columns, the importance, and the change from the step before."""
        lines = [line for loss in self.results[0].losses for line in self._lines(loss)]
        several = len(self.results[0].losses) > 1
        names = [name for name in lines[0] if name != "loss" or several]
        return make_table(self.backend, {name: [line[name] for line in lines] for name in names})

    def with_level(self, level: float) -> RelativeImportance:
        """The same with intervals of another level.

        Parameters
        ----------
        level : float
            How often such intervals cover, between 0 and 1.
        """
        return replace(self, results=tuple(result.with_level(level) for result in self.results))

    def _lines(self, loss: str) -> list[dict[str, Any]]:
        steps = [replace(result.for_loss(loss), backend="pandas") for result in self.results]
        lines: list[dict[str, Any]] = []
        for at, result in enumerate(steps):
            (row,) = result.overall.to_dict("records")
            row.pop("feature")
            noise = row.pop("noise")
            change, error = 0.0, 0.0
            if at:
                (paired,) = result.compare(steps[at - 1]).to_dict("records")
                change, error = paired["estimate"], paired["std_error"]
            if not result.per_row_losses[0]:
                error = np.nan
            told = {"step": at, "added": self.added[at], "given": ", ".join(self.given[at])}
            lines.append({**told, "loss": loss, **row, "change": change, "change_std_error": error, "noise": noise})
        return lines

    def _repr_html_(self) -> str:
        return html_of(self)

    def __repr__(self) -> str:
        lines = [f"<RelativeImportance of {self.feature!r}: {', '.join(self.results[0].losses)}>"]
        names = ["given nothing", *(f"+ {name}" for name in self.added[1:])]
        width = max(map(len, names))
        for name, row in zip(names, self._lines(self.results[0].losses[0]), strict=True):
            lines.append(f"  {name:<{width}}  {row['estimate']:>12.6g}  +- {row['std_error']:.3g}")
        return "\n".join(lines)
