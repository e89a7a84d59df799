"""Nothing is dropped silently: dates, booleans, categories, missing values, odd tables each have a stated outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import subgrove as sg
from subgrove.exceptions import (
    ColumnError,
    InputError,
    ParameterError,
    SameRowsWarning,
    SubgroveWarning,
    UnseenValueWarning,
)

Floats = npt.NDArray[np.float64]
N = 120


def frame_of(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(30 * x).astype(int), unit="D"),
            "moment": pd.to_datetime(rng.integers(0, 10**9, n), unit="s", utc=True),
            "span": pd.to_timedelta(rng.integers(0, 5, n), unit="h"),
            "flag": x > 0,
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "city": rng.choice(["Bonn", "Köln"], n),
            "count": rng.integers(0, 5, n),
            "same": 7,
            "copy": x,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, x),
            "holes": pd.Series(x > 0.5, dtype="boolean").mask(rng.random(n) < 0.3),
        }
    )


X = frame_of()
Y = np.random.default_rng(5).normal(size=N)
TRAIN = frame_of(400, 1)


def model(X: Any) -> Any:
    """A number from every column."""
    day = (X["day"] - pd.Timestamp("2024-01-01")).dt.days
    parts = [
        X["x"],
        day / 30,
        X["moment"].dt.hour / 24,
        X["span"].dt.total_seconds() / 7200,
        X["flag"],
        X["grade"].cat.codes,
        X["city"] == "Bonn",
        X["count"],
        X["same"],
        X["copy"],
        X["gaps"].fillna(-3),
        X["holes"].fillna(False),
    ]
    return np.sum([np.asarray(part, dtype=float) * (k + 1) for k, part in enumerate(parts)], axis=0) / 10


def run(table: Any = X, y: Any = Y, predict_with: Any = model, **options: Any) -> sg.ImportanceResult:
    return sg.importance(
        predict_with,
        table,
        y,
        **{"n_repeats": 3, "random_state": 0, "sampler": "marginal", "loss": "squared_error", **options},
    )


@pytest.mark.parametrize("sampler", ["marginal", "subgroups", "cart"])
@pytest.mark.parametrize("donors", ["test", "train"])
def test_every_kind_of_column_keeps_its_dtype_and_its_values(sampler: str, donors: str) -> None:
    seen: list[pd.DataFrame] = []

    def spy(table: pd.DataFrame) -> Any:
        seen.append(table)
        return model(table)

    chosen: Any = sampler
    if sampler != "marginal":
        tree = "transformation" if sampler == "subgroups" else "cart"
        chosen = sg.samplers.SubgroupSampler(tree=tree, donors=donors)  # type: ignore[arg-type]
    result = run(predict_with=spy, sampler=chosen, train=TRAIN)
    assert result.features == tuple(X.columns)
    assert np.isfinite(result.overall["estimate"]).all()
    pool = TRAIN if donors == "train" and sampler != "marginal" else X
    for table in seen[1:]:
        assert (table.dtypes == X.dtypes).all()
        for name in X.columns:
            assert set(table[name].astype(str)) <= set(pool[name].astype(str)) | set(X[name].astype(str))


def test_constant_column_has_importance_zero_and_no_doubt() -> None:
    line = run(features=["same"], sampler="subgroups", train=TRAIN).overall.iloc[0]
    assert line[["estimate", "std_error", "statistic", "p_value", "mc_error"]].tolist() == [0, 0, 0, 1, 0]


def test_duplicate_column_leaves_nothing_to_the_conditional_importance() -> None:
    """A deep tree splits x by its copy until hardly anything is left; the marginal importance stays."""
    deep = sg.samplers.SubgroupSampler(max_depth=6, min_samples_leaf=20)
    one, two = (
        run(y=model(X), features=["x"], sampler=sampler, train=TRAIN).overall["estimate"][0]
        for sampler in (deep, "marginal")
    )
    assert 0 < one < 0.02 * two


def test_missing_is_a_value_that_is_redrawn_like_others() -> None:
    seen: list[pd.DataFrame] = []

    def spy(table: pd.DataFrame) -> Any:
        seen.append(table)
        return model(table)

    run(predict_with=spy, features=["gaps"], n_repeats=4)
    for part in range(4):
        redrawn = seen[1]["gaps"].iloc[part * N : (part + 1) * N]
        assert redrawn.isna().sum() == X["gaps"].isna().sum()
    exact = run(features=["holes"], n_repeats=4)
    assert exact.scores[0].n_exact == N  # False, True and missing: two other values at most
    holes, others = X["holes"].astype(object).fillna("missing"), np.arange(N)
    expected = []
    for i in range(N):
        rows = X.iloc[np.full(N - 1, i)].reset_index(drop=True)
        rows["holes"] = X["holes"].iloc[others[others != i]].array
        expected.append(np.mean((Y[i] - model(rows)) ** 2) - (Y[i] - model(X.iloc[[i]])[0]) ** 2)
    assert set(holes) == {False, True, "missing"}
    np.testing.assert_allclose(exact.per_row["holes"], expected, rtol=1e-9)


def test_levels_that_training_did_not_have_are_distinguished() -> None:
    """The user saw: two new levels in X taken for the same value, hence a wrong exact expectation."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"city": ["x", "y"] * 60, "z": rng.normal(size=120)})
    test = pd.DataFrame({"city": ["p", "q", "x", "y"] * 10, "z": rng.normal(size=40)})
    y = rng.normal(size=40)

    def predict_with(table: pd.DataFrame) -> Any:
        return table["city"].map({"p": 5.0, "q": -5.0, "x": 0.0, "y": 1.0}).to_numpy()

    values = predict_with(test)
    expected = np.mean([np.mean((y[i] - np.delete(values, i)) ** 2) - (y[i] - values[i]) ** 2 for i in range(40)])
    # The subgroups are one, so any way to the expectation must give it: 39 balanced repeats are it exactly.
    found = run(test, y, predict_with, sampler="subgroups", train=train, features=["city"], n_repeats=39)
    assert found.overall["estimate"][0] == pytest.approx(expected, rel=1e-9)
    marginal = run(test, y, predict_with, features=["city"], n_repeats=3)
    assert marginal.overall["estimate"][0] == pytest.approx(expected, rel=1e-9)


