"""Contracts of `importance`: the same numbers whatever the container, jobs, batches, order; rows predicted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context

import subgrove as sg
from subgrove._scoring.feature_result import with_rows

Floats = npt.NDArray[np.float64]
N = 150
LEVELS = ["ash", "elm", "oak"]


def plain_frame(n: int = N, seed: int = 0) -> tuple[pd.DataFrame, Floats]:
    """Columns of several kinds that depend on each other, and a target."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    count = rng.integers(0, 4, n)
    tree = rng.choice(LEVELS, n)
    flag = rng.random(n) < 1 / (1 + np.exp(-a))
    frame = pd.DataFrame({"a": a, "b": b, "count": count, "tree": tree, "flag": flag})
    return frame, closed_form(frame) + rng.normal(size=n)


def closed_form(X: Any) -> Any:
    """The same operations, in the same order, whatever the container."""
    a, b, count = (np.asarray(X[name], dtype=np.float64) for name in ("a", "b", "count"))
    flag = np.asarray(X["flag"]).astype(np.float64)
    tree = np.asarray([{"ash": 0.5, "elm": 1.25, "oak": -2.0}[str(label)] for label in X["tree"].to_numpy()])
    return a * b + 0.5 * count * a + flag * b + tree


X, Y = plain_frame()
TRAIN, _ = plain_frame(250, seed=1)
GROUPS = sg.find_subgroups(TRAIN, max_depth=2)
TRAINING_DONORS = sg.samplers.SubgroupSampler(groups=GROUPS, donors="train")

CONTAINERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas nullable": lambda frame: frame.convert_dtypes(),
    "pandas categories": lambda frame: frame.assign(tree=pd.Categorical(frame["tree"], LEVELS)),
    "polars": pl.from_pandas,
    "polars categories": lambda frame: pl.from_pandas(frame).with_columns(pl.col("tree").cast(pl.Categorical)),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
each_container = pytest.mark.parametrize("make", CONTAINERS.values(), ids=list(CONTAINERS))
SAMPLERS: dict[str, dict[str, Any]] = {
    "marginal": {"sampler": "marginal"},
    "subgroups": {"sampler": "subgroups", "train": TRAIN},
    "found before": {"sampler": GROUPS},
    "auto": {"sampler": "auto", "train": TRAIN},
    "auto cross-fitted": {"sampler": "auto"},
    "shifted subgroups": {"sampler": "shifted_subgroups", "train": TRAIN},
    "cross-fitted": {"sampler": "subgroups"},
    "cart": {"sampler": "cart", "train": TRAIN},
    "training donors": {"sampler": TRAINING_DONORS, "train": TRAIN},
    "fixed points": {"sampler": sg.samplers.Marginal(fixed_points=True)},
}
each_sampler = pytest.mark.parametrize("name", SAMPLERS)


def run(model: Any = closed_form, table: Any = X, y: Any = Y, **options: Any) -> sg.ImportanceResult:
    return sg.importance(model, table, y, **{"n_repeats": 5, "random_state": 3, "sampler": "marginal", **options})


@cache
def plainly(name: str) -> sg.ImportanceResult:
    """A sampler's result with nothing else counting for: what others are compared with."""
    return run(**SAMPLERS[name])


def same(one: sg.ImportanceResult, two: sg.ImportanceResult) -> None:
    """The same to the last digit, in every table."""
    assert one.features == two.features
    for name in ("overall", "by_subgroup", "per_row", "repeats"):
        left, right = as_pandas(getattr(one, name)), as_pandas(getattr(two, name))
        pd.testing.assert_frame_equal(left, right, check_exact=True, check_dtype=False)


def as_pandas(table: Any) -> pd.DataFrame:
    frame: pd.DataFrame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    return frame.astype({name: str for name in frame.columns if frame[name].dtype.kind == "O"})


