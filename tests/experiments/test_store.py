"""Results on disk: whole or not there, and read back as they were."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from experiments.store import Store, replace_file
from experiments.units import Size, Unit, reject_twins, seed_of


def test_what_is_written_is_read_back_bit_by_bit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    numbers = [0.1 + 0.2, 1e-300, -0.0, float(np.nextafter(1, 2)), float("inf")]
    store.write("a/r1", [{"name": "x, 'y'", "number": number, "count": 7} for number in numbers])
    read = store.read()
    assert [value.hex() for value in read["number"]] == [number.hex() for number in numbers]
    assert read["name"].tolist() == ["x, 'y'"] * 5
    assert read["count"].dtype == np.int64
    assert read["key"].tolist() == ["a/r1"] * 5


def test_numpy_numbers_are_stored_as_numbers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("a", [{"f": np.float64(0.1), "g": np.float32(0.5), "i": np.int32(3), "b": np.bool_(True)}])
    read = store.read()
    assert [read[name].tolist() for name in ("f", "g", "i")] == [[0.1], [0.5], [3]]
    assert read["b"].tolist() == [True]


def test_missing_values_are_missing_and_missing_columns_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("a", [{"number": None, "other": 1}, {"number": float("nan"), "other": 2}])
    store.write("b", [{"number": 2, "new": "text"}])
    read = store.read()
    assert read["number"].isna().tolist() == [True, True, False]
    assert read["other"].isna().tolist() == [False, False, True]
    assert read["new"].tolist() == ["", "", "text"]


def test_units_are_read_in_the_order_of_their_keys(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for key in ("b/r2", "a/r10", "b/r1", "a/r2"):
        store.write(key, [{"x": 1}])
    assert store.read()["key"].tolist() == sorted(["b/r2", "a/r10", "b/r1", "a/r2"])
    assert store.done() == {"b/r2", "a/r10", "b/r1", "a/r2"}


def test_an_unfinished_file_is_no_result(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("a/r1", [{"x": 1}])
    (tmp_path / "a" / "r2.csv.123-abcd.part").write_text("x\n")
    assert store.done() == {"a/r1"}
    assert store.read()["key"].tolist() == ["a/r1"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        store.write("a", [{"x": 1}])
    assert not store.done()
    assert not list(tmp_path.iterdir())


def test_a_unit_without_rows_is_done(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("a", [])
    assert store.done() == {"a"}
    assert store.read().empty


def test_an_empty_store_reads_as_an_empty_table(tmp_path: Path) -> None:
    store = Store(tmp_path / "not there")
    assert store.done() == set()
    assert store.read().empty


def test_sweeping_removes_what_is_old_and_unfinished_only(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("a", [{"x": 1}])
    old, new = tmp_path / "b.csv.1-aa.part", tmp_path / "c.csv.1-aa.part"
    old.write_text("")
    new.write_text("")
    os.utime(old, (time.time() - 7200,) * 2)
    store.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "c.csv.1-aa.part"]


def test_clearing_forgets_every_unit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("a/b", [{"x": 1}])
    store.clear()
    assert store.done() == set()


@pytest.mark.parametrize("key", ["", "a//b", "../a", "a/..", "a b", "/a", "a/", "ä"])
def test_keys_that_are_no_file_names_are_rejected(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        Unit(key, "cell")


def test_seeds_depend_on_experiment_and_key_alone() -> None:
    assert seed_of("ground_truth", "I-linear-300-10/r0017") == seed_of("ground_truth", "I-linear-300-10/r0017")
    seeds = {seed_of(name, f"k{number}") for name in ("a", "b") for number in range(100)}
    assert len(seeds) == 200
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_of("a", "k") == 6319679588653086889  # stored results stay valid only while this does not change


def test_two_units_of_one_key_are_rejected() -> None:
    with pytest.raises(ValueError, match="two units have the key 'a'"):
        reject_twins([Unit("a", "x"), Unit("a", "y")])


def test_patterns_choose_cells() -> None:
    size = Size(cells=("I-linear-*", "II-*-10"))
    assert size.takes("I-linear-300-90")
    assert size.takes("II-nonlinear-300-10")
    assert not size.takes("II-nonlinear-300-90")
    assert Size().takes("anything")


def test_sweeping_beside_a_run_that_finishes_a_unit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    monkeypatch.setattr(Store, "_files", lambda self, ending: iter([tmp_path / "just renamed.part"]))
    store.sweep()


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    replace_file(path, b"before")

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        replace_file(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