def test_unseen_level_among_the_columns_of_rules_is_warned_of() -> None:
    train = pd.DataFrame(
        {"x": np.r_[np.zeros(100), np.ones(100)] + TRAIN["x"][:200] * 0.1, "city": ["a"] * 100 + ["b"] * 100}
    )
    test = pd.DataFrame({"x": X["x"], "city": ["a", "b", "new"] * 40})
    groups = sg.find_subgroups(train, features=["x"], max_depth=1)
    with pytest.warns(UnseenValueWarning, match="new"):
        run(test, Y, lambda X: X["x"].to_numpy(), sampler=groups, features=["x"])


def test_one_row_has_importance_zero_and_a_warning() -> None:
    with pytest.warns(SubgroveWarning, match=r"of one row, .* have no donors.* 'x' where all rows"):
        line = run(X.head(1), Y[:1], features=["x"]).overall.iloc[0]
    assert line["estimate"] == 0
    assert np.isnan(line["std_error"])


def test_two_rows_have_an_estimate_and_no_standard_error() -> None:
    """The user saw: a standard error of 0 and a p-value of 0 for a subgroup of two rows."""
    line = run(X.head(2), Y[:2], features=["x"]).overall.iloc[0]
    assert line["estimate"] != 0
    assert line[["std_error", "statistic", "p_value", "conf_low", "conf_high"]].isna().all()


def test_too_few_rows_to_cross_fit_are_rejected() -> None:
    with pytest.raises(InputError, match="3 rows, too few to fit the sampler on one half"):
        run(X.head(3), Y[:3], sampler="subgroups")


def uneven() -> tuple[sg.Subgroups, pd.DataFrame]:
    """Subgroups by city, and test rows of which one is alone in Köln."""
    rng = np.random.default_rng(0)
    city = np.repeat(["Bonn", "Köln", "Ulm"], 60)
    train = pd.DataFrame({"x": 5.0 * (city == "Köln") + 10.0 * (city == "Ulm") + rng.normal(size=180), "city": city})
    groups = sg.find_subgroups(train, features=["x"], max_depth=2)
    assert groups["x"].rules == ("city in {Bonn}", "city in {Köln}", "city in {Ulm}")
    return groups, pd.DataFrame({"x": rng.normal(size=11), "city": ["Bonn"] * 10 + ["Köln"]})


def first_column(X: Any) -> Floats:
    return np.asarray(X["x"], dtype=float)


