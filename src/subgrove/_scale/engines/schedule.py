"""One loop for every engine: work on each chunk, results in the order of chunks.

What the loop promises, whatever the engine:

- results come in the order of chunks, so that whoever adds them up gets the same bits everywhere;
- a few chunks are under way for each worker, never all of them;
- a chunk whose worker died, or that raised, is tried again, then named in an error; an error that would come again (of
  the model, of an argument) is raised at once;
- what is done is kept in the checkpoint, if there is one, before anything else can fail;
- when the caller stops, chunks under way are given up and nothing is left behind.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from subgrove._core.execution import effective_jobs, progress_bar
from subgrove._core.validate import whole_number
from subgrove._scale.engines.base import (
    ChunkArrays,
    ClusterLostError,
    Engine,
    SerialEngine,
    SupportsChunk,
    Work,
    WorkerLostError,
)
from subgrove._scale.engines.checkpoint import Checkpoint, open_checkpoint
from subgrove.exceptions import ChunkError, ClusterError, ParameterError, SubgroveError

AHEAD = 8  # results that wait for an earlier chunk, for each chunk under way
PAUSE = 0.2  # seconds before a chunk that raised is tried again, times the attempts so far


def run_chunks(
    work: Work,
    chunks: Sequence[SupportsChunk],
    *,
    n_jobs: int | None = None,
    what: str = "Chunks",
    checkpoint: Path | str | None = None,
    mark: str = "",
    retries: int = 2,
) -> Iterator[tuple[int, ChunkArrays]]:
    """Work on each chunk, by whichever engine is active.

    Parameters
    ----------
    work : callable
        Takes a chunk, gives a mapping of names to arrays. It is pickled, and shipped once to each worker.
    chunks : sequence
        Things with `name`, `first_row` and `n_rows`, small enough to be sent with each task.
    n_jobs : int or None
        Processes on this machine; on a cluster, how many chunks may be worked on at once (None for all its workers).
    what : str
        Words for the bar and for errors.
    checkpoint : path or None
        A folder in which finished chunks are kept, and from which they are taken.
    mark : str
        Everything that the sums depend on, a line for each thing. A checkpoint with another mark is rejected.
    retries : int
        How often a chunk is tried again.

    Returns
    -------
    iterator of (int, mapping)
        Number of the chunk and its sums, in the order of chunks. Closing it cancels what is under way.
    """
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    whole_number("retries", retries, least=0)
    kept = None if checkpoint is None else open_checkpoint(checkpoint, mark, chunks, what)
    return _Run(work, chunks, n_jobs, kept, retries).results(what)


class _Run:
    """The state of one loop: what is still to do, under way, done and not yet handed over."""

    def __init__(
        self, work: Work, chunks: Sequence[SupportsChunk], n_jobs: int | None, kept: Checkpoint | None, retries: int
    ) -> None:
        self.work = work
        self.chunks = chunks
        self.n_jobs = n_jobs
        self.kept = kept
        self.retries = retries
        self.todo = deque(n for n in range(len(chunks)) if kept is None or not kept.done(n))
        self.open = set(self.todo)
        self.suspects: deque[int] = deque()
        self.under_way: dict[Any, int] = {}
        self.ready: dict[int, ChunkArrays] = {}
        self.attempts = [0] * len(chunks)

    @cached_property
    def engine(self) -> Engine:
        """The active engine; none is started if all chunks are in the checkpoint."""
        return active_engine(self.work, self.n_jobs)

    def results(self, what: str) -> Iterator[tuple[int, ChunkArrays]]:
        """Sums in the order of chunks."""
        total = sum(chunk.n_rows for chunk in self.chunks)
        try:
            with progress_bar(total, what, unit="rows", hides_inner=False) as advance:
                for number, chunk in enumerate(self.chunks):
                    sums = self._sums_of(number)
                    advance(chunk.n_rows)
                    yield number, sums
        finally:
            if "engine" in self.__dict__:
                self.engine.close(list(self.under_way))

    def _sums_of(self, number: int) -> ChunkArrays:
        while number not in self.ready:
            if number in self.open:
                self._one_step(number)
                continue
            saved = None if self.kept is None else self.kept.read(number)
            if saved is not None:
                return saved
            self.todo.appendleft(number)
            self.open.add(number)
        return self.ready.pop(number)

    def _one_step(self, number: int) -> None:
        """Hand over as many chunks as there is room for, then take the first result."""
        engine = self.engine
        try:
            self._hand_over(number)
            self._take(engine.first_done(list(self.under_way)))
        except ClusterLostError as error:
            raise ClusterError(f"The connection to {engine.name} was lost: {error}. {self._how_to_go_on()}") from error

    def _hand_over(self, number: int) -> None:
        if self.suspects:  # one at a time, so that whoever ends processes is known
            if not self.under_way:
                self._start(self.suspects.popleft())
            return
        room = self.engine.room()
        while self.todo and len(self.under_way) < room and self.todo[0] < number + room * AHEAD:
            self._start(self.todo.popleft())

    def _start(self, number: int) -> None:
        self.attempts[number] += 1
        self.under_way[self.engine.start(self.chunks[number])] = number

    def _take(self, ticket: Any) -> None:
        number = self.under_way.pop(ticket)
        try:
            sums = self.engine.sums(ticket)
        except WorkerLostError as error:
            self.attempts[number] += error.n_workers - 1
            self._again(number, error)
            (self.todo.appendleft if self.engine.reports_lost_chunk else self.suspects.append)(number)
        except Exception as error:
            own = isinstance(error, SubgroveError) and not isinstance(error, ChunkError)
            if own or isinstance(error, ClusterLostError):
                raise
            self._again(number, error)
            self.todo.appendleft(number)
        else:
            if self.kept is not None:
                self.kept.write(number, sums)
            self.ready[number] = sums
            self.open.remove(number)

    def _again(self, number: int, error: Exception) -> None:
        """Pause before the next attempt, or give up."""
        attempts = self.attempts[number]
        if attempts <= self.retries:
            time.sleep(PAUSE * attempts if not isinstance(error, WorkerLostError) else 0)
            return
        chunk = self.chunks[number]
        cause = f"{error}" if isinstance(error, WorkerLostError | ChunkError) else f"{type(error).__name__}: {error}"
        raise ChunkError(
            f"{chunk.name} could not be done in {attempts} attempt{'s' if attempts > 1 else ''}. The last one: {cause}"
            f"{'' if cause.endswith('.') else '.'} {self._how_to_go_on()}"
        ) from error

    def _how_to_go_on(self) -> str:
        if self.kept is None:
            return "Nothing is kept of the other chunks; pass checkpoint='a folder' to keep them next time."
        done = sum(self.kept.done(number) for number in range(len(self.chunks)))
        return (
            f"{done} of {len(self.chunks)} chunks are kept in {str(self.kept.folder)!r}: the same call with the same "
            f"checkpoint goes on from there."
        )


JOBLIB_BACKENDS = {  # by the name of the class, so that none need be imported; the first that fits counts
    "RayBackend": "ray",
    "DaskDistributedBackend": "dask",
    "SequentialBackend": "sequential",
    "ThreadingBackend": "threads",
    "LokyBackend": "processes",
    "MultiprocessingBackend": "processes",
}


def active_engine(work: Work, n_jobs: int | None) -> Engine:
    """The active engine, holding the work."""
    backend = configured_backend()
    kind = "" if backend is None else kind_of(backend)
    if kind == "dask" or (not kind and active_client() is not None):
        from subgrove._scale.engines.with_dask import DaskEngine

        return DaskEngine(work, getattr(backend, "client", None) or active_client(), n_jobs)
    ray = sys.modules.get("ray")
    if kind == "ray" or (not kind and ray is not None and ray.is_initialized()):
        from subgrove._scale.engines.with_ray import RayEngine

        return RayEngine(work, n_jobs)
    from subgrove._scale.engines.local import ProcessEngine, ThreadEngine

    n_workers = effective_jobs(n_jobs)
    if n_workers == 1 or kind == "sequential":
        return SerialEngine(work)
    if kind == "threads":
        return ThreadEngine(work, n_workers)
    return ProcessEngine(work, n_workers, getattr(backend, "inner_max_num_threads", None))


def configured_backend() -> Any:
    """Return the backend set by `joblib.parallel_config(backend=...)`, or None."""
    from joblib.parallel import get_active_backend

    # A hint decides only where no backend is set.
    backend, other = (get_active_backend(prefer=hint)[0] for hint in ("threads", "processes"))
    return backend if type(backend) is type(other) else None


def kind_of(backend: Any) -> str:
    """Which engine a backend of joblib stands for."""
    names = {cls.__name__ for cls in type(backend).__mro__}
    for name, kind in JOBLIB_BACKENDS.items():
        if name in names:
            return kind
    raise ParameterError(
        f"joblib's backend {type(backend).__name__} is active, but large data need one of 'loky', 'threading', "
        f"'dask' or 'ray'. Choose one of them with joblib.parallel_config."
    )


def active_client() -> Any:
    """The Dask client that is active, if Dask is in use at all."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None
