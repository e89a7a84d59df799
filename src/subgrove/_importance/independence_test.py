"""Tests of conditional independence: one that is robust to errors of the sampler, and the holdout randomization test.

For the squared error and the true conditional distribution, the importance of a feature is

    2 E[(y - E[y | others]) (f(x) - E[f(x) | others])],

twice the covariance of target and prediction given the other columns. Resampling estimates the second expectation, with
a sampler that may be wrong. The error of an estimate of this form is the *product* of two errors: that of the estimate
of E[y | others], and that of E[f | others]. If one of them is small, so is the product; the mean increase of the loss
has no such protection. So both factors are predicted from the other columns once more, starting from the mean over
resamples, and their residuals are multiplied row by row. Several regressions compete by their held-out residuals: none,
a ridge regression (each row left out in closed form), and on its residuals a forest (out of bag), a kernel regression
(leave-one-out), terms with thresholds (cross-validated), and a kernel regression after these.

Where both factors start from the mean over the same few resamples, its noise is in both and would add to their product;
its variance is known, and is subtracted.

What no regression has captured is shared by rows that are similar in the other columns. So the residual of the target
is multiplied by the mean residual of the prediction of *neighbouring* rows as well, whose noise is independent. Where
this covariance is significant, the product of a row's own residuals has the same bias, and there is no p-value.

The holdout randomization test of Tansey et al. (2018) compares the loss with the losses of resampled rows.
Under the null hypothesis that target and feature are independent given the other columns, the observed column and K
independent draws from its conditional distribution are exchangeable, and so are their losses on rows that the model
was not fitted on. So the rank of the observed loss is uniform, for any model, any loss and any number of rows. That
needs draws that are independent from row to row and from repeat to repeat: balanced draws and exact expectations, which
`importance` uses because their mean has less noise, are not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.kinds import Floats
from subgrove._core.validate import true_or_false, whole_number
from subgrove._data.encode import is_extreme, one_hot
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, fingerprint, read_table
from subgrove._data.to_containers import as_count, table_of_lines
from subgrove._importance.intervals import MONTE_CARLO, TEST_ROWS, adjusted_p_values, interval_columns, label
from subgrove._importance.recompute import stored_inputs
from subgrove._importance.result_tables import ImportanceTables
from subgrove._importance.tables import ImportanceData, loss_column, subgroup_columns
from subgrove._regress.forest import grow_forest
from subgrove._regress.gram import FoldGrams
from subgrove._regress.kernel import PilotForest, fit_kernel
from subgrove._regress.linear import best_ridge_residuals
from subgrove._regress.threshold_terms import fit_threshold_terms
from subgrove._scoring.estimate_variance import mean_variance
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning

_N_TREES = 100
_CHECKED_ROWS, _CHECKED_COLUMNS, _CHECKED_PAIRS = 2000, 20, 6  # by the check of neighbours
_FEW_NEIGHBOURS = 4  # for dependence that changes fast; the root of the number of rows for slower changes
_LEVEL = 0.05  # of the check, over all of its columns and pairs
UNDECIDED = "undecided"


def independence_lines(result: ImportanceData, X: Any, *, by_subgroup: bool) -> list[dict[str, Any]]:
    """Return the lines of `ImportanceResult.independence_test`."""
    scores = with_rows(result.scores, "independence_test")
    if result.predictions is None or result.residuals is None or any(score.moved is None for score in scores):
        raise ParameterError(
            "independence_test needs predictions and a target that are numbers, or probabilities of a single target. "
            "It is not available for labels or for loco. Read p_value of .overall."
        )
    if any(np.isnan(score.moved_variance).any() for score in scores if score.moved_variance is not None):
        raise ParameterError(
            "independence_test needs at least two resamples of each row. Pass n_repeats=2 or more to importance."
        )
    table, alpha = _same_rows(X, result), 1 - result.level
    grams = FoldGrams.of(table, int(result.settings.get("random_state") or 0))
    lines: list[dict[str, Any]] = []
    for score in scores:
        given = (result.settings.get("given") or {}).get(score.title)
        seed = int(stream(int(result.settings.get("random_state") or 0), f"test of {score.title}").integers(2**31))
        others = OtherColumns.of(table, grams, score.feature, given, seed)
        products, reason = _products(score, result.predictions, result.residuals, others)
        for k in range(len(score.rules)) if by_subgroup else [None]:
            rows = slice(None) if k is None else score.code == k
            name = {} if k is None else subgroup_columns(score, k)
            own = None if result.weights is None else result.weights[rows]
            line = _line(products[rows], own, result.level)
            why = reason or ("there are too few rows" if np.isnan(line["p_value"]) else "")
            decision = UNDECIDED if why else "rejected" if line["p_value"] < alpha else "not rejected"
            line |= {"p_value": float("nan") if why else line["p_value"], "decision": decision, "reason": why}
            lines.append({"feature": score.title, **name, **line})
    return lines


@dataclass(frozen=True, eq=False)
class OtherColumns:
    """Columns that target and prediction are regressed on.

    Attributes
    ----------
    matrix : float array
        For ridge regressions and forests.
    grams : FoldGrams
        Design matrix of the whole table, for kernels and terms with thresholds.
    names : tuple of str
        Which of its columns are used.
    seed : int
        Seed of forests and samples.
    """

    matrix: Floats
    grams: FoldGrams
    names: tuple[str, ...]
    seed: int

    @classmethod
    def of(
        cls, table: Table, grams: FoldGrams, feature: Sequence[str], given: Sequence[str] | None, seed: int
    ) -> OtherColumns:
        """Return the columns of `given`, all but those of the feature if None."""
        names = [name for name in table.names if name not in feature and (given is None or name in given)]
        return cls(one_hot(table, tuple(feature), given), grams, tuple(names), seed)

    def ranked(self, targets: Floats) -> PilotForest:
        """Return a small forest that ranks the columns by how well they predict some targets."""
        return PilotForest.of(self.grams, targets, self.names, self.seed)


def _same_rows(X: Any, result: ImportanceData) -> Table:
    """Read the rows of the result again; raise for other rows."""
    table = read_table(X, lenient=True)
    if result.row_mask is not None and table.n_rows == len(result.row_mask):
        table = read_table(Frames(X, table.columns).changed(np.flatnonzero(result.row_mask), {}), lenient=True)
    if fingerprint(table) != result.settings.get("fingerprint"):
        raise InputError("X has other rows than the result was computed on. Pass the X that was passed to importance.")
    return table


def _products(score: FeatureResult, predictions: Floats, residuals: Floats, others: OtherColumns) -> tuple[Floats, str]:
    """Return for each row the product of the residuals of target and prediction, summed over predictions.

    And why the regressions have not captured the dependence on the other columns; empty if nothing indicates that.
    """
    assert score.moved is not None
    assert score.moved_variance is not None
    shifts = score.moved.astype(np.float64)
    products, reason = np.zeros(len(shifts)), ""
    if not shifts.any():
        return products, reason
    mc_variance = score.moved_variance.astype(np.float64)
    pairs = []
    for k in range(shifts.shape[1]):
        prediction = predictions[:, k]
        starts = [prediction + shifts[:, k], np.zeros(len(shifts))]  # the mean over resamples, or nothing
        of_target, one = residualize(prediction + residuals[:, k], starts, others)
        of_prediction, two = residualize(prediction, starts, others)
        pairs.append((of_target, of_prediction))
        products += of_target * of_prediction
        if one == two == 0:
            products -= mc_variance[:, k]
    return products, lack_of_fit(pairs, others)


def _line(products: Floats, weights: Floats | None, level: float) -> dict[str, Any]:
    """Return the estimate, twice the mean product, with its interval and p-value."""
    n = float(len(products) if weights is None else weights.sum())
    values = 2.0 * products
    mean = float(values.mean() if weights is None else values @ weights / n) if len(values) else float("nan")
    error = np.sqrt(mean_variance(values[None], weights, np.zeros(1))[0])
    columns = interval_columns(np.array(mean), error, np.array(n - 1), level)
    noise = label((TEST_ROWS, MONTE_CARLO))
    return {"n": as_count(n), **{name: float(value) for name, value in columns.items()}, "noise": noise}


def residualize(values: Floats, starts: list[Floats], others: OtherColumns) -> tuple[Floats, int]:
    """Return the held-out residuals of values on the other columns, and the number of the start of the best fit.

    Starts depend on the other columns alone; regressions are of the values minus a start.
    """
    candidates = []
    for number, start in enumerate(starts):
        values_left = values - start
        linear = best_ridge_residuals(others.matrix, values_left)
        found = [values_left, linear, _forest_residuals(linear, others), *_smooth_residuals(linear, others)]
        candidates += [(float(np.mean(one**2)), number, one) for one in found]
    _, number, best = min(candidates, key=lambda one: one[0])
    return best, number


def _forest_residuals(values: Floats, others: OtherColumns) -> Floats:
    """Return the out-of-bag residuals of a forest."""
    tried = max(1, others.matrix.shape[1] // 2)
    forest = grow_forest(others.matrix, values[:, None], n_trees=_N_TREES, tried=tried, seed=others.seed, n_jobs=1)
    predicted = forest.out_of_bag[:, 0]
    residuals: Floats = values - np.where(np.isnan(predicted), values.mean(), predicted)
    return residuals


def _smooth_residuals(values: Floats, others: OtherColumns) -> Iterator[Floats]:
    """Yield held-out residuals of a kernel regression, of terms with thresholds, and of a kernel after these."""
    if is_extreme(values):
        return
    target = values - values.mean()
    pilot = others.ranked(target[:, None])
    changes = fit_threshold_terms(others.grams, None, target, pilot.ranked) if pilot.predictive else None
    attempts = [(target, pilot)]
    if changes is not None:
        yield changes.residuals
        attempts.append((changes.residuals, others.ranked(changes.residuals[:, None])))
    for left, forest in attempts:
        kernel = fit_kernel(others.grams, (left - left.mean())[:, None], forest, others.seed)
        if kernel is not None:
            yield kernel.residuals[:, 0]


def lack_of_fit(pairs: list[tuple[Floats, Floats]], others: OtherColumns) -> str:
    """Return where the residuals of target and prediction covary between neighbouring rows; empty if nowhere.

    Neighbours are those by one column, and by two of the columns that predict the residuals best.
    """
    from scipy.spatial import cKDTree
    from scipy.special import ndtri

    rng = stream(others.seed, "check of neighbours")
    rows = rng.permutation(len(others.grams.order))[:_CHECKED_ROWS]
    columns = others.grams.design.allowed(others.names)
    targets = np.hstack([np.column_stack(pair) for pair in pairs])
    if len(rows) < 2 * _CHECKED_PAIRS or not len(columns) or is_extreme(targets.ravel()):
        return ""
    ranked = list(dict.fromkeys([*others.ranked(targets).ranked.tolist(), *columns.tolist()]))
    sets = [(at,) for at in ranked[:_CHECKED_COLUMNS]] + list(combinations(ranked[:_CHECKED_PAIRS], 2))
    values, places = others.grams.values[rows], others.grams.order[rows]
    values = values + 1e-6 * rng.random(values.shape)  # neighbours among equal values are random
    most = max(_FEW_NEIGHBOURS, round(np.sqrt(len(rows))))
    found = []
    for some in sets:
        nearest = np.asarray(cKDTree(values[:, some]).query(values[:, some], k=most + 1)[1])[:, 1:]
        for n_neighbours in (_FEW_NEIGHBOURS, most):
            terms = np.zeros(len(rows))
            for one, two in pairs:
                around = (two - two.mean())[places][nearest[:, :n_neighbours]].mean(axis=1)
                terms += (one - one.mean())[places] * around
            size = float(np.sqrt((terms**2).sum()))
            found.append((float(terms.sum()) / size if size > 0 else 0.0, some))
    largest, some = max(found)
    if largest < ndtri(1 - _LEVEL / len(found)):
        return ""
    names = " and ".join(dict.fromkeys(others.grams.design.parts[at].column for at in sorted(some)))
    return f"the residuals of target and prediction still depend on {names} in the same way"


def randomization_lines(result: ImportanceData, n_resamples: Any, n_jobs: int | None) -> list[dict[str, Any]]:
    """Return the lines of `ImportanceResult.randomization_test`."""
    n = whole_number("n_resamples", n_resamples, least=1)
    source = stored_inputs(result._source, "randomization_test")
    features = [score.feature for score in result.scores]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubgroveWarning)  # they were given when the result was computed
        seed = int(stream(source.context.seed, "randomization test").integers(2**62))
        context = replace(source.fitted_context(features), n_repeats=n, seed=seed, independent_draws=True)
        scores = source.scores(context, features, result.losses, n_jobs)
    return [
        {
            **loss_column(result.losses, at),
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
