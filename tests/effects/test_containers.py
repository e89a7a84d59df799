"""Every container gives the same numbers, in tables of its library, and is not modified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups

from .models import SEASONS, SIZES, rows

WHOLE = rows(150)
KINDS: list[Any] = ["pdp", "ice", "ale", "mplot"]
FEATURES = ["temp", "count", "flag", "season", "day"]


def as_pandas() -> Any:
    return WHOLE.copy()


def as_polars() -> Any:
    return pl.DataFrame(
        {
            "temp": WHOLE["temp"].to_numpy(),
            "count": WHOLE["count"].to_numpy(),
            "flag": WHOLE["flag"].to_numpy(),
            "season": WHOLE["season"].astype(str).tolist(),
            "size": pl.Series(WHOLE["size"].astype(str).tolist(), dtype=pl.Enum(SIZES)),
            "day": WHOLE["day"].dt.date.tolist(),
            "hum": WHOLE["hum"].to_numpy(),
        }
    )


def as_pyarrow() -> Any:
    return pa.Table.from_pandas(WHOLE.assign(season=WHOLE["season"].astype(str)), preserve_index=False)


def model(X: Any) -> Any:
    """The same of any container."""
    frame = nw.from_native(X, eager_only=True)
    season = np.array([SEASONS.index(str(level)) for level in frame["season"].to_list()])
    size = np.array([SIZES.index(str(level)) for level in frame["size"].to_list()])
    day = np.asarray(frame["day"].to_numpy()).astype("datetime64[us]").astype(np.int64) / 86_400e6
    temp, count, flag, hum = (
        np.asarray(frame[name].to_numpy(), dtype=float) for name in ("temp", "count", "flag", "hum")
    )
    return temp * (1 + size) + np.sin(count) * season + flag * hum + 0.01 * day + season * temp


CONTAINERS: dict[str, Callable[[], Any]] = {"polars": as_polars, "pyarrow": as_pyarrow}


def columns(table: Any) -> dict[str, list[Any]]:
    frame = nw.from_native(table, eager_only=True)
    return {name: frame[name].to_list() for name in frame.columns}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("container", list(CONTAINERS))
def test_numbers_are_the_same_in_every_container(container: str, feature: str, kind: Any) -> None:
    X = CONTAINERS[container]()
    given, expected = (
        effect(model, X, feature, kind=kind, grid_resolution=5, subgroups=None),
        effect(model, WHOLE, feature, kind=kind, grid_resolution=5, subgroups=None),
    )
    assert nw.from_native(given.curves, eager_only=True).implementation.value == container
    mine, theirs = columns(given.curves), columns(expected.curves)
    assert list(mine) == list(theirs)
    order, other = (np.argsort([str(x) for x in table["x"]], kind="stable") for table in (mine, theirs))
    assert [str(mine["x"][at]) for at in order] == [str(theirs["x"][at]) for at in other]
    for name in ("estimate", "std_error", "conf_low", "n"):
        np.testing.assert_allclose(np.array(mine[name])[order], np.array(theirs[name])[other], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("container", list(CONTAINERS))
@pytest.mark.parametrize("feature", ["temp", "season"])
def test_subgroups_and_all_tables_are_the_same_in_every_container(container: str, feature: str) -> None:
    # Seasons as text throughout: containers differ in the order that they put categories in.
    text = WHOLE.assign(season=WHOLE["season"].astype(str))
    given, expected = (
        effect(model, X, feature, kind="ice", subgroups=find_subgroups(X[:140], min_samples_leaf=30), grid_resolution=4)
        for X in (CONTAINERS[container](), text)
    )
    for name in ("curves", "support", "outliers", "ice"):
        one, two = columns(getattr(given, name)), columns(getattr(expected, name))
        assert list(one) == list(two)
        for column in one:
            if one[column] and isinstance(one[column][0], float):
                np.testing.assert_allclose(one[column], two[column], rtol=1e-10, atol=1e-10)
            else:
                assert one[column] == two[column], column


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrap", [np.asarray, lambda array: pd.DataFrame(array, columns=list("abc")), pl.DataFrame])
def test_array_and_frames_of_floats_give_the_same(kind: Any, wrap: Any) -> None:
    array = np.random.default_rng(1).normal(size=(80, 3))

    def plain(X: Any) -> Any:
        values = np.asarray(X)
        return values[:, 0] * values[:, 1] + values[:, 2]

    X = wrap(array)
    name = "x0" if isinstance(X, np.ndarray) else str(X.columns[0])
    given, expected = (
        effect(plain, X, name, kind=kind, subgroups=None),
        effect(plain, array, "x0", kind=kind, subgroups=None),
    )
    np.testing.assert_array_equal(columns(given.curves)["estimate"], columns(expected.curves)["estimate"])


def test_integers_in_an_array_can_become_fractions() -> None:
    X = np.random.default_rng(1).integers(0, 10, size=(50, 2))
    curves = effect(lambda X: 1.0 * X[:, 0] + X[:, 1], X, "x0", grid=[0.5, 1.5], subgroups=None).curves
    assert curves["estimate"].tolist() == pytest.approx([0.5 + X[:, 1].mean(), 1.5 + X[:, 1].mean()])


def test_array_of_objects() -> None:
    X = WHOLE[["temp", "season"]].astype(object).to_numpy()

    def plain(X: Any) -> Any:
        return X[:, 0].astype(float) + np.array([SEASONS.index(level) for level in X[:, 1]])

    assert effect(plain, X, "x1", subgroups=None).curves["estimate"].tolist() == pytest.approx(
        [X[:, 0].mean() + SEASONS.index(level) for level in sorted(SEASONS)]
    )
    assert len(effect(plain, X, "x0", grid_resolution=3, subgroups=None).curves) == 3


def test_model_receives_the_types_of_training() -> None:
    seen = []

    def curious(X: pd.DataFrame) -> Any:
        seen.append(X)
        return np.zeros(len(X))

    for feature in FEATURES:
        effect(curious, WHOLE, feature, kind="pdp", grid_resolution=3, subgroups=None)
        effect(curious, WHOLE, feature, kind="ale", grid_resolution=3)
    for X in seen:
        types = X.dtypes.drop("count")
        assert types.equals(WHOLE.dtypes.drop("count"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [as_pandas, as_polars, as_pyarrow, lambda: np.arange(60.0).reshape(20, 3)])
def test_table_is_not_modified(kind: Any, make: Any) -> None:
    X, before = make(), make()
    features = ["x0"] if isinstance(X, np.ndarray) else FEATURES
    for feature in features:
        effect(
            (lambda X: X[:, 0]) if isinstance(X, np.ndarray) else model,
            X,
            feature,
            kind=kind,
            grid_resolution=4,
            subgroups=None,
        )
    if isinstance(X, np.ndarray):
        np.testing.assert_array_equal(X, before)
    else:
        assert X.equals(before)


def test_index_of_pandas_does_not_matter() -> None:
    shuffled = WHOLE.sample(frac=1, random_state=0)
    expected = effect(model, shuffled.reset_index(drop=True), "temp", kind="ice", grid_resolution=3, subgroups=None)
    assert effect(model, shuffled, "temp", kind="ice", grid_resolution=3, subgroups=None) == expected
