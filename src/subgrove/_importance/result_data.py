"""The numbers that an importance result holds; tables, comparisons and explanations are read from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._importance.inference.variance_components import default_sources
from subgrove._scoring.feature_result import FeatureResult
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature


class Inputs(Protocol):
    """What a result was computed from, as far as it is held in memory."""

    @property
    def subgroups(self) -> Mapping[Feature, Partition]:
        """The subgroups that results of a feature are reported by."""


@dataclass(frozen=True, eq=False)
class ImportanceData:
    """Scores of features with the settings that they were computed with; `ImportanceResult` documents the fields."""

    scores: tuple[FeatureResult, ...]
    losses: tuple[str, ...]
    baseline: tuple[float, ...]
    settings: Mapping[str, Any]
    weights: Floats | None = None
    backend: str = "pandas"
    index: Any = field(default=None, repr=False)
    row_mask: Any = field(default=None, repr=False)
    per_row_losses: tuple[bool, ...] = ()
    level: float = 0.95
    sources: tuple[str, ...] | None = None
    predictions: Floats | None = field(default=None, repr=False)
    residuals: Floats | None = field(default=None, repr=False)
    _source: Inputs | None = field(default=None, repr=False)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in the order of the tables."""
        return tuple(score.title for score in self.scores)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.scores[0].n_rows

    @property
    def covered(self) -> tuple[str, ...]:
        """Sources of noise that standard errors, p-values and intervals cover."""
        return default_sources(self.settings) if self.sources is None else self.sources

    def loss_column(self, at: int) -> dict[str, str]:
        """Return the loss of a line of a table, where there are several."""
        return loss_column(self.losses, at)

    def with_level(self, level: float) -> Self:
        """Return the same result with intervals of another confidence level.

        Parameters
        ----------
        level : float
            Coverage of the intervals, between 0 and 1.
        """
        return replace(self, level=checked_level(level))

    def for_loss(self, loss: str) -> Self:
        """Return the result of one of several losses.

        Parameters
        ----------
        loss : str
            Its name, one of `losses`.
        """
        if loss not in self.losses:
            raise ParameterError(f"loss={loss!r} is not among the losses of this result: {', '.join(self.losses)}.")
        at = self.losses.index(loss)
        return replace(
            self,
            scores=tuple(score.for_loss(at) for score in self.scores),
            losses=(loss,),
            baseline=(self.baseline[at],),
            per_row_losses=(self.per_row_losses[at],),
        )

    def _computed_from(self, source: Inputs | None) -> Self:
        return replace(self, _source=source)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    def _reject_scores(self, what: str, needs: str) -> None:
        without = [loss for loss, per_row in zip(self.losses, self.per_row_losses, strict=True) if not per_row]
        if without:
            raise ParameterError(
                f"{what} needs {needs}, but {', '.join(without)} is a score of all rows together. "
                f"Read .overall or .repeats, or use .for_loss(...) of a loss that has a value for each row."
            )


def loss_column(losses: tuple[str, ...], at: int) -> dict[str, str]:
    """Return the loss of a line of a table, where there are several."""
    return {} if len(losses) == 1 else {"loss": losses[at]}


def checked_level(level: Any) -> float:
    """Return a confidence level; raise unless it is a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise ParameterError(f"level must be a number between 0 and 1; got {level!r}.")
    return float(level)
