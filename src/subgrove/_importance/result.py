"""What `importance` and `loco` return: numbers that are kept, and tables read from them.

Reading asks the model for nothing. Tables come in the container of the user's own table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import Floats
from subgrove._data.result_tables import make_table, table_of_lines
from subgrove._data.table import read_table
from subgrove._importance.comparison import differences
from subgrove._importance.explanation import CHOICE_COLUMNS, Explanation, choice_lines, explained
from subgrove._importance.fidelity_columns import certificate_lines
from subgrove._importance.inference.calibration import (
    CALIBRATION_COLUMNS,
    calibrated_scores,
    calibration_lines,
    read_additional_rows,
    reject_uncalibratable,
)
from subgrove._importance.inference.conditional_independence import tested
from subgrove._importance.inference.intervals import adjusted_p_values
from subgrove._importance.inference.variance_components import (
    default_sources,
    known_sources,
    overall_parts,
    read_sources,
    reject_partition,
)
from subgrove._importance.recompute import ScoringSource
from subgrove._importance.storage import read_result, write_result
from subgrove._importance.tables import (
    loss_column,
    over_draws,
    overall_line,
    shown,
    subgroup_columns,
    subgroup_lines,
)
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import title

if TYPE_CHECKING:
    from subgrove._importance.gap.result import Gap


@dataclass(frozen=True, eq=False)
class ImportanceResult:
    """Importance of features: overall, by subgroup, by row.

    Attributes
    ----------
    scores : tuple of FeatureScores or SummedScores
        What was kept of each feature; the latter of data in partitions, whose rows are not kept.
    losses : tuple of str
        Names of the losses.
    baseline : tuple of float
        Loss of the rows as they are, one for each loss.
    settings : mapping
        How it was computed: sampler, repeats, seed, versions, a fingerprint of the data, and what the model was asked.
    weights : float array or None
        How often each row counts.
    backend : str
        Whose tables are given: "pandas", "polars", "pyarrow".
    index : object
        Labels of the rows, if the table had a pandas index.
    row_mask : bool array or None
        Which rows have a weight above 0, if some have not.
    per_row_losses : tuple of bool
        Whether each loss has a value for each row.
    level : float
        Level of the intervals.
    sources : tuple of str, or None
        Sources of noise that tables cover, chosen by `with_noise`; None for those of the test rows and of the draws.
    predictions, residuals : float arrays (n, K), or None
        Baseline predictions and their residuals, if both are numbers; `independence_test` needs them.

    Notes
    -----
    How to read it: `estimate` is how much the loss grows when the feature is redrawn; with a conditional sampler,
    how much it grows although the feature keeps to what the other columns tell about it. 0 means that the model does
    not need the feature beyond the others. `std_error`, the interval and the p-value cover the sources of noise that
    the column `noise` names: the test rows and the draws, for this model and these subgroups, unless `with_noise` chose
    others. `mc_error` is the part of the draws. `p_holm` and `p_bh` are p-values adjusted for the number of lines.

    Where the column `fidelity` is "failed", resampled rows are not realistic: the model extrapolates, and the estimate
    is not a conditional importance. `fidelity_checks` has the reason.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> imp = sg.importance(model, test.X, test.y, train=train.X, features=["temp", "yr"], random_state=1)
    >>> imp.overall.columns.tolist()[:8]
    ['feature', 'n', 'estimate', 'std_error', 'statistic', 'p_value', 'p_holm', 'p_bh']
    >>> list(imp.by_subgroup["rule"])[:2]
    ['season in {WINTER}', 'season in {SPRING, FALL}']
    """

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
    _source: Any = field(default=None, repr=False)

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

    @property
    def overall(self) -> Any:
        """One row for each feature (and loss): its importance over all rows."""
        lines = [overall_line(self, score, at) for at in range(len(self.losses)) for score in self.scores]
        return table_of_lines(self.backend, adjusted_p_values(lines))

    @property
    def by_subgroup(self) -> Any:
        """One row for each feature and subgroup (and loss), with the rule of the subgroup."""
        self._reject_scores("by_subgroup", "a value for each subgroup")
        reject_partition(self.covered)
        lines: list[dict[str, Any]] = []
        for at in range(len(self.losses)):
            for score in self.scores:
                lines += subgroup_lines(self, score, at)
        return table_of_lines(self.backend, adjusted_p_values(lines))

    @property
    def subgroups(self) -> dict[str, Partition]:
        """Feature -> the subgroups that `by_subgroup` tells it by, to assign rows to or to draw effects in.

        Features without a tree of their own are not in it: those that are redrawn from all rows, by a forest, or by a
        tree for each fold. A result that was loaded or unpickled has none.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> model = lambda X: 100 * X["temp"]
        >>> imp = sg.importance(model, test.X, test.y, train=train.X, features=["temp"], random_state=1)
        >>> imp.subgroups["temp"]
        <Partition of 'temp': 4 subgroups by season, hum>
        >>> sg.effect(model, test.X, "temp", subgroups=imp.subgroups["temp"])
        <Effect of 'temp': pdp, 4 curves, 20 points>
        """
        told = {} if self._source is None else self._source.told
        return {title(feature): partition for feature, partition in told.items()}

    @property
    def variance_components(self) -> Any:
        """One row for each feature (and loss): the standard error due to each source of noise, and the largest."""
        lines = []
        for at in range(len(self.losses)):
            for score in self.scores:
                parts = overall_parts(score, at, self.weights, per_row=self.per_row_losses[at])
                errors = {name: float(np.sqrt(parts[name][0])) for name in known_sources(self.scores, self.settings)}
                known = {name: error for name, error in errors.items() if error > 0}
                largest = max(known, key=lambda name: known[name]) if known else "none"
                lines.append({**loss_column(self.losses, at), "feature": score.title, **errors, "largest": largest})
        return table_of_lines(self.backend, lines)

    def calibrated(self, X: Any) -> ImportanceResult:
        """Return the result with test rows weighted so that they resemble all rows, those of X included.

        The estimand is the same and the noise of the test rows is smaller, as with a control variate in a survey:
        where columns of a row predict its contribution to the importance, the known columns of further rows tell how
        typical the test rows are.

        Parameters
        ----------
        X : table
            Further rows with the columns of the test rows, such as the training rows. No target is needed, and the
            model does not predict them.

        Returns
        -------
        ImportanceResult
            With calibrated estimates and standard errors; `calibration` compares them with the plain ones, and
            `row_weights` has the weights. `compare` and `explain_gap` use plain means, also of a calibrated result.

        Notes
        -----
        This assumes that X and the test rows have the same distribution, as the parts of a random split have. With
        covariate shift (a split by time or by group) the estimate describes a mixture of both populations; a warning
        is given where the shift is large in columns that matter.

        Examples
        --------
        >>> import subgrove as sg
        >>> linear = sg.simulate.scenario("linear")
        >>> train, test = linear.sample(2000, random_state=1), linear.sample(400, random_state=2)
        >>> imp = sg.importance(
        ...     linear.model, test.X, test.y, train=train.X, features=["x1"], n_repeats=20, random_state=1
        ... )
        >>> line = imp.calibrated(train.X).calibration.iloc[0]
        >>> f"by {line['columns']}: {line['uncalibrated_std_error']:.2f}, then {line['std_error']:.2f}"
        'by x2: 0.37, then 0.27'
        """
        reject_uncalibratable(self.weights, self.losses, self.per_row_losses)
        scores = [score.uncalibrated() for score in with_rows(self.scores, "calibrated")]
        if not isinstance(self._source, ScoringSource):
            raise ParameterError(
                "Calibration needs the test rows, which a result that was loaded or unpickled, or that is of loco, "
                "does not have. Compute it again with importance."
            )
        table = read_table(self._source.rows, lenient=True)
        further = read_additional_rows(X, table)
        seed, uses_training_donors = self.settings["random_state"], self._source.uses_training_donors
        return replace(
            self,
            scores=calibrated_scores(scores, table, further, seed, uses_training_donors=uses_training_donors),
            settings={**self.settings, "calibrated": {"further_rows": further.n_rows}},
        )

    @property
    def calibration(self) -> Any:
        """One row for each feature (and loss) of a result of `calibrated`: what calibration changed.

        `estimate` and `std_error` are those of `overall`, without the Monte Carlo error; `uncalibrated_estimate` and
        `uncalibrated_std_error` are those of the plain mean. `columns` predict the contribution of a row to the
        importance; where there is none, the weights are 1.
        """
        columns = [loss_column(self.losses, at) for at in range(len(self.losses))]
        return table_of_lines(self.backend, calibration_lines(self.scores, columns), CALIBRATION_COLUMNS)

    @property
    def fidelity_checks(self) -> Any:
        """One row for each feature: whether its redrawn rows pass for real data, and why.

        `auc` is that of a classifier which tells redrawn rows from real ones, 0.5 if it cannot. `mmd` is how far they
        are from real ones, 1 being as far as marginal redraws. `fidelity_check` is "passed", "failed" or "unknown", and
        `reason` says why. There is no row where `importance` was called with check_fidelity=False.
        """
        names = ("feature", "n", "auc", "auc_std_error", "mmd", "fidelity", "reason")
        return table_of_lines(self.backend, certificate_lines(self.scores), names)

    @property
    def choices(self) -> Any:
        """One row for each feature and candidate: what `sampler="auto"` compared, and what it chose.

        `score` is the held-out score of a candidate (CRPS of numbers, log score of levels; smaller is better),
        `score_gap` the difference to the best, with its `std_error`; `complexity` the number of terms and splits. The
        least complex candidate within one standard error of the best is selected. Empty for other samplers.
        """
        return table_of_lines(self.backend, choice_lines(self), CHOICE_COLUMNS)

    def explain(self, feature: str | Sequence[str], *, marginal: ImportanceResult | None = None) -> Explanation:
        """The story of a feature in plain sentences: how it was redrawn and why, and what it costs where.

        Parameters
        ----------
        feature : str or list of str
            Its name, or the names of a group.
        marginal : ImportanceResult, optional
            The marginal importance of the same model and rows: adds the sentences of `explain_gap`.

        Returns
        -------
        Explanation
            `.sentences`; printed, it is the text.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> def model(X):
        ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
        >>> imp = sg.importance(model, test.X, test.y, train=train.X, loss="absolute_error", random_state=1)
        >>> print(imp.explain("yr").sentences[0])
        yr is redrawn from all training rows: neither a tree nor a sum of columns tells anything about it.
        """
        return explained(self, feature, marginal)

    @property
    def per_row(self) -> Any:
        """One row for each row of the user's table, one column for each feature: the mean increase of its loss.

        Its mean, weighted by `row_weights`, is the estimate in `overall`.
        """
        self._reject_scores("per_row", "a value for each row")
        scores = with_rows(self.scores, "per_row")
        columns = {}
        for at, loss in enumerate(self.losses):
            for score in scores:
                name = score.title if len(self.losses) == 1 else f"{score.title}: {loss}"
                columns[name] = self._expanded(score.rows[at])
        return make_table(self.backend, columns, self.index)

    @property
    def row_weights(self) -> Any:
        """One row for each row of the user's table, one column for each feature: the weight of the row in `overall`.

        1 for every row, unless `sample_weight` was passed or the result is calibrated.
        """
        scores = with_rows(self.scores, "row_weights")
        given = np.ones(len(scores[0].code)) if self.weights is None else self.weights
        columns = {
            score.title: np.nan_to_num(self._expanded(given if made is None else made.weights))
            for score, made in ((score, score.calibration) for score in scores)
        }
        return make_table(self.backend, columns, self.index)

    @property
    def repeats(self) -> Any:
        """One row for each feature and repeat (and loss)."""
        lines = [
            {**loss_column(self.losses, at), "feature": score.title, "repeat": repeat, "estimate": float(value)}
            for at in range(len(self.losses))
            for score in self.scores
            for repeat, value in enumerate(score.overall[at])
        ]
        return table_of_lines(self.backend, lines)

    def over_repeats(self, *, quantiles: Sequence[float] = (0.05, 0.95), by_subgroup: bool = False) -> Any:
        """Mean, median and quantiles over repeats: the noise of the draws, as the paper's tables show it.

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
        lines = []
        for at in range(len(self.losses)):
            for score in self.scores:
                parts = range(len(score.rules)) if by_subgroup else [None]
                for k in parts:
                    values = score.overall[at] if k is None else score.repeats[at, :, k]
                    name = {} if k is None else subgroup_columns(score, k)
                    lines.append(
                        {
                            **loss_column(self.losses, at),
                            "feature": score.title,
                            **name,
                            **over_draws(values, quantiles),
                        }
                    )
        return table_of_lines(self.backend, lines)

    def with_level(self, level: float) -> ImportanceResult:
        """The same result with intervals of another level.

        Parameters
        ----------
        level : float
            How often such intervals cover, between 0 and 1.
        """
        if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
            raise ParameterError(f"level must be a number between 0 and 1; got {level!r}.")
        return replace(self, level=float(level))

    def with_noise(self, *sources: str) -> ImportanceResult:
        """The same result, whose standard errors, p-values and intervals cover exactly these sources of noise.

        Parameters
        ----------
        sources : str
            One or more of "test rows", "Monte Carlo" and "sampler" (which `partition_resamples=` of `importance` makes
            known). Their variances are added.

        Examples
        --------
        >>> import subgrove as sg
        >>> test = sg.datasets.bike()
        >>> model = lambda X: 100 * X["temp"]
        >>> imp = sg.importance(model, test.X, test.y, sampler="marginal", features=["temp"], random_state=1)
        >>> [imp.with_noise(*sources).overall["noise"][0] for sources in (["test rows"], ["Monte Carlo", "test rows"])]
        ['test rows', 'test rows + Monte Carlo']
        """
        return replace(self, sources=read_sources(sources, known_sources(self.scores, self.settings)))

    def independence_test(self, X: Any, *, by_subgroup: bool = False) -> Any:
        """Does what the model takes from a feature tell of y, given the other columns? A test that doubts the sampler.

        A sampler that was fitted is a little off, and with enough rows the p-values of `overall` tell so: they reject
        for features that are irrelevant given the others. Here the move of the predictions is set against what they
        leave of y, after both were predicted from the other columns; an error of the sampler counts only as far as
        that prediction misses it as well.

        Parameters
        ----------
        X : table
            The rows that importance was computed on, once more; results do not keep them.
        by_subgroup : bool, default False
            Whether there is a row for each subgroup instead of one for each feature.

        Returns
        -------
        table
            Columns as `overall` has them. `estimate` is the importance for the squared error (of probabilities: the
            Brier score), whatever the losses are.

        Examples
        --------
        >>> import subgrove as sg
        >>> linear = sg.simulate.scenario("linear")
        >>> train, test = linear.sample(400, random_state=1), linear.sample(300, random_state=2)
        >>> imp = sg.importance(linear.model, test.X, test.y, train=train.X, features=["x1", "x2"], random_state=1)
        >>> (imp.independence_test(test.X)["p_holm"] < 0.05).tolist()
        [True, True]
        """
        asked = None if self.predictions is None or self.residuals is None else (self.predictions, self.residuals)
        lines = tested(
            with_rows(self.scores, "test"),
            asked,
            X,
            self.weights,
            self.row_mask,
            self.settings,
            self.level,
            by_subgroup,
        )
        return table_of_lines(self.backend, adjusted_p_values(lines))

    def for_loss(self, loss: str) -> ImportanceResult:
        """The result of one of several losses.

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

    def compare(self, other: ImportanceResult) -> Any:
        """Differences to another result, feature by feature: this one minus the other.

        Features and losses that both have are compared, without calibration. If both are of the same rows, the
        standard error is that of the paired differences; with the same random state and subgroups, as for two models,
        the draws are the same as well, and the noise that they share cancels. The p-value is two-sided.

        Parameters
        ----------
        other : ImportanceResult
            For example the marginal importance of the same model.
        """
        if not isinstance(other, ImportanceResult):
            raise ParameterError(f"other must be an ImportanceResult; got {type(other).__name__}.")
        return table_of_lines(self.backend, differences(self, other))

    def explain_gap(
        self, marginal: ImportanceResult, feature: Any = None, *, loss: str | None = None, average: bool = False
    ) -> Gap:
        """From the marginal importance of a feature to the one here, one conditioning column at a time.

        Parameters
        ----------
        marginal : ImportanceResult
            What `importance(..., sampler="marginal")` gave for the same model, rows and loss.
        feature : str or list of str, optional
            Which feature, or group; it may be left out if there is one only.
        loss : str, optional
            Which loss, if there are several; the first if not given.
        average : bool, default False
            Columns are added in the order in which the feature's tree splits on them, those nearest to the root first.
            True gives the mean over all orders instead (Shapley values).

        Returns
        -------
        Gap
            `.steps`, which add up to marginal less conditional importance; `.sentences`, which tell them in words.

        Notes
        -----
        The steps between the two results ask the model again: `n_repeats` redraws of all rows for each set of columns
        between none and all, and 100 rows to see that it is the same model. With one column or none nothing is asked.
        `docs/gap.md` says which sets these are, also for samplers without trees.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> model = lambda X: 2000 + 100 * X["temp"]
        >>> asked = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
        >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **asked)
        >>> marginal = sg.importance(model, test.X, test.y, sampler="marginal", **asked)
        >>> for sentence in imp.explain_gap(marginal, "temp").sentences:
        ...     print(sentence)
        Shuffled alone, temp costs 440 (absolute error).
        season already tells 63 % of that; hum tells nothing more that is clear of noise (2 %).
        36 % is what temp alone knows, as far as its subgroups can tell.
        """
        from subgrove._importance.gap.gap import gap_between

        return gap_between(self, marginal, feature, loss, average=average)

    def with_sampler_variance(self, n_resamples: int = 20, *, n_jobs: int | None = None) -> ImportanceResult:
        """Return the result with the variance due to the training rows of the sampler.

        The sampler is fitted again on random halves of `train`, and the importance is computed with each. Include this
        source of noise in intervals with `.with_noise("test rows", "Monte Carlo", "sampler")`.

        Parameters
        ----------
        n_resamples : int, default 20
            Number of halves. Each needs as many predictions as the importance itself, with at most 10 repeats.
        n_jobs : int, optional
            Number of processes.
        """
        from subgrove._importance.inference.sampler_variance import read_resamples

        n = read_resamples(n_resamples, self.settings["trained_on"])
        if not hasattr(self._source, "sampler_variance"):
            raise ParameterError(
                "with_sampler_variance needs the model and the rows, which results from a file, of large data and of "
                "models on a device do not hold. Call importance with a table in memory, then this method."
            )
        learned = self.settings["trained_on"] != "nothing"
        scores, model = self._source.sampler_variance(self.scores, n, learned=learned, n_jobs=n_jobs)
        counts = {"n_rows_predicted": model.n_rows, "n_calls": model.n_calls}
        predicted = {name: self.settings[name] + count for name, count in counts.items()}
        return replace(self, scores=tuple(scores), settings={**self.settings, **predicted, "sampler_resamples": n})

    def _computed_from(self, source: Any) -> ImportanceResult:
        return replace(self, _source=source)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    def save(self, path: str | Path) -> None:
        """Write the result as JSON; a file that is there is replaced once the new one is complete.

        Labels of the rows (a pandas index) are kept if they are text or whole numbers.

        Parameters
        ----------
        path : str or path
            Where to write, such as "importance.json".

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import subgrove as sg
        >>> test = sg.datasets.bike()
        >>> model = lambda X: 100 * X["temp"]
        >>> imp = sg.importance(model, test.X, test.y, sampler="marginal", features=["temp"], random_state=1)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "importance.json"
        >>> imp.save(path)
        >>> sg.ImportanceResult.load(path).overall.equals(imp.overall)
        True
        """
        write_result(self, path)

    @classmethod
    def load(cls, path: str | Path) -> ImportanceResult:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path
            A file that `save` wrote.
        """
        return cls(**read_result(path))

    def __repr__(self) -> str:
        return shown(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    def _expanded(self, values: Floats) -> Floats:
        """Values of the rows that were used, NaN for those of weight 0."""
        if self.row_mask is None:
            return values
        every = np.full(len(self.row_mask), np.nan)
        every[self.row_mask] = values
        return every

    def _reject_scores(self, what: str, needs: str) -> None:
        without = [loss for loss, per_row in zip(self.losses, self.per_row_losses, strict=True) if not per_row]
        if without:
            raise ParameterError(
                f"{what} needs {needs}, but {', '.join(without)} is a score of all rows together. "
                f"Read .overall or .repeats, or use .for_loss(...) of a loss that has a value for each row."
            )
