"""Importance of a feature given more and more columns: from none (marginal) to all (conditional)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.html_views import ResultView
from subgrove._core.text import lines_of, quote, with_errors
from subgrove._data.to_containers import table_of_lines
from subgrove._importance.intervals import adjusted_p_values
from subgrove._importance.recompute import Block, ScoringSource, block_title, conditioning_blocks
from subgrove._importance.tables import ImportanceData, differences, overall_line
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, title


@dataclass(frozen=True, eq=False, repr=False)
class RelativeImportance(ResultView):
    """Importance of a feature for growing sets of conditioning columns, as returned by `ImportanceResult.relative`.

    Attributes
    ----------
    feature : str
        Its name.
    added : tuple of str
        The columns that each step adds; "" in the first.
    given : tuple of tuples of str
        The conditioning columns of each step.
    results : tuple of ImportanceResult
        One for each step.
    backend : str
        Library of the tables.

    Notes
    -----
    How to read it: the first row is the marginal importance, the last one the conditional importance. Where `estimate`
    falls, the feature shares importance with the added column, given the columns before it. `change` is the difference
    to the row above, with the standard error of the paired difference.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> within = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options)
    >>> within.relative("temp", order=["season", "hum"]).table["added"].tolist()[:2]
    ['', 'season']
    """

    feature: str
    added: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    results: tuple[ImportanceData, ...]
    backend: str = "pandas"

    @property
    def table(self) -> Any:
        """One row for each step (and loss): the columns, the importance, and the change from the step before."""
        lines = [line for loss in self.results[0].losses for line in self._lines(loss)]
        return table_of_lines(self.backend, lines)

    def with_level(self, level: float) -> RelativeImportance:
        """Return the same with intervals of another confidence level.

        Parameters
        ----------
        level : float
            Coverage of the intervals, between 0 and 1.
        """
        return replace(self, results=tuple(result.with_level(level) for result in self.results))

    def _lines(self, loss: str) -> list[dict[str, Any]]:
        several = {"loss": loss} if len(self.results[0].losses) > 1 else {}
        steps = [result.for_loss(loss) for result in self.results]
        lines: list[dict[str, Any]] = []
        for at, result in enumerate(steps):
            (line,) = adjusted_p_values([overall_line(result, result.scores[0], 0)])
            del line["feature"]
            noise = line.pop("noise")
            change, error = 0.0, 0.0
            if at:
                (paired,) = differences(result, steps[at - 1])
                change, error = paired["estimate"], paired["std_error"]
            if not result.per_row_losses[0]:
                error = np.nan
            step = {"step": at, "added": self.added[at], "given": ", ".join(self.given[at]), **several}
            lines.append({**step, **line, "change": change, "change_std_error": error, "noise": noise})
        return lines

    def __repr__(self) -> str:
        losses, names = self.results[0].losses, ["given nothing", *(f"+ {name}" for name in self.added[1:])]
        rows = self._lines(losses[0])
        numbers = with_errors([row["estimate"] for row in rows], [row["std_error"] for row in rows])
        lines = list(zip(names, numbers, strict=True))
        return lines_of(f"<RelativeImportance of {self.feature!r}: {', '.join(losses)}>", lines, most=len(lines))


def relative_steps(result: ImportanceData, source: ScoringSource, feature: Feature, order: Any) -> RelativeImportance:
    """Return the importance of a feature with the sampler fitted again for each set of columns."""
    others = tuple(name for name in source.names if name not in feature)
    if order is None:
        blocks, named = conditioning_blocks(source, feature, others), 0
    else:
        blocks, named = _blocks_in_order(order, feature, others)
    source.check_unchanged(result.settings["fingerprint"])
    given: list[tuple[str, ...]] = [()]
    for block in blocks:
        given.append((*given[-1], *block))
    steps = []
    for columns in given:
        score, n_rows = source.refitted(feature, columns, check=True)
        settings = {**result.settings, "given": {title(feature): list(columns)}, "n_rows_predicted": n_rows}
        scores = (source.of_losses(score, result.losses),)
        steps.append(replace(result, scores=scores, settings=settings, _source=None))
    added = ("", *(block_title(block, others=place >= named) for place, block in enumerate(blocks)))
    return RelativeImportance(title(feature), added, tuple(given), tuple(steps), result.backend)


def _blocks_in_order(order: Any, feature: Feature, others: Sequence[str]) -> tuple[tuple[Block, ...], int]:
    """Return the columns that each step adds, and how many of the steps the user named."""
    if isinstance(order, str) or not isinstance(order, Iterable):
        order = [order]
    # Labels of pandas columns may be numbers; as names they are text.
    blocks = tuple(
        (str(each),) if isinstance(each, str) or not isinstance(each, Iterable) else tuple(map(str, each))
        for each in order
    )
    names = [name for block in blocks for name in block]
    if own := [name for name in names if name in feature]:
        raise ParameterError(
            f"order names {quote(own)}, which is resampled itself: a feature cannot be conditional on itself."
        )
    if unknown := [name for name in names if name not in others]:
        raise ParameterError(f"order names {quote(unknown)}, but the other columns are {quote(others)}.")
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ParameterError(f"order names {quote(repeated)} more than once. Each column is added once.")
    unnamed = tuple(name for name in others if name not in names)
    return (*blocks, unnamed) if unnamed else blocks, len(blocks)
