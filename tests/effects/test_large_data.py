"""Effects of large data equal those of all rows in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest
from pandas.testing import assert_frame_equal
from sklearn.tree import DecisionTreeClassifier

import subgrove as sg
from subgrove.exceptions import InputError, ModelError, ParameterError, UnseenValueWarning
from tests.large_data_options import effect


def made(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    x = np.round(rng.normal(size=n) + 2 * (z == "a"), 2)
    x[rng.random(n) < 0.02] = np.nan
    w = rng.integers(0, 4, n)
    level = np.where(rng.random(n) < 0.6, np.char.upper(z.astype(str)), "B")
    return pd.DataFrame({"x": x, "z": z, "u": rng.normal(size=n), "level": level, "w": w, "y": rng.random(n)})


def model(X: Any) -> Any:
    x, u = (np.nan_to_num(np.asarray(X[name], dtype=float)) for name in ("x", "u"))
    z, level = (np.asarray(X[name]).astype(str) for name in ("z", "level"))
    return x**2 + u * (z == "b") + np.where(level == "A", 1.0, u) * 2 + x * (level == "C")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return made(3_000, 1)


@pytest.fixture(scope="module")
def path(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    for number, start in enumerate(range(0, 3_000, 900)):
        frame[start : start + 900].to_parquet(folder / f"{number}.parquet", row_group_size=400)
    return folder


@pytest.fixture(scope="module")
def groups() -> sg.Subgroups:
    return sg.find_subgroups(made(1_000, 2)[["x", "z", "u", "level"]], max_depth=1)


def same(found: Any, expected: Any) -> None:
    for name in ("curves", "support"):
        assert_frame_equal(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10, check_dtype=False)
    assert found.outputs == expected.outputs


@pytest.mark.parametrize(("grouped", "weights"), [(False, "w"), (True, None), (True, "w")])
@pytest.mark.parametrize(("kind", "feature"), [(k, f) for k in ("pdp", "ale", "mplot") for f in ("x", "level")])
def test_chunks_give_the_curves_of_all_rows(
    path: Path, frame: pd.DataFrame, groups: Any, kind: Any, feature: str, grouped: bool, weights: str | None
) -> None:
    # The sample holds all rows, so that points are the same; sums are formed in another order.
    subgroups = groups if grouped else None
    rows = frame[["x", "z", "u", "level"]]
    counted = None if weights is None else sg.FrequencyWeights(frame[weights])
    expected = effect(model, rows, feature, kind=kind, subgroups=subgroups, sample_weight=counted, grid_resolution=6)
    options: dict[str, Any] = {
        "kind": kind,
        "subgroups": subgroups,
        "sample_weight": weights and sg.FrequencyWeights(weights),
        "grid_resolution": 6,
    }
    found = effect(model, sg.LargeData(str(path), chunk_rows=700), feature, **options)
    same(found, expected)
    assert found.sampled == (3_000, 3_000)


def test_two_features_and_several_outputs(path: Path, frame: pd.DataFrame) -> None:
    def two(X: Any) -> Any:
        return np.column_stack([model(X), np.asarray(X["u"])])

    for feature in (["x", "level"], ["x", "u"]):
        expected = effect(two, frame, feature, grid_resolution=4, subgroups=None)
        same(effect(two, sg.LargeData(path, chunk_rows=1_000), feature, grid_resolution=4, subgroups=None), expected)


def test_classes_keep_their_names(path: Path, frame: pd.DataFrame) -> None:
    rows = frame[["u", "w"]]
    for classes in (["no", "yes"], ["one", "two", "three"]):
        target = np.array(classes)[np.arange(3_000) % len(classes)]
        tree = DecisionTreeClassifier(max_depth=3, random_state=1).fit(rows, target)
        for output in (None, classes[0], 1):
            expected = effect(tree, rows, "u", grid_resolution=4, output=output, subgroups=None)
            same(
                effect(tree, sg.LargeData(path, chunk_rows=800), "u", grid_resolution=4, output=output, subgroups=None),
                expected,
            )


@pytest.mark.parametrize("grid", [[-1.0, 0.0, 2.0], "quantiles"])
@pytest.mark.parametrize("kind", ["pdp", "ale", "mplot"])
def test_a_grid_is_the_same_with_a_small_sample(path: Path, frame: pd.DataFrame, kind: Any, grid: Any) -> None:
    found = effect(model, sg.LargeData(path, sample_size=300), "x", kind=kind, grid=grid, subgroups=None)
    assert found.sampled == (300, 3_000)
    assert found.support["n"].tolist() == [3_000]
    assert found.support["missing"].tolist() == [int(frame["x"].isna().sum())]
    if grid != "quantiles":
        expected = effect(model, frame, "x", kind=kind, grid=grid, subgroups=None)
        assert_frame_equal(
            found.curves.drop(columns=["in_box", "in_whiskers"]), expected.curves[found.curves.columns[:-2]]
        )


def test_numbers_do_not_depend_on_chunks_or_jobs(path: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "one.parquet")
    options: dict[str, Any] = {"sample_size": 500, "grid_resolution": 5, "kind": "ale"}
    one = effect(model, tmp_path / "one.parquet", "x", **options)
    many = effect(model, sg.LargeData(path, chunk_rows=150), "x", **options)
    assert_frame_equal(one.curves, many.curves, rtol=1e-12)


def test_tables_are_of_the_library_of_the_source(path: Path) -> None:
    expected = effect(model, path, "x", grid_resolution=5, subgroups=None)
    lazy = effect(model, pl.scan_parquet(path), "x", grid_resolution=5, subgroups=None)
    arrow = effect(model, ds.dataset(path), "x", grid_resolution=5, subgroups=None)
    assert isinstance(lazy.curves, pl.DataFrame)
    assert type(arrow.curves).__module__.startswith("pyarrow")
    for found in (lazy, arrow):
        assert np.allclose(np.asarray(found.curves["estimate"]), expected.curves["estimate"], rtol=1e-12)


def test_predicted_rows_are_counted(path: Path, frame: pd.DataFrame) -> None:
    checked = 20 + 10  # sampled rows, half of which are predicted once more
    assert effect(model, path, "x", grid_resolution=5, subgroups=None).n_rows_predicted == 5 * 3_000 + checked
    assert (
        effect(model, path, "x", grid_resolution=5, kind="mplot").n_rows_predicted == frame["x"].notna().sum() + checked
    )
    # Box statistics at levels are those of the sample.
    assert (
        effect(model, sg.LargeData(path, sample_size=100), "level", subgroups=None).n_rows_predicted
        == 3 * 3_000 + 3 * 100 + checked
    )


def test_ice_curves_are_those_of_the_sample(path: Path, groups: Any) -> None:
    found = effect(model, sg.LargeData(path, sample_size=200), "x", kind="ice", grid_resolution=4, subgroups=None)
    assert found.support["n"].tolist() == [200]
    assert found.sampled == (200, 3_000)
    split = effect(
        model, sg.LargeData(path, sample_size=500), "x", interactions=True, grid_resolution=4, subgroups=groups
    )
    assert split.heterogeneity is not None
    assert int(split.support["n"].sum()) == 500


def test_model_receives_the_columns_of_training(path: Path, frame: pd.DataFrame, groups: Any) -> None:
    seen: list[tuple[str, ...]] = []

    def noting(X: Any) -> Any:
        seen.append(tuple(X.columns))
        return X["x"].fillna(0)

    effect(noting, path, "x", grid_resolution=2, subgroups=groups)
    assert set(seen) == {("x", "z", "u", "level")}
    tree = DecisionTreeClassifier(max_depth=2).fit(frame[["w", "u"]], frame["y"] > 0.5)
    assert len(effect(tree, path, "u", grid_resolution=3, subgroups=None).curves) == 3
    with pytest.raises(ParameterError, match=r"feature_names_in_\) names 'other'"):
        effect(
            DecisionTreeClassifier().fit(frame[["w"]].set_axis(["other"], axis=1), frame["y"] > 0.5),
            path,
            "u",
            subgroups=None,
        )


def test_levels_that_the_sample_lacks_cause_a_warning(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": np.arange(2_000.0), "level": ["a", "b"] * 999 + ["rare"] * 2})
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(UnseenValueWarning, match="2 rows have levels of 'level' that the sample lacks"):
        found = effect(lambda X: X["x"], sg.LargeData(tmp_path / "rows.parquet", sample_size=50), "level", kind="mplot")
    assert found.curves["n"].tolist() == [999, 999]
    rows["level"] = rows["level"].astype("category")
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(UnseenValueWarning, match="2 rows have levels of 'level' that the sample lacks"):
        known = effect(
            lambda X: X["x"], sg.LargeData(tmp_path / "rows.parquet", sample_size=50), "level", subgroups=None
        )
    assert known.support["count"].sum() == 2_000  # a categorical column declares the level, but no row can be copied


def test_checkpoint_of_another_model_or_data_raises(tmp_path: Path) -> None:
    frame, file = made(100, 4), tmp_path / "rows.parquet"
    frame.to_parquet(file)

    def options(X: Any) -> Any:
        return factor * model(X)

    factor = 1.0
    call: dict[str, Any] = {"subgroups": None, "kind": "pdp", "grid_resolution": 3, "checkpoint": tmp_path / "kept"}
    first = effect(options, file, "u", **call).curves
    assert_frame_equal(effect(options, file, "u", **call).curves, first)
    factor = 2.0  # a function that was edited has the same name
    with pytest.raises(ParameterError, match="holds another run: model: "):
        effect(options, file, "u", **call)
    factor = 1.0
    frame.assign(x=frame["x"] + 1).to_parquet(file)
    with pytest.raises(ParameterError, match=r"holds another run: .*files: "):
        effect(options, file, "u", **call)


def test_errors_name_the_chunk(path: Path) -> None:
    def burns(X: Any) -> Any:
        if len(X) > 40:
            raise RuntimeError("it burns")
        return model(X)

    with pytest.raises(ModelError, match=r"^0.parquet, rows 0 to 399: The model raised RuntimeError .*it burns"):
        effect(
            burns,
            sg.LargeData(path, sample_size=10, chunk_rows=400),
            "u",
            kind="pdp",
            grid_resolution=2,
            subgroups=None,
        )


def test_checkpoint_is_resumed(path: Path, tmp_path: Path) -> None:
    calls: list[int] = []

    def counting(X: Any) -> Any:
        calls.append(len(X))
        return X["u"]

    options: dict[str, Any] = {
        "subgroups": None,
        "grid_resolution": 3,
        "checkpoint": tmp_path / "kept",
        "chunk_rows": 900,
    }
    first = effect(counting, path, "u", **options)
    before = len(calls)
    again = effect(counting, path, "u", **options)
    assert calls[before:] == [400, 20, 10]  # what the run is known by, and rows that are predicted twice
    assert_frame_equal(first.curves, again.curves)


def test_table_in_memory_is_not_large_data(frame: pd.DataFrame) -> None:
    with pytest.raises(ParameterError, match=r"LargeData takes a path .* got DataFrame"):
        sg.LargeData(frame)


def test_invalid_arguments_of_large_data_raise(path: Path) -> None:
    with pytest.raises(ParameterError, match=r"feature names 'nope', which .* does not have"):
        effect(model, path, "nope", subgroups=None)
    with pytest.raises(ParameterError, match="sample_weight must be the name of a column"):
        effect(model, path, "x", sample_weight=np.ones(3_000), subgroups=None)
    with pytest.raises(ParameterError, match="row_key names 'id'"):
        effect(model, sg.LargeData(path, row_key="id"), "x", subgroups=None)
    with pytest.raises(ParameterError, match="sample_size must be a whole number"):
        effect(model, sg.LargeData(path, sample_size=0), "x", subgroups=None)
    with pytest.raises(InputError, match="No row of X has a value of 'x' on the grid"):
        effect(model, path, "x", kind="ale", grid=[90.0, 99.0])


def test_chunk_can_have_zero_weight(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": np.arange(100.0), "w": [0.0] * 50 + [1.0] * 50})
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    found = effect(
        lambda X: X["x"], sg.LargeData(tmp_path / "rows.parquet", chunk_rows=50), "x", kind="mplot", sample_weight="w"
    )
    assert found.support["n"].tolist() == [50]
