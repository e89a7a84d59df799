"""`ImportanceResult`, returned by `importance` and `loco`: its tables, and further analyses of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from subgrove._core.validate import number_in
from subgrove._data.table import read_table
from subgrove._data.to_containers import table_of_lines
from subgrove._importance.calibration import calibrated_scores, read_additional_rows, reject_uncalibratable
from subgrove._importance.conditioning_steps import RelativeImportance, gap_between, relative_steps
from subgrove._importance.explanation import Explanation, explained
from subgrove._importance.gap_result import Gap
from subgrove._importance.independence_test import ImportanceTests
from subgrove._importance.intervals import known_sources, read_sources
from subgrove._importance.recompute import stored_inputs, with_sampler_variance
from subgrove._importance.storage import StoredResult
from subgrove._importance.tables import differences, result_text, score_of
from subgrove._scoring.feature_result import with_rows
from subgrove.exceptions import ParameterError


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceResult(ImportanceTests, StoredResult):
    """Importance of features: overall, by subgroup, by row.

    Attributes
    ----------
    scores : tuple of FeatureResult
        Stored numbers of each feature; of large data without values of single rows.
    losses : tuple of str
        Names of the losses.
    baseline : tuple of float
        Baseline loss, one for each loss.
    settings : mapping
        How it was computed: sampler, repeats, random state, versions, a fingerprint of the data, rows predicted.
    weights : float array or None
        Sample weights.
    backend : str
        Library of the tables: "pandas", "polars", "pyarrow".
    index : object
        Labels of the rows, if the table had a pandas index.
    row_mask : bool array or None
        Which rows have a weight above 0, if some have not.
    per_row_losses : tuple of bool
        Whether each loss has a value for each row.
    level : float
        Confidence level of the intervals.
    sources : tuple of str, or None
        Sources of noise that tables cover, chosen by `with_noise`; None for test rows and Monte Carlo draws.
    predictions, residuals : float arrays (n, K), or None
        Baseline predictions and their residuals, if both are numbers; `independence_test` needs them.

    Notes
    -----
    How to read it: `estimate` is the increase of the loss when the feature is resampled; with a conditional sampler,
    when it is resampled given the other columns. 0 means that the model does not need the feature beyond the others.
    `std_error`, the interval and the p-value cover the sources of noise in the column `noise`: the test rows and the
    Monte Carlo draws, for this model and these subgroups, unless `with_noise` chose others. `mc_error` is the Monte
    Carlo error. `p_holm` and `p_bh` are p-values adjusted for the number of rows of the table.

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

    _tables = ("overall",)
    _kind = "importance"

    def __getitem__(self, feature: str | Sequence[str]) -> ImportanceResult:
        """Return the result of one feature, a group (by its name or its members), or a list of features.

        Adjusted p-values of the result are adjusted for the features that it has.

        Examples
        --------
        >>> import subgrove as sg
        >>> test = sg.datasets.bike()
        >>> imp = sg.importance(lambda X: 100 * X["temp"], test.X, test.y, sampler="marginal", random_state=1)
        >>> imp["temp"].features, imp[["temp", "hum"]].features
        (('temp',), ('temp', 'hum'))
        """
        members = {frozenset(score.feature) for score in self.scores}
        several = isinstance(feature, list) and frozenset(map(str, feature)) not in members
        return replace(self, scores=tuple(score_of(self.scores, each) for each in (feature if several else [feature])))

    def calibrated(self, X: Any) -> ImportanceResult:
        """Return the result with test rows weighted so that they resemble all rows, those of X included.

        The estimand is the same and the noise of the test rows is smaller, as with a control variate in a survey:
        where the columns of a row predict its contribution to the importance, the columns of further rows show how
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
        This assumes that X and the test rows have the same distribution, as the two sides of a random split have. With
        covariate shift (a split by time or by group) the estimate describes a mixture of both populations; a warning
        is given where the shift is large in columns that matter.

        Examples
        --------
        >>> import subgrove as sg
        >>> linear = sg.simulate.scenario("linear")
        >>> train, test = linear.sample(2000, random_state=1), linear.sample(400, random_state=2)
        >>> imp = sg.importance(
        ...     linear.model, test.X, test.y, train=train.X, features=["x1"], n_repeats=20,
        ...     loss="squared_error", random_state=1
        ... )
        >>> line = imp.calibrated(train.X).calibration.iloc[0]
        >>> f"by {line['columns']}: {line['uncalibrated_std_error']:.2f}, then {line['std_error']:.2f}"
        'by x2: 0.37, then 0.27'
        """
        self._reject_groups("calibrated")
        reject_uncalibratable(self.weights, self.losses, self.per_row_losses)
        scores = [score.uncalibrated() for score in with_rows(self.scores, "calibrated")]
        source = stored_inputs(self._source, "calibrated")
        table = read_table(source.rows, lenient=True)
        further = read_additional_rows(X, table)
        donors, seed = source.uses_training_donors, self.settings["random_state"]
        return replace(
            self,
            scores=calibrated_scores(scores, table, further, seed, uses_training_donors=donors),
            settings={**self.settings, "calibrated": {"further_rows": further.n_rows}},
        )

    def with_noise(self, *sources: str) -> ImportanceResult:
        """Return the result with standard errors, p-values and intervals that cover exactly these sources of noise.

        Parameters
        ----------
        sources : str
            One or more of "test rows", "Monte Carlo" and "sampler" (known after `with_sampler_variance`). Their
            variances are added.

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
        return with_sampler_variance(self, n_resamples, n_jobs)

    def compare(self, other: ImportanceResult) -> Any:
        """Return the differences to another result, feature by feature: this one minus the other.

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

    def explain(
        self, feature: str | Sequence[str], *, marginal: ImportanceResult | None = None, min_share: float = 0.01
    ) -> Explanation:
        """Explain the importance of a feature in sentences: how it was resampled, what that costs, and where.

        Parameters
        ----------
        feature : str or list of str
            Its name, or the names of a group.
        marginal : ImportanceResult, optional
            The marginal importance of the same model and rows: adds the sentences of `explain_gap`.
        min_share : float, default 0.01
            Share of the model's gain over the best constant prediction from which on the feature counts as important.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> def model(X):
        ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
        >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, random_state=1)
        >>> print(imp.explain("temp").sentences[0])
        temp is resampled by the sampler 'subgroups', within 4 subgroups by season, hum.
        """
        explanation = explained(self, feature, number_in("min_share", min_share, low=0, high=1))
        if marginal is None:
            return explanation
        gap = self.explain_gap(marginal, explanation.feature)
        return replace(explanation, sentences=explanation.sentences + gap.sentences)

    def explain_gap(
        self, marginal: ImportanceResult, feature: Any = None, *, loss: str | None = None, average: bool = False
    ) -> Gap:
        """Explain why this importance differs from the marginal one, one conditioning column at a time.

        Parameters
        ----------
        marginal : ImportanceResult
            Result of `importance(..., sampler="marginal")` for the same model, rows and loss.
        feature : str or list of str, optional
            Feature or group of features; not needed if there is only one.
        loss : str, optional
            Which loss, if there are several; the first if not given.
        average : bool, default False
            Columns are added in the order in which the feature's tree splits on them, those nearest to the root first.
            True averages over all orders instead (Shapley values).

        Returns
        -------
        Gap
            `.steps`, whose sum is marginal minus conditional importance; `.sentences`, the same in words.

        Notes
        -----
        The model predicts `n_repeats` resamples of all rows for each set of columns between none and all, and 100 rows
        to verify that it is the same model. With at most one column it predicts nothing. `docs/gap.md` describes the
        sets, also for samplers without trees.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> model = lambda X: 2000 + 100 * X["temp"]
        >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
        >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options)
        >>> marginal = sg.importance(model, test.X, test.y, sampler="marginal", **options)
        >>> for sentence in imp.explain_gap(marginal, "temp").sentences[1:]:
        ...     print(sentence)
        63 % of the 440 is shared with season; hum shares nothing significant (2 %).
        36 % remains for temp alone, given its subgroups.
        """
        return gap_between(self, marginal, feature, loss, average=average)

    def relative(self, feature: Any = None, *, order: Any = None) -> RelativeImportance:
        """Return the importance of a feature given more and more columns: from none (marginal) to all (conditional).

        Parameters
        ----------
        feature : str or list of str, optional
            Feature or group of features of this result; not needed if there is only one.
        order : list, optional
            Columns in the order in which they are added; a list among them is added at once. Columns that are not
            named come together at the end. By default the three columns that the feature depends on most, the strongest
            first, then the others together.

        Returns
        -------
        RelativeImportance
            `.table` with a row for each step; `sg.plots.relative_importance` draws it.

        Notes
        -----
        The sampler is fitted again for each step, and the model predicts `n_repeats` resamples of all rows for each.
        Steps share rows and random state; the standard error of a change is that of paired differences. A sampler
        that cannot condition on a choice of columns has two steps, none and all.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> model = lambda X: 2000 + 100 * X["temp"]
        >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
        >>> imp = sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options)
        >>> imp.relative("temp", order=["season", "hum"]).table[["step", "added", "estimate", "change"]].round(1)
           step                added  estimate  change
        0     0                          439.9     0.0
        1     1               season     164.4  -275.5
        2     2                  hum     157.4    -7.0
        3     3  the other 6 columns     157.4     0.0
        """
        score = score_of(with_rows(self.scores, "relative"), feature)
        return relative_steps(self, stored_inputs(self._source, "relative"), score.feature, order)

    def __repr__(self) -> str:
        return result_text(self)
