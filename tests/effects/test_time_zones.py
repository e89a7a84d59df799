"""Times with a time zone are read in any zone and returned in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from subgrove._effects import effect
from subgrove._subgroups import find_subgroups

ZONES: list[Any] = ["America/New_York", "Etc/GMT+5", "Europe/Berlin", "UTC", timezone(timedelta(hours=5, minutes=30))]
N = 120


def rows(zone: Any, unit: str = "h") -> pd.DataFrame:
    """Moments that are a whole number of hours or days after the first midnight of 2020 where the user is."""
    rng = np.random.default_rng(0)
    first = pd.date_range("2020-01-01", periods=400, freq=unit, tz=zone)
    return pd.DataFrame({"when": first[rng.permutation(400)[:N]], "z": rng.normal(size=N)})


def model(X: Any) -> Any:
    """Days since 2020 began in Greenwich."""
    frame = nw.from_native(X, eager_only=True)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    days = [(moment - start) / timedelta(days=1) for moment in frame["when"].to_list()]
    return np.array(days) + np.asarray(frame["z"].to_numpy())


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize("kind", ["pdp", "ice", "ale", "mplot"])
def test_column_with_any_time_zone_has_an_effect_in_that_zone(zone: Any, kind: Any) -> None:
    X = rows(zone)
    found = effect(model, X, "when", kind=kind, grid_resolution=5, subgroups=None)
    x = found.curves["x"]
    assert str(x.dt.tz) == str(X["when"].dt.tz)
    if kind != "mplot":
        assert (x.min(), x.max()) == (X["when"].min(), X["when"].max())
    if kind == "pdp":
        shift = x - pd.Timestamp("2020-01-01", tz="UTC")
        np.testing.assert_allclose(found.curves["estimate"], shift / pd.Timedelta(days=1) + X["z"].mean(), rtol=1e-9)
    assert found.support["median"].item().utcoffset() == X["when"].iloc[0].utcoffset()


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_column_with_any_time_zone_has_subgroups(zone: Any) -> None:
    groups = find_subgroups(rows(zone), features="z")
    assert len(groups["z"].assign(rows(zone))) == N


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_whole_days_of_the_users_zone_have_points_at_its_midnights(zone: str) -> None:
    """400 days with the clocks put forward and back."""
    x = effect(model, rows(zone, "D"), "when", grid_resolution=20, subgroups=None).curves["x"]
    assert len(x) == 20
    assert all((moment.hour, moment.minute) == (0, 0) for moment in x)


def test_hours_of_the_users_zone_are_not_rounded_to_days() -> None:
    assert (
        effect(model, rows("America/New_York"), "when", grid_resolution=20, subgroups=None)
        .curves["x"]
        .dt.hour.nunique()
        > 5
    )


@pytest.mark.parametrize("container", ["polars", "pyarrow"])
@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_polars_and_pyarrow_return_the_zone(container: str, kind: Any) -> None:
    X = rows("America/New_York")
    given: Any = pa.Table.from_pandas(X, preserve_index=False)
    given = pl.from_arrow(given) if container == "polars" else given
    theirs, mine = (
        effect(model, some, "when", kind=kind, grid_resolution=5, subgroups=None).curves for some in (given, X)
    )
    frame = nw.from_native(theirs, eager_only=True)
    assert frame["x"].dtype.time_zone == "America/New_York"
    assert frame["x"].to_list() == mine["x"].tolist()
    np.testing.assert_allclose(frame["estimate"].to_list(), mine["estimate"], rtol=1e-12)


def test_curve_is_evaluated_at_times_of_any_zone() -> None:
    X = rows("America/New_York")
    found = effect(model, X, "when", subgroups=None)
    elsewhere = X["when"].dt.tz_convert("Asia/Tokyo")
    assert found.predict(elsewhere).tolist() == found.predict(X).tolist()


def test_missing_times_and_times_without_zone_are_unchanged() -> None:
    X = rows("America/New_York")
    X.loc[:9, "when"] = pd.NaT
    assert effect(lambda X: X["z"], X, "when", subgroups=None).support["missing"].tolist() == [10]
    plain = rows(None)
    assert effect(lambda X: X["z"], plain, "when", subgroups=None).curves["x"].dt.tz is None


def test_grid_of_times_is_respected() -> None:
    grid = [datetime(2020, 1, 3, 12, tzinfo=ZoneInfo("America/New_York")), datetime(2020, 1, 4, tzinfo=ZoneInfo("UTC"))]
    assert effect(model, rows("America/New_York"), "when", grid=grid, subgroups=None).curves["x"].tolist() == grid
