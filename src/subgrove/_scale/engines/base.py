"""What an engine is: it is handed chunks, says which is done first, and gives its sums.

One loop (`run.py`) does the rest for every engine: order, retries, checkpoint, progress, cancelling. So an engine is
four short methods. It holds the work from the start on, and ships it once to each worker, not once with each chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

ChunkArrays = Mapping[str, np.ndarray]  # plain arrays only: they are saved without pickle


class SupportsChunk(Protocol):
    """What a loop over chunks asks of a chunk."""

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
    """Nothing can be handed to the engine any more, nor asked of it."""


class Engine(ABC):
    """Workers that each hold the work."""

    #: What people know it by.
    name: str = ""
    #: Whether a lost worker is known to have been lost with this very chunk.
    tells_which_was_lost: bool = True

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
        """One chunk, which is done when it is asked for."""
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
