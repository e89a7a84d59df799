"""The tables of an importance result.

Reading a table predicts nothing. Tables come in the library of the user's own table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.to_containers import make_table, table_of_lines
from subgrove._importance.calibration import CALIBRATION_COLUMNS, calibration_lines
from subgrove._importance.intervals import adjusted_p_values, reject_sampler_source
from subgrove._importance.tables import (
    CHOICE_COLUMNS,
    FIDELITY_COLUMNS,
    ImportanceData,
    choice_lines,
    component_lines,
    fidelity_lines,
    overall_line,
    quantile_lines,
    repeat_lines,
    subgroup_lines,
)
from subgrove._scoring.feature_result import with_rows
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import title


class ImportanceTables(ImportanceData):
    """Tables of the scores of features."""

    @property
    def overall(self) -> Any:
        """One row for each feature (and loss): its importance over all rows."""
        lines = [overall_line(self, score, at) for at in range(len(self.losses)) for score in self.scores]
        return table_of_lines(self.backend, adjusted_p_values(lines))

    @property
    def by_subgroup(self) -> Any:
        """One row for each feature and subgroup (and loss), with the rule of the subgroup."""
        self._reject_scores("by_subgroup", "a value for each subgroup")
        reject_sampler_source(self.covered)
        per_score = [subgroup_lines(self, score, at) for at in range(len(self.losses)) for score in self.scores]
        return table_of_lines(self.backend, adjusted_p_values([line for lines in per_score for line in lines]))

    @property
    def per_row(self) -> Any:
        """One row for each row of the user's table, one column for each feature: the mean increase of its loss.

        Its mean, weighted by `row_weights`, is the estimate in `overall`.
        """
        self._reject_scores("per_row", "a value for each row")
        columns = {}
        for at, loss in enumerate(self.losses):
            for score in with_rows(self.scores, "per_row"):
                name = score.title if len(self.losses) == 1 else f"{score.title}: {loss}"
                columns[name] = self._expanded(score.rows[at])
        return make_table(self.backend, columns, self.index)

    @property
    def row_weights(self) -> Any:
        """One row for each row of the user's table, one column for each feature: the weight of the row in `overall`.

        1 for every row, unless `sample_weight` was passed or the result is calibrated.
        """
        columns = {}
        for score in with_rows(self.scores, "row_weights"):
            weights = np.ones(len(score.code)) if self.weights is None else self.weights
            own = weights if score.calibration is None else score.calibration.weights
            columns[score.title] = np.nan_to_num(self._expanded(own))
        return make_table(self.backend, columns, self.index)

    @property
    def repeats(self) -> Any:
        """One row for each feature and repeat (and loss)."""
        return table_of_lines(self.backend, repeat_lines(self))

    def over_repeats(self, *, quantiles: Sequence[float] = (0.05, 0.95), by_subgroup: bool = False) -> Any:
        """Return mean, median and quantiles over repeats: the Monte Carlo noise, as in the paper's tables.

        Parameters
        ----------
        quantiles : sequence of float
            Which quantiles.
        by_subgroup : bool
            Whether there is a row for each subgroup instead of one for each feature.
        """
        for level in quantiles:
            if not isinstance(level, int | float | np.floating) or not 0 <= level <= 1:
                raise ParameterError(f"quantiles must be numbers from 0 to 1; got {level!r}.")
        if by_subgroup:
            self._reject_scores("over_repeats(by_subgroup=True)", "a value for each subgroup")
        return table_of_lines(self.backend, quantile_lines(self, quantiles, by_subgroup=by_subgroup))

    @property
    def subgroups(self) -> dict[str, Partition]:
        """Feature -> the subgroups of `by_subgroup`, to assign rows to or to draw effects in.

        Features without a single tree are not in it: those resampled from all rows, by a forest, or by a tree for each
        fold. A result that was loaded or unpickled has none.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> model = lambda X: 100 * X["temp"]
        >>> imp = sg.importance(model, test.X, test.y, train=train.X, features=["temp"], random_state=1)
        >>> imp.subgroups["temp"]
        <Partition of 'temp': 4 subgroups by season, hum>
        """
        partitions = {} if self._source is None else self._source.subgroups
        return {title(feature): partition for feature, partition in partitions.items()}

    @property
    def variance_components(self) -> Any:
        """One row for each feature (and loss): the standard error due to each source of noise, and the largest."""
        return table_of_lines(self.backend, component_lines(self))

    @property
    def fidelity_checks(self) -> Any:
        """One row for each feature: whether its resampled rows are realistic, and why.

        `auc` is that of a classifier of resampled against real rows, 0.5 if it cannot separate them. `mmd` is their
        distance, 1 being that of marginal resampling. `fidelity` is "passed", "failed" or "unknown". Empty if
        `importance` was called with check_fidelity=False.
        """
        return table_of_lines(self.backend, fidelity_lines(self.scores), FIDELITY_COLUMNS)

    @property
    def choices(self) -> Any:
        """One row for each feature and candidate: what `sampler="auto"` compared and selected.

        `score` is the held-out score of a candidate (CRPS of numbers, log score of levels; smaller is better),
        `score_gap` the difference to the best, with its `std_error`; `complexity` the number of terms and splits. The
        least complex candidate within one standard error of the best is selected. Empty for other samplers.
        """
        return table_of_lines(self.backend, choice_lines(self), CHOICE_COLUMNS)

    @property
    def calibration(self) -> Any:
        """One row for each feature (and loss) of a result of `calibrated`: what calibration changed.

        `estimate` and `std_error` are those of `overall`, without the Monte Carlo error; `uncalibrated_estimate` and
        `uncalibrated_std_error` are those of the plain mean. `columns` predict the contribution of a row to the
        importance; where there is none, the weights are 1.
        """
        columns = [self.loss_column(at) for at in range(len(self.losses))]
        return table_of_lines(self.backend, calibration_lines(self.scores, columns), CALIBRATION_COLUMNS)

    def _expanded(self, values: Floats) -> Floats:
        """Return values of the rows that were used, with NaN for those of weight 0."""
        if self.row_mask is None:
            return values
        every = np.full(len(self.row_mask), np.nan)
        every[self.row_mask] = values
        return every
