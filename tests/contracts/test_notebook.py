"""Contracts of notebook views: every result has one, escapes text, stays small, and calls no model."""

from __future__ import annotations

import inspect
import pickle
import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import subgrove as sg
from subgrove._report.svg import number
from tests.report.test_notebook_cards import walked

SCRIPT, QUOTED, LEVELS = "<script>alert(1)</script>", 'a & "b"', ["<b>x</b>", "y", "z"]
# Arguments, a mapping, and a row of a result.
WITHOUT_VIEW = {
    "AdaptiveRepeats",
    "DeviceModel",
    "Effects",
    "FeatureGroups",
    "FrequencyWeights",
    "GapStep",
    "LargeData",
}


def frame(n: int = 130, seed: int = 0) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    first = rng.normal(size=n)
    level = np.where(first > 0.5, LEVELS[0], rng.choice(LEVELS[1:], n))
    X = pd.DataFrame(
        {SCRIPT: first, QUOTED: first + 0.3 * rng.normal(size=n), "kind": level, "alone": rng.normal(size=n)}
    )
    return X, first + rng.normal(size=n)


class ClosableModel:
    """A model that can be closed."""

    closed = False

    def predict(self, X: Any) -> Any:
        assert not self.closed, "the model was called"
        return X[SCRIPT].to_numpy() * (X["kind"] == LEVELS[0]).to_numpy() + X[QUOTED].to_numpy()


@cache
def results() -> dict[str, Any]:
    """Results of every class, with a model that is closed afterwards."""
    model, (X, y), (train, y_train) = ClosableModel(), frame(), frame(260, seed=1)
    options: dict[str, Any] = {"n_repeats": 3, "random_state": 1}
    groups = sg.find_subgroups(train)
    given = sg.importance(model, X, y, sampler=groups, **options)
    marginal = sg.importance(model, X, y, sampler="marginal", **options)
    effects = [
        sg.effect(model, X, SCRIPT, subgroups=groups, grid_resolution=5),
        sg.effect(model, X, "kind", subgroups=None),
    ]
    profile = sg.DepthProfile.compute(
        train, features=[SCRIPT, "alone"], model=model, test=(X, y), max_depth=2, **options
    )
    found = {
        "importance": given,
        "importance chosen": sg.importance(
            model, X, y, train=train, loss=["squared_error", "absolute_error"], **options
        ),
        "importance of few rows": sg.importance(model, X[:2], y[:2], sampler="marginal", **options),
        "importance of a score": sg.importance(
            model, X, y, sampler="marginal", loss="root_mean_squared_error", **options
        ),
        "importance of one loss": marginal,
        "loco": sg.loco(Linear().fit(train, y_train), X, y, train=(train, y_train)),
        "subgroups": groups,
        "subgroups chosen": sg.find_subgroups(train, max_depth="auto"),
        "partition": groups[SCRIPT],
        "effect": effects[0],
        "effect of levels": effects[1],
        "surface": sg.effect(model, X, (SCRIPT, QUOTED), grid_resolution=3, subgroups=None),
        "interactions": sg.effect(model, X, SCRIPT, interactions=True, grid_resolution=5, subgroups=None),
        "dependence": sg.dependence(X.assign(constant=1.0), random_state=1, n_trees=10),
        "fidelity": sg.fidelity(
            train, X, samplers=["subgroups", "knockoffs"], features=[SCRIPT, "kind"], n_repeats=2, random_state=1
        ),
        "model fidelity": sg.ModelFidelity.compute(model, X, {"<i>PDP</i>": effects}, y=y),
        "interaction strength": sg.InteractionStrength.compute(model, X, n_points=5, random_state=1),
        "gap": given.explain_gap(marginal, SCRIPT),
        "relative": sg.importance(
            model, X, y, features=[SCRIPT], train=train, sampler="subgroups", **options
        ).relative(),
        "refits": sg.importance_over_refits(Linear(), X, y, sampler="marginal", n_refits=3, random_state=1),
        "depth profile": profile,
        "depth profile without a model": sg.DepthProfile.compute(train, features=[SCRIPT, "alone"], max_depth=2),
        "depth choice": profile.choices[0],
        "no depth to choose": sg.find_subgroups(train, features="alone", max_depth="auto")["alone"].choice,
        "stability": groups.stability(train, n_resamples=5, random_state=1),
        "explanation": given.explain(SCRIPT, marginal=marginal),
    }
    model.closed = True
    return found


