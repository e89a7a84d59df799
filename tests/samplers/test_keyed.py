"""Rows that are known by keys have the same samples whatever part of the table they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import KeyedStreams
from subgrove.samplers.base import FittedSampler
from subgrove.samplers.donors import training_donors
from subgrove.samplers.resampled_feature import _ValueCoding

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
NUMERIC = ["temp", "hum", "wind"]
KEYS = np.random.default_rng(5).integers(0, 2**63, len(TEST.X)).astype(np.uint64)
M = 3

SAMPLERS: dict[str, tuple[Any, list[Any]]] = {
    "subgroups": (sg.samplers.SubgroupSampler(donors="train"), ["temp", "season", ["hum", "wind"]]),
    "cart": (sg.samplers.SubgroupSampler(tree="cart", donors="train"), ["temp"]),
    "marginal": (sg.samplers.Marginal(donors="train"), ["temp", "season", ["hum", "wind"]]),
    "auto": (sg.samplers.Auto(), ["temp", "hum", "weekday", "yr"]),
    "shifted_subgroups": (sg.samplers.ShiftedSubgroups(), ["temp", "season"]),
    "imputation": (sg.samplers.Imputation(n_trees=20), ["temp", "season"]),
    "knockoffs": (sg.samplers.Knockoffs(), ["temp"]),
    "intervals": (sg.samplers.Intervals(), ["temp"]),
    "unchanged": (sg.samplers.Unchanged(), ["temp"]),
}


def drawn(fitted: FittedSampler, X: pd.DataFrame, feature: Any, rows: Any, memory: dict[str, Any]) -> list[Any]:
    """Values of each repeat, column by column."""
    streams = KeyedStreams(3, str(feature), M, rows=rows, memory=memory)
    return [np.asarray(one, dtype=object) for one in fitted.sample(X, feature, streams)]


@pytest.mark.parametrize("name", SAMPLERS)
def test_parts_are_resampled_as_the_whole_is(name: str) -> None:
    method, features = SAMPLERS[name]
    fitted = method.fit(TRAIN.X, features)
    order = np.random.default_rng(1).permutation(len(KEYS))
    for feature in features:
        whole = drawn(fitted, TEST.X, feature, KEYS, {})
        memory: dict[str, Any] = {}
        for rows in np.array_split(order, 4):
            part = drawn(fitted, TEST.X.iloc[rows], feature, KEYS[rows], memory)
            for one, two in zip(part, whole, strict=True):
                assert (one == two[..., rows]).all()
        if name != "unchanged":
            assert len(whole) == M
            assert (whole[0] != whole[1]).any()


def test_a_row_sees_all_of_its_pool_before_it_sees_a_donor_again() -> None:
    pools = [np.array([0, 3, 4, 9]), np.array([1, 2, 5])]
    code = np.array([0, 1] * 50, dtype=np.int32)
    rows = np.arange(100, dtype=np.uint64)
    donors = np.array(list(training_donors(code, pools, KeyedStreams(0, "x", 8, rows=rows))))
    for at, k in enumerate(code):
        for start in range(0, 8, len(pools[k])):
            turn = donors[start : start + len(pools[k]), at]
            assert len(set(turn.tolist())) == len(turn)
            assert set(turn.tolist()) <= set(pools[k].tolist())


def test_keyed_donors_are_uniform_over_their_pool() -> None:
    """Chi-square of 20 donors has mean 19 and sd 6.2: below 50 at 5 sd."""
    rows = np.arange(20_000, dtype=np.uint64)
    code = np.zeros(len(rows), dtype=np.int32)
    for donors in training_donors(code, [np.arange(20)], KeyedStreams(1, "x", 4, rows=rows)):
        counts = np.bincount(donors, minlength=20)
        assert ((counts - 1000) ** 2 / 1000).sum() < 50


def test_keyed_donors_do_not_depend_on_the_numbers_of_subgroups() -> None:
    pools = [np.array([0, 3, 4]), np.array([1, 2, 5, 6])]
    rows, code = np.arange(40, dtype=np.uint64), np.array([0, 1] * 20, dtype=np.int32)
    one = list(training_donors(code, pools, KeyedStreams(0, "x", 5, rows=rows)))
    two = list(training_donors(1 - code, pools[::-1], KeyedStreams(0, "x", 5, rows=rows)))
    assert (np.array(one) == np.array(two)).all()


def test_marginal_donors_of_training_have_the_importance_of_marginal_ones() -> None:
    def model(X: pd.DataFrame) -> pd.Series:
        return 100 * X["temp"] + 500 * (X["season"] == "FALL")

    requested: dict[str, Any] = {
        "features": ["temp", "season"],
        "n_repeats": 30,
        "random_state": 1,
        "check_fidelity": False,
    }
    inside = sg.importance(model, TEST.X, model(TEST.X), sampler="marginal", **requested)
    outside = sg.importance(
        model, TEST.X, model(TEST.X), sampler=sg.samplers.Marginal(donors="train"), train=TRAIN.X, **requested
    )
    assert outside.settings["trained_on"] == "train"
    for name in ("temp", "season"):
        one, two = (imp.overall.set_index("feature").loc[name] for imp in (inside, outside))
        assert abs(one["estimate"] - two["estimate"]) < 4 * np.hypot(one["std_error"], two["std_error"])
    with pytest.raises(sg.exceptions.ParameterError, match="donors must be 'test' or 'train'; got 'both'"):
        sg.samplers.Marginal(donors="both").fit(TRAIN.X)  # type: ignore[arg-type]


@pytest.mark.parametrize("feature", [("season",), ("temp",), ("season", "yr"), ("season", "yr", "gap")])
def test_values_have_the_codes_of_training(feature: tuple[str, ...]) -> None:
    from subgrove._data.table import read_like, read_table

    train = TRAIN.X.assign(gap=np.where(np.arange(len(TRAIN.X)) % 3, 1.0, np.nan))
    test = TEST.X.assign(gap=np.where(np.arange(len(TEST.X)) % 2, np.nan, 2.0))
    one = read_table(train, lenient=True)
    two = read_like(test, one.columns)
    coding = _ValueCoding.of(one, feature)
    plain = [rows[list(feature)].astype(object) for rows in (train, test)]
    cells, new = ([tuple(row) for row in rows.where(rows.notna(), -1).to_numpy().tolist()] for rows in plain)
    known = dict(zip(cells, coding.codes(one, feature), strict=True))
    wanted = [known.get(row, -1) for row in new]
    assert (coding.codes(two, feature) == wanted).all()
