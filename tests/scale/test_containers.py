"""Datasets, lazy frames and Dask frames in chunks: each in its own container, the same rows and the same sample."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

import subgrove as sg
from subgrove._scale import is_large
from subgrove._scale.large_data import read_chunks
from subgrove._scale.readers import ChunkedData, sample_rows
from subgrove._scale.readers.lazy_frames import slices_are_cheap
from subgrove.exceptions import ChunkError, InputError


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 1_000
    group = pd.Categorical(np.where(np.arange(n) < 500, "x", "y"))
    return pd.DataFrame(
        {"id": np.arange(n), "x": rng.normal(size=n), "text": rng.choice(["a", "b"], n), "group": group}
    )


@pytest.fixture
def folder(tmp_path: Path, frame: pd.DataFrame) -> Path:
    for number in range(4):
        part = frame[number * 250 : (number + 1) * 250].copy()
        part["group"] = part["group"].cat.remove_unused_categories()
        part.to_parquet(tmp_path / f"{number}.parquet", row_group_size=80)
    return tmp_path


def whole(data: ChunkedData) -> Any:
    tables = [chunk.read(data.columns) for chunk in data.chunks]
    if data.backend == "pandas":
        return pd.concat(tables, ignore_index=True)
    return pl.concat(tables) if data.backend == "polars" else pa.concat_tables(tables)


@pytest.mark.parametrize("chunk_rows", [1_000, 160, 30])
def test_a_dataset_is_read_as_arrow_tables(folder: Path, frame: pd.DataFrame, chunk_rows: int) -> None:
    data = read_chunks(ds.dataset(folder), chunk_rows=chunk_rows)
    assert max(chunk.n_rows for chunk in data.chunks) <= chunk_rows
    assert_frame_equal(whole(data).to_pandas(), frame)
    assert {chunk.read(["group"])["group"].type for chunk in data.chunks} == {data.empty["group"].type}
    assert pickle.loads(pickle.dumps(data.chunks[-1])).read(["x"]).equals(data.chunks[-1].read(["x"]))


@pytest.mark.parametrize("chunk_rows", [1_000, 50, 7])
def test_a_filter_of_a_dataset_holds(folder: Path, frame: pd.DataFrame, chunk_rows: int) -> None:
    data = read_chunks(ds.dataset(folder).filter(ds.field("x") > 0.5), chunk_rows=chunk_rows)
    expected = frame[frame["x"] > 0.5].reset_index(drop=True)
    assert data.n_rows == len(expected)
    assert [chunk.first_row for chunk in data.chunks] == np.cumsum([0, *(p.n_rows for p in data.chunks)])[:-1].tolist()
    assert_frame_equal(whole(data).to_pandas(), expected)
    assert pickle.loads(pickle.dumps(data.chunks[-1])).read(["x"]).equals(data.chunks[-1].read(["x"]))


def test_joined_datasets_are_read(folder: Path, frame: pd.DataFrame) -> None:
    first, second = (ds.dataset([folder / f"{a}.parquet", folder / f"{b}.parquet"]) for a, b in ((0, 1), (2, 3)))
    assert whole(read_chunks(ds.dataset([first, second])))["x"].to_pylist() == frame["x"].tolist()


def test_columns_that_a_file_lacks_are_missing_as_pyarrow_has_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0], "z": [2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": [3.0]}), tmp_path / "2.parquet")
    found = whole(read_chunks(ds.dataset(tmp_path)))
    assert found.to_pydict() == {"x": [1.0, 3.0], "z": [2, None]}


def test_folders_of_a_dataset_are_columns(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path, partition_cols=["text"])
    dataset = ds.dataset(tmp_path, partitioning="hive")
    for some in (dataset, dataset.filter(ds.field("x") < 1), dataset.filter(ds.field("text") != "a")):
        assert whole(read_chunks(some, chunk_rows=100)).to_pydict() == some.to_table().to_pydict()


def test_plan_that_polars_rejects_is_reported(folder: Path) -> None:
    with pytest.raises(InputError, match=r'X is a LazyFrame whose plan polars rejects: .*"nope"'):
        read_chunks(pl.scan_parquet(folder / "*.parquet").with_columns(z=pl.col("nope")))
    with pytest.raises(InputError, match="train is a LazyFrame whose plan polars rejects"):
        read_chunks(pl.scan_parquet(folder / "nowhere" / "*.parquet"), argument="train")


def test_a_dataset_of_text_or_in_memory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"Dataset of csv; .*write_dataset\(X, 'rows', format='parquet'\)"):
        read_chunks(ds.dataset(tmp_path, format="csv"))
    with pytest.raises(InputError, match=r"Dataset of InMemoryDataset; .*Pass X.to_table\(\) if it fits in memory"):
        read_chunks(ds.dataset(pa.table({"x": [1.0]})))


@pytest.mark.parametrize("chunk_rows", [1_000, 160, 30])
def test_a_lazy_frame_is_read_as_polars_frames(folder: Path, frame: pd.DataFrame, chunk_rows: int) -> None:
    lazy = pl.scan_parquet(folder).with_columns(double=pl.col("x") * 2)
    assert is_large(lazy)
    data = read_chunks(lazy, chunk_rows=chunk_rows)
    assert data.kept is None
    read = whole(data)
    assert read.schema == data.empty.schema
    assert read["double"].to_list() == (frame["x"] * 2).tolist()
    assert read["group"].cast(pl.String).to_list() == frame["group"].tolist()
    assert pickle.loads(pickle.dumps(data.chunks[-1])).read(["x"]).equals(data.chunks[-1].read(["x"]))


def test_a_plan_that_cannot_be_sliced_is_written_once(folder: Path, frame: pd.DataFrame) -> None:
    lazy = pl.scan_parquet(folder).filter(pl.col("x") > 0.5).sort("x")
    data = read_chunks(lazy, chunk_rows=100)
    assert "temporary file" in data.description
    assert whole(data)["x"].to_list() == sorted(frame.loc[frame["x"] > 0.5, "x"])
    place = data.kept.place
    assert place.exists()
    del data
    assert not place.exists()


def test_only_cheap_slices_are_taken(folder: Path) -> None:
    scan = pl.scan_parquet(folder)
    cheap = [scan, scan.select("x"), scan.with_columns(pl.col("x") + 1).rename({"x": "y"}), scan.collect().lazy()]
    assert all(slices_are_cheap(plan) for plan in cheap)
    dear = [
        scan.filter(pl.col("x") > 0),
        scan.sort("x"),
        scan.with_columns(pl.col("x") - pl.col("x").mean()),
        scan.join(scan, on="id"),
        scan.group_by("text").len(),
        pl.concat([scan, scan]),
    ]
    assert not any(slices_are_cheap(plan) for plan in dear)


def test_a_dask_frame_is_read_partition_by_partition(frame: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    lazy = dd.from_pandas(frame, npartitions=3)
    assert is_large(lazy)
    data = read_chunks(lazy[lazy["x"] < 2])
    expected = lazy[lazy["x"] < 2].compute().reset_index(drop=True)
    assert len(data.chunks) == 3
    assert_frame_equal(whole(data), expected)
    assert_frame_equal(pickle.loads(pickle.dumps(data.chunks[1])).read(["x"]), data.chunks[1].read(["x"]))


def test_columns_of_a_dask_frame_that_are_named_by_numbers_are_read() -> None:
    dd = pytest.importorskip("dask.dataframe")
    data = read_chunks(dd.from_pandas(pd.DataFrame({0: [1.0, 2.0], 1: [3, 4]}), npartitions=2))
    assert [chunk.read(["1", "0"]).to_dict("list") for chunk in data.chunks] == [
        {"1": [3], "0": [1.0]},
        {"1": [4], "0": [2.0]},
    ]


def test_levels_of_a_dask_frame_are_those_of_all_chunks(folder: Path, frame: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    data = read_chunks(dd.read_parquet(folder))
    assert {tuple(chunk.read(["group"])["group"].cat.categories) for chunk in data.chunks} == {("x", "y")}
    assert data.empty["group"].dtype == data.chunks[0].read(["group"])["group"].dtype


def test_samples_of_all_containers_are_the_same_rows(folder: Path, frame: pd.DataFrame) -> None:
    sources: list[Any] = [folder, ds.dataset(folder), pl.scan_parquet(folder)]
    if dd := pytest.importorskip("dask.dataframe"):
        sources.append(dd.from_pandas(frame, npartitions=3))
    for row_key in (None, "id"):
        drawn = [sample_rows(read_chunks(X, chunk_rows=90), ["id", "group"], 70, 5, row_key) for X in sources]
        numbers = [list(map(int, sample.table["id"].to_numpy())) for sample in drawn]
        assert all(other == numbers[0] for other in numbers[1:])
        assert [type(sample.table).__module__.split(".")[0] for sample in drawn][:3] == ["pandas", "pyarrow", "polars"]


@pytest.mark.slow
def test_what_a_cluster_holds_is_read_from_it(frame: pd.DataFrame) -> None:
    dd, distributed = pytest.importorskip("dask.dataframe"), pytest.importorskip("distributed")
    with distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        data = read_chunks(dd.from_pandas(frame[["id", "x"]], npartitions=2).persist())
        assert_frame_equal(whole(data), frame[["id", "x"]])


def _lazily(folder: Path) -> Any:
    return pl.scan_parquet(folder / "*.parquet")


def _by_dask(folder: Path) -> Any:
    return pytest.importorskip("dask.dataframe").read_parquet(folder, columns=["x", "text", "y"])


@pytest.mark.parametrize("source", [_lazily, _by_dask, lambda folder: folder], ids=["polars", "dask", "path"])
@pytest.mark.parametrize("kind", ["importance", "effect"])
@pytest.mark.filterwarnings("ignore")
def test_a_file_with_other_values_after_the_sample_was_drawn_is_an_error(
    source: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subgrove._scale.engines.schedule.PAUSE", 0.0)
    rng = np.random.default_rng(2)

    def write(number: int, shift: float) -> None:
        x = rng.normal(size=200)
        frame = pd.DataFrame({"x": x, "text": rng.choice(["a", "b"], 200), "y": x + shift})
        frame.to_parquet(tmp_path / f"{number}.parquet")

    for number in range(3):
        write(number, 0.0)
    written: list[int] = []

    def model(X: Any) -> Any:
        if not written:  # the sample has been drawn
            write(2, 1_000.0)
            written.append(2)
        return np.asarray(X["x"], dtype=float)

    rows = sg.LargeData(source(tmp_path), chunk_rows=200)
    once: dict[str, Any] = {"n_repeats": 1, "check_fidelity": False}
    verbs: dict[str, Callable[[], Any]] = {
        "effect": lambda: sg.effect(model, rows, "x", subgroups=None, grid_resolution=3),
        "importance": lambda: sg.importance(model, rows, "y", sampler="marginal", random_state=1, **once),
    }
    with pytest.raises(ChunkError, match="changed during the run"):
        verbs[kind]()


def test_rows_that_are_the_same_are_not_reported_as_changed(folder: Path) -> None:
    data = read_chunks(pl.scan_parquet(folder / "*.parquet"), chunk_rows=100)
    checked = sample_rows(data, data.columns, 300, 1).chunks
    assert all(chunk.seen is not None for chunk in checked)
    for chunk in checked:
        assert chunk.read(["text", "x"]).equals(data.chunks[chunk.first_row // 100].read(["text", "x"]))