class Linear(LinearRegression):  # type: ignore[misc]  # scikit-learn has no types
    """Of the numbers alone."""

    def fit(self, X: Any, y: Any) -> Linear:
        super().fit(self._numbers(X), y)
        return self

    def predict(self, X: Any) -> Any:
        return super().predict(self._numbers(X))

    @staticmethod
    def _numbers(X: Any) -> Any:
        return X.select_dtypes("number").to_numpy()


NAMES = [
    "importance",
    "importance chosen",
    "importance of few rows",
    "importance of a score",
    "importance of one loss",
    "loco",
    "subgroups",
    "subgroups chosen",
    "partition",
    "effect",
    "effect of levels",
    "surface",
    "interactions",
    "dependence",
    "fidelity",
    "model fidelity",
    "interaction strength",
    "gap",
    "relative",
    "refits",
    "depth profile",
    "depth profile without a model",
    "depth choice",
    "no depth to choose",
    "stability",
    "explanation",
]
each_result = pytest.mark.parametrize("name", NAMES)


def html_of(name: str) -> str:
    return str(results()[name]._repr_html_())


def test_every_public_result_is_looked_at_here() -> None:
    assert list(results()) == NAMES
    classes = {name for name in sg.__all__ if inspect.isclass(getattr(sg, name))}
    with_html = {name for name in classes if hasattr(getattr(sg, name), "_repr_html_")}
    assert classes - with_html == WITHOUT_VIEW
    assert {type(result).__name__ for result in results().values()} == with_html - {"Report"}  # it has its own tests


@each_result
def test_it_is_well_formed_and_runs_and_loads_nothing(name: str) -> None:
    found = walked(html_of(name))
    assert not {"script", "link", "img", "iframe", "b", "i"} & set(found.tags)
    assert not re.search(r"https?:|\bsrc=|\bhref=|\son\w+=|url\(|@import", html_of(name).replace("&lt;", ""))


@each_result
def test_it_says_nan_nowhere(name: str) -> None:
    assert not re.search(r"\b(nan|none|null)\b", " ".join(walked(html_of(name)).text), re.IGNORECASE)


@each_result
def test_it_is_small_and_the_same_each_time(name: str) -> None:
    assert len(html_of(name)) < 30_000
    assert html_of(name) == html_of(name) == pickle.loads(pickle.dumps(results()[name]))._repr_html_()


@each_result
def test_its_text_is_short_and_has_no_arrays(name: str) -> None:
    text = repr(results()[name])
    assert "array(" not in text
    assert len(text.splitlines()) <= 25


def test_parts_of_results_are_a_line_of_text() -> None:
    found = results()
    for part in (found["importance"].scores[0], found["dependence"].found[0], found["stability"].features[0]):
        assert re.fullmatch(r"<\w+ of .*>", repr(part))


def test_numbers_are_those_of_the_table() -> None:
    imp = results()["importance"]
    cells = walked(html_of("importance")).text
    top = imp.overall.sort_values("estimate", ascending=False).iloc[0]
    assert cells[cells.index(top["feature"]) + 1] == number(top["estimate"])
    assert f"{number(top['conf_low'])} to {number(top['conf_high'])}" in cells


def test_redraws_that_fail_are_marked() -> None:
    imp = results()["importance of one loss"]
    failed = (imp.fidelity_checks["fidelity"] == "failed").sum()
    assert failed > 0
    assert walked(html_of("importance of one loss")).text.count("failed !") == failed


def test_rules_are_shown_whole() -> None:
    text = walked(html_of("partition")).text
    assert all(rule in text for rule in results()["partition"].rules)


def test_of_many_features_twenty_are_shown() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 45)), columns=[f"x{at}" for at in range(45)])
    imp = sg.importance(
        lambda X: X["x3"], X, X["x3"], sampler="marginal", n_repeats=2, random_state=1, check_fidelity=False
    )
    html = imp._repr_html_()
    assert "and 25 more: .overall has all" in html
    assert walked(html).tags.count("tr") == 22
    groups = sg.find_subgroups(X, max_depth=1)
    assert "and 25 more" in groups._repr_html_()


def test_without_dependence_nothing_is_called_misleading() -> None:
    found = sg.dependence(frame()[0][["alone"]].assign(other=np.arange(130) % 7.0), n_trees=10, random_state=1)
    assert found.dependent == ()
    assert "No feature with an R2 of 20 % or more." in walked(found._repr_html_()).text


def test_a_moment_is_shown_to_the_minute() -> None:
    X = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=50, freq="31h"), "x": np.arange(50.0)})
    found = sg.effect(lambda X: X["x"].to_numpy(), X, "when", grid_resolution=4, subgroups=None)
    assert "2024-01-01 to 2024-03-04T07:00" in walked(found._repr_html_()).text
