"""Clusters for `benchmarks/cluster.py`: how they are started, how their workers are killed, what they compute."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.large_file import COLUMNS, FEATURES, rows

ENGINES = ("local", "dask", "ray")
ROOT = Path(__file__).parents[1]
BATCH = "import sys; from benchmarks.cluster_parts import timed_here; timed_here(*sys.argv[1:])"


@dataclass(frozen=True)
class Workload:
    """A folder with `rows/part-*.parquet` and a model, and how many of its files are used."""

    folder: Path
    n_files: int
    rows_each: int

    @property
    def n_rows(self) -> int:
        """Of all files that are used."""
        return self.n_files * self.rows_each

    @property
    def path(self) -> str:
        """A folder with these files only: links to those of `rows`."""
        some = self.folder / f"rows-{self.n_files}"
        if not some.exists():
            some.mkdir()
            for file in sorted((self.folder / "rows").iterdir())[: self.n_files]:
                os.link(file, some / file.name)
        return str(some)

    @property
    def model(self) -> Any:
        """The model, loaded anew."""
        import joblib

        return joblib.load(self.folder / "model.joblib")

    def first_files(self, n: int) -> Workload:
        """The same with fewer files."""
        return replace(self, n_files=max(n, 2))

    def timed(self, n_jobs: int) -> float:
        """Seconds of the call in a process of its own, in which each library has one thread; imports are left out."""
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", BATCH, str(self.folder), str(self.n_files), str(self.rows_each), str(n_jobs)]
        return float(subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=-1, text=True).stdout)


def timed_here(folder: str, n_files: str, rows_each: str, n_jobs: str) -> None:
    settings = Workload(Path(folder), int(n_files), int(rows_each))
    judged(settings.first_files(2), n_jobs=int(n_jobs))  # imports, and processes that start
    start = time.perf_counter()
    judged(settings, n_jobs=int(n_jobs))
    print(time.perf_counter() - start)


def judged(workload: Workload, **options: Any) -> Any:
    """The call that is measured."""
    import subgrove as sg

    settings: dict[str, Any] = {
        "features": FEATURES,
        "n_repeats": 1,
        "random_state": 1,
        "check_fidelity": False,
    }
    settings |= {"sampler": "subgroups"}
    data = sg.LargeData(
        workload.path, sample_size=2_000, chunk_rows=workload.rows_each, checkpoint=options.pop("checkpoint", None)
    )
    return sg.importance(workload.model, data, "y", **settings, **options)


def write_folder(folder: Path, n_files: int, rows_each: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for at in range(n_files):
        pq.write_table(pa.table(rows(rows_each, at)), folder / f"part-{at:04d}.parquet")


def train_model(folder: Path, n: int) -> None:
    """Boosted trees on rows that are in none of the files."""
    import joblib
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor

    frame = pd.DataFrame(rows(n, 10_000))
    joblib.dump(HistGradientBoostingRegressor(random_state=1).fit(frame[COLUMNS], frame["y"]), folder / "model.joblib")


@dataclass
class Cluster:
    """Worker processes that can be found, to be killed."""

    name: str
    client: Any = None

    def worker(self) -> int | None:
        """The number of a process that is at work."""
        if self.name == "dask":
            return next(iter(self.client.run(os.getpid).values()), None)
        mark = {"local": "loky.backend", "ray": "ray::in_ray"}[self.name]
        import psutil

        below = psutil.Process().children(recursive=True) if self.name == "local" else psutil.process_iter()
        for process in below:
            with contextlib.suppress(psutil.Error):
                text = " ".join(process.cmdline())
                if mark in text and "resource_tracker" not in text:
                    return int(process.pid)
        return None


@contextlib.contextmanager
def engine(name: str, n_workers: int) -> Iterator[Cluster]:
    """Worker processes of an engine, each with one thread, active for what is called meanwhile."""
    if name == "local":
        import joblib

        with joblib.parallel_config("loky", n_jobs=n_workers, inner_max_num_threads=1):
            yield Cluster(name)
    elif name == "dask":
        import dask
        import distributed

        quiet = {"distributed.deploy.lost-worker-timeout": "300s"}  # workers are slow to come back on a busy machine
        with (
            dask.config.set(quiet),
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield Cluster(name, client)
    else:
        import ray

        ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        try:
            yield Cluster(name)
        finally:
            ray.shutdown()


class Killer:
    """Kills workers while a run goes on: the first when a quarter of the chunks are stored, then at a half."""

    def __init__(self, cluster: Cluster, folder: Path, n_chunks: int, times: int) -> None:
        self.cluster, self.folder = cluster, folder
        self.at = [n_chunks * share // 4 for share in (1, 2)][:times]
        self.killed: list[int] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Killer:
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()

    def _watch(self) -> None:
        while len(self.killed) < len(self.at) and not self.over.wait(0.01):
            if kept(self.folder) >= self.at[len(self.killed)]:
                pid = self.cluster.worker()
                if pid is not None and pid not in self.killed:
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(pid)


def kept(folder: Path) -> int:
    return len(list(folder.glob("chunk-*.npz")))


@dataclass(frozen=True)
class Resumed:
    """What happened when a scheduler was killed."""

    kept: int
    again: int
    error: str
    result: Any


def scheduler_killed(settings: Workload) -> Resumed:
    """A run whose scheduler dies in the middle, and the same run on a new cluster."""
    from subgrove.exceptions import ClusterError

    folder, error = settings.folder / "kept-scheduler", "no error"
    with own_dask(settings.folder / "one.json") as scheduler:
        done = threading.Event()
        thread = threading.Thread(target=_kill_at, args=(scheduler, folder, settings.n_files // 4, done), daemon=True)
        thread.start()
        try:
            judged(settings, checkpoint=folder)
        except ClusterError as caught:
            error = type(caught).__name__
        done.set()
        thread.join()
    finished = kept(folder)
    with own_dask(settings.folder / "two.json"):
        result = judged(settings, checkpoint=folder)
    return Resumed(finished, kept(folder) - finished, error, result)


def _kill_at(scheduler: Any, folder: Path, n: int, done: threading.Event) -> None:
    while kept(folder) < n and not done.wait(0.005):
        pass
    scheduler.kill()


@contextlib.contextmanager
def own_dask(file: Path) -> Iterator[Any]:
    """A scheduler and 4 workers, each a process of its own, and a client; gives the process of the scheduler."""
    import distributed

    for name in ("distributed", "distributed.client"):  # each reports the scheduler that is killed here
        logging.getLogger(name).setLevel(logging.CRITICAL)
    start = [sys.executable, "-m", "distributed.cli"]
    quiet: dict[str, Any] = {"cwd": ROOT, "stderr": subprocess.DEVNULL}
    flags = ["--scheduler-file", str(file), "--no-dashboard"]
    workers = ["--nworkers", "4", "--nthreads", "1", "--death-timeout", "30"]
    scheduler = subprocess.Popen([*start[:2], f"{start[2]}.dask_scheduler", "--port", "0", *flags], **quiet)
    worker = subprocess.Popen([*start[:2], f"{start[2]}.dask_worker", *flags, *workers], **quiet)
    client = None
    try:
        while not file.exists():
            time.sleep(0.1)
        client = distributed.Client(scheduler_file=str(file))
        client.wait_for_workers(4)
        yield scheduler
    finally:
        if client is not None:
            client.close(timeout=2)
        for process in (worker, scheduler):
            process.terminate()
            process.wait()
