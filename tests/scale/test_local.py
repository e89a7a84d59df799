"""Chunks are worked on here, in threads and in processes: same sums, in order, whatever goes wrong on the way."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from subgrove._scale.engines import run_chunks
from subgrove._scale.engines.local import drop_pool, thread_limits
from subgrove.exceptions import ChunkError, ClusterError, ModelError, ParameterError, SubgroveWarning
from tests.cli.commands import still_running
from tests.scale.chunks import Add, Loaded, Rows, begun, chunks, runs, total

EXPECTED = [3 * first + 3 for first in range(0, 30, 3)]


@pytest.mark.parametrize("backend", [None, "threading", "loky", "sequential"])
def test_sums_come_in_the_order_of_chunks(backend: str | None, tmp_path: Path) -> None:
    work = Add(tmp_path / "log", seconds=0.01)
    with nullcontext() if backend is None else joblib.parallel_config(backend=backend, n_jobs=2):
        results = list(run_chunks(work, chunks()))
    assert [number for number, _ in results] == list(range(10))
    assert total(results) == EXPECTED
    by_others = {pid for pid, _ in work.lines()} - {os.getpid()}
    assert bool(by_others) == (backend == "loky")


def test_work_is_shipped_once_to_each_process(tmp_path: Path) -> None:
    work = Loaded(tmp_path)
    list(run_chunks(work, chunks(), n_jobs=2))
    loads = [path.name for path in tmp_path.glob("load-*")]
    assert 1 <= len(loads) <= 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_chunk_that_raises_is_tried_again(n_jobs: int, tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "raise", at=12, times=2)
    assert total(run_chunks(work, chunks(), n_jobs=n_jobs)) == EXPECTED
    assert len(work.attempts()) == 3


def test_warning_of_a_process_is_given_here(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "warn", at=12)
    with pytest.warns(SubgroveWarning, match="a level that is new"):
        list(run_chunks(work, chunks(), n_jobs=2))


def test_chunk_that_raises_always_is_named(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "raise", at=12)
    message = r"rows 12 to 14 could not be done in 2 attempts. The last one: OSError: the disk is gone. Nothing is kept"
    with pytest.raises(ChunkError, match=message) as caught:
        list(run_chunks(work, chunks(), retries=1))
    assert isinstance(caught.value.__cause__, OSError)


def test_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_limits(joblib.cpu_count(), None)["OMP_NUM_THREADS"] == "1"
    assert thread_limits(2, 3)["OMP_NUM_THREADS"] == "3"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert thread_limits(2, None)["OMP_NUM_THREADS"] == "5"


class Locked:
    """A work that holds an open thing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, chunk: Rows) -> dict[str, np.ndarray]:
        return {}


def test_work_that_cannot_be_pickled_is_rejected_with_a_remedy() -> None:
    with pytest.raises(ParameterError, match=r"cannot be pickled.*Use n_jobs=1"):
        list(run_chunks(Locked(), chunks(), n_jobs=2))


@pytest.mark.parametrize(("argument", "value"), [("n_jobs", 0), ("retries", -1), ("retries", True)])
def test_bad_numbers_are_rejected_before_anything_is_done(argument: str, value: Any, tmp_path: Path) -> None:
    work = Add(tmp_path / "log")
    with pytest.raises(ParameterError, match=argument):
        run_chunks(work, chunks(), **{argument: value})
    assert work.lines() == []


