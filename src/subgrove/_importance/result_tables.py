"""The tables of an importance result.

Reading a table predicts nothing. Tables come in the library of the user's own table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.validate import true_or_false
from subgrove._data.to_containers import make_table, table_of_lines
from subgrove._importance.intervals import SAMPLER, adjusted_p_values, known_sources, overall_components
from subgrove._importance.tables import ImportanceData, overall_line, sampler_choices, subgroup_columns, subgroup_lines
from subgrove._scoring.estimate_variance import overall_variance
from subgrove._scoring.feature_result import with_rows
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import title


class ImportanceTables(ImportanceData):
    """Tables of the scores of features."""

    @property
    def overall(self) -> Any:
        """One row for each feature (and loss): its importance over all rows."""
        lines = [overall_line(self, score, at) for at, score, _ in self._each()]
        return table_of_lines(self.backend, adjusted_p_values(lines))

    @property
    def by_subgroup(self) -> Any:
        """One row for each feature and subgroup (and loss), with the rule of the subgroup."""
        self._reject_scores("by_subgroup", "a value for each subgroup")
        if SAMPLER in self.covered:
            raise ParameterError(
                "by_subgroup cannot cover the noise of 'sampler': a sampler fitted on other rows has other subgroups. "
                "Read it with .with_noise('test rows', 'Monte Carlo'), or read .overall."
            )
        lines = [line for at, score, _ in self._each() for line in subgroup_lines(self, score, at)]
        return table_of_lines(self.backend, adjusted_p_values(lines))

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

        1 for every row, unless `sample_weight` was passed or the result is calibrated. Relative weights sum to Kish's
        effective number of rows.
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
        lines = [
            {**names, "repeat": repeat, "estimate": float(value)}
            for at, score, names in self._each()
            for repeat, value in enumerate(score.overall[at])
        ]
        return table_of_lines(self.backend, lines)

    def over_repeats(self, *, quantiles: Sequence[float] = (0.05, 0.95), by_subgroup: bool = False) -> Any:
        """Return mean, median and quantiles over repeats: the Monte Carlo noise, as in the paper's tables.

        Parameters
        ----------
        quantiles : sequence of float
            Which quantiles.
        by_subgroup : bool
            Whether there is a row for each subgroup instead of one for each feature.
        """
        if not isinstance(quantiles, Iterable) or getattr(quantiles, "shape", None) == ():
            raise ParameterError(f"quantiles must be a list of numbers from 0 to 1; got {quantiles!r}.")
        for level in quantiles:
            if not isinstance(level, int | float | np.floating) or not 0 <= level <= 1:
                raise ParameterError(f"quantiles must be numbers from 0 to 1; got {level!r}.")
        if true_or_false("by_subgroup", by_subgroup):
            self._reject_scores("over_repeats(by_subgroup=True)", "a value for each subgroup")
        lines = []
        for at, score, names in self._each():
            for k in range(len(score.rules)) if by_subgroup else [None]:
                values = score.overall[at] if k is None else score.repeats[at, :, k]
                line = names | ({} if k is None else subgroup_columns(score, k))
                line |= {"mean": float(values.mean()), "median": float(np.median(values))}
                lines.append(line | {f"q{100 * level:g}": float(np.quantile(values, level)) for level in quantiles})
        return table_of_lines(self.backend, lines)

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
        sources = known_sources(self.scores, self.settings)
        lines = []
        for at, score, names in self._each():
            components = overall_components(score, at, self.weights, per_row=self.per_row_losses[at])
            errors = {name: float(np.sqrt(components[name][0])) for name in sources}
            known = {name: error for name, error in errors.items() if error > 0}
            largest = max(known, key=lambda name: known[name]) if known else "none"
            lines.append({**names, **errors, "largest": largest})
        return table_of_lines(self.backend, lines)

    @property
    def fidelity_checks(self) -> Any:
        """One row for each feature: whether its resampled rows are realistic, and why.

        `auc` is that of a classifier of resampled against real rows, 0.5 if it cannot separate them. `mmd` is their
        distance, 1 being that of marginal resampling. `p_value` is that of a permutation test of whether real values
        are exchangeable with resampled ones, `size` that of their difference, in standard deviations. `sampler_change`
        is how much the importance changes if the sampler is fitted on a quarter of its training rows, in standard
        errors. `fidelity` is "passed", "uncertain sampler" (no difference, but a change above 0.4), "small difference"
        (significant, but with a size below 0.3 and an AUC below 0.75), "failed" or "unknown". Empty if `importance`
        was called with check_fidelity=False.
        """
        measures = ("n", "auc", "auc_std_error", "mmd", "p_value", "size", "sampler_change")
        lines = []
        for score in self.scores:
            if (check := score.fidelity_check) is not None:
                numbers = {name: getattr(check, name) for name in measures}
                lines.append({"feature": score.title, **numbers, "fidelity": check.verdict, "reason": check.reason})
        return table_of_lines(self.backend, lines, ("feature", *measures, "fidelity", "reason"))

    @property
    def choices(self) -> Any:
        """One row for each feature and candidate: what `sampler="auto"` compared and selected.

        `score` is the held-out score of a candidate (CRPS of numbers, log score of levels; smaller is better),
        `score_gap` the difference to the best, with its `std_error`; `complexity` the number of terms and splits. The
        least complex candidate within one standard error of the best is selected. Empty for other samplers.
        """
        columns = ("feature", "sampler", "score", "score_gap", "std_error", "complexity", "selected")
        lines: list[dict[str, Any]] = []
        for name, choices in sampler_choices(self).items():
            for fold, choice in enumerate(choices):
                own = {"fold": fold} if len(choices) > 1 else {}
                lines += [{"feature": name, **own, **line} for line in choice.lines()]
        return table_of_lines(self.backend, lines, columns)

    @property
    def calibration(self) -> Any:
        """One row for each feature (and loss) of a result of `calibrated`: what calibration changed.

        `estimate` and `std_error` are those of `overall`, without the Monte Carlo error; `uncalibrated_estimate` and
        `uncalibrated_std_error` are those of the plain mean. `columns` predict the contribution of a row to the
        importance; where there is none, the weights are 1.
        """
        columns = ("estimate", "std_error", "uncalibrated_estimate", "uncalibrated_std_error", "columns")
        lines = []
        for at, score, names in self._each():
            if score.calibration is not None:
                own: list[Any] = []
                for one in (score, score.uncalibrated()):
                    own += [float(one.overall[at].mean()), float(np.sqrt(overall_variance(one, None)[at]))]
                own.append(", ".join(score.calibration.columns))
                lines.append(names | dict(zip(columns, own, strict=True)))
        return table_of_lines(self.backend, lines, ("feature", *columns))

    def _expanded(self, values: Floats) -> Floats:
        """Return values of the rows that were used, with NaN for those of weight 0."""
        if self.row_mask is None:
            return values
        every = np.full(len(self.row_mask), np.nan)
        every[self.row_mask] = values
        return every