def test_subgroup_of_one_row_is_zero_with_a_warning_that_names_its_rule() -> None:
    groups, test = uneven()
    with pytest.warns(SubgroveWarning, match=r"'x' where city in \{Köln\}"):
        result = run(test, np.zeros(11), first_column, sampler=groups, features=["x"])
    table = result.by_subgroup
    assert table["n"].tolist() == [10, 1, 0]
    assert table["estimate"][1] == 0
    assert np.isnan(table["std_error"][1])
    estimate = result.overall["estimate"][0]
    assert estimate == pytest.approx(table["estimate"][0] * 10 / 11)
    assert result.overall[["std_error", "mc_error"]].notna().all().all()


def test_subgroup_without_test_rows_has_no_estimate() -> None:
    groups, test = uneven()
    result = run(test.head(10), np.zeros(10), first_column, sampler=groups, features=["x"])
    empty = result.by_subgroup.iloc[2]
    assert empty["n"] == 0
    assert empty[["estimate", "std_error", "p_value", "conf_low", "mc_error"]].isna().all()
    assert result.overall.iloc[0][["estimate", "std_error", "mc_error"]].notna().all()
    assert result.over_repeats(by_subgroup=True)["mean"].isna().tolist() == [False, True, True]


def test_training_donors_serve_a_row_that_is_alone() -> None:
    groups, test = uneven()
    train = pd.DataFrame({"x": [1.0, 2.0, 3.0], "city": ["Bonn", "Köln", "Köln"]})
    sampler = sg.samplers.SubgroupSampler(groups=groups, donors="train")
    result = run(test, np.zeros(11), first_column, sampler=sampler, train=train, features=["x"], n_repeats=2)
    own = test["x"][10]
    assert result.by_subgroup["estimate"][1] == pytest.approx((4 + 9) / 2 - own**2)


