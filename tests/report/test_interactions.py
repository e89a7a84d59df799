"""The section on interactions: for models whose trees can be read, with the pair that the model was built with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier

import subgrove as sg
from subgrove._report.summary import Summary

pytestmark = pytest.mark.compiled


def rows(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    return X, 2 * X["a"] * X["b"] + X["c"] + 0.1 * rng.normal(size=n)


def summary_of(model: Any, y: Any = lambda y: y, **options: Any) -> Summary:
    (X, own), (Z, other) = rows(300, 0), rows(200, 1)
    return sg.report(model.fit(X, y(own)), (X, y(own)), (Z, y(other)), n_repeats=2, random_state=1, **options).summary


def test_the_strongest_pair_is_the_product_of_the_model() -> None:
    summary = summary_of(HistGradientBoostingRegressor(random_state=0))
    first = summary.interactions[0]
    assert ({first.feature, first.other}, first.output) == ({"a", "b"}, None)
    assert first.h_squared > 0.7
    assert first.strength > 1
    assert f"{first.feature} and {first.other} have the strongest interaction" in summary.interaction_sentences[0]
    assert "units of" in summary.interaction_sentences[1]
    strengths = [one.strength for one in summary.interactions]
    assert strengths == sorted(strengths, reverse=True)
    assert len(strengths) == 6
    predicted = {one.name: one.value for one in summary.methods.rows_predicted}
    assert predicted["interactions"] in range(256, 300)


def test_a_model_without_interactions_is_said_to_have_none() -> None:
    summary = summary_of(HistGradientBoostingRegressor(max_depth=1, max_leaf_nodes=2, random_state=0))
    assert summary.interaction_sentences[0].startswith("No pair of features interacts")


@pytest.mark.parametrize(
    ("model", "cut", "unit"),
    [
        (HistGradientBoostingClassifier(max_iter=20, random_state=0), [0], "the log-odds"),
        (RandomForestClassifier(20, random_state=0), [0], "probability"),
        (HistGradientBoostingClassifier(max_iter=20, random_state=0), [-1, 1], "the margin"),
    ],
)
def test_classes(model: Any, cut: list[float], unit: str) -> None:
    summary = summary_of(model, lambda y: np.digitize(y, cut))
    first = summary.interactions[0]
    assert {first.feature, first.other} == {"a", "b"}
    assert (first.output is None) == (len(cut) == 1)
    assert summary.interaction_sentences[1] == f"Strengths are standard deviations, in units of {unit}."


def test_other_models_have_no_section() -> None:
    report = sg.report(lambda X: X["a"] * X["b"], rows(300, 0), rows(200, 1), n_repeats=2, random_state=1)
    assert report.summary.interactions == ()
    assert report.summary.interaction_sentences == ()
    assert 'id="interactions"' not in report.to_html()
    assert "Interactions" not in report.to_markdown()
    assert "interactions" not in {one.name for one in report.summary.methods.rows_predicted}


def test_one_feature_has_no_pairs() -> None:
    assert summary_of(HistGradientBoostingRegressor(max_iter=5), features=["a"]).interactions == ()
