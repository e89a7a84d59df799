"""What dependence does with missing values, constant columns, rare and many levels, dates, and wrong input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ColumnError, InputError, ParameterError

RNG = np.random.default_rng(0)
Z = RNG.normal(size=200)
X = pd.DataFrame({"z": Z, "copy": 3 * Z + 0.1 * RNG.normal(size=200), "noise": RNG.normal(size=200)})


def line(table: pd.DataFrame, feature: str, **more: Any) -> dict[str, Any]:
    (found,) = sg.dependence(table, features=feature, n_trees=30, random_state=1, **more).table.to_dict("records")
    return {str(name): value for name, value in found.items()}


def test_rows_without_a_value_of_the_feature_are_left_out_and_counted() -> None:
    table = X.assign(copy=X["copy"].where(np.arange(200) >= 50))
    found = line(table, "copy")
    assert found["n"] == 150
    assert found["note"] == "50 rows with missing values excluded"
    assert found["explained"] > 0.9


def test_missing_values_of_other_columns_are_allowed() -> None:
    table = X.assign(z=X["z"].where(RNG.random(200) < 0.8), level=pd.Series(["u", None] * 100, dtype=object))
    assert line(table, "copy")["explained"] > 0.4


@pytest.mark.parametrize("value", [1.0, "u", True])
def test_a_constant_feature_has_no_share_and_says_why(value: Any) -> None:
    found = line(X.assign(same=value), "same")
    assert np.isnan(found["explained"])
    assert (found["note"], found["sampler"], found["predictors"]) == ("has one value only", "", "")


def test_a_constant_column_states_nothing() -> None:
    found = sg.dependence(X.assign(same=1.0), n_trees=30, random_state=1)
    assert found.matrix["same"][:3].tolist() == [0.0, 0.0, 0.0]
    assert found.matrix.iloc[3, 1:].isna().all()


def test_a_column_without_any_value_is_no_obstacle() -> None:
    found = sg.dependence(X.assign(empty=np.nan), n_trees=30, random_state=1).table
    assert found["note"].tolist()[3] == "only 0 rows have a value; at least 10 are needed"
    assert found["explained"][1] > 0.9


def test_too_few_known_values_are_reported() -> None:
    table = X.assign(rare=np.where(np.arange(200) < 9, X["z"], np.nan))
    assert "only 9 rows have a value" in line(table, "rare")["note"]


def test_a_feature_with_very_many_levels_is_not_predicted_but_others_are() -> None:
    table = X.assign(name=[f"row {k}" for k in range(200)])
    found = sg.dependence(table, n_trees=30, random_state=1).table.set_index("feature")
    assert found.loc["name", "note"] == "has 200 levels; more than 100 are not supported"
    # A level of its own for each row says nothing about rows that were not seen, however well it fits those that were.
    assert found.loc["noise", "explained"] < 0.1


def test_a_level_so_rare_that_a_half_lacks_it_is_reported() -> None:
    table = X.assign(rare=np.where(np.arange(200) == 7, "yes", "no"))
    found = line(table, "rare")
    assert found["note"] == "1 of 2 halves have one value only, or nearly so"
    assert found["explained"] <= 0


@pytest.mark.parametrize("others", [0.0, 7.3, "tiny"])
def test_one_deviating_row_gives_no_absurd_share(others: Any) -> None:
    rest = 1e-12 * RNG.normal(size=199) if others == "tiny" else np.full(199, others)
    found = line(X.assign(flag=np.r_[1e3, rest]), "flag")
    assert found["note"] == "1 of 2 halves have one value only, or nearly so"
    assert -1 < found["explained"] <= 0


def test_ordered_levels_are_classes() -> None:
    sizes = pd.CategoricalDtype(["small", "medium", "large"], ordered=True)
    codes = np.digitize(X["z"], [-0.5, 0.5])
    table = X.assign(size=pd.Categorical.from_codes(codes, dtype=sizes))
    found = line(table, "size")
    assert found["kind"] == "ordered"
    assert found["explained"] > 0.8
    assert line(table, "z")["explained"] > 0.9


def test_dates_and_durations_are_numbers() -> None:
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(X["z"] * 100), unit="D")
    table = pd.DataFrame({"day": days, "since": days - pd.Timestamp("2020-01-01"), "noise": X["noise"]})
    assert line(table, "day")["explained"] > 0.8
    assert line(table, "since")["predictors"].startswith("day")


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1e12, 1e300])
def test_the_unit_of_a_feature_does_not_matter(scale: float) -> None:
    plain, scaled = line(X, "copy"), line(X.assign(copy=X["copy"] * scale), "copy")
    assert scaled["explained"] == pytest.approx(plain["explained"], abs=1e-6)


def test_booleans_are_levels() -> None:
    assert line(X.assign(positive=X["z"] > 0), "positive")["kind"] == "nominal"


def test_kinds_can_be_set() -> None:
    table = X.assign(code=RNG.integers(0, 3, 200))
    assert line(table, "code", kinds={"code": "nominal"})["kind"] == "nominal"


def test_a_column_called_feature_keeps_its_name_in_the_matrix() -> None:
    found = sg.dependence(X.rename(columns={"z": "feature"}), n_trees=5, random_state=1)
    assert list(found.matrix.columns) == ["feature_", "feature", "copy", "noise"]


def test_ten_rows_are_enough() -> None:
    assert np.isfinite(line(X[:10], "copy")["explained"])


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"X": X[:9]}, InputError, "X has 9 rows"),
        ({"X": X[:0]}, InputError, "0 rows"),
        ({"X": X[["z"]]}, InputError, "one column, 'z', and nothing to predict it from"),
        ({"X": [1, 2, 3]}, InputError, "X"),
        ({"features": "price"}, ParameterError, "features names 'price'"),
        ({"features": [("z", "copy")]}, ParameterError, "features has the group 'z', 'copy'"),
        ({"features": []}, ParameterError, "features is empty"),
        ({"n_trees": 0}, ParameterError, "n_trees must be a whole number >= 1"),
        ({"n_trees": 1.5}, ParameterError, "n_trees"),
        ({"n_repeats": 0}, ParameterError, "n_repeats"),
        ({"threshold": 2}, ParameterError, "threshold must be a number from 0 to 1"),
        ({"threshold": "high"}, ParameterError, "threshold"),
        ({"random_state": -1}, ParameterError, "seed"),
        ({"n_jobs": 0}, ParameterError, "n_jobs"),
        ({"kinds": {"price": "nominal"}}, ParameterError, "kinds names 'price'"),
        ({"X": X.assign(z=np.inf)}, ColumnError, "infinite"),
    ],
)
def test_wrong_input_is_reported(given: dict[str, Any], error: type[Exception], says: str) -> None:
    arguments = {"X": X} | given
    with pytest.raises(error, match=says):
        sg.dependence(arguments.pop("X"), **arguments)
