"""Results of importance for plots: validated, sorted, and described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from subgrove._importance import ImportanceResult
from subgrove._importance.tables import MARK, NOT_REALISTIC, ImportanceData
from subgrove.exceptions import ParameterError
from subgrove.plots._rows import RowSeries
from subgrove.plots._text import unique_label

Result = TypeVar("Result", bound=ImportanceData)


@dataclass(frozen=True, eq=False)
class ImportanceRows:
    """Features from the largest to the smallest estimate, and what each result says of them.

    Attributes
    ----------
    features : tuple of str
        Names.
    given : tuple of tuples of str
        For each feature the columns that it is conditioned on.
    series : tuple of Series
        Estimates and intervals of each result.
    label : str
        Label of the axis.
    levels : tuple of float
        Level of the intervals of each result; none for a score of all rows together.
    noise : tuple of str
        Sources of variance that the intervals of each result cover.
    """

    features: tuple[str, ...]
    given: tuple[tuple[str, ...], ...]
    series: tuple[RowSeries, ...]
    label: str
    levels: tuple[float, ...]
    noise: tuple[str, ...] = ()

    def first(self, n: int) -> ImportanceRows:
        """The first features only."""
        series = tuple(one.first(n) for one in self.series)
        return replace(self, features=self.features[:n], given=self.given[:n], series=series)


def read_results(argument: str, result: Any, others: Sequence[Any]) -> dict[str, ImportanceResult]:
    """Label -> result."""
    if isinstance(result, Mapping):
        if others or not result:
            raise ParameterError(
                f"{argument} is a mapping from label to result: put all results into it, at least one."
            )
        check_each(argument, result)
        return {str(label): one for label, one in result.items()}
    results = (result, *others)
    for one in results:
        if not isinstance(one, ImportanceResult):
            raise ParameterError(
                f"{argument} must be an ImportanceResult, which importance returns, or a mapping from label to one; "
                f"got {type(one).__name__}."
            )
    found: dict[str, ImportanceResult] = {}
    for one in results:
        name = str(one.settings.get("sampler") or one.settings.get("method") or "importance")
        found[unique_label(name, found)] = one
    return found


def check_each(argument: str, results: Mapping[Any, Any]) -> None:
    """Raise if a mapping has values other than results."""
    for label, one in results.items():
        if not isinstance(one, ImportanceResult):
            raise ParameterError(f"{argument}[{label!r}] must be an ImportanceResult; got {type(one).__name__}.")


def one_loss(result: Result, loss: str | None) -> Result:
    """A result of one loss whose tables are pandas frames."""
    return replace(result.for_loss(result.losses[0] if loss is None else loss), backend="pandas")


def importance_rows(results: Mapping[str, ImportanceResult], loss: str | None) -> ImportanceRows:
    """Return what is drawn of some results."""
    name = loss if loss is not None else next(iter(results.values())).losses[0]
    single = [one_loss(result, name) for result in results.values()]
    tables = [result.overall.set_index("feature") for result in single]
    names = _in_order([table["estimate"] for table in tables])
    series = []
    for label, table in zip(results, tables, strict=True):
        found = table.reindex(names)
        estimate, low, high = found[["estimate", "conf_low", "conf_high"]].to_numpy(float).T
        fails = (found["fidelity"] == "failed").to_numpy(bool) if "fidelity" in found else None
        series.append(RowSeries(label, estimate, low, high, fails))
    levels = tuple(result.level for result in single if result.per_row_losses[0])
    noise = tuple(" + ".join(result.covered) for result in single if result.per_row_losses[0])
    given = tuple(_conditioning(name, single) for name in names)
    return ImportanceRows(tuple(names), given, tuple(series), loss_label(single[0]), levels, noise)


def _in_order(estimates: Sequence[Any]) -> list[str]:
    """Features by the estimate of the first result that has them; those without an estimate last."""
    found: dict[str, float] = {}
    for one in estimates:
        for name, value in one.items():
            found.setdefault(name, float(value))
    return sorted(found, key=lambda name: -np.inf if np.isnan(found[name]) else found[name], reverse=True)


def _conditioning(name: str, results: Sequence[ImportanceResult]) -> tuple[str, ...]:
    """The columns that a feature is conditioned on, in the first result in which it is."""
    for result in results:
        for score in result.scores:
            if score.title == name and score.conditioning:
                return score.conditioning
    return ()


def loss_label(result: ImportanceData) -> str:
    """Return the label of the axis; scores may decrease when predictions get worse."""
    change = "increase" if result.per_row_losses[0] else "worsening"
    return f"{change} of {result.losses[0].replace('_', ' ')}"


def interval_note(shown: ImportanceRows) -> str:
    """Return which sources of variance the intervals cover."""
    if not shown.levels:
        return f"no intervals: {shown.label.removeprefix('worsening of ')} is a score of all rows together"
    return interval_text(shown.levels, shown.noise)


def fidelity_note(shown: ImportanceRows, mark: str = MARK) -> str:
    """Return the meaning of the mark of unrealistic resampled rows; "" if there is none."""
    return f"; {mark} if {NOT_REALISTIC}" if any(one.marked.any() for one in shown.series) else ""


def interval_text(levels: Sequence[float], noise: Sequence[str]) -> str:
    """Return what intervals of some levels cover."""
    shown = " and ".join(f"{100 * level:g} %" for level in dict.fromkeys(levels))
    return f"{shown} intervals, covering {' or '.join(dict.fromkeys(noise))}"
