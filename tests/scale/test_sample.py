"""A uniform sample, the same for any partitioning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scipy.stats import chi2

from subgrove._scale.large_data import read_chunks
from subgrove._scale.readers import row_keys, sample_rows
from subgrove._scale.readers.sample import _smallest_numbers
from subgrove.exceptions import ColumnError


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 3_000
    return pd.DataFrame(
        {"id": rng.permutation(n), "x": rng.normal(size=n), "g": pd.Categorical(rng.choice(["a", "b"], n))}
    )


@pytest.mark.parametrize("row_key", [None, "id"])
def test_sample_is_the_same_for_any_partitioning(tmp_path: Path, frame: pd.DataFrame, row_key: str | None) -> None:
    frame.to_parquet(tmp_path / "one.parquet")
    (tmp_path / "many").mkdir()
    for number, start in enumerate(range(0, 3_000, 700)):
        frame[start : start + 700].to_parquet(tmp_path / "many" / f"{number}.parquet", row_group_size=123)
    one = sample_rows(read_chunks(tmp_path / "one.parquet"), ["x", "g"], 500, 3, row_key)
    many = sample_rows(read_chunks(tmp_path / "many", chunk_rows=150), ["x", "g"], 500, 3, row_key)
    assert_frame_equal(one.table, many.table)
    assert np.array_equal(one.keys, many.keys)
    assert (one.n, one.of, len(one.table)) == (500, 3_000, 500)


def test_with_a_key_the_order_of_rows_does_not_matter(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "a.parquet")
    frame.sample(frac=1, random_state=1).to_parquet(tmp_path / "b.parquet", index=False)
    a, b = (sample_rows(read_chunks(tmp_path / f"{k}.parquet"), ["id", "x"], 100, 0, "id") for k in "ab")
    assert_frame_equal(a.table, b.table)
    by_number = sample_rows(read_chunks(tmp_path / "b.parquet"), ["id", "x"], 100, 0)
    assert by_number.table["id"].tolist() != b.table["id"].tolist()


@pytest.mark.parametrize("row_key", [None, "id"])
def test_keys_of_a_sample_are_those_of_its_rows(tmp_path: Path, frame: pd.DataFrame, row_key: str | None) -> None:
    frame.to_parquet(tmp_path / "rows.parquet")
    data = read_chunks(tmp_path / "rows.parquet", chunk_rows=400)
    drawn = sample_rows(data, ["id", "x"], 50, 1, row_key)
    found: dict[int, int] = {}
    for chunk in data.chunks:
        table = chunk.read(["id"])
        found.update(zip(row_keys(chunk, table, row_key).tolist(), table["id"], strict=True))
    assert [found[key] for key in drawn.keys.tolist()] == drawn.table["id"].tolist()


def test_sample_is_uniform(tmp_path: Path) -> None:
    # 400 samples of 25 of 100 rows: each row is drawn Binomial(400, 1/4) times. Draws without replacement shrink the
    # statistic's spread, not its mean of (100 - 1) for sum (count - 100)^2 / (100 (1 - 1/4)) * (99 / 100).
    pd.DataFrame({"x": np.arange(100.0)}).to_parquet(tmp_path / "rows.parquet")
    data = read_chunks(tmp_path / "rows.parquet", chunk_rows=13)
    counts, pairs = np.zeros(100), 0
    for seed in range(400):
        rows = _smallest_numbers(data, 25, seed).rows
        counts[rows] += 1
        pairs += int(np.isin(rows + 1, rows).sum())
    statistic = ((counts - 100) ** 2).sum() / (100 * 0.75) * 99 / 100
    assert chi2.ppf(0.001, 99) < statistic < chi2.ppf(0.999, 99)
    # Neighbours are drawn together as often as any two rows: 99 pairs x 400 x 25 / 100 x 24 / 99 = 2400, sd below 49.
    assert abs(pairs - 2400) < 4 * 49


def test_fewer_rows_than_predicted_are_all_of_them(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "rows.parquet")
    drawn = sample_rows(read_chunks(tmp_path / "rows.parquet"), ["id"], 10_000, 1)
    assert drawn.n == 3_000
    assert sorted(drawn.table["id"]) == list(range(3_000))
    assert drawn.table["id"].tolist() != frame["id"].tolist()


def test_samples_grow_by_rows_at_the_end(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "rows.parquet")
    data = read_chunks(tmp_path / "rows.parquet")
    small, large = (sample_rows(data, ["x"], n, 1).table for n in (100, 200))
    assert_frame_equal(small, large[:100])


def test_a_key_that_repeats_is_rejected(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ColumnError, match=r"row_key names 'g', which does not identify rows"):
        sample_rows(read_chunks(tmp_path / "rows.parquet"), ["x"], 100, 1, "g")


def test_types_of_a_sample_are_those_of_chunks(tmp_path: Path) -> None:
    consent = np.array([True, False] * 50 + [None], dtype=object)
    pd.DataFrame({"consent": consent, "x": 1.0}).to_parquet(tmp_path / "rows.parquet")
    data = read_chunks(tmp_path / "rows.parquet")
    drawn = next(found for seed in range(9) if (found := sample_rows(data, data.columns, 5, seed)) is not None)
    assert drawn.table["consent"].notna().all()
    assert drawn.table.dtypes.tolist() == data.chunks[0].read(data.columns).dtypes.tolist()
