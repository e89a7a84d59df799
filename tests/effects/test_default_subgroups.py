"""By default, effects are computed in subgroups found on the rows; plain curves are computed on request."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ColumnError, ParameterError

TRAIN, TEST = sg.datasets.bike(split=0.5, random_state=1)
X = TEST.X


def model(table: Any) -> Any:
    return 100 * table["temp"] + 10 * table["hum"]


@pytest.mark.parametrize("kind", ["pdp", "ice"])
def test_default_is_that_of_subgroups_found_on_the_rows(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sg.effect(model, X, "temp", kind=kind, grid_resolution=4)
    partition = sg.find_subgroups(X, features="temp")["temp"]
    assert len(partition) > 1
    expected = sg.effect(model, X, "temp", kind=kind, subgroups=partition, grid_resolution=4)
    pd.testing.assert_frame_equal(found.curves, expected.curves)


def test_weights_count_in_the_subgroups() -> None:
    weights = np.where(X["season"] == "SUMMER", 0, 1)
    found = sg.effect(model, X, "temp", sample_weight=weights, grid_resolution=4)
    partition = sg.find_subgroups(X, features="temp", sample_weight=weights)["temp"]
    assert [group.rule for group in found.groups] == list(partition.rules)


def test_independent_feature_has_one_curve() -> None:
    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 3)), columns=list("abc"))
    found = sg.effect(lambda table: table["a"], rows, "a")
    assert found.subgroups is None
    pd.testing.assert_frame_equal(found.curves, sg.effect(lambda table: table["a"], rows, "a", subgroups=None).curves)


@pytest.mark.parametrize(
    ("feature", "options"), [("temp", {"kind": "ale"}), ("temp", {"kind": "mplot"}), (("temp", "hum"), {})]
)
def test_other_kinds_and_pairs_use_all_rows(feature: Any, options: dict[str, Any]) -> None:
    assert sg.effect(model, X, feature, grid_resolution=4, **options).subgroups is None


def test_table_of_one_column_has_a_curve() -> None:
    assert sg.effect(lambda table: table["temp"], X[["temp"]], "temp").subgroups is None


def test_column_that_rules_cannot_use_is_named_with_the_way_out() -> None:
    rows = X.assign(other=np.inf)
    with pytest.raises(ColumnError, match=r"'other' of X has .* infinite values.* Or pass subgroups=None"):
        sg.effect(model, rows, "temp")
    assert sg.effect(model, rows, "temp", subgroups=None).subgroups is None


def test_large_data_find_subgroups_on_the_sample(tmp_path: Any) -> None:
    X.to_parquet(tmp_path / "rows.parquet")
    found = sg.effect(model, tmp_path / "rows.parquet", "temp", grid_resolution=4)
    assert {group.rule for group in found.groups} == set(sg.find_subgroups(X, features="temp")["temp"].rules)


def test_other_text_is_rejected() -> None:
    with pytest.raises(ParameterError, match=r"subgroups must be 'auto', None, a result of find_subgroups .* 'yes'"):
        sg.effect(model, X, "temp", subgroups="yes")  # type: ignore[arg-type]
