"""The selector follows the conventions of scikit-learn, and selects by importance on held-out rows."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_selection import RFE
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import subgrove as sg
from benchmarks.selection import rates
from subgrove.exceptions import ParameterError
from subgrove.sklearn import SubgroupImportanceSelector
from subgrove.sklearn.selector import adjusted

QUICK: dict[str, Any] = {"sampler": "subgroups", "n_repeats": 2, "random_state": 0}
CHECKED = [
    SubgroupImportanceSelector(Ridge(), criterion="k_best", **QUICK),
    SubgroupImportanceSelector(LogisticRegression(), criterion="fdr_by", q=0.9, test="importance", **QUICK),
]


@pytest.mark.filterwarnings("ignore")  # the checks fit few rows, and features that are not selected
@parametrize_with_checks(CHECKED)  # type: ignore[untyped-decorator]
def test_the_selector_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SubgroupImportanceSelector(Ridge(), random_state=0)])  # type: ignore[untyped-decorator]
def test_the_selector_with_its_defaults_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def rows(n: int = 240, seed: int = 0) -> tuple[pd.DataFrame, pd.Series[float]]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["copy"] = X["a"] + 0.1 * rng.normal(size=n)
    return X, 2 * X["a"] + X["b"] + 0.1 * rng.normal(size=n)


def test_a_pipeline_with_the_selector_is_cross_validated() -> None:
    X, y = rows()
    selector = SubgroupImportanceSelector(LinearRegression(), test="importance", **QUICK)
    scores = cross_validate(make_pipeline(selector, LinearRegression()), X, y, cv=3, return_estimator=True)
    assert scores["test_score"].min() > 0.9
    for pipeline in scores["estimator"]:
        assert {"a", "b"} <= set(pipeline[0].get_feature_names_out())


def test_a_grid_search_selects_the_number_of_features() -> None:
    X, y = rows()
    selector = SubgroupImportanceSelector(LinearRegression(), criterion="k_best", **QUICK)
    search = GridSearchCV(make_pipeline(selector, LinearRegression()), {"subgroupimportanceselector__k": [1, 2]}, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {"subgroupimportanceselector__k": 2}
    assert search.best_estimator_[0].get_feature_names_out().tolist() == ["a", "b"]


def test_importance_is_that_of_the_held_out_rows_for_a_model_that_did_not_see_them() -> None:
    from sklearn.model_selection import train_test_split

    X, y = rows()
    selector = SubgroupImportanceSelector(LinearRegression(), criterion="threshold", test_size=0.25, **QUICK).fit(X, y)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    fit_X, test_X, fit_y, test_y = train_test_split(X, y.to_numpy(), test_size=0.25, random_state=seed)
    model = LinearRegression().fit(fit_X, fit_y)
    options: dict[str, Any] = {"sampler": "subgroups", "n_repeats": 2, "random_state": seed, "check_fidelity": False}
    expected = sg.importance(model, test_X, test_y, train=fit_X, **options).overall["estimate"]
    np.testing.assert_allclose(selector.feature_importances_, np.maximum(expected, 0), rtol=1e-12)
    np.testing.assert_array_equal(selector.get_support(), expected > 0)


def test_the_same_random_state_selects_the_same_features() -> None:
    X, y = rows()
    one, two = (SubgroupImportanceSelector(LinearRegression(), test="importance", **QUICK).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.p_values_, two.p_values_)


def test_adjusted_p_values_are_those_of_scipy() -> None:
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(0).random(12) ** 3
    np.testing.assert_allclose(adjusted(p, "fdr_bh"), false_discovery_control(p), rtol=1e-12)
    np.testing.assert_allclose(adjusted(p, "fdr_by"), false_discovery_control(p, method="by"), rtol=1e-12)


def test_an_undecided_test_counts_but_is_not_selected() -> None:
    p = np.array([0.04, np.nan])
    np.testing.assert_allclose(adjusted(p, "fdr_bh"), [0.08, np.nan])


def test_a_frame_with_levels_and_missing_values_reaches_the_estimator_as_it_is() -> None:
    X, y = rows()
    X["level"] = pd.Categorical(np.where(X["b"] > 0, "high", "low"))
    X.loc[X.index[::7], "c"] = np.nan
    model = HistGradientBoostingRegressor(max_iter=20, categorical_features="from_dtype")
    selector = SubgroupImportanceSelector(model, criterion="k_best", k=2, **QUICK).set_output(transform="pandas")
    kept = selector.fit(X, y).transform(X)
    pd.testing.assert_frame_equal(kept, X[list(kept.columns)])


@pytest.mark.parametrize("getter", ["auto", attrgetter("feature_importances_"), "feature_importances_"])
def test_recursive_elimination_ranks_features_by_importance_on_held_out_rows(getter: Any) -> None:
    X, y = rows()
    selector = SubgroupImportanceSelector(LinearRegression(), criterion="k_best", **QUICK)
    eliminated = RFE(selector, n_features_to_select=2, importance_getter=getter).fit(X, y)
    # Once `copy` is gone `a` carries all that they share; shuffling alone would do the same, coefficients would not.
    assert set(X.columns[eliminated.support_]) == {"a", "b"}


def test_recursive_elimination_takes_a_callable_that_reads_the_result() -> None:
    X, y = rows()
    selector = SubgroupImportanceSelector(LinearRegression(), criterion="k_best", **QUICK)

    def lower_bounds(fitted: SubgroupImportanceSelector) -> Any:
        return fitted.result_.overall["conf_low"].clip(lower=0).to_numpy()

    assert set(X.columns[RFE(selector, n_features_to_select=2, importance_getter=lower_bounds).fit(X, y).support_]) == {
        "a",
        "b",
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"criterion": "best"}, "criterion must be one of 'fdr_bh'"),
        ({"test": "t"}, "test must be"),
        ({"q": 2.0}, "q must be"),
        ({"k": 0}, "k must be"),
        ({"loss": ["squared_error", "absolute_error"]}, "loss must be a single loss"),
    ],
)
def test_an_invalid_parameter_is_named(changed: dict[str, Any], message: str) -> None:
    X, y = rows(20)
    with pytest.raises(ParameterError, match=message):
        SubgroupImportanceSelector(LinearRegression(), **changed).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", sg.simulate.null_scenarios())
def test_the_false_discovery_rate_is_at_most_q(name: str) -> None:
    runs = 200
    found = rates(name, runs, 400, 20, 0.1, "importance")[:, 0]
    # The mean of 200 shares with expectation at most 0.1: at most 0.1 plus three of its own standard errors.
    assert found.mean() <= 0.1 + 3 * found.std(ddof=1) / np.sqrt(runs)
