"""Chunks on a Ray cluster: the same sums, also when processes die. `make test-slow` installs Ray and runs these."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pytest

import subgrove as sg
from subgrove._scale.engines import run_chunks
from subgrove.exceptions import ChunkError, ModelError, SubgroveWarning
from tests.scale.chunks import Add, Loaded, begun, chunks, runs, total

ray = pytest.importorskip("ray", reason="needs the extra: pip install 'subgrove[ray]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::ResourceWarning"),  # its own, at start and end
]
EXPECTED = [3 * first + 3 for first in range(0, 30, 3)]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    paths = os.pathsep.join([str(Path(sg.__file__).parents[1]), str(Path(__file__).parents[2])])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    yield
    ray.shutdown()


def test_initialised_ray_does_the_work_with_the_same_sums(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", seconds=0.02)
    there = list(run_chunks(work, chunks()))
    assert os.getpid() not in {pid for pid, _ in work.lines()}
    with joblib.parallel_config("sequential"):
        here = list(run_chunks(work, chunks()))
    for (_, a), (_, b) in zip(there, here, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in ("n", "sum"))


def test_backend_of_joblib_means_ray_too(tmp_path: Path) -> None:
    from ray.util.joblib import register_ray

    register_ray()
    work = Add(tmp_path / "log")
    with joblib.parallel_config("ray"):
        assert total(run_chunks(work, chunks())) == EXPECTED
    assert os.getpid() not in {pid for pid, _ in work.lines()}


def test_work_is_loaded_once_by_each_process(tmp_path: Path) -> None:
    list(run_chunks(Loaded(tmp_path), chunks(20)))
    loads = [path.name.split("-")[1] for path in tmp_path.glob("load-*")]
    assert loads
    assert len(loads) == len(set(loads))


def test_result_is_the_same_after_two_processes_died(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "kill", at=12, times=2)
    assert total(run_chunks(work, chunks())) == EXPECTED
    assert len(work.attempts()) == 3


def test_chunk_that_raises_is_tried_again_then_named(tmp_path: Path) -> None:
    assert total(run_chunks(Add(tmp_path / "log", "raise", at=12, times=1), chunks())) == EXPECTED
    with pytest.raises(ChunkError, match=r"rows 12 to 14 could not be done in 2 attempts.*OSError"):
        list(run_chunks(Add(tmp_path / "log2", "raise", at=12), chunks(), retries=1))


def test_error_of_the_model_is_raised_at_once(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "model", at=12)
    with pytest.raises(ModelError, match="KeyError"):
        list(run_chunks(work, chunks()))
    assert len(work.attempts()) == 1


def test_warning_of_a_process_is_given_here(tmp_path: Path) -> None:
    with pytest.warns(SubgroveWarning, match="a level that is new"):
        list(run_chunks(Add(tmp_path / "log", "warn", at=12), chunks()))


def test_what_is_stopped_leaves_nothing_running(tmp_path: Path) -> None:
    work = Add(tmp_path / "log", "wait", at=3)
    results = run_chunks(work, chunks(50))
    next(results)
    begun(work)
    (pid,) = {pid for pid, row in work.lines() if row == 3}
    results.close()  # type: ignore[attr-defined]  # an iterator for callers, a generator in fact
    for _ in range(100):
        if not runs(pid):
            break
        time.sleep(0.1)
    assert not runs(pid)
    assert len(work.lines()) < 20
