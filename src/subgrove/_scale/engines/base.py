"""What an engine is: it is handed pieces, says which is done first, and gives its sums.

One loop (`run.py`) does the rest for every engine: order, retries, checkpoint, progress, cancelling. So an engine is
four short methods. It holds the work from the start on, and ships it once to each worker, not once with each piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

Sums = Mapping[str, np.ndarray]  # plain arrays only: they are saved without pickle


class PieceLike(Protocol):
    """What a loop over pieces asks of a piece."""

    @property
    def name(self) -> str:
        """What people know the piece by."""

    @property
    def first_row(self) -> int:
        """Number of its first row among all rows."""

    @property
    def n_rows(self) -> int:
        """How many rows it has."""


Work = Callable[[Any], Sums]


class WorkerLostError(Exception):
    """The worker that had a piece is gone, or several were, one after the other; yet another one may do it."""

    def __init__(self, message: str, n_workers: int = 1) -> None:
        super().__init__(message)
        self.n_workers = n_workers


class ClusterLostError(Exception):
    """Nothing can be handed to the engine any more, nor asked of it."""


class Engine(ABC):
    """Workers that each hold the work."""

    #: What people know it by.
    name: str = ""
    #: Whether a lost worker is known to have been lost with this very piece.
    tells_which_was_lost: bool = True

    @abstractmethod
    def room(self) -> int:
        """How many pieces may be under way at once: enough that no worker waits, few enough to cancel."""

    @abstractmethod
    def start(self, piece: PieceLike) -> Any:
        """A ticket for a piece that is now under way."""

    @abstractmethod
    def first_done(self, tickets: Sequence[Any]) -> Any:
        """One ticket whose piece is done, or has failed; waits for it."""

    @abstractmethod
    def sums(self, ticket: Any) -> Sums:
        """Sums of a piece that is done; raises its error, WorkerLostError or ClusterLostError."""

    @abstractmethod
    def close(self, outstanding: Sequence[Any]) -> None:
        """Give up pieces that nobody waits for any more, and leave nothing behind."""


class Here(Engine):
    """No other process: one piece after the other."""

    name = "this process"

    def __init__(self, work: Work) -> None:
        self.work = work

    def room(self) -> int:
        """One piece, which is done when it is asked for."""
        return 1

    def start(self, piece: PieceLike) -> partial[Sums]:
        """The call that does the piece; a piece itself may hold what cannot be a key, such as levels of columns."""
        return partial(self.work, piece)

    def first_done(self, tickets: Sequence[partial[Sums]]) -> partial[Sums]:
        """The only one."""
        return tickets[0]

    def sums(self, ticket: partial[Sums]) -> Sums:
        """The work itself."""
        return ticket()

    def close(self, outstanding: Sequence[Any]) -> None:
        """There is nothing to leave behind."""