@each_sampler
@each_container
def test_container_changes_no_digit(make: Callable[[pd.DataFrame], Any], name: str) -> None:
    given = {**SAMPLERS[name], "train": make(TRAIN)} if "train" in SAMPLERS[name] else SAMPLERS[name]
    same(run(table=make(X), **given), plainly(name))


@pytest.mark.parametrize("name", ["auto", "marginal"])
@each_container
def test_container_changes_no_digit_of_a_calibrated_result(make: Callable[[pd.DataFrame], Any], name: str) -> None:
    given = {**SAMPLERS[name], "train": make(TRAIN)} if "train" in SAMPLERS[name] else SAMPLERS[name]
    same(run(table=make(X), **given).calibrated(make(TRAIN)), plainly(name).calibrated(TRAIN))


@each_container
def test_tables_come_in_the_container_of_x(make: Callable[[pd.DataFrame], Any]) -> None:
    table = make(X)
    result = run(table=table, sampler=GROUPS)
    kind = type(table)
    for found in (
        result.overall,
        result.by_subgroup,
        result.per_row,
        result.repeats,
        result.over_repeats(),
        result.compare(run(table=table)),
    ):
        assert type(found) is kind


def test_array_and_frame_of_floats_change_no_digit() -> None:
    array = X[["a", "b"]].to_numpy()
    frame = pd.DataFrame(array, columns=["x0", "x1"])

    def model(X: Any) -> Any:
        x0, x1 = (X[:, 0], X[:, 1]) if isinstance(X, np.ndarray) else (X["x0"], X["x1"])
        return np.asarray(x0) * np.asarray(x1)

    of_array = run(model, array, sampler="subgroups")
    assert isinstance(of_array.overall, pd.DataFrame)
    for table in (frame, np.asfortranarray(array), array[::-1][::-1], pl.from_pandas(frame), frame.astype("Float64")):
        same(run(model, table, sampler="subgroups"), of_array)


@each_sampler
def test_number_of_jobs_changes_no_digit(name: str) -> None:
    same(run(n_jobs=2, **SAMPLERS[name]), run(n_jobs=1, **SAMPLERS[name]))


def test_number_of_jobs_changes_no_count() -> None:
    one, two = run(n_jobs=1), run(n_jobs=2)
    assert one.settings["n_rows_predicted"] == two.settings["n_rows_predicted"]


def test_large_arrays_come_to_workers_that_cannot_write_to_them() -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(size=(60_000, 3))
    y = array[:, 0]

    def model(X: Floats) -> Floats:
        return X[:, 0] + X[:, 1]

    same(run(model, array, y, n_repeats=1, n_jobs=2), run(model, array, y, n_repeats=1))


@each_sampler
def test_order_and_subset_of_features_change_no_digit(name: str) -> None:
    whole = plainly(name).overall.set_index("feature")
    for features in (["tree", "a", "flag"], ["a"], list(X.columns[::-1])):
        part = run(features=features, **SAMPLERS[name]).overall.set_index("feature")
        assert list(part.index) == features
        adjusted = ["p_holm", "p_bh"]  # for the number of features, which is another
        pd.testing.assert_frame_equal(
            part.drop(columns=adjusted), whole.loc[features].drop(columns=adjusted), check_exact=True
        )


@each_sampler
@pytest.mark.parametrize("memory", [1e-9, 0.3])
def test_batches_change_no_digit(memory: float, name: str) -> None:
    with config_context(working_memory=memory):
        found = run(**SAMPLERS[name])
    same(found, plainly(name))


def test_passes_larger_and_smaller_than_a_batch_are_added_in_the_same_order() -> None:
    """The user saw: per_row differ in the last digit with another `memory`, for a feature of few, uneven values."""
    rng = np.random.default_rng(0)
    level = rng.choice([0.0, 1.0, 2.0, 3.0], 3000, p=[0.9, 0.05, 0.03, 0.02])
    array = np.column_stack([level, rng.normal(size=3000)])
    y = rng.normal(size=3000)

    def model(X: Floats) -> Floats:
        return np.sqrt(0.1 + X[:, 0]) * X[:, 1]

    with config_context(working_memory=1e-9):
        found = run(model, array, y)
    same(found, run(model, array, y))


