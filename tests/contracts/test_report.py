"""Contracts of reports: number of rows predicted, jobs, containers, features, and unchanged input."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import subgrove as sg

from .test_importance import TRAIN, Counting, X, Y, closed_form, each_container, frozen, unchanged

SETTINGS: dict[str, Any] = {"n_repeats": 3, "random_state": 3, "labels": {"created": ""}}
Y_TRAIN = closed_form(TRAIN)


def summary(table: Any = X, train: Any = TRAIN, model: Any = closed_form, **more: Any) -> Any:
    return sg.report(model, (train, Y_TRAIN), (table, Y), **{**SETTINGS, **more}).summary


@cache
def expected() -> Any:
    """The reference report."""
    return summary()


def test_the_methods_section_has_the_number_of_rows_predicted() -> None:
    model = Counting()
    found = summary(model=model)
    predicted = {one.name: one.value for one in found.methods.rows_predicted}
    assert predicted["total"] == model.rows == sum(predicted.values()) / 2
    assert all(isinstance(value, int) and value > 0 for value in predicted.values())


def test_the_number_of_jobs_changes_no_digit_and_the_seed_does() -> None:
    one = summary(n_jobs=1, features=["a", "tree"])
    assert summary(n_jobs=2, features=["a", "tree"]) == one
    assert summary(random_state=4, features=["a", "tree"]) != one


@each_container
def test_containers_change_no_number_and_are_not_changed(make: Callable[[pd.DataFrame], Any]) -> None:
    table, train = make(X), make(TRAIN)
    copies = frozen(table), frozen(train)
    found = summary(table, train)
    assert found.features == expected().features
    assert replace(found, methods=expected().methods) == expected()  # versions name the packages that are loaded
    assert unchanged(table, copies[0])
    assert unchanged(train, copies[1])


def test_a_subset_of_features_changes_no_importance() -> None:
    every = {one.feature: one for one in expected().features}
    for one in summary(features=["b", "a"]).features:
        assert (one.conditional, one.marginal, one.lines) == (
            every[one.feature].conditional,
            every[one.feature].marginal,
            every[one.feature].lines,
        )


def test_reading_and_writing_a_report_predicts_nothing() -> None:
    model = Counting()
    found = sg.report(model, (TRAIN, Y_TRAIN), (X, Y), **SETTINGS)
    n_rows = model.rows
    found.to_html()
    found.to_markdown()
    found.to_json()
    repr(found)
    assert model.rows == n_rows


@pytest.mark.parametrize("n", [1, 4])
def test_a_sample_of_the_rows_is_reported(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subgrove._report.inputs.MOST_ROWS", 100 // n)
    monkeypatch.setattr("subgrove._report.inputs.EFFECT_ROWS", 60 // n)
    monkeypatch.setattr("subgrove._report.inputs._FEWEST_ROWS", 10)
    found = summary(features=["a"])
    settings = {one.name: one.value for one in found.methods.settings}
    assert (settings["rows for importance"], settings["rows for curves"]) == (100 // n, 60 // n)
    assert found.data.n_test == len(X)
    assert sum(found.features[0].distribution.counts) == 100 // n
    assert found.features[0].lines[0].n == 60 // n
    assert sum("random sample" in sentence for sentence in found.methods.sentences) == 2
    assert np.isfinite(found.features[0].conditional.estimate)
