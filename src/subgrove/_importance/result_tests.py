"""Tests of conditional independence, as methods of an importance result."""

from __future__ import annotations

from typing import Any

from subgrove._data.to_containers import table_of_lines
from subgrove._importance.independence_test import independence_lines
from subgrove._importance.intervals import adjusted_p_values
from subgrove._importance.randomization_test import randomization_lines
from subgrove._importance.result_tables import ImportanceTables


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
        return table_of_lines(self.backend, adjusted_p_values(independence_lines(self, X, by_subgroup=by_subgroup)))

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
