"""The interface of an engine: it takes chunks, reports which is done first, and returns its sums.

One loop (`schedule.py`) does the rest for every engine: order, retries, checkpoint, progress, cancelling. So an engine
is four short methods. It holds the work from the start, and sends it once to each worker, not once with each chunk.

Work for other processes is pickled once and loaded once in each process, which finds it by the number of the run. Its
warnings are sent back with its sums, so that a user sees them wherever the work was done.
"""

from __future__ import annotations

import pickle
import threading
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from subgrove._core.validate import warn
from subgrove._version import __version__
from subgrove.exceptions import ClusterError, ParameterError

ChunkArrays = Mapping[str, Any]  # plain arrays, if they are saved in a checkpoint: that is done without pickle


class SupportsChunk(Protocol):
    """What the scheduler needs of a chunk."""

    @property
    def name(self) -> str:
        """What people know the chunk by."""

    @property
    def first_row(self) -> int:
        """Number of its first row among all rows."""

    @property
    def n_rows(self) -> int:
        """How many rows it has."""


Work = Callable[[Any], ChunkArrays]


class WorkerLostError(Exception):
    """The worker that had a chunk is gone, or several were, one after the other; yet another one may do it."""

    def __init__(self, message: str, n_workers: int = 1) -> None:
        super().__init__(message)
        self.n_workers = n_workers


class ClusterLostError(Exception):
    """The engine can be reached no more."""


class Engine(ABC):
    """Workers that each hold the work."""

    #: What people know it by.
    name: str = ""
    #: Whether a lost worker is known to have been lost with this very chunk.
    reports_lost_chunk: bool = True

    @abstractmethod
    def room(self) -> int:
        """How many chunks may be under way at once: enough that no worker waits, few enough to cancel."""

    @abstractmethod
    def start(self, chunk: SupportsChunk) -> Any:
        """A ticket for a chunk that is now under way."""

    @abstractmethod
    def first_done(self, tickets: Sequence[Any]) -> Any:
        """One ticket whose chunk is done, or has failed; waits for it."""

    @abstractmethod
    def sums(self, ticket: Any) -> ChunkArrays:
        """Sums of a chunk that is done; raises its error, WorkerLostError or ClusterLostError."""

    @abstractmethod
    def close(self, outstanding: Sequence[Any]) -> None:
        """Give up chunks that nobody waits for any more, and leave nothing behind."""


class SerialEngine(Engine):
    """No other process: one chunk after the other."""

    name = "this process"

    def __init__(self, work: Work) -> None:
        self.work = work

    def room(self) -> int:
        """One chunk, which is computed when its sums are read."""
        return 1

    def start(self, chunk: SupportsChunk) -> partial[ChunkArrays]:
        """The call that does the chunk; a chunk itself may hold what cannot be a key, such as levels of columns."""
        return partial(self.work, chunk)

    def first_done(self, tickets: Sequence[partial[ChunkArrays]]) -> partial[ChunkArrays]:
        """The only one."""
        return tickets[0]

    def sums(self, ticket: partial[ChunkArrays]) -> ChunkArrays:
        """The work itself."""
        return ticket()

    def close(self, outstanding: Sequence[Any]) -> None:
        """There is nothing to leave behind."""


CaughtWarning = tuple[type[Warning], str]
ChunkReply = tuple[dict[str, Any], list[CaughtWarning]]

_held: dict[str, Work] = {}  # at most one run at a time: the work of a later run takes the place of an earlier one
_lock = threading.Lock()


@dataclass(frozen=True)
class PickledWork:
    """Work, pickled; `run` identifies it."""

    run: str
    version: str
    data: bytes


def pickle_work(work: Work) -> PickledWork:
    """The work as bytes that another process can load, functions of the user's script included."""
    import cloudpickle

    try:
        data = cloudpickle.dumps(work, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise ParameterError(
            f"The model, or another part of the work, cannot be sent to other processes: it cannot be pickled "
            f"({type(error).__name__}: {error}). Use n_jobs=1, or joblib.parallel_config(backend='threading')."
        ) from error
    return PickledWork(uuid.uuid4().hex, __version__, data)


def load_work(sent: PickledWork) -> Work:
    """The work again; raises if it comes from another version, whose numbers could differ."""
    if sent.version != __version__:
        raise ParameterError(
            f"A worker has subgrove {__version__}, but the work comes from subgrove {sent.version}. "
            f"Install the same version everywhere."
        )
    try:
        work: Work = pickle.loads(sent.data)
    except Exception as error:
        raise ClusterError(
            f"A worker cannot load the model or another part of the work ({type(error).__name__}: {error}). Workers "
            f"need the packages of this process in the same versions; a module of your own must be found there too."
        ) from error
    return work


def load_cached(run: str, fetch: Callable[[], PickledWork]) -> Work:
    """Work of a run; `fetch` gives its parcel the first time in this process."""
    with _lock:
        if run not in _held:
            work = load_work(fetch())
            _held.clear()
            _held[run] = work
        return _held[run]


def run_with_warnings(work: Work, chunk: SupportsChunk) -> ChunkReply:
    """Sums of a chunk, and the warnings that were given meanwhile."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sums = work(chunk)
    caught_warnings = dict.fromkeys((entry.category, str(entry.message)) for entry in caught)
    return dict(sums), list(caught_warnings)


def unwrap(reply: ChunkReply) -> ChunkArrays:
    """Sums of a reply; its warnings are given here."""
    sums, caught = reply
    for category, message in caught:
        warn(message, category)
    return sums
