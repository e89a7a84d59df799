"""Donors of training rows of the same subgroup."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove._data.table import read_like, read_table
from subgrove._subgroups import Partition
from subgrove.samplers.training_donors import TrainingSubgroups, ranks


def frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    kind = np.array(["u", "v", "w"])[rng.integers(0, 3, n)]
    x = np.select([kind == "u", kind == "v"], [10.0, 20.0], 30.0) + rng.normal(size=n)
    return pd.DataFrame({"x": x, "kind": kind, "z": rng.normal(size=n)})


TRAIN, TEST = frame(300, 0), frame(50, 1)
TABLE = read_table(TRAIN)
PARTITION: Partition = sg.find_subgroups(TRAIN, features="x", max_depth=2)["x"]
PLACES = np.arange(300)[::-1].copy()  # where the rows stand in a larger table


def donors(partition: Partition = PARTITION, shown: int = 2) -> TrainingSubgroups:
    return TrainingSubgroups.of(partition, TABLE, PLACES, shown)


def drawn(one: TrainingSubgroups, X: pd.DataFrame, n_repeats: int = 4, feature: tuple[str, ...] = ("x",)) -> Any:
    resampled = one.resample(read_like(X, TABLE.columns), feature, Streams(0, "x", n_repeats), exact=False)
    return resampled, list(resampled.draws())


def test_donors_are_training_rows_of_the_same_subgroup() -> None:
    resampled, changes = drawn(donors(), TEST)
    for change in changes:
        assert change["x"].train
        rows = 299 - change["x"].rows  # back from their places
        assert (TRAIN["kind"].to_numpy()[rows] == TEST["kind"].to_numpy()).all()
    assert resampled.groups.conditioning == ("kind",)


def test_results_are_reported_by_the_upper_subgroups() -> None:
    resampled, changes = drawn(donors(shown=1), TEST)
    assert len(resampled.groups) == 2
    assert set(resampled.groups.rules) == set(PARTITION.at_depth(1).rules)
    rows = 299 - changes[0]["x"].rows
    assert (TRAIN["kind"].to_numpy()[rows] == TEST["kind"].to_numpy()).all()  # but drawn in all leaves
    single, _ = drawn(donors(shown=0), TEST)
    assert single.groups.rules == ("all rows",)


def test_several_features_have_the_same_donors() -> None:
    _, changes = drawn(donors(), TEST, feature=("x", "z"))
    for change in changes:
        assert set(change) == {"x", "z"}
        assert change["x"] is change["z"]


def test_few_values_have_an_exact_expectation() -> None:
    few = TRAIN.assign(x=TRAIN["x"].round(-1))
    table = read_table(few)
    one = TrainingSubgroups.of(sg.find_subgroups(few, features="x")["x"], table, np.arange(300), 2)
    resampled = one.resample(read_like(TEST, table.columns), ("x",), Streams(0, "x", 10))
    assert resampled.exact is not None
    assert resampled.exact.rows.any()


def test_every_training_row_is_a_donor_equally_often() -> None:
    """Of a subgroup, over many repeats: by the golden section, to within a few draws."""
    single = donors(PARTITION.at_depth(0))
    _, changes = drawn(single, TEST, n_repeats=120)
    counts = np.bincount(np.concatenate([change["x"].rows for change in changes]), minlength=300)
    assert counts.sum() == 120 * 50
    assert np.abs(counts - 20).max() <= 10


def test_levels_are_ranked_by_name_whatever_their_order() -> None:
    one = pd.DataFrame({"kind": pd.Categorical(["v", "u", "w", None], ["w", "v", "u"])})
    two = pd.DataFrame({"kind": pd.Categorical(["v", "u", "w", None], ["u", "v", "w"])})
    first, second = (ranks(read_table(each).series("kind")) for each in (one, two))
    np.testing.assert_array_equal(first, second)
    assert first.tolist() == [1, 0, 2, 3]


def test_a_single_test_row_has_donors() -> None:
    _, changes = drawn(donors(), TEST[:1])
    assert [len(change["x"].rows) for change in changes] == [1] * 4
