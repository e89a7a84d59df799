"""The marginal sampler by itself; its numbers are in claims/test_importance_claims.py."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._data.table import read_table
from subgrove.exceptions import InputError, ParameterError

RNG = np.random.default_rng(0)
X = pd.DataFrame({"x": RNG.normal(size=30), "city": RNG.choice(["Bonn", "Ulm"], 30), "count": RNG.integers(0, 3, 30)})


def test_resampling_gives_columns_of_the_container_with_the_same_values() -> None:
    sampler = sg.samplers.Marginal().fit(X)
    for table, kind in ((X, pd.api.extensions.ExtensionArray), (pl.from_pandas(X), pl.Series)):
        columns = list(sampler.sample(table, "city", [np.random.default_rng(k) for k in range(3)]))
        assert len(columns) == 3
        for column in columns:
            assert isinstance(column, kind)
            assert sorted(map(str, column)) == sorted(X["city"])
    array = X[["x"]].to_numpy()
    for column in sg.samplers.Marginal().fit(array).sample(array, "x0", 2):
        assert (column != array[:, 0]).all()
        assert sorted(column) == sorted(array[:, 0])


def test_group_is_resampled_from_one_donor() -> None:
    for x, city in sg.samplers.Marginal().fit(X).sample(X, ["x", "city"], 2):
        assert set(zip(x, city, strict=True)) == set(zip(X["x"], X["city"], strict=True))


def test_generators_of_the_user_are_used_for_resampling() -> None:
    sampler = sg.samplers.Marginal().fit(X)
    one, two, other = (
        [list(column) for column in sampler.sample(X, "x", [np.random.default_rng(seed)])] for seed in (1, 1, 2)
    )
    assert one == two != other


def test_fit_leaves_the_sampler_as_it_was_and_gives_a_frozen_one() -> None:
    method = sg.samplers.Marginal(fixed_points=True)
    fitted = method.fit(X)
    assert method.get_params() == {"fixed_points": True, "donors": "test"}
    assert fitted.fixed_points
    with pytest.raises(AttributeError):
        fitted.fixed_points = False  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(fitted))
    one, two = ([list(c) for c in each.sample(X, "x", [np.random.default_rng(0)])] for each in (fitted, again))
    assert one == two


def test_exact_where_values_are_few_and_drawn_where_they_are_many() -> None:
    fitted, table = sg.samplers.Marginal().fit(X), read_table(X)
    for n_repeats, expected in ((1, {"city"}), (2, {"city", "count"}), (29, {"city", "count", "x"})):
        found: set[str] = set()
        for name in X.columns:
            resampled = fitted.resample(table, (name,), Streams(0, name, n_repeats))
            assert resampled.exact is None or resampled.exact.rows.all()
            found |= {name} if resampled.exact is not None else set()
        assert found == expected
        assert all(
            fitted.resample(table, (name,), Streams(0, name, n_repeats), exact=False).exact is None
            for name in X.columns
        )


def test_probabilities_of_an_exact_expectation_sum_to_those_of_other_values() -> None:
    fitted, table = sg.samplers.Marginal().fit(X), read_table(X)
    weights = RNG.uniform(0.5, 3, 30)
    for counted in (None, weights):
        resampled = fitted.resample(table, ("count",), Streams(0, "count", 5), weights=counted)
        assert resampled.exact is not None
        total = np.zeros(30)
        for step in resampled.exact.terms():
            total[step.rows] += step.weights
            donors: Any = step.changes["count"]
            assert (X["count"].to_numpy()[donors.rows] != X["count"].to_numpy()[step.rows]).all()
        mass = np.ones(30) if counted is None else counted
        own = np.array([mass[X["count"] == value].sum() for value in X["count"]]) - np.minimum(mass, 1)
        np.testing.assert_allclose(total, 1 - own / (mass.sum() - np.minimum(mass, 1)), rtol=1e-12)


def test_fixed_points_are_never_exact() -> None:
    """A plain shuffle is requested for; its expectation has another value."""
    fitted = sg.samplers.Marginal(fixed_points=True).fit(X)
    assert fitted.resample(read_table(X), ("city",), Streams(0, "city", 5)).exact is None


def test_what_cannot_be_resampled_raises_an_error() -> None:
    fitted = sg.samplers.Marginal().fit(X)
    with pytest.raises(InputError, match="lacks 'city'"):
        next(iter(fitted.sample(X[["x", "count"]], "x", 1)))
    with pytest.raises(ParameterError, match="features names 'colour'"):
        sg.samplers.Marginal().fit(X, ["colour"])


def test_missing_values_are_one_value_of_few() -> None:
    gaps = pd.DataFrame({"x": np.tile([0.0, 1.0, np.nan, np.nan], 50)})
    # A row has two other values; if each missing one counted, there would be a hundred.
    resampled = sg.samplers.Marginal().fit(gaps).resample(read_table(gaps), ("x",), Streams(0, "x", 2))
    assert resampled.exact is not None
    assert resampled.exact.rows.all()
