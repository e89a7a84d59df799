"""A Dask cluster: the work is a plugin that each worker gets once, workers that come later included.

The scheduler gives chunks of a worker that died to others by itself, as often as its `allowed-failures` says; the loop
counts these as attempts. Chunks that wait are cancelled when the run is; a chunk that a worker is at is
finished there and thrown away, since Dask does not stop threads.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

import distributed

from subgrove._core.validate import warn
from subgrove._scale.engines import base
from subgrove.exceptions import ClusterError, ParameterError

LOOK_AGAIN = 2.0  # seconds between two requests for the list of workers
PATIENCE = 60  # seconds without any worker before a warning


class DaskEngine(base.Engine):
    """Workers of the cluster that a client is connected to."""

    def __init__(self, work: base.Work, client: Any, n_jobs: int | None) -> None:
        if client.asynchronous:
            raise ParameterError(
                "The active Dask client is asynchronous. Connect one with asynchronous=False, in a thread of its own "
                "if need be."
            )
        self.client = client
        self.name = f"the Dask cluster {client.scheduler.address}" if client.scheduler else "the Dask cluster"
        self.most = n_jobs if n_jobs is not None and n_jobs > 0 else None
        self.sent = base.pickle_work(work)
        self.plugin = f"subgrove-{self.sent.run}"
        self.n_started = 0
        self.gone = False
        self.n_threads, self.look_again = 0, 0.0
        try:
            client.register_plugin(WorkPlugin(self.sent), name=self.plugin)
        except ModuleNotFoundError as error:
            raise ClusterError(
                f"A Dask worker lacks a module: {error}. Install subgrove and what the model needs on every worker."
            ) from error
        except (OSError, distributed.comm.CommClosedError) as error:
            raise ClusterError(
                f"{self.name} cannot be reached: {error}. Check that its scheduler is running."
            ) from error

    def room(self) -> int:
        """Two chunks for each thread that the workers have now."""
        return 2 * max(self._n_threads(), 1) if self.most is None else self.most

    def start(self, chunk: base.SupportsChunk) -> Any:
        """A future of the reply."""
        self.n_started += 1
        key = f"{self.plugin}-{self.n_started}"
        try:
            return self.client.submit(run_on_worker, self.plugin, chunk, key=key, pure=False)
        except (OSError, RuntimeError) as error:
            raise self._lost() from error

    def first_done(self, tickets: Sequence[Any]) -> Any:
        """Whichever is done; the oldest of several."""
        warned = False
        while True:
            try:
                done = distributed.wait(tickets, timeout=PATIENCE, return_when="FIRST_COMPLETED").done
                return next(future for future in tickets if future in done)
            except TimeoutError:
                if not warned and not self._n_threads():
                    warn(f"{self.name} has no worker; chunks wait until there is one.")
                    warned = True
            except (CancelledError, OSError) as error:
                raise self._lost() from error

    def sums(self, ticket: Any) -> base.ChunkArrays:
        """What the work gave, its error, or what was lost."""
        try:
            return base.unwrap(ticket.result())
        except distributed.KilledWorker as error:
            n_workers = error.allowed_failures + 1
            raise base.WorkerLostError(
                f"{n_workers} workers died, one after the other, while they were at it", n_workers
            ) from error
        except (CancelledError, distributed.comm.CommClosedError) as error:
            raise self._lost() from error

    def close(self, outstanding: Sequence[Any]) -> None:
        """Cancel what is outstanding, and take the work from the workers."""
        if self.gone:  # and has nothing left of us; a request would only wait
            return
        with contextlib.suppress(OSError, CancelledError, RuntimeError):  # gone since
            self.client.cancel(list(outstanding), force=True)
            self.client.unregister_worker_plugin(self.plugin)

    def _n_threads(self) -> int:
        """Threads of all workers; requested from the scheduler every few seconds, for workers come and go."""
        if time.monotonic() >= self.look_again:
            try:
                self.n_threads = sum(self.client.nthreads().values())
            except (OSError, CancelledError) as error:
                raise self._lost() from error
            self.look_again = time.monotonic() + LOOK_AGAIN
        return self.n_threads

    def _lost(self) -> base.ClusterLostError:
        self.gone = True
        return base.ClusterLostError("its scheduler is gone, was restarted, or has cancelled the chunks")


class WorkPlugin(distributed.WorkerPlugin):  # type: ignore[misc]  # Dask is optional, so its classes have no type here
    """The work, held by a worker; loaded when its first chunk comes."""

    def __init__(self, sent: base.PickledWork) -> None:
        self.sent: base.PickledWork | None = sent
        self.work: base.Work | None = None

    def setup(self, worker: Any) -> None:
        """Called by Dask when the worker has it."""
        self.lock = threading.Lock()
        self.alone = worker.state.nthreads == 1

    def unpacked(self) -> base.Work:
        """The work, the same for all threads."""
        with self.lock:
            if self.work is None and self.sent is not None:
                self.work, self.sent = base.load_work(self.sent), None
        assert self.work is not None
        return self.work


def run_on_worker(plugin: str, chunk: base.SupportsChunk) -> base.ChunkReply:
    """What a worker does with a chunk."""
    shipment = distributed.get_worker().plugins[plugin]
    work = shipment.unpacked()
    if shipment.alone:
        return base.run_with_warnings(work, chunk)
    return dict(work(chunk)), []  # warnings of threads cannot be separated; they go to the worker's log