def test_tables_larger_than_a_batch_change_no_digit() -> None:
    frame, y = plain_frame(2500)
    for options in ({"sampler": GROUPS}, {"sampler": "marginal", "loss": ["squared_error", "root_mean_squared_error"]}):
        with config_context(working_memory=1e-9):
            one = run(table=frame, y=y, n_repeats=2, **options)
        two = run(table=frame, y=y, n_repeats=2, **options)
        pd.testing.assert_frame_equal(one.overall, two.overall, check_exact=True)


def test_more_repeats_go_on_where_fewer_ended() -> None:
    few, many = run(features=["a"], n_repeats=4), run(features=["a"], n_repeats=9)
    assert few.repeats["estimate"].tolist() == many.repeats["estimate"].tolist()[:4]


def test_zero_is_a_seed_and_seeds_differ() -> None:
    zero, again, one = (run(features=["a"], random_state=seed) for seed in (0, np.int64(0), 1))
    same(zero, again)
    assert zero.overall["estimate"][0] != one.overall["estimate"][0]
    assert zero.settings["random_state"] == 0


def test_a_drawn_seed_is_stored_and_reproduces_the_numbers() -> None:
    drawn, other = run(random_state=None), run(random_state=None)
    same(run(random_state=drawn.settings["random_state"]), drawn)
    assert drawn.settings["random_state"] != other.settings["random_state"]
    assert drawn.overall["estimate"][0] != other.overall["estimate"][0]


def frozen(table: Any) -> Any:
    return copy.deepcopy(table)


def unchanged(table: Any, before: Any) -> Any:
    if isinstance(table, pd.DataFrame):
        pd.testing.assert_frame_equal(table, before, check_exact=True)
        return bool((table.dtypes == before.dtypes).all())
    if isinstance(table, np.ndarray):
        return table.dtype == before.dtype and table.tobytes() == before.tobytes()
    return bool(table.equals(before))


@each_container
def test_inputs_stay_as_they_were(make: Callable[[pd.DataFrame], Any]) -> None:
    frame, y = plain_frame()
    frame.index = pd.Index(np.arange(N)[::-1], name="row")
    table, train, target = make(frame), make(TRAIN), pd.Series(y, index=frame.index)
    weights = np.arange(N) % 3
    before = [frozen(each) for each in (table, train, target.to_frame(), weights)]
    for options in (
        {"sampler": TRAINING_DONORS, "train": train},
        {"sampler": "subgroups", "train": train},
        {"sampler": sg.samplers.SubgroupSampler(min_samples_leaf=20)},
    ):
        run(table=table, y=target if isinstance(table, pd.DataFrame) else y, sample_weight=weights, **options)
    now = (table, train, target.to_frame(), weights)
    assert all(unchanged(one, two) for one, two in zip(now, before, strict=True))


class Counting:
    """Counts its calls and the rows that it predicts."""

    def __init__(self) -> None:
        self.rows = 0
        self.calls = 0

    def predict(self, X: Any) -> Any:
        self.rows += len(X)
        self.calls += 1
        return closed_form(X)


def rows_documented(result: sg.ImportanceResult, n_repeats: int) -> int:
    """n, ten of them again; for each feature n_repeats times the rows drawn, plus the other values of exact rows."""
    total = N + 10
    for score in with_rows(result.scores, "the test"):
        values = X[score.title].to_numpy()
        for k in range(len(score.rules)):
            own = values[score.code == k]
            others = len(set(own.tolist())) - 1
            total += len(own) * (n_repeats if others > n_repeats else max(others, 0))
    return total


