"""find_groups: features that can replace each other, for any kinds of columns, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from subgrove import find_groups
from subgrove.exceptions import ParameterError


def rows(n: int = 600, seed: int = 1) -> pd.DataFrame:
    """`size`, `log_size` and `class` are the same in other units; `age` and `noise` are on their own."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(size=n))
    noise = rng.normal(size=n)
    return pd.DataFrame(
        {
            "size": size,
            "age": rng.normal(size=n),
            "log_size": np.log(size) + 0.1 * rng.normal(size=n),
            "noise": noise,
            "class": pd.Categorical(np.select([size < 0.4, size > 2.5], ["small", "large"], "medium")),
            "square": noise**2,
        }
    )


def test_the_same_quantity_in_other_units_is_one_group() -> None:
    groups = find_groups(rows())
    assert groups.redundant == (("size", "log_size", "class"),)
    assert list(groups) == ["size, log_size, class", "age", "noise", "square"]
    assert groups["age"] == ("age",)
    assert repr(groups).splitlines() == ["<FeatureGroups of 6 features: 1 redundant>", "  size, log_size, class"]


def test_a_function_that_cannot_be_inverted_is_no_replacement() -> None:
    """`square` is known from `noise`, but not `noise` from `square`."""
    groups = find_groups(rows(), features=["noise", "square"], threshold=0.2)
    assert groups.redundant == ()


def test_pure_noise_has_no_groups() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(60, 15))).assign(level=rng.choice(list("abcdef"), 60))
        assert find_groups(X.rename(columns=str), threshold=0.4).redundant == ()


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_a_larger_threshold_never_merges_more(threshold: float) -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(size=(500, 1))
    X = pd.DataFrame(base + rng.normal(size=(500, 6)) * [0.1, 0.3, 0.5, 0.7, 1.0, 2.0]).rename(columns=str)
    lower, higher = (len(find_groups(X, threshold=one)) for one in (threshold, threshold + 0.1))
    assert higher >= lower


def test_missing_values_and_constants_are_no_obstacle() -> None:
    X = rows().assign(constant=1.0, empty=np.nan)
    X.loc[::3, "size"] = np.nan
    assert find_groups(X).redundant == (("size", "log_size", "class"),)


def test_units_containers_and_the_order_of_rows_do_not_matter() -> None:
    X = rows().drop(columns="class")
    expected = find_groups(X)
    for other in (X.sample(frac=1, random_state=1), X.assign(size=1e9 * X["size"]), pl.from_pandas(X)):
        found = find_groups(other)
        assert found.groups == expected.groups
        np.testing.assert_allclose(found.shared, expected.shared, atol=1e-12)
    table: Any = find_groups(pl.from_pandas(X)).table
    assert isinstance(table, pl.DataFrame)
    assert table["n_features"].to_list() == [2, 1, 1, 1]
    assert table["least_shared"][0] > 0.9


def test_bad_arguments_are_rejected() -> None:
    with pytest.raises(ParameterError, match="threshold must be a number from 0 to 1; got 50"):
        find_groups(rows(), threshold=50)
    with pytest.raises(ParameterError, match="features has groups already"):
        find_groups(rows(), features=[["size", "age"]])
