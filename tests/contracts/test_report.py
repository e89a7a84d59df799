"""Contracts of reports: rows that were asked for, jobs, containers, features, and input that stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg

from .test_importance import TRAIN, Counting, X, Y, closed_form, each_container, frozen, unchanged

SETTINGS: dict[str, Any] = {"n_repeats": 3, "random_state": 3, "created": ""}
Y_TRAIN = closed_form(TRAIN)


def summary(table: Any = X, train: Any = TRAIN, model: Any = closed_form, **more: Any) -> Any:
    return sg.report(model, (train, Y_TRAIN), (table, Y), **{**SETTINGS, **more}).summary


@cache
def expected() -> Any:
    """The report that others are compared with."""
    return summary()


def test_the_methods_part_says_how_many_rows_the_model_was_asked_for() -> None:
    model = Counting()
    found = summary(model=model)
    asked = {one.name: one.value for one in found.methods.rows_predicted}
    assert asked["all together"] == model.rows == sum(asked.values()) / 2
    assert all(isinstance(value, int) and value > 0 for value in asked.values())


def test_the_number_of_jobs_changes_no_digit_and_the_seed_does() -> None:
    one = summary(n_jobs=1, features=["a", "tree"])
    assert summary(n_jobs=2, features=["a", "tree"]) == one
    assert summary(random_state=4, features=["a", "tree"]) != one


@each_container
def test_containers_change_no_number_and_are_not_changed(make: Callable[[pd.DataFrame], Any]) -> None:
    table, train = make(X), make(TRAIN)
    before = frozen(table), frozen(train)
    found = summary(table, train)
    assert found.features == expected().features
    assert replace(found, methods=expected().methods) == expected()  # versions name the packages that are loaded
    assert unchanged(table, before[0])
    assert unchanged(train, before[1])


def test_a_subset_of_features_changes_no_importance() -> None:
    every = {one.feature: one for one in expected().features}
    for one in summary(features=["b", "a"]).features:
        assert (one.conditional, one.marginal, one.lines) == (
            every[one.feature].conditional,
            every[one.feature].marginal,
            every[one.feature].lines,
        )


def test_reading_and_writing_a_report_asks_the_model_for_nothing() -> None:
    model = Counting()
    found = sg.report(model, (TRAIN, Y_TRAIN), (X, Y), **SETTINGS)
    before = model.rows
    found.to_html()
    found.to_markdown()
    found.to_json()
    repr(found)
    assert model.rows == before


@pytest.mark.parametrize("n", [1, 4])
def test_more_rows_than_are_used_are_told(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subgrove._report.inputs.MOST_ROWS", 100 // n)
    monkeypatch.setattr("subgrove._report.inputs.EFFECT_ROWS", 60 // n)
    monkeypatch.setattr("subgrove._report.inputs._FEWEST_ROWS", 10)
    found = summary(features=["a"])
    settings = {one.name: one.value for one in found.methods.settings}
    assert (settings["rows of importance"], settings["rows of curves"]) == (100 // n, 60 // n)
    assert found.data.n_test == len(X)
    assert sum(found.features[0].distribution.counts) == 100 // n
    assert found.features[0].lines[0].n == 60 // n
    assert sum("drawn at random" in sentence for sentence in found.methods.sentences) == 2
    assert np.isfinite(found.features[0].conditional.estimate)