def test_backend_that_is_not_known_is_rejected_with_those_that_are(tmp_path: Path) -> None:
    class Own(joblib.parallel.ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
        def effective_n_jobs(self, n_jobs: int) -> int:
            return 2

        submit = apply_async = None

    with (
        joblib.parallel_config(backend=Own()),
        pytest.raises(ParameterError, match=r"backend Own is active, but.*'dask' or 'ray'"),
    ):
        list(run_chunks(Add(tmp_path / "log"), chunks()))


def test_error_of_the_model_is_not_tried_again(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "model", at=12)
    with pytest.raises(ModelError, match="KeyError"):
        list(run_chunks(work, chunks()))
    assert len(work.attempts()) == 1


def test_few_chunks_are_under_way_while_the_caller_is_busy(tmp_path: Path) -> None:
    work = Add(tmp_path / "log")
    with joblib.parallel_config("threading", n_jobs=2):
        results = run_chunks(work, chunks(100))
        next(results)
        first = len(work.lines())  # a busy machine may have held up the first chunk, but not the others
        time.sleep(0.3)
        assert len(work.lines()) <= first + 4
        results.close()  # type: ignore[attr-defined]  # an iterator for callers, a generator in fact


# What ends processes comes last, so that the tests before share some: to start them takes longer than all else.


def test_run_gets_over_two_processes_that_died(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "kill", at=12, times=2)
    assert total(run_chunks(work, chunks(), n_jobs=2)) == EXPECTED
    assert len(work.attempts()) == 3


def test_what_is_stopped_leaves_nothing_running(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "wait", at=3)
    results = run_chunks(work, chunks(), n_jobs=2, checkpoint=tmp_path / "kept")
    next(results)
    begun(work)  # a process sleeps in the second chunk
    results.close()  # type: ignore[attr-defined]
    assert not [pid for pid in {pid for pid, _ in work.lines()} if runs(pid)]
    assert (tmp_path / "kept" / "chunk-000000.npz").exists()


def test_chunk_that_ends_processes_is_the_one_that_is_named(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "kill", at=12)
    with pytest.raises(ChunkError, match="rows 12 to 14 could not be done in 2 attempts") as caught:
        list(run_chunks(work, chunks(), n_jobs=2, retries=1, checkpoint=tmp_path / "kept"))
    assert "the same checkpoint goes on" in str(caught.value)


@pytest.fixture(autouse=True, scope="module")
def no_process_is_left() -> Any:
    yield
    drop_pool()


def test_a_full_folder_for_temporary_files_is_reported_and_left_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ClusterError, match=r"cannot be written \(No space left on device\)\. Make room there"):
        list(run_chunks(Add(tmp_path / "log"), chunks(), n_jobs=2))
    assert list((tmp_path / "temporary").iterdir()) == []


KILLED = """
import os, time
import numpy as np, pandas as pd, polars as pl
import subgrove as sg

X = pd.DataFrame({"a": np.arange(600.0), "b": np.arange(600.0) % 7})
X["y"] = X["a"]
X.to_parquet("rows.parquet")
rows = X[["a", "b"]]

def model(X):
    if len(X) and os.getpid() != parent:
        os.write(1, b"started\\n")
        time.sleep(60)
    return np.asarray(X["a"], dtype=float)

parent = os.getpid()
if KIND == "rows":
    sg.importance(model, rows, X["y"], n_jobs=2, random_state=1, check_fidelity=False)
else:
    lazy = pl.scan_parquet("rows.parquet").filter(pl.col("a") >= 0)
    sg.importance(model, sg.LargeData(lazy, chunk_rows=100), "y", n_jobs=2, random_state=1, check_fidelity=False)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the list of processes from /proc")
@pytest.mark.parametrize("kind", ["rows", "chunks"])
def test_a_program_that_is_killed_leaves_no_process_and_no_file(kind: str, tmp_path: Path) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    program = KILLED.replace("KIND", repr(kind))
    environment = {**os.environ, "TMPDIR": str(temporary), "JOBLIB_TEMP_FOLDER": str(temporary)}
    options: dict[str, Any] = {"cwd": tmp_path, "env": environment, "start_new_session": True}
    killed = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"started\n"
    n_kept = sum(path.name.startswith("subgrove-") for path in temporary.iterdir())
    assert kind == "rows" or n_kept == 2  # the model, and the rows that were kept
    killed.kill()
    killed.communicate(timeout=40)  # which ends when no process holds its output any more
    deadline = time.monotonic() + 20  # seconds; the tracker of files ends last
    while (still_running(killed.pid) or os.listdir(temporary)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert still_running(killed.pid) == []
    assert os.listdir(temporary) == []
