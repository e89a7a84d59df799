"""Resampling within subgroups by itself; its numbers are in claims/test_importance_claims.py."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove.exceptions import ParameterError

TRAIN, TEST = sg.datasets.bike(split=0.6, random_state=3)
FEATURES = ["temp", "season", "hum"]


def new_columns(sampler: Any, feature: Any = "temp", n_repeats: int = 4, X: Any = TEST.X) -> list[Any]:
    return list(sampler.sample(X, feature, Streams(1, str(feature), n_repeats)))


@pytest.mark.parametrize("tree", ["transformation", "cart"])
def test_values_come_from_rows_of_the_same_rule(tree: Any) -> None:
    groups = sg.find_subgroups(TRAIN.X, features=FEATURES, tree=tree, max_depth=2)
    sampler = sg.samplers.SubgroupSampler(tree=tree).fit(TRAIN.X, FEATURES)
    for feature in FEATURES:
        assert sampler.groups[feature].rules == groups[feature].rules
        code, own = groups[feature].assign(TEST.X), TEST.X[feature].astype(str).to_numpy()
        for column in new_columns(sampler, feature):
            values = np.asarray(column).astype(str)
            for k in range(len(groups[feature])):
                assert sorted(values[code == k]) == sorted(own[code == k])


def test_training_donors_come_from_training_rows_of_the_same_rule() -> None:
    sampler = sg.samplers.SubgroupSampler(donors="train").fit(TRAIN.X, FEATURES)
    for feature in FEATURES:
        partition = sampler.groups[feature]
        code, leaves = partition.assign(TEST.X), partition.assign(TRAIN.X)
        for column in new_columns(sampler, feature):
            values = np.asarray(column).astype(str)
            for k in range(len(partition)):
                assert set(values[code == k]) <= set(TRAIN.X[feature].astype(str)[leaves == k])


def test_found_subgroups_are_used_as_they_are() -> None:
    groups = sg.find_subgroups(TRAIN.X, features=FEATURES, max_depth=1)
    sampler = sg.samplers.SubgroupSampler(groups=groups).fit(None, ["temp"])
    assert sampler.groups is groups
    one, two = new_columns(sampler), new_columns(sg.samplers.SubgroupSampler(max_depth=1).fit(TRAIN.X, FEATURES))
    assert all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(one, two, strict=True))


def test_columns_of_rules_can_be_chosen() -> None:
    sampler = sg.samplers.SubgroupSampler(given=["hum"], max_depth=3).fit(TRAIN.X, ["temp"])
    assert sampler.groups["temp"].conditioning == ("hum",)


def test_group_is_resampled_from_one_donor() -> None:
    sampler = sg.samplers.SubgroupSampler().fit(TRAIN.X, [["temp", "hum"]])
    pairs = set(zip(TEST.X["temp"], TEST.X["hum"], strict=True))
    for temp, hum in new_columns(sampler, ["temp", "hum"]):
        assert set(zip(temp, hum, strict=True)) <= pairs
        assert sorted(temp) == sorted(TEST.X["temp"])


def test_rows_that_lack_the_feature_have_a_subgroup_and_a_donor() -> None:
    train, test = TRAIN.X.copy(), TEST.X.copy()
    train.loc[train.index[::5], "temp"] = np.nan
    test.loc[test.index[::4], "temp"] = np.nan
    sampler = sg.samplers.SubgroupSampler().fit(train, ["temp"])
    code = sampler.groups["temp"].assign(test)
    missing = test["temp"].isna().to_numpy()
    for column in new_columns(sampler, X=test):
        again = pd.isna(pd.Series(column)).to_numpy()
        assert np.bincount(code[again], minlength=4).tolist() == np.bincount(code[missing], minlength=4).tolist()


def test_fit_leaves_the_sampler_as_it_was_and_gives_a_frozen_one() -> None:
    method = sg.samplers.SubgroupSampler(max_depth=1, donors="train")
    before = method.get_params()
    fitted = method.fit(TRAIN.X, ["temp"])
    assert method.get_params() == before
    with pytest.raises(AttributeError):
        fitted.groups = None  # type: ignore[misc, assignment]
    again = pickle.loads(pickle.dumps(fitted))
    for one, two in zip(new_columns(fitted), new_columns(again), strict=True):
        assert (np.asarray(one) == np.asarray(two)).all()


def test_feature_that_no_subgroups_were_found_for_raises_an_error() -> None:
    sampler = sg.samplers.SubgroupSampler().fit(TRAIN.X, ["temp"])
    with pytest.raises(ParameterError, match="There are no subgroups of 'hum', only of temp"):
        new_columns(sampler, "hum")


def test_trees_need_training_rows() -> None:
    with pytest.raises(ParameterError, match="needs training rows to grow its trees"):
        sg.samplers.SubgroupSampler().fit(None, ["temp"])