@pytest.mark.parametrize("n_repeats", [1, 2, 3, 40])
@pytest.mark.parametrize("name", ["marginal", "subgroups", "cross-fitted"])
def test_number_of_predicted_rows_is_as_documented(name: str, n_repeats: int) -> None:
    model = Counting()
    result = run(model, n_repeats=n_repeats, **SAMPLERS[name])
    assert model.rows == rows_documented(result, n_repeats)
    assert result.settings["n_rows_predicted"] == model.rows
    assert result.settings["n_calls"] == model.calls


def test_training_donors_cost_the_other_values_of_the_training_leaf() -> None:
    model = Counting()
    result = run(model, features=["tree", "a"], **SAMPLERS["training donors"])
    code = GROUPS["tree"].assign(X)
    leaves = GROUPS["tree"].assign(TRAIN)
    values = [set(TRAIN["tree"][leaves == k]) for k in range(len(GROUPS["tree"]))]
    exact = sum(len(values[k] - {own}) for k, own in zip(code, X["tree"], strict=True))
    assert model.rows == N + 10 + exact + 5 * N
    assert result.settings["n_rows_predicted"] == model.rows


def test_several_losses_are_one_pass() -> None:
    one, two = Counting(), Counting()
    run(one, loss="squared_error")
    run(two, loss=["squared_error", "absolute_error", "quantile"])
    assert (one.rows, one.calls) == (two.rows, two.calls)


def test_small_tables_are_predicted_in_few_calls() -> None:
    model = Counting()
    run(model, n_repeats=3)
    # The baseline rows, ten of them again; one batch for columns with many values; those with few are exact, alone.
    assert model.calls <= 3 + 3


def test_reading_a_result_predicts_nothing(tmp_path: Any) -> None:
    model = Counting()
    result = run(model, loss=["squared_error", "absolute_error"], sampler=GROUPS)
    before = (model.rows, model.calls)
    other = run(loss="squared_error")
    _ = (result.overall, result.by_subgroup, result.per_row, result.repeats, repr(result))
    _ = (
        result.over_repeats(by_subgroup=True),
        result.with_level(0.5).overall,
        result.for_loss("squared_error").overall,
    )
    _ = result.compare(other)
    result.save(tmp_path / "result.json")
    assert sg.ImportanceResult.load(tmp_path / "result.json").overall is not None
    assert (model.rows, model.calls) == before


def test_constant_and_unchanged_columns_need_no_predictions() -> None:
    model = Counting()
    result = run(model, X.assign(same=1.0), features=["same"])
    assert model.rows == N + 10
    assert result.overall.loc[0, ["estimate", "std_error", "mc_error", "p_value"]].tolist() == [0, 0, 0, 1]


CLUSTERS = np.random.default_rng(2).integers(0, 25, N)


@each_sampler
@each_container
def test_container_changes_no_digit_of_a_result_with_groups(make: Callable[[pd.DataFrame], Any], name: str) -> None:
    given = {**SAMPLERS[name], "train": make(TRAIN)} if "train" in SAMPLERS[name] else SAMPLERS[name]
    plain = run(**SAMPLERS[name], groups=CLUSTERS)
    same(run(table=make(X), **given, groups=list(CLUSTERS)), plain)
    same(run(table=make(X), **given, groups=pl.Series([f"group {one}" for one in CLUSTERS]), n_jobs=2), plain)


def test_groups_with_adaptive_repeats_and_several_losses() -> None:
    losses = ["squared_error", "absolute_error"]
    found = run(groups=CLUSTERS, loss=losses, n_repeats=sg.AdaptiveRepeats(share=0.3, start=4, max_repeats=32))
    assert max(found.settings["repeats_used"].values()) > 4
    assert (found.overall["std_error"] > 0).all()
    same(found.for_loss("absolute_error"), run(
        groups=CLUSTERS, loss=losses, n_repeats=sg.AdaptiveRepeats(share=0.3, start=4, max_repeats=32)
    ).for_loss("absolute_error"))  # fmt: skip
