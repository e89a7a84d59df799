"""Chunks on a Dask cluster: the same sums, whatever happens to workers and scheduler."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import subgrove as sg
from subgrove._scale.engines import run_chunks
from subgrove.exceptions import ChunkError, ClusterError, ModelError, SubgroveWarning
from tests.scale.chunks import Add, begun, chunks, total

dask = pytest.importorskip("dask", reason="needs the extra: pip install 'subgrove[dask]'")
distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'subgrove[dask]'")
EXPECTED = [3 * first + 3 for first in range(0, 30, 3)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    paths = os.pathsep.join([str(Path(sg.__file__).parents[1]), str(Path(__file__).parents[2])])
    settings = {
        "distributed.deploy.lost-worker-timeout": "120s",  # on a busy machine workers are slow to come back
        "distributed.nanny.pre-spawn-environ.PYTHONPATH": paths,
        "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": "1",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as active,
    ):
        yield active


def test_active_client_does_the_work_with_the_same_sums(client: Any, tmp_path: Path) -> None:
    work = Add(tmp_path / "log", seconds=0.02)
    there = list(run_chunks(work, chunks()))
    assert os.getpid() not in {pid for pid, _ in work.lines()}
    with joblib.parallel_config("sequential"):
        here = list(run_chunks(work, chunks()))
    for (_, a), (_, b) in zip(there, here, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in ("n", "sum"))


def test_explicit_backend_of_joblib_comes_before_the_client(client: Any, tmp_path: Path) -> None:
    work = Add(tmp_path / "log")
    with joblib.parallel_config("sequential"):
        list(run_chunks(work, chunks(2)))
    assert {pid for pid, _ in work.lines()} == {os.getpid()}
    with joblib.parallel_config("dask"):
        list(run_chunks(work, chunks(2)))
    assert {pid for pid, _ in work.lines()} > {os.getpid()}


def test_result_is_the_same_after_two_workers_died(client: Any, tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "kill", at=12, times=2)
    assert total(run_chunks(work, chunks())) == EXPECTED
    assert len(work.attempts()) == 3


def test_chunk_that_raises_is_tried_again_then_named(client: Any, tmp_path: Path) -> None:
    assert total(run_chunks(Add(tmp_path / "log", "raise", at=12, times=1), chunks())) == EXPECTED
    with pytest.raises(ChunkError, match="rows 12 to 14 could not be done in 2 attempts"):
        list(run_chunks(Add(tmp_path / "log2", "raise", at=12), chunks(), retries=1))


def test_error_of_the_model_is_raised_at_once(client: Any, tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "model", at=12)
    with pytest.raises(ModelError, match="KeyError"):
        list(run_chunks(work, chunks()))
    assert len(work.attempts()) == 1


def test_warning_of_a_worker_is_given_here(client: Any, tmp_path: Path) -> None:
    with pytest.warns(SubgroveWarning, match="a level that is new"):
        list(run_chunks(Add(tmp_path / "log", "warn", at=12), chunks()))


def forgotten(client: Any, within: float) -> bool:
    """Whether the scheduler has no task of ours; it hears of what was cancelled a moment later."""
    end = time.monotonic() + within
    while any(key.startswith("subgrove") for keys in client.processing().values() for key in keys):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_what_is_stopped_leaves_no_task_and_no_work_behind(client: Any, tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "wait", at=3, seconds_of_wait=4)
    results = run_chunks(work, chunks(50))
    next(results)
    begun(work)
    results.close()  # type: ignore[attr-defined]  # an iterator for callers, a generator in fact
    assert forgotten(client, within=3)
    plugins = client.run(lambda dask_worker: list(dask_worker.plugins))
    assert not any(name.startswith("subgrove") for names in plugins.values() for name in names)
    assert len(work.lines()) < 20


def test_worker_that_cannot_load_the_work_is_reported_as_such(client: Any, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"A worker cannot load the model .*only on the machine of the user"):
        list(run_chunks(Unloadable(), chunks()))


class Unloadable:
    """Loads in the process that made it only."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["pid"] != os.getpid():
            raise ModuleNotFoundError("only on the machine of the user")

    def __call__(self, chunk: Any) -> dict[str, np.ndarray]:
        return {}


def test_lost_scheduler_is_reported_and_a_new_cluster_goes_on(tmp_path: Path) -> None:
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    work = Add(tmp_path / "log", seconds=0.01)
    quick = {"distributed.comm.timeouts.connect": "1s"}  # how long the client looks for a scheduler that is gone
    with dask.config.set(quick), distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        results = run_chunks(work, chunks(), checkpoint=tmp_path / "kept")
        next(results)
        cluster.sync(cluster.scheduler.close)
        with pytest.raises(ClusterError, match=r"connection to the Dask cluster .* was lost.*of 10 chunks are kept"):
            list(results)
    kept = len(list((tmp_path / "kept").glob("chunk-*")))
    again = Add(tmp_path / "log2")
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        assert total(run_chunks(again, chunks(), checkpoint=tmp_path / "kept")) == EXPECTED
    assert 1 <= kept == 10 - len(again.lines())
