"""The subgroups of a result are those of its table `by_subgroup`."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import subgrove as sg

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
FEATURES = ["temp", "hum", "yr", "season"]


def model(X: Any) -> Any:
    return 100 * X["temp"] - 2 * X["hum"]


def found(sampler: Any, **more: Any) -> sg.ImportanceResult:
    return sg.importance(model, TEST.X, TEST.y, sampler=sampler, features=FEATURES, n_repeats=2, random_state=1, **more)


@pytest.mark.parametrize("sampler", ["auto", "subgroups", "cart", sg.samplers.ShiftedSubgroups(report_depth=1)])
def test_rules_and_sizes_of_the_subgroups_are_those_of_the_table(sampler: Any) -> None:
    imp = found(sampler, train=TRAIN.X)
    table = imp.by_subgroup
    assert "temp" in imp.subgroups
    for name in FEATURES:
        own = table[table["feature"] == name]
        if name not in imp.subgroups:
            assert own["rule"].tolist() == ["all rows"]
            continue
        partition = imp.subgroups[name]
        assert list(partition.rules) == own["rule"].tolist()
        assert [int((partition.assign(TEST.X) == k).sum()) for k in range(len(partition))] == own["n"].tolist()


def test_results_without_a_tree_of_their_own_have_none() -> None:
    assert found("marginal").subgroups == {}
    assert found(sg.samplers.Imputation(n_trees=5), train=TRAIN.X).subgroups == {}
    assert found("subgroups").subgroups == {}  # cross-fitted: a tree for each half
    assert pickle.loads(pickle.dumps(found(sg.find_subgroups(TRAIN.X, features=FEATURES)))).subgroups == {}
