"""Contracts of gaps and conditioning sets: the same numbers whatever the container, jobs, batches and features."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context

import subgrove as sg

from .test_importance import TRAIN, Counting, X, Y, closed_form, each_container, frozen, unchanged

OPTIONS: dict[str, dict[str, Any]] = {
    "subgroups": {"sampler": sg.samplers.SubgroupSampler(max_depth=4, min_samples_leaf=40, alpha=0.9)},
    "imputation": {"sampler": sg.samplers.Imputation(n_trees=10)},
    "given": {"sampler": "subgroups", "given": {"a": ["b", "count"], "b": ["a"]}},
}
each_option = pytest.mark.parametrize("name", OPTIONS)


def gap(
    table: Any = X, train: Any = TRAIN, feature: str = "a", model: Any = closed_form, average: bool = False, **more: Any
) -> sg.Gap:
    common = {"features": ["a", "b"], "n_repeats": 3, "random_state": 3, **more}
    imp = sg.importance(model, table, Y, **{"train": train, **common})
    common = {name: value for name, value in common.items() if name not in ("sampler", "given")}
    return imp.explain_gap(sg.importance(model, table, Y, sampler="marginal", **common), feature, average=average)


def steps(found: sg.Gap) -> pd.DataFrame:
    table = found.steps
    if isinstance(table, pl.DataFrame | pa.Table):
        table = table.to_pandas() if isinstance(table, pa.Table) else pd.DataFrame(table.to_dict(as_series=False))
    return pd.DataFrame(table)


@cache
def expected(name: str) -> pd.DataFrame:
    """The steps that those of other containers are compared with."""
    return steps(gap(**OPTIONS[name]))


@each_option
@each_container
def test_containers_change_no_digit(make: Callable[[pd.DataFrame], Any], name: str) -> None:
    table, train = make(X), make(TRAIN)
    before = frozen(table), frozen(train)
    found = steps(gap(table, train, **OPTIONS[name]))
    pd.testing.assert_frame_equal(found, expected(name), check_exact=True, check_dtype=False)
    assert unchanged(table, before[0])
    assert unchanged(train, before[1])


@each_option
@pytest.mark.parametrize("average", [False, True])
def test_jobs_batches_and_other_features_change_no_digit(name: str, average: bool) -> None:
    options = OPTIONS[name]
    if average and name == "imputation":
        options = {**options, "given": {"a": ["b", "flag"]}}
    plain = steps(gap(average=average, **options))
    others: list[dict[str, Any]] = [{"n_jobs": 2}, {"features": ["b", "tree", "a"]}]
    for other in others:
        pd.testing.assert_frame_equal(steps(gap(average=average, **{**options, **other})), plain, check_exact=True)
    with config_context(working_memory=1e-9):
        pd.testing.assert_frame_equal(steps(gap(average=average, **options)), plain, check_exact=True)


def test_a_gap_predicts_the_sets_between_its_ends_and_100_rows() -> None:
    model = Counting()
    common: dict[str, Any] = {"features": ["a"], "n_repeats": 3, "random_state": 3}
    imp = sg.importance(model, X, Y, train=TRAIN, **OPTIONS["subgroups"], **common)
    marginal = sg.importance(model, X, Y, sampler="marginal", **common)
    before = model.rows
    found = imp.explain_gap(marginal, "a")
    assert len(found.columns) >= 2
    assert model.rows - before == (len(found.columns) - 1) * 3 * len(X) + 100 == found.n_rows_predicted
