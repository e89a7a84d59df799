"""The fidelity check of a resampled feature: are its rows realistic? On a few hundred rows, without the model.

Requirements this design meets:

- the redraw that is judged is the one that the model was asked about; no further draw is made;
- cost is bounded: at most 400 rows, 60 small trees, and some arrays of 400 x 400, whatever the number of rows;
- true redraws fail rarely, marginal redraws of a dependent feature nearly always (`docs/decisions`, 0014);
- what cannot be judged is "unknown", with the reason; it never stops what it belongs to.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._core.random import stream
from subgrove._data.replace_columns import Changes, Donors, Frames
from subgrove._data.table import Table, read_like
from subgrove._scoring.fidelity_check.encoding import PointEncoding, columns_with_missing
from subgrove._scoring.fidelity_check.two_sample import PairedRows, two_sample_test
from subgrove.samplers.base import Feature, title
from subgrove.samplers.redraw import ResampledFeature

Verdict = Literal["passed", "failed", "unknown"]

MAX_ROWS = 400
LEAST_ROWS = 50
"""Fewer rows are not judged."""
ENOUGH_ROWS = 100
"""With fewer rows a redraw may fail, but is not said to pass: too much would go unseen."""
MATERIAL = 0.55
"""AUC that the lower confidence limit must be above: a normal feature's importance is then a fifth too large."""
HALFWAY = 0.5
"""Place between real rows (0) and marginal redraws (1) above which a redraw fails."""
_LIMIT = 1.645  # standard errors below the AUC that its lower limit of 95 % is
_LARGE = 1e100  # scaled values beyond it have no exact squares
_SURE = 3.0  # times the noise that a discrepancy must be to count as one; its distribution has a heavy upper tail


@dataclass(frozen=True)
class FidelityCheck:
    """How well the redraw of a feature passes for real data.

    Attributes
    ----------
    verdict : {"passed", "failed", "unknown"}
        Whether redrawn rows pass for real ones; "unknown" if that could not be judged.
    reason : str
        Why, in words.
    auc : float
        Of a classifier that tells redrawn rows from real ones, in rows that it has not seen: 0.5 is not at all.
    auc_std_error : float
        Its standard error.
    mmd : float
        Squared MMD between its bounds: 0 is as real rows have it, 1 as marginal redraws have it. NaN if the two cannot
        be told apart, as for a feature that does not depend on the others.
    n : int
        Number of rows that it was judged on.
    """

    verdict: Verdict
    reason: str
    auc: float = float("nan")
    auc_std_error: float = float("nan")
    mmd: float = float("nan")
    n: int = 0


@dataclass(frozen=True, eq=False)
class FidelityChecker:
    """Judges redraws of any feature of a table.

    Attributes
    ----------
    frames : Frames
        The rows, in the user's container.
    chosen : int array
        Numbers of the rows that are looked at.
    table : Table
        These rows.
    seed : int
        What randomness starts from; draws of the importance have other streams.
    """

    frames: Frames
    chosen: Rows
    table: Table
    seed: int

    @classmethod
    def of(cls, frames: Frames, table: Table, weights: Floats | None, seed: int) -> FidelityChecker:
        """A checker for a table; of many rows some are chosen at random, in proportion to their weights."""
        n = table.n_rows
        chosen = np.arange(n)
        if n > MAX_ROWS:
            share = None if weights is None else weights / weights.sum()
            chosen = np.sort(stream(seed, "certificate").choice(n, MAX_ROWS, replace=False, p=share))
        some = table.rows(chosen)
        return cls(frames, chosen, some, seed)

    def first_draw(self, redraw: ResampledFeature) -> Table | str:
        """The feature in the chosen rows after the first draw of a redraw that the model is not asked about."""
        try:
            changes = next(redraw.draws())
        except Exception as error:  # as below: importance does without draws here, so they must not stop it
            return f"the feature could not be drawn: {error}"
        return self.read_draw(changes)

    def read_draw(self, changes: Changes) -> Table | str:
        """The feature in the chosen rows after a redraw; or why it cannot be read."""
        if len(self.chosen) < LEAST_ROWS:
            return f"there are {len(self.chosen)} rows, and {LEAST_ROWS} are needed to judge"
        columns = [column for column in self.table.columns if column.name in changes]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # whoever asks the model with these values tells of them
                part = {name: _part(column, self.chosen) for name, column in changes.items()}
                return read_like(self.frames.changed(self.chosen, part), columns)
        except Exception as error:  # the same values go to the model, where a fault is told of with all that is known
            return f"the redrawn values could not be read: {error}"

    def check(self, feature: Feature, drawn: Table | str | None) -> FidelityCheck:
        """The fidelity check of a resampled feature, as returned by `read_draw` or `first_draw`."""
        if drawn is None or isinstance(drawn, str):
            return FidelityCheck("unknown", drawn or "nothing was drawn", n=len(self.chosen))
        twins = self._twins(feature, drawn)
        if not all((np.abs(part.numbers) < _LARGE).all() for part in (twins.others, twins.real, twins.redrawn)):
            return FidelityCheck("unknown", "values are too large for distances", n=len(twins))
        auc, error, found = two_sample_test(twins, stream(self.seed, f"certificate of {title(feature)}"))
        dependent = found.marginal > _SURE * found.noise
        place = found.squared / found.marginal if dependent else float("nan")
        told = auc - _LIMIT * error > MATERIAL
        far = dependent and place > HALFWAY and found.squared > _SURE * found.noise
        verdict, reason = _verdict(told, far, auc, place, len(twins))
        return FidelityCheck(verdict, reason, auc, error, place, len(twins))

    def _twins(self, feature: Feature, drawn: Table) -> PairedRows:
        own = _only(self.table, feature)
        gaps, encoding = columns_with_missing([own, drawn]), PointEncoding.of(own)
        real, redrawn = (encoding.points(table, feature, gaps) for table in (own, drawn))
        rest = [name for name in self.table.names if name not in feature]
        return PairedRows(self._encoding.points(self.table, rest, self._gaps), real, redrawn)

    @cached_property
    def _encoding(self) -> PointEncoding:
        return PointEncoding.of(self.table)

    @cached_property
    def _gaps(self) -> frozenset[str]:
        return columns_with_missing([self.table])


def _verdict(told: bool, far: bool, auc: float, place: float, n: int) -> tuple[Verdict, str]:
    """Whether a redraw passes, and why."""
    if told:
        return "failed", f"a classifier tells redrawn rows from real ones (AUC {auc:.2f})"
    if far:
        return "failed", f"redrawn rows are {place:.0%} as far from real ones as marginal redraws are"
    if n < ENOUGH_ROWS:
        return "unknown", f"nothing speaks against it, but there are {n} rows, and {ENOUGH_ROWS} are needed to say so"
    if np.isnan(place):
        return "passed", "redrawn rows pass for real ones; the feature is not seen to depend on the others"
    return "passed", "redrawn rows pass for real ones"


def _part(column: Any, rows: Rows) -> Any:
    return column.part(rows) if isinstance(column, Donors) else column[rows]


def _only(table: Table, names: Feature) -> Table:
    """Some columns of a table, in its order."""
    places = zip(table.columns, table.positions(), strict=True)
    kept = [(column, at) for column, at in places if column.name in names]
    numbers = [at for column, at in kept if not column.is_nominal]
    codes = [at for column, at in kept if column.is_nominal]
    return Table(tuple(column for column, _ in kept), table.numbers[:, numbers], table.codes[:, codes])
