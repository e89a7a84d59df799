"""Tests of conditional independence, as methods of an importance result.

The holdout randomization test of Tansey et al. (2018) compares the loss with the losses of resampled rows.
Under the null hypothesis that target and feature are independent given the other columns, the observed column and K
independent draws from its conditional distribution are exchangeable, and so are their losses on rows that the model
was not fitted on. So the rank of the observed loss is uniform, for any model, any loss and any number of rows. That
needs draws that are independent from row to row and from repeat to repeat: balanced draws and exact expectations, which
`importance` uses because their mean has less noise, are not.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.validate import true_or_false, whole_number
from subgrove._data.to_containers import as_count, table_of_lines
from subgrove._importance.independence_test import independence_lines
from subgrove._importance.intervals import adjusted_p_values
from subgrove._importance.recompute import stored_inputs
from subgrove._importance.result_tables import ImportanceTables
from subgrove._importance.tables import ImportanceData
from subgrove._scoring.score import score_features
from subgrove.exceptions import SubgroveWarning


def randomization_lines(result: ImportanceData, n_resamples: Any, n_jobs: int | None) -> list[dict[str, Any]]:
    """Return the lines of `ImportanceResult.randomization_test`."""
    n = whole_number("n_resamples", n_resamples, least=1)
    source = stored_inputs(result._source, "randomization_test")
    features = [score.feature for score in result.scores]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubgroveWarning)  # they were given when the result was computed
        context = replace(
            source.fitted_context(features),
            n_repeats=n,
            seed=int(stream(source.context.seed, "randomization test").integers(2**62)),
            independent_draws=True,
            prediction_values=None,
            adaptive=None,
            fidelity_checker=None,
        )
        scores = [source.of_losses(score, result.losses) for score in score_features(context, features, n_jobs)]
    return [
        {
            **result._loss_column(at),
            "feature": score.title,
            "n": as_count(float(score.sizes.sum())),
            "estimate": float(score.overall[at].mean()),
            "p_value": float(1 + np.count_nonzero(score.overall[at] <= 0)) / (1 + n),
        }
        for at in range(len(result.losses))
        for score in scores
    ]


class ImportanceTests(ImportanceTables):
    """Tests of the hypothesis that target and feature are independent given the other columns."""

    def independence_test(self, X: Any, *, by_subgroup: bool = False) -> Any:
        """Return a test of conditional independence of target and feature that does not trust the sampler.

        A fitted sampler is a little wrong, and with enough rows the p-values of `overall` show it: they reject for
        features that are irrelevant given the others. Here the shift of the predictions is multiplied by their
        residuals, after both were predicted from the other columns; an error of the sampler counts only as far as
        that prediction misses it as well.

        Parameters
        ----------
        X : table
            The rows that importance was computed on; results do not store them.
        by_subgroup : bool, default False
            Whether there is a row for each subgroup instead of one for each feature.

        Returns
        -------
        table
            Columns of `overall`. `estimate` is the importance for the squared error (of probabilities: the Brier
            score), whatever the losses are. `decision` is "rejected", "not rejected" or "undecided"; in the last case
            `reason` names columns whose dependence the regressions missed, and `p_value` is NaN.

        Examples
        --------
        >>> import subgrove as sg
        >>> linear = sg.simulate.scenario("linear")
        >>> train, test = linear.sample(400, random_state=1), linear.sample(300, random_state=2)
        >>> imp = sg.importance(linear.model, test.X, test.y, train=train.X, features=["x1", "x2"], random_state=1)
        >>> imp.independence_test(test.X)["decision"].tolist()
        ['rejected', 'rejected']
        """
        self._reject_groups("independence_test")
        apart = true_or_false("by_subgroup", by_subgroup)
        return table_of_lines(self.backend, adjusted_p_values(independence_lines(self, X, by_subgroup=apart)))

    def randomization_test(self, n_resamples: int = 199, *, n_jobs: int | None = None) -> Any:
        """Return the holdout randomization test of conditional independence: exact where the sampler is right.

        The loss is compared with those of `n_resamples` tables in which the feature is resampled. Under the null
        hypothesis all are equally likely to be the smallest, for any model, loss and number of rows.

        Parameters
        ----------
        n_resamples : int, default 199
            Number of resamples of all rows; no p-value is below 1 / (n_resamples + 1).
        n_jobs : int, optional
            Number of processes.

        Returns
        -------
        table
            One row for each feature (and loss): `n`, `estimate` (mean increase of the loss), `p_value`, `p_holm` and
            `p_bh`.

        Notes
        -----
        The sampler is fitted again, and the model predicts `n_resamples` times all rows for each feature. The p-value
        trusts the sampler, unlike `independence_test`: errors of a fitted sampler make it too small.

        Examples
        --------
        >>> import subgrove as sg
        >>> null = sg.simulate.null_scenario("linear")
        >>> test = null.sample(200, random_state=2)
        >>> imp = sg.importance(
        ...     null.model, test.X, test.y, sampler=null.sampler, features=["x1"], random_state=1
        ... )
        >>> imp.randomization_test(n_resamples=99)["p_value"].tolist()
        [1.0]
        """
        self._reject_groups("randomization_test")
        return table_of_lines(self.backend, adjusted_p_values(randomization_lines(self, n_resamples, n_jobs)))
