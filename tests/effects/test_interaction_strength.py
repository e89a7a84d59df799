"""Friedman's H-squared: exact for trees, sampled for other models."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._effects import interaction_strength
from subgrove._models.tree_ensemble.reading import CHECK_ROWS, TREE_STEPS
from subgrove._native import loader
from subgrove.exceptions import ParameterError

from .test_tree_steps import (
    boosting,
    categories,
    classes_of_a_forest,
    extreme,
    forest,
    light,
    three_classes,
    two_classes,
)

MODELS = [boosting, forest, two_classes, three_classes, classes_of_a_forest, categories, light, extreme]
needs_kernel = pytest.mark.skipif(loader.tree_pairs is None, reason="the compiled part is not installed")


def with_values(X: pd.DataFrame, names: Any, row: int) -> pd.DataFrame:
    """All rows with some columns of one row."""
    other = X.copy()
    for name in names:
        other[name] = (
            X[name].take(np.full(len(X), row)).to_numpy()
            if X[name].dtype.kind == "f"
            else pd.Series(X[name].take(np.full(len(X), row)).array, index=X.index)
        )
    return other


def brute_force(predict: Any, X: pd.DataFrame) -> dict[tuple[str, str], tuple[float, float]]:
    """H-squared and strength of all pairs, from predictions of every row at the values of every other."""

    def dependence(*names: str) -> Any:
        stacked = pd.concat([with_values(X, names, row) for row in range(len(X))], ignore_index=True)
        means = predict(stacked).reshape(len(X), len(X)).mean(axis=1)
        return means - means.mean()

    names = [str(name) for name in X]
    singles = {name: dependence(name) for name in names}
    found = {}
    for pair in combinations(names, 2):
        joint = dependence(*pair)
        difference = joint - singles[pair[0]] - singles[pair[1]]
        found[pair] = (difference @ difference) / (joint @ joint), np.sqrt((difference**2).mean())
    return found


def margin(model: Any, kind: Any) -> Any:
    """Predictions on the scale of H-squared."""
    if kind is two_classes:
        return model.decision_function
    if kind in (three_classes, classes_of_a_forest):
        method = model.decision_function if kind is three_classes else model.predict_proba
        return lambda X: method(X)[:, 2]
    return lambda X: np.asarray(model.predict(X), dtype=np.float64)


@needs_kernel
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_trees_equal_brute_force(make: Any) -> None:
    model, X = make()
    X = X.iloc[:40].reset_index(drop=True)
    found = sg.InteractionStrength.compute(model, X)
    assert found.settings["evaluation"] == TREE_STEPS
    assert found.n_rows_predicted <= CHECK_ROWS + interaction_strength._CHECKED_PAIRS
    table = found.table
    if "output" in table:
        table = table[table["output"] == 2]
    expected = brute_force(margin(model, make), X)
    assert max(h for h, _ in expected.values()) > 0.01
    rtol = 1e-4 if make is extreme else 1e-8
    assert len(table) == len(expected)
    for row in table.itertuples():
        h_squared, strength = expected[row.feature, row.other]
        np.testing.assert_allclose((row.h_squared, row.strength), (h_squared, strength), rtol=rtol, atol=rtol)


@needs_kernel
def test_subgroups_have_the_numbers_of_their_rows() -> None:
    model, X = boosting()
    X = X.assign(a=X["a"] + X["b"].fillna(0))
    partition = sg.find_subgroups(X, features="a", max_depth=2)["a"]
    found = sg.InteractionStrength.compute(model, X, subgroups=partition).table
    code = partition.assign(X)
    for number, rule in enumerate(partition.rules):
        own = found[found["subgroup"] == number]
        alone = sg.InteractionStrength.compute(model, X[code == number]).table
        assert set(own["rule"]) == {rule}
        assert own["feature"].tolist() == alone["feature"].tolist()
        np.testing.assert_allclose(own["h_squared"], alone["h_squared"], rtol=1e-10)


@needs_kernel
def test_features_without_a_shared_leaf_have_no_interaction() -> None:
    from sklearn.ensemble import GradientBoostingRegressor

    _, X = forest()
    model = GradientBoostingRegressor(max_depth=1, n_estimators=20).fit(X, X["a"] + X["b"])
    found = sg.InteractionStrength.compute(model, X)
    assert found.table["h_squared"].tolist() == [0.0] * 10


@pytest.mark.compiled
def test_other_models_are_evaluated_at_sampled_rows() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    counted = []

    def model(rows: pd.DataFrame) -> Any:
        counted.append(len(rows))
        return (rows["a"] * rows["b"] + rows["c"]).to_numpy()

    found = sg.InteractionStrength.compute(model, X, n_points=30, random_state=1)
    assert sum(counted) == found.n_rows_predicted == 30**2 * 6
    assert found.settings["evaluation"] == "model predictions: the model is a function"
    expected = brute_force(lambda rows: (rows["a"] * rows["b"] + rows["c"]).to_numpy(), X)
    for row in found.table.itertuples():
        np.testing.assert_allclose(row.h_squared, expected[row.feature, row.other][0], atol=1e-12)
    again = sg.InteractionStrength.compute(model, X, n_points=10, random_state=1)
    assert again.n_rows_predicted == 10**2 * 6
    assert again == sg.InteractionStrength.compute(model, X, n_points=10, random_state=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ["a"]}, "at least two different columns"),
        ({"features": ["a", "x"]}, "features has 'x'"),
        ({"features": "a"}, "must be a list"),
        ({"n_points": 1}, "n_points must be a whole number >= 2"),
        ({"subgroups": "auto"}, "subgroups must be the subgroups of one feature"),
    ],
)
def test_wrong_arguments_are_named(options: Any, message: str) -> None:
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    with pytest.raises(ParameterError, match=message):
        sg.InteractionStrength.compute(lambda rows: rows["a"], X, **options)
