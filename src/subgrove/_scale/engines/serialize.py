"""How work goes to another process: pickled once, loaded once in each process, found by the number of the run.

Warnings of the work are sent back with its sums, so that a user sees them wherever the work was done.
"""

from __future__ import annotations

import pickle
import threading
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from subgrove._scale.engines.base import ChunkArrays, SupportsChunk, Work
from subgrove._version import __version__
from subgrove.exceptions import ClusterError, ParameterError

CaughtWarning = tuple[type[Warning], str]
ChunkReply = tuple[dict[str, Any], list[CaughtWarning]]

_held: dict[str, Work] = {}  # at most one run at a time: the work of a later run takes the place of an earlier one
_lock = threading.Lock()


@dataclass(frozen=True)
class PickledWork:
    """Work, pickled; `run` tells it from the work of every other run."""

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
    """The work again; refuses the parcel of another version, whose numbers could differ."""
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
    """Work of a run; `fetch` gives its parcel the first time that this process is asked."""
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
    told = dict.fromkeys((entry.category, str(entry.message)) for entry in caught)
    return dict(sums), list(told)


def unwrap(reply: ChunkReply) -> ChunkArrays:
    """Sums of a reply; its warnings are given here."""
    sums, told = reply
    for category, message in told:
        warnings.warn(message, category, stacklevel=2)
    return sums
