"""Processes and threads of this machine.

Processes are loky's, as joblib's are, but in a pool of their own: a run can then be cancelled, or get over a process
that died, without touching what joblib is doing elsewhere. The pool is kept for the next call; processes that have had
nothing to do for half a minute end. The work is a file that each process loads once.

When a process dies, loky gives up all chunks that were under way and does not say which was its last. The loop then
does these one by one, so that only the chunk that ends processes is blamed for it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

from subgrove._core.execution import end_with_parent
from subgrove._core.files import TemporaryFolder
from subgrove._scale.engines import base
from subgrove.exceptions import ClusterError

IDLE_SECONDS = 30
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "POLARS_MAX_THREADS",
)

_kept: dict[tuple[Any, ...], Any] = {}  # the one pool, by its size and environment


class PoolEngine(base.Engine):
    """An engine whose tickets are futures of a pool."""

    def first_done(self, tickets: Sequence[Future[Any]]) -> Future[Any]:
        """Whichever is done; the oldest of several."""
        done = wait(tickets, return_when=FIRST_COMPLETED).done
        return next(future for future in tickets if future in done)


class ThreadEngine(PoolEngine):
    """Threads of this process: nothing is copied, and the model must allow several callers."""

    name = "threads"

    def __init__(self, work: base.Work, n_workers: int) -> None:
        self.work = work
        self.n_workers = n_workers
        self.pool = ThreadPoolExecutor(n_workers, thread_name_prefix="subgrove")

    def room(self) -> int:
        """A chunk for each thread."""
        return self.n_workers

    def start(self, chunk: base.SupportsChunk) -> Future[base.ChunkArrays]:
        """A future of the sums."""
        return self.pool.submit(self.work, chunk)

    def sums(self, ticket: Future[base.ChunkArrays]) -> base.ChunkArrays:
        """What the work gave, or its error."""
        return ticket.result()

    def close(self, outstanding: Sequence[Any]) -> None:
        """Wait for chunks that threads are at: a thread cannot be stopped."""
        self.pool.shutdown(wait=True, cancel_futures=True)


class ProcessEngine(PoolEngine):
    """Processes of this machine, each with the work and its share of the cores."""

    name = "local processes"
    reports_lost_chunk = False

    def __init__(self, work: base.Work, n_workers: int, threads_each: int | None = None) -> None:
        self.n_workers = n_workers
        self.environment = thread_limits(n_workers, threads_each)
        sent = base.pickle_work(work)
        self.folder = TemporaryFolder()
        self.file = self.folder.place / "work"
        try:
            self.file.write_bytes(sent.data)
        except OSError as error:
            self.folder.close()
            raise ClusterError(
                f"The model cannot be sent to other processes: {self.file} cannot be written ({error.strerror}). "
                f"Make room there, set TMPDIR to another folder, or use n_jobs=1."
            ) from error
        self.task = partial(in_process, self.file, sent.run, sent.version)

    def room(self) -> int:
        """One chunk at work and one waiting for each process."""
        return 2 * self.n_workers

    def start(self, chunk: base.SupportsChunk) -> Future[base.ChunkReply]:
        """A future of the reply; the pool is made anew if it broke."""
        try:
            future: Future[base.ChunkReply] = self._pool().submit(self.task, chunk)
        except BrokenProcessPool:
            drop_pool()
            future = self._pool().submit(self.task, chunk)
        return future

    def sums(self, ticket: Future[base.ChunkReply]) -> base.ChunkArrays:
        """What the work gave, its error, or WorkerLostError."""
        try:
            return base.unwrap(ticket.result())
        except BrokenProcessPool as error:
            drop_pool()
            raise base.WorkerLostError(str(error).split("\n")[0]) from error

    def close(self, outstanding: Sequence[Any]) -> None:
        """End processes that are at chunks nobody waits for; keep idle ones for the next call."""
        if outstanding:
            drop_pool()
        self.folder.close()

    def _pool(self) -> Any:
        key = (self.n_workers, *sorted(self.environment.items()))
        if key not in _kept:
            from loky import ProcessPoolExecutor

            drop_pool()
            _kept[key] = ProcessPoolExecutor(
                self.n_workers,
                timeout=IDLE_SECONDS,
                env=self.environment,
                initializer=leave_signals_to_parent,
                initargs=(os.getpid(),),
            )
        return _kept[key]


def drop_pool() -> None:
    """End the processes of the pool that is kept, at once, with processes that these have started."""
    while _kept:
        _, pool = _kept.popitem()
        pool.shutdown(wait=True, kill_workers=True)


def thread_limits(n_workers: int, threads_each: int | None) -> dict[str, str]:
    """Environment in which libraries share the cores among processes; what the user has set is left as it is."""
    from joblib import cpu_count

    share = max(cpu_count() // n_workers, 1)
    if threads_each is not None:
        return {name: str(threads_each) for name in THREAD_VARIABLES}
    return {name: os.environ.get(name, str(share)) for name in THREAD_VARIABLES}


def leave_signals_to_parent(parent: int) -> None:
    """Ctrl-C reaches every process of a terminal; the parent ends the others, or they end after it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)


def in_process(file: Path, run: str, version: str, chunk: base.SupportsChunk) -> base.ChunkReply:
    """What a process does with a chunk."""
    return base.run_with_warnings(
        base.load_cached(run, lambda: base.PickledWork(run, version, file.read_bytes())), chunk
    )
