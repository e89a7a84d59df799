"""A result that holds sums has the same tables as one that holds rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.moments import Moments, merged
from subgrove._scoring.feature_result import FeatureResult, result_from_sums, with_rows
from subgrove.exceptions import ParameterError
from subgrove.samplers import ResampledFeature, RowGroups

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
LOSSES = ["squared_error", "absolute_error"]
CLOSE: dict[str, Any] = {"rtol": 1e-10, "check_exact": False}


def model(X: pd.DataFrame) -> pd.Series:
    return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012") - 5 * X["hum"]


def as_sums(score: FeatureResult, weights: np.ndarray | None) -> FeatureResult:
    """The sums that a device or partitions compute, in three chunks."""
    code = score.code.astype(int)
    chunks = np.array_split(np.arange(len(code)), 3)
    moments = merged(
        Moments.of(score.rows[:, rows], code[rows], len(score.rules), None if weights is None else weights[rows])
        for rows in chunks
    )
    m = score.overall.shape[1]
    left = score.excess * score.sizes * (m - 1) * m  # as if no draw had been without replacement
    groups = RowGroups(code.astype(np.int32), score.rules, score.conditioning, score.folds)
    found = result_from_sums(
        score.feature,
        ResampledFeature(groups, lambda: iter(())),
        score.sizes,
        score.repeats * score.sizes,
        left,
        score.sizes,
        moments=moments,
    )
    return replace(found, mc_variance=score.mc_variance, fidelity_check=score.fidelity_check)


@pytest.fixture(scope="module", params=[None, "weights"])
def both(request: pytest.FixtureRequest) -> tuple[sg.ImportanceResult, sg.ImportanceResult]:
    weights = None if request.param is None else np.random.default_rng(1).integers(1, 4, len(TEST.y)).astype(float)
    options: dict[str, Any] = {
        "features": ["temp", "hum", "yr"],
        "loss": LOSSES,
        "n_repeats": 4,
        "random_state": 1,
    }
    sampler = sg.samplers.SubgroupSampler(donors="train")
    rows = sg.importance(
        model,
        TEST.X,
        TEST.y,
        sampler=sampler,
        train=TRAIN.X,
        sample_weight=None if weights is None else sg.FrequencyWeights(weights),
        **options,
    )
    # In memory the spread of rows is kept in half the digits.
    wide = tuple(replace(score, influence=score.rows) for score in with_rows(rows.scores, "the test"))
    rows = replace(rows, scores=wide)
    scores = tuple(as_sums(score, weights) for score in wide)
    return rows, replace(rows, scores=scores, weights=None, index=None, predictions=None, residuals=None)


def unmarked(table: pd.DataFrame) -> pd.DataFrame:
    """A table without the marks of intervals, which need rows; without rows they are more frequent."""
    return table.drop(columns="reliable", errors="ignore")


def test_tables_are_those_of_rows(both: tuple[sg.ImportanceResult, sg.ImportanceResult]) -> None:
    rows, sums = both
    for name in ("overall", "by_subgroup", "variance_components", "repeats", "fidelity_checks", "choices"):
        pd.testing.assert_frame_equal(unmarked(getattr(sums, name)), unmarked(getattr(rows, name)), **CLOSE)
    exact = ["estimate", "n"]
    pd.testing.assert_frame_equal(sums.by_subgroup[exact], rows.by_subgroup[exact], rtol=1e-12)
    level = 0.8
    pd.testing.assert_frame_equal(
        unmarked(sums.with_level(level).overall), unmarked(rows.with_level(level).overall), **CLOSE
    )
    only = "absolute_error"
    pd.testing.assert_frame_equal(
        unmarked(sums.for_loss(only).by_subgroup), unmarked(rows.for_loss(only).by_subgroup), **CLOSE
    )
    pd.testing.assert_frame_equal(
        sums.over_repeats(by_subgroup=True), rows.over_repeats(by_subgroup=True), rtol=1e-12, check_exact=False
    )
    assert sums.n_rows == rows.n_rows


def test_words_and_pages_are_those_of_rows(both: tuple[sg.ImportanceResult, sg.ImportanceResult]) -> None:
    rows, sums = both
    assert repr(sums) == repr(rows)
    assert sums._repr_html_() == rows._repr_html_()
    assert sums.explain("temp").sentences == rows.explain("temp").sentences


def test_plots_take_sums(both: tuple[sg.ImportanceResult, sg.ImportanceResult]) -> None:
    _, sums = both
    one = sums.for_loss("squared_error")
    sg.plots.importance(one)
    sg.plots.subgroup_importance(one, "temp")
    plt.close("all")


def test_sums_are_saved_and_read_back(both: tuple[sg.ImportanceResult, sg.ImportanceResult], tmp_path: Path) -> None:
    _, sums = both
    sums.save(tmp_path / "sums.json")
    for again in (sg.ImportanceResult.load(tmp_path / "sums.json"), pickle.loads(pickle.dumps(sums))):
        for name in ("overall", "by_subgroup"):
            pd.testing.assert_frame_equal(getattr(again, name), getattr(sums, name), check_exact=True)


def test_what_needs_rows_says_so(both: tuple[sg.ImportanceResult, sg.ImportanceResult]) -> None:
    rows, sums = both
    options: list[Callable[[], Any]] = [
        lambda: sums.per_row,
        lambda: sums.independence_test(TEST.X),
        lambda: sums.compare(rows),
        lambda: rows.compare(sums),
        lambda: sums.explain_gap(sums, "temp"),
    ]
    for method in options:
        with pytest.raises(ParameterError, match=r"needs values of single rows.*table of some of the rows"):
            method()


def test_a_single_repeat_has_no_error_of_draws() -> None:
    moments = Moments.of(np.random.default_rng(1).normal(size=(1, 50)))
    all_rows = ResampledFeature(RowGroups.single(50), lambda: iter(()))
    sums = (np.full(1, 50.0), 50 * moments.mean[:, None], np.zeros((1, 1)))
    one = result_from_sums(("x",), all_rows, *sums, np.array([50]), moments=moments)
    assert np.isnan(one.mc_variance).all()
    assert one.overall[0, 0] == pytest.approx(moments.mean[0, 0], rel=1e-14)
    exact = result_from_sums(("x",), all_rows, *sums, np.array([0]), moments=moments)
    assert (exact.mc_variance == 0).all()