def test_leaf_without_training_rows_is_rejected_by_its_rule() -> None:
    """The user saw: IndexError: index 0 is out of bounds for axis 0 with size 0."""
    groups, test = uneven()
    train = pd.DataFrame({"x": [1.0, 2.0], "city": ["Bonn", "Bonn"]})
    with pytest.raises(ParameterError, match=r"No training row is in the subgroup 'city in \{Köln\}' of 'x'"):
        run(
            test,
            np.zeros(11),
            first_column,
            sampler=sg.samplers.SubgroupSampler(groups=groups, donors="train"),
            train=train,
            features=["x"],
        )


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_training_donors_that_are_not_whole_are_not_cut_off(backend: str) -> None:
    """The user saw: 1.7 in training given as 1, since the column of X held whole numbers."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"b": np.round(rng.normal(size=200) * 3) + 0.5, "z": rng.normal(size=200)})
    test = pd.DataFrame({"b": rng.integers(0, 4, 40), "z": rng.normal(size=40)})
    makers: dict[str, Any] = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    make = makers[backend]
    seen: list[Floats] = []

    def predict_with(table: Any) -> Floats:
        seen.append(np.asarray(table["b"], dtype=float))
        return seen[-1]

    sampler = sg.samplers.SubgroupSampler(donors="train")
    run(make(test), np.zeros(40), predict_with, sampler=sampler, train=make(train), features=["b"], n_repeats=1)
    assert (seen[1] % 1 == 0.5).all()


@pytest.mark.parametrize(
    ("of_x", "of_train"),
    [("pandas", "polars"), ("polars", "pandas"), ("pyarrow", "pandas"), ("pandas", "pyarrow"), ("polars", "pyarrow")],
)
def test_training_donors_come_in_any_container(of_x: str, of_train: str) -> None:
    """The user saw: 'ArrowStringArray' object has no attribute 'cast'."""
    columns = ["x", "city", "count", "flag", "gaps"]
    makers: dict[str, Any] = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}

    def predict_with(table: Any) -> Any:
        city = np.array([str(value) == "Bonn" for value in np.asarray(table["city"])])
        gaps = np.nan_to_num(np.asarray(table["gaps"], dtype=float))
        return np.asarray(table["x"], dtype=float) + city + np.asarray(table["count"], dtype=float) + gaps

    def found(x_kind: str, train_kind: str) -> list[float]:
        result = run(
            makers[x_kind](X[columns]),
            Y,
            predict_with,
            sampler=sg.samplers.SubgroupSampler(donors="train"),
            train=makers[train_kind](TRAIN[columns]),
        )
        table = result.overall
        return table["estimate"].to_pylist() if x_kind == "pyarrow" else list(table["estimate"])

    assert found(of_x, of_train) == pytest.approx(found("pandas", "pandas"), rel=1e-12)


def test_groups_of_features_are_redrawn_together() -> None:
    seen: list[pd.DataFrame] = []

    def spy(table: pd.DataFrame) -> Any:
        seen.append(table)
        return model(table)

    result = run(predict_with=spy, features=[["x", "copy", "city"], "count"], sampler="subgroups", train=TRAIN)
    assert result.features == ("x + copy + city", "count")
    together = set(zip(X["x"], X["copy"], X["city"], strict=True))
    redrawn = seen[1] if (seen[1]["x"].to_numpy()[:N] != X["x"].to_numpy()).any() else seen[2]
    assert set(zip(redrawn["x"], redrawn["copy"], redrawn["city"], strict=True)) == together


def test_group_is_found_whatever_the_order_of_its_members() -> None:
    """The user saw: no subgroups for 'count + x' after find_subgroups(features=[('x', 'count')])."""
    groups = sg.find_subgroups(TRAIN, features=[("x", "count")], max_depth=1)
    for donors in ("test", "train"):
        sampler = sg.samplers.SubgroupSampler(groups=groups, donors=donors)
        result = run(features=[("count", "x")], sampler=sampler, train=TRAIN if donors == "train" else None)
        assert len(result.by_subgroup) == len(groups["x", "count"])


def test_group_for_a_sampler_of_one_feature_is_rejected() -> None:
    with pytest.raises(ParameterError, match="cart"):
        run(features=[["x", "count"]], sampler="cart", train=TRAIN)


def test_numbers_as_names_and_a_strange_index() -> None:
    index = pd.MultiIndex.from_arrays([["u", "v"] * (N // 2), range(N)])
    numbers = pd.DataFrame({3: X["x"].to_numpy(), 1: X["count"].to_numpy(), "q": X["city"].to_numpy()}, index=index)
    y = pd.Series(Y, index=index)
    result = run(numbers, y, lambda X: X[3] + X[1], features=[3, "q"], sample_weight=pd.Series(np.ones(N), index=index))
    assert result.overall["feature"].tolist() == ["3", "q"]
    assert result.per_row.index.equals(index)
    plain = run(numbers.reset_index(drop=True), Y, lambda X: X[3] + X[1], features=[3, "q"], sample_weight=np.ones(N))
    assert plain.overall.equals(result.overall)
    twice = pd.DataFrame({"x": X["x"].to_numpy()}, index=[0] * N)
    assert len(run(twice, Y, first_column).per_row) == N


@pytest.mark.parametrize("argument", ["y", "sample_weight"])
def test_index_in_another_order_is_rejected(argument: str) -> None:
    """The user saw: a number, although y had been shuffled against X."""
    other = pd.Series(np.abs(Y)).sample(frac=1, random_state=0)
    given: dict[str, Any] = {"y": pd.Series(Y), argument: other}
    with pytest.raises(InputError, match=rf"{argument} has the index labels of X in another order"):
        run(X, **given)


def test_subgroups_grown_on_the_same_rows_are_warned_of() -> None:
    groups = sg.find_subgroups(X[["x", "count"]])
    with pytest.warns(SameRowsWarning, match="same rows"):
        run(X[["x", "count"]], Y, first_column, sampler=groups)
    with pytest.warns(SameRowsWarning):
        run(X[["x", "count"]], Y, first_column, sampler="subgroups", train=X[["x", "count"]])


def test_levels_in_training_that_x_cannot_hold_are_rejected() -> None:
    train = TRAIN[["x", "city"]].assign(city=pd.Categorical(TRAIN["city"]))
    test = X[["x", "city"]].assign(city=pd.Categorical(X["city"].where(X["city"] == "Bonn"), ["Bonn"]))
    with pytest.raises(ColumnError, match=r"Column 'city' of train do not all fit the dtype"):
        run(test, Y, first_column, sampler=sg.samplers.SubgroupSampler(donors="train"), train=train, features=["city"])


def test_long_names_and_wide_tables_go_through() -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 60)), columns=[f"column {'very ' * 20}{k}" for k in range(60)])
    result = run(wide, rng.normal(size=30), lambda X: X.iloc[:, 0].to_numpy())
    assert len(result.overall) == 60
    assert "and 40 more" in repr(result)
