"""The result is evaluated at other values, compared and pickled."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups
from subgrove.exceptions import InputError, ParameterError, UnseenValueWarning

from .models import SEASONS, model, rows

X = rows(200)
GROUPS = find_subgroups(rows(200, seed=1), min_samples_leaf=30)


def test_curve_is_linear_between_points_and_constant_beyond() -> None:
    found = effect(model, X, "temp", grid=[0.0, 10.0, 20.0], subgroups=None)
    y = found.curves["estimate"].to_numpy()
    np.testing.assert_allclose(
        found.predict([-5.0, 0.0, 2.5, 10.0, 20.0, 99.0]),
        [y[0], y[0], 0.75 * y[0] + 0.25 * y[1], y[1], y[2], y[2]],
        rtol=1e-13,
    )


def test_column_and_table_give_the_same_values() -> None:
    found = effect(model, X, "temp", subgroups=None)
    assert found.predict(X["temp"]).tolist() == found.predict(X).tolist() == found.predict(X["temp"].tolist()).tolist()


def test_levels_have_their_value() -> None:
    found = effect(model, X, "season", subgroups=None)
    by_level = dict(zip(found.curves["x"], found.curves["estimate"], strict=True))
    assert found.predict(X).tolist() == [by_level[level] for level in X["season"]]


def test_level_without_a_point_has_no_value() -> None:
    found = effect(model, X, "season", subgroups=None)
    with pytest.warns(UnseenValueWarning, match="MONSOON"):
        values = found.predict(["FALL", "MONSOON"])
    assert np.isnan(values).tolist() == [False, True]


def test_row_has_the_value_of_its_subgroups_curve() -> None:
    found = effect(model, X, "temp", subgroups=GROUPS)
    code = GROUPS["temp"].assign(X)
    for k in range(len(GROUPS["temp"])):
        mine = X[code == k]
        alone = effect(model, mine, "temp", subgroups=None)
        np.testing.assert_allclose(found.predict(X)[code == k], alone.predict(mine), rtol=1e-12)


def test_subgroups_need_a_table() -> None:
    with pytest.raises(ParameterError, match="table"):
        effect(model, X, "temp", subgroups=GROUPS).predict([1.0])
    with pytest.raises(InputError, match="lacks 'temp'"):
        effect(model, X, "temp", subgroups=None).predict(X.drop(columns="temp"))


def test_surface_is_bilinear() -> None:
    some = pd.DataFrame({"a": [0.0, 4.0], "b": [0.0, 2.0]})
    found = effect(lambda X: X["a"] * X["b"] + X["a"], some, ("a", "b"), grid_resolution=2, subgroups=None)
    at = pd.DataFrame({"a": [1.0, 3.0, -9.0], "b": [0.5, 1.5, 99.0]})
    assert found.predict(at).tolist() == pytest.approx([1.5, 7.5, 0.0])


def test_surface_with_levels_is_linear_within_a_level() -> None:
    found = effect(model, X, ("season", "temp"), grid_resolution=3, subgroups=None)
    fall = effect(
        model, X.assign(season=pd.Categorical(["FALL"] * len(X), SEASONS)), "temp", grid_resolution=3, subgroups=None
    )
    at = X[X["season"] == "FALL"]
    np.testing.assert_allclose(found.predict(at), fall.predict(at), rtol=1e-12)


def test_dates_are_parsed() -> None:
    found = effect(model, X, "day", subgroups=None)
    assert found.predict(X["day"]).tolist() == found.predict(X).tolist()
    with pytest.raises(InputError, match="dates"):
        found.predict([1.0])


@pytest.mark.parametrize("kind", ["pdp", "ice", "ale", "mplot"])
@pytest.mark.parametrize("feature", ["temp", "season"])
def test_result_is_equal_by_value_and_survives_pickling(kind: Any, feature: str) -> None:
    one, two = (effect(model, X, feature, kind=kind, subgroups=GROUPS) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != effect(model, X.head(150), feature, kind=kind, subgroups=GROUPS)
    assert one != effect(lambda X: 2 * model(X), X, feature, kind=kind, subgroups=GROUPS)
    assert one != "another thing"


def test_result_is_frozen() -> None:
    with pytest.raises(AttributeError):
        effect(model, X, "temp", subgroups=None).kind = "ale"  # type: ignore[misc]


def test_level_of_intervals_is_a_parameter_of_the_table() -> None:
    found = effect(model, X, "temp", subgroups=None)
    narrow, wide = found.table(0.5), found.table(0.99)
    assert (narrow["conf_low"] > wide["conf_low"]).all()
    assert found.table(0.95).equals(found.curves)


def test_columns_have_the_common_names() -> None:
    head = ["feature", "subgroup", "rule", "n", "x", "estimate", "std_error", "conf_low", "conf_high", "noise"]
    head += ["in_box", "in_whiskers"]
    assert list(effect(model, X, "temp", subgroups=None).curves) == head
    box = ["whisker_low", "q1", "median", "q3", "whisker_high"]
    assert list(effect(model, X, "season", subgroups=None).curves) == head + box
    assert list(effect(model, X, ("temp", "hum"), grid_resolution=2, subgroups=None).curves)[4:6] == ["x1", "x2"]
    assert list(effect(model, X, "temp", subgroups=None).support) == [
        "subgroup",
        "rule",
        "n",
        "missing",
        "low",
        *box,
        "high",
    ]
    assert list(effect(model, X, "season", subgroups=None).support) == [
        "subgroup",
        "rule",
        "n",
        "missing",
        "level",
        "count",
    ]


def test_tables_of_several_features_can_be_concatenated() -> None:
    both = pd.concat([effect(model, X, feature, subgroups=None).curves for feature in ("temp", "hum")])
    assert both["feature"].unique().tolist() == ["temp", "hum"]
    assert effect(model, X, ("temp", "hum"), grid_resolution=2, subgroups=None).curves["feature"].unique().tolist() == [
        "temp + hum"
    ]


def test_table_names_the_noise_of_its_intervals() -> None:
    assert effect(model, X, "temp", kind="ale").curves["noise"].unique().tolist() == ["test rows"]


def test_repr_describes_the_effect() -> None:
    assert (
        repr(effect(model, X, "temp", grid_resolution=5, subgroups=None))
        == "<Effect of 'temp': pdp, 1 curve, 5 points>"
    )
    assert repr(effect(model, X, "season", subgroups=GROUPS)).startswith("<Effect of 'season': pdp, ")
