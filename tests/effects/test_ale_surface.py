"""Accumulated local effects of two features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg


def rows(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": 0.8 * a + 0.6 * rng.normal(size=n), "c": rng.normal(size=n)})


def surface(effect: Any) -> Any:
    (line,) = effect.lines
    return line.estimate[:, 0].reshape([len(axis) for axis in line.axes]), line


def rows_in_cells(X: pd.DataFrame, a: Any, b: Any) -> Any:
    """Number of rows in each cell; intervals are open on the left, except the first one."""
    at = [np.maximum(np.searchsorted(edges, X[name]) - 1, 0) for name, edges in (("a", a), ("b", b))]
    counts = np.zeros((len(a) - 1, len(b) - 1))
    np.add.at(counts, tuple(at), 1)
    return counts


def test_without_interaction_it_is_zero() -> None:
    X = rows()
    found = sg.effect(lambda rows: np.exp(rows["a"]) + rows["b"] ** 2, X, ("a", "b"), kind="ale")
    assert float(found.curves["estimate"].abs().max()) < 1e-9
    assert found.n_rows_predicted == 4 * len(X) + 10
    assert found.curves["std_error"].isna().all()


def test_of_a_product_it_is_the_product_of_deviations() -> None:
    """Second differences of a * b are exact, so the surface is (a - u)(b - v) up to functions of one feature."""
    found = sg.effect(lambda rows: rows["a"] * rows["b"] + 3 * rows["c"], rows(), ("a", "b"), kind="ale")
    values, line = surface(found)
    a, b = (axis.points for axis in line.axes)
    differences = np.diff(np.diff(values, axis=0), axis=1)
    expected = np.outer(np.diff(a), np.diff(b))
    cells = rows_in_cells(rows(), a, b)
    np.testing.assert_allclose(differences[cells > 0], expected[cells > 0], atol=1e-9)
    assert (cells == 0).any()


def test_main_effects_are_removed_and_the_surface_is_centred() -> None:
    """The mean over rows of the step over each interval is 0 for both features, as is the mean of the surface."""
    values, line = surface(sg.effect(lambda rows: rows["a"] * rows["b"] ** 2, rows(), ("a", "b"), kind="ale"))
    weights = rows_in_cells(rows(), *(axis.points for axis in line.axes))
    for some, w in ((values, weights), (values.T, weights.T)):
        steps = np.diff(some, axis=0)
        np.testing.assert_allclose((w * (steps[:, 1:] + steps[:, :-1])).sum(axis=1), 0.0, atol=1e-8)
    middles = (values[1:, 1:] + values[1:, :-1] + values[:-1, 1:] + values[:-1, :-1]) / 4
    assert abs((weights * middles).sum()) < 1e-8


def test_integer_weights_equal_duplicated_rows_and_a_user_grid_excludes_rows() -> None:
    X = rows(300)
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    grid = {"a": [-1.0, 0.0, 1.0], "b": [-1.5, 0.5, 1.5]}

    def model(rows: Any) -> Any:
        return np.sin(rows["a"] * rows["b"])

    found = sg.effect(model, X, ("a", "b"), kind="ale", grid=grid, sample_weight=sg.FrequencyWeights(weights))
    repeated = X.loc[np.repeat(X.index, weights)].reset_index(drop=True)
    expected = sg.effect(model, repeated, ("a", "b"), kind="ale", grid=grid)
    np.testing.assert_allclose(found.curves["estimate"], expected.curves["estimate"], atol=1e-12)
    inside = repeated["a"].between(-1, 1) & repeated["b"].between(-1.5, 1.5)
    assert expected.curves["n"].tolist() == [int(inside.sum())] * 9


def test_trees_and_chunks_give_the_same_surface(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = rows()
    X.loc[::7, "b"] = np.nan
    model = HistGradientBoostingRegressor(max_iter=10).fit(X, X["a"] * X["b"].fillna(0))
    grid = {"a": [-1.0, 0.0, 1.0], "b": [-1.5, 0.5, 1.5]}
    found = sg.effect(model, X, ("a", "b"), kind="ale", grid=grid)
    X.to_parquet(tmp_path / "rows.parquet")
    large = sg.LargeData(tmp_path / "rows.parquet", chunk_rows=1000)
    chunked = sg.effect(model, large, ("a", "b"), kind="ale", grid=grid)
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")
    expected = sg.effect(model, X, ("a", "b"), kind="ale", grid=grid).curves["estimate"]
    assert float(expected.abs().max()) > 0.01
    np.testing.assert_allclose(found.curves["estimate"], expected, atol=1e-12)
    np.testing.assert_allclose(chunked.curves["estimate"], expected, atol=1e-12)


def test_it_is_drawn_as_a_heat_map() -> None:
    ax = sg.effect(lambda rows: rows["a"] * rows["b"], rows(), ("a", "b"), kind="ale").plot()
    assert ax.collections
