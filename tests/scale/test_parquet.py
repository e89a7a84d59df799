"""Parquet files in chunks: the same rows and types as if all had been read at once."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

from subgrove._scale import is_large
from subgrove._scale.large_data import read_chunks
from subgrove._scale.readers import ChunkedData
from subgrove._scale.readers.parquet import BatchReader
from subgrove.exceptions import ColumnError, InputError, ParameterError


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 1_000
    gaps = rng.integers(0, 9, n).astype(float)
    gaps[700] = np.nan
    consent: Any = np.array([True, False] * (n // 2), dtype=object)
    consent[900] = None
    return pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "small": rng.normal(size=n).astype(np.float32),
            "whole": rng.integers(0, 100, n),
            "gaps": pd.Series(gaps).astype("Int64"),
            "consent": consent,
            "flag": rng.random(n) < 0.5,
            "text": rng.choice(["a", "b", "c"], n),
            "group": pd.Categorical(np.where(np.arange(n) < 500, "x", "y"), categories=["y", "x", "unused"]),
            "size": pd.Categorical(np.where(np.arange(n) < 500, "S", "L"), categories=["S", "M", "L"], ordered=True),
            "moment": pd.date_range("2024-01-01", periods=n, freq="h"),
        }
    )


def whole(data: ChunkedData) -> pd.DataFrame:
    frames: list[pd.DataFrame] = [chunk.read(data.columns) for chunk in data.chunks]
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize("chunk_rows", [1_000, 300, 128, 50])
def test_chunks_are_what_pandas_reads_at_once(tmp_path: Path, frame: pd.DataFrame, chunk_rows: int) -> None:
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=128)
    data = read_chunks(path, chunk_rows=chunk_rows)
    assert max(chunk.n_rows for chunk in data.chunks) <= chunk_rows
    assert [chunk.first_row for chunk in data.chunks] == np.cumsum([0, *(p.n_rows for p in data.chunks)])[:-1].tolist()
    assert data.n_rows == len(frame)
    assert_frame_equal(whole(data), pd.read_parquet(path))


def test_types_are_the_same_in_each_chunk(tmp_path: Path, frame: pd.DataFrame) -> None:
    # As a file without notes of pandas has them: whole numbers with a gap are floats, in the chunks without one too.
    path = tmp_path / "rows.parquet"
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, path, row_group_size=100)
    expected = pd.read_parquet(path)
    assert expected["gaps"].dtype == float
    data = read_chunks(path, chunk_rows=100)
    for chunk in data.chunks:
        assert chunk.read(data.columns).dtypes.tolist() == expected.dtypes.tolist()
    assert data.empty.dtypes.tolist() == expected.dtypes.tolist()
    assert_frame_equal(whole(data), expected)


def test_gaps_are_found_in_files_without_statistics(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table({"gaps": pa.array([1, 2, 3, None]), "full": [1, 2, 3, 4]})
    pq.write_table(table, path, row_group_size=2, write_statistics=False)
    data = read_chunks(path, chunk_rows=2)
    assert data.chunks[0].read(data.columns).dtypes.tolist() == [np.dtype(float), np.dtype(int)]


def test_levels_are_those_of_all_files(tmp_path: Path) -> None:
    for number, levels in enumerate((["c", "b"], ["a"], ["b", "d"])):
        pd.DataFrame({"g": pd.Categorical(levels)}).to_parquet(tmp_path / f"{number}.parquet")
    data = read_chunks(tmp_path, chunk_rows=2)
    read = [chunk.read(["g"])["g"] for chunk in data.chunks]
    assert [list(column.cat.categories) for column in read] == [list("abcd")] * 3
    assert [list(column) for column in read] == [["c", "b"], ["a"], ["b", "d"]]


def test_ordered_levels_that_disagree_are_rejected(tmp_path: Path) -> None:
    for number, levels in enumerate((["low", "high"], ["high", "low"])):
        column = pd.Categorical(levels, categories=levels, ordered=True)
        pd.DataFrame({"size": column}).to_parquet(tmp_path / f"{number}.parquet")
    with pytest.raises(ColumnError, match="'size' has ordered levels, and files disagree"):
        read_chunks(tmp_path)


def test_small_files_are_joined_and_named(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame = frame.drop(columns="consent")
    for number in range(10):
        frame[number * 100 : (number + 1) * 100].to_parquet(tmp_path / f"part-{number}.parquet", index=False)
    data = read_chunks(str(tmp_path), chunk_rows=250)
    assert [chunk.n_rows for chunk in data.chunks] == [200] * 5
    assert data.chunks[1].name == "part-2.parquet to part-3.parquet"
    assert_frame_equal(whole(data), frame.astype(data.empty.dtypes.to_dict()))
    assert_frame_equal(whole(read_chunks(f"{tmp_path}/part-[0-4].parquet")), whole(data)[:500])


def test_a_large_row_group_is_cut_and_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"x": np.arange(200_000)}).to_parquet(path)
    data = read_chunks(path, chunk_rows=70_000)
    assert [chunk.name for chunk in data.chunks][1] == "rows.parquet, rows 66,667 to 133,332"
    assert data.chunks[1].read(["x"])["x"].tolist() == list(range(66_667, 133_333))
    taken = data.chunks[1].take(["x"], np.array([0, 5, 66_665]))
    assert taken["x"].tolist() == [66_667, 66_672, 133_332]


def test_folders_with_values_are_columns(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame = frame[["number", "whole"]].assign(year=np.repeat([2023, 2024], 500), city=["Ulm", "Köln"] * 500)
    frame.to_parquet(tmp_path, partition_cols=["year", "city"])
    data = read_chunks(tmp_path, chunk_rows=300)
    expected = pd.read_parquet(tmp_path)
    read = whole(data)
    assert read["year"].dtype == "category"
    assert read["year"].cat.categories.tolist() == [2023, 2024]
    assert read.astype({"year": int, "city": str}).equals(expected.astype({"year": int, "city": str}))
    assert read["city"].tolist() == expected["city"].tolist()


def test_chunks_are_small_and_survive_a_trip(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=100)
    data = read_chunks(path, chunk_rows=250)
    sent = pickle.dumps(data.chunks[1])
    assert len(sent) < 6_000
    assert_frame_equal(pickle.loads(sent).read(data.columns), data.chunks[1].read(data.columns))


def test_an_index_is_no_feature_but_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([7, 9], name="id")).to_parquet(path)
    data = read_chunks(path)
    assert (data.columns, data.beside) == (("x",), ("id",))
    assert data.chunks[0].read(["id"])["id"].tolist() == [7, 9]
    assert data.chunks[0].read(["x"]).index.tolist() == [0, 1]


def test_columns_with_dots_are_found_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"a": [1], "a.b": [2], "a.c": [3]}).to_parquet(path)
    assert read_chunks(path).chunks[0].read(["a.c", "a"]).to_dict("list") == {"a.c": [3], "a": [1]}


def test_names_are_strings_where_pandas_had_numbers(tmp_path: Path) -> None:
    for number, values in enumerate(([1, 2], [3, None])):
        pd.DataFrame({0: [0.5, 1.5], 1: pa.array(values).to_pandas()}).to_parquet(tmp_path / f"{number}.parquet")
    data = read_chunks(tmp_path, chunk_rows=2)
    assert data.columns == ("0", "1")
    assert [chunk.read(["1"])["1"].dtype for chunk in data.chunks] == [float, float]


def test_a_stamp_reports_files_that_were_written_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(path)
    first, again = read_chunks(path).stamp, read_chunks(path).stamp
    assert first == again != read_chunks(ds.dataset(path)).stamp[:0]
    reported = path.stat()
    os.utime(path, ns=(reported.st_atime_ns, reported.st_mtime_ns + 1_000))
    of_dataset = [read_chunks(some).stamp for some in (ds.dataset(path), ds.dataset(path).filter(ds.field("x") > 0))]
    assert {read_chunks(path).stamp, *of_dataset}.isdisjoint({first, ""})


def test_wider_numbers_are_taken_where_files_differ(tmp_path: Path) -> None:
    pd.DataFrame({"x": np.array([1, 2], np.int32)}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"x": [0.5]}).to_parquet(tmp_path / "2.parquet")
    data = read_chunks(tmp_path, chunk_rows=2)
    assert [chunk.read(["x"])["x"].dtype for chunk in data.chunks] == [float, float]


def test_paths_that_lead_nowhere_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"X is 'nowhere.parquet', and there is no such file"):
        read_chunks("nowhere.parquet")
    with pytest.raises(InputError, match="no Parquet file, but nothing"):
        read_chunks(tmp_path)
    with pytest.raises(InputError, match="no Parquet file matches"):
        read_chunks(f"{tmp_path}/*.parquet")
    with pytest.raises(InputError, match="X is an empty string"):
        read_chunks("")
    with pytest.raises(InputError, match=r"address 's3://rows'; .*pyarrow.dataset.dataset\('s3://rows'\)"):
        read_chunks("s3://rows")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    for path in (tmp_path, tmp_path / "rows.csv"):
        with pytest.raises(InputError, match=f"convert it once: .*{re.escape(repr(str(path)))}, format='csv'"):
            read_chunks(path, argument="train")


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1], "y": [1]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"x": [1], "z": [1]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2.parquet lacks 'y' and has 'z' as well, compared with 1.parquet"):
        read_chunks(tmp_path)
    pd.DataFrame({"x": ["one"], "y": [1]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"disagree on column 'x': int64 in 1.parquet, .*string in 2.parquet"):
        read_chunks(tmp_path)


def test_damage_is_reported_with_its_place(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = tmp_path / "rows.parquet"
    frame[["number"]].to_parquet(path, row_group_size=500)
    written = bytearray(path.read_bytes())
    written[10:2_000] = b"\xff" * 1_990
    path.write_bytes(written)
    data = read_chunks(path, chunk_rows=500)
    with pytest.raises(OSError, match=r"rows.parquet, rows 0 to 499 could not be read"):
        data.chunks[0].read(["number"])
    assert len(data.chunks[1].read(["number"])) == 500
    path.write_bytes(written[:-20])
    with pytest.raises(InputError, match=r"rows.parquet is damaged or no Parquet file"):
        read_chunks(path)


@pytest.mark.parametrize("filtered", [False, True])
def test_values_that_do_not_match_their_checksum_are_rejected(tmp_path: Path, filtered: bool) -> None:
    path, values = tmp_path / "rows.parquet", np.arange(100.0)
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"x": values}), path, **plain)
    written = path.read_bytes()
    assert values[10:20].tobytes() in written
    path.write_bytes(written.replace(values[10:20].tobytes(), values[30:40].tobytes()))
    data = read_chunks(ds.dataset(path).filter(ds.field("x") > -1)) if filtered else read_chunks(path)
    with pytest.raises(OSError, match=r"rows.parquet.* could not be read: .*(CRC|checksum)"):
        data.chunks[0].read(["x"])


@pytest.mark.parametrize("some", [None, np.array([0])])
def test_a_file_that_is_written_again_during_the_run_is_rejected(tmp_path: Path, some: Any) -> None:
    pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"x": [3.0, 4.0]}).to_parquet(tmp_path / "2.parquet")
    first, second = read_chunks(tmp_path, chunk_rows=2).chunks
    pd.DataFrame({"x": [5.0, 6.0]}).to_parquet(tmp_path / "2.parquet")
    assert first.read(["x"])["x"].tolist() == [1.0, 2.0]
    with pytest.raises(OSError, match=r"2.parquet was changed during the run"):
        second.read(["x"]) if some is None else second.take(["x"], some)


def test_links_in_a_folder_are_followed_and_dangling_ones_are_named(tmp_path: Path) -> None:
    rows, elsewhere = tmp_path / "rows", tmp_path / "elsewhere"
    for folder in (rows, elsewhere):
        folder.mkdir()
        pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(folder / "1.parquet")
    (rows / "linked").symlink_to(elsewhere)
    (rows / "around").symlink_to(tmp_path)  # following these two would never end
    (elsewhere / "back").symlink_to(rows)
    assert read_chunks(rows).n_rows == 4
    (rows / "2.parquet").symlink_to(tmp_path / "gone.parquet")
    with pytest.raises(InputError, match=r"2.parquet .*No such file"):
        read_chunks(rows)


def test_data_without_rows_are_rejected(tmp_path: Path) -> None:
    pd.DataFrame({"x": np.empty(0)}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="has no rows"):
        read_chunks(tmp_path / "rows.parquet")


@pytest.mark.parametrize("rows", [0, -1, 2.5, True, "many"])
def test_partition_rows_must_be_a_number(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(ParameterError, match="chunk_rows must be a whole number"):
        read_chunks(tmp_path, chunk_rows=rows)


def test_what_is_partitioned() -> None:
    assert is_large("rows/")
    assert is_large(Path("rows"))
    assert not is_large(pd.DataFrame({"x": [1]}))
    assert not is_large(np.ones((2, 2)))
    with pytest.raises(InputError, match="got int"):
        read_chunks(3)


def test_a_chunk_is_let_go_batch_by_batch(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pd.DataFrame({f"x{k}": np.random.default_rng(k).normal(size=900_000) for k in range(2)}).to_parquet(path)
    data = read_chunks(path, chunk_rows=900_000)
    reader = data.chunks[0].reader
    assert isinstance(reader, BatchReader)
    before = pa.total_allocated_bytes()
    peak = 0
    for batch in reader._batches(data.columns):
        del batch
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert peak < 0.6 * 900_000 * 2 * 8  # of 14 MB
