"""Contracts of results: each can be drawn, converted to a frame and to plain values, and saved by suffix."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

import subgrove as sg
from subgrove._core.html_views import ResultView
from subgrove.exceptions import ParameterError

PLOTTED = ["importance", "loco", "effect", "fidelity", "dependence", "gap", "relative", "interactions"]
NOT_PLOTTED = ["refits", "model_fidelity", "by_depth"]


@cache
def results() -> dict[str, Any]:
    """A result of every class, of tables in polars."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    frame = pl.DataFrame({"a": a, "b": a + 0.3 * rng.normal(size=300), "c": rng.normal(size=300)})
    train, X, y = frame[:150], frame[150:], a[150:] + 1
    model = LinearRegression().fit(train.to_pandas(), a[:150])

    def predict(table: Any) -> Any:
        return table["a"].to_numpy() + table["b"].to_numpy()

    options: dict[str, Any] = {"features": ["a", "b"], "n_repeats": 2, "random_state": 1}
    imp = sg.importance(predict, X, y, train=train, sampler="subgroups", **options)
    marginal = sg.importance(predict, X, y, sampler="marginal", **options)
    effect = sg.effect(predict, X, "a", grid_resolution=4)
    pandas = frame.to_pandas()
    refits: dict[str, Any] = {"n_refits": 3, **options, "features": ["a"], "sampler": "marginal"}
    return {
        "importance": imp,
        "loco": sg.loco(model, pandas[150:], y, train=(pandas[:150], a[:150])),
        "effect": effect,
        "fidelity": sg.fidelity(train, X, samplers=["subgroups"], features=["a"], n_repeats=2, random_state=1),
        "dependence": sg.dependence(train, n_trees=10, random_state=1),
        "gap": imp.explain_gap(marginal, "a"),
        "relative": imp.relative("a"),
        "refits": sg.importance_over_refits(LinearRegression(), pandas, a, **refits),
        "model_fidelity": sg.ModelFidelity.compute(predict, X, {"PDP": effect}),
        "interactions": sg.InteractionStrength.compute(predict, X, n_points=10, random_state=1),
        "by_depth": sg.DepthProfile.compute(train, features=["a"], max_depth=1),
    }


each = pytest.mark.parametrize("name", [*PLOTTED, *NOT_PLOTTED])


def test_every_result_with_tables_is_covered() -> None:
    covered = {type(result) for result in results().values()}
    exported = [getattr(sg, name) for name in sg.__all__]
    assert {one for one in exported if isinstance(one, type) and issubclass(one, ResultView)} == covered


@pytest.mark.parametrize("name", PLOTTED)
def test_results_are_drawn(name: str) -> None:
    from matplotlib import pyplot as plt

    axes = results()[name].plot()
    assert axes.get_figure() is not None
    plt.close("all")


@pytest.mark.parametrize("name", NOT_PLOTTED)
def test_results_without_a_plot_name_their_table(name: str) -> None:
    with pytest.raises(ParameterError, match=r"There is no plot of a .*\.to_frame\(\)"):
        results()[name].plot()


@each
def test_main_table_is_a_pandas_frame(name: str) -> None:
    result = results()[name]
    frame, table = result.to_frame(), getattr(result, result._tables[0])
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(table.columns)
    assert len(frame) == len(table)


@each
def test_plain_values_have_the_rows_of_all_tables(name: str) -> None:
    result = results()[name]
    values = result.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert {key: len(rows) for key, rows in values.items()} == {
        key: len(getattr(result, key)) for key in result._tables
    }
    assert list(values[result._tables[0]][0]) == list(result.to_frame().columns)


@each
def test_suffix_is_the_format(name: str, tmp_path: Path) -> None:
    result = results()[name]
    frame = result.to_frame()
    for suffix in ("csv", "parquet", "json"):
        result.save(tmp_path / f"table.{suffix}")
    read = pd.read_csv(tmp_path / "table.csv")
    assert list(read.columns) == list(frame.columns)
    assert len(read) == len(frame)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), frame)
    assert json.loads((tmp_path / "table.json").read_text())
    with pytest.raises(ParameterError, match=r"table.xlsx' must end in .csv, .parquet, .json"):
        result.save(tmp_path / "table.xlsx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "table.json", "table.parquet"]


def test_json_of_an_importance_is_read_again(tmp_path: Path) -> None:
    result = results()["importance"]
    result.save(tmp_path / "importance.json")
    again = sg.ImportanceResult.load(tmp_path / "importance.json")
    pd.testing.assert_frame_equal(again.to_frame(), result.to_frame())


def test_a_feature_is_looked_up_by_its_name() -> None:
    imp = results()["importance"]
    assert imp["b"].features == ("b",)
    assert imp["b"].to_frame()["estimate"].tolist() == imp.to_frame()["estimate"].tolist()[1:]
    assert imp[["b", "a"]].features == ("b", "a")
    with pytest.raises(ParameterError, match="'z' is not among the features"):
        imp["z"]


def test_text_says_which_importance_in_one_format_of_numbers() -> None:
    text = repr(results()["importance"])
    assert text.startswith("<ImportanceResult: conditional importance of 2 features, 150 rows, sampler subgroups")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=100), "b": rng.normal(size=100)})
    options: dict[str, Any] = {"sampler": "marginal", "n_repeats": 2, "random_state": 1}
    large = sg.importance(lambda table: 3e5 * table["a"], X, 3e5 * X["a"] + 1e4 * X["b"], **options)
    first = repr(large).splitlines()[1]
    assert "e+" not in first
    assert " +- " in first
    labels = np.where(X["a"] > 0, 1, 0)
    scored = sg.importance(
        lambda table: np.column_stack([1 - (table["a"] > 0.2), table["a"] > 0.2]) * 1.0,
        X,
        labels,
        loss="auc",
        **options,
    )
    assert "marginal importance" in repr(scored)
    assert "nan" not in repr(scored)


def test_legend_says_conditional_and_marginal() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    X = pd.DataFrame({"a": a, "b": a + rng.normal(size=200)})
    options: dict[str, Any] = {"n_repeats": 2, "random_state": 1}
    conditional = sg.importance(lambda table: table["a"], X, a + 1, **options)
    marginal = sg.importance(lambda table: table["a"], X, a + 1, sampler="marginal", **options)
    axes = conditional.plot(marginal)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["conditional", "marginal"]
    assert axes.get_xlabel() == "importance (increase of absolute error)"
    assert conditional.plot().get_xlabel() == "conditional importance (increase of absolute error)"
