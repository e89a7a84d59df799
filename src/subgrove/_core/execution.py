"""Random streams, parallel tasks and progress bars: results do not depend on the number of workers.

There is one seed, and an independent stream for each (feature, repeat). A stream depends only on the seed, the name of
the feature and the number of the repeat. So the same seed gives the same numbers for any number of jobs, any order and
any subset of features, and the first repeats are the same for any number of repeats (unless more of them make an
expectation exact).

Large data have streams of another kind (`KeyedStreams`): the random number of a row depends on the key of the row, not
on its position. So it is the same for any chunks and any order of the rows.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pickle import PicklingError
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import ClusterError, ParameterError

Keys = npt.NDArray[np.uint64]
T = TypeVar("T")
_UNIT = 2.0**-53  # spacing of random numbers in [0, 1)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h


RandomStateLike = int | np.random.Generator | np.random.RandomState | None
"""What `random_state=` accepts, as in scikit-learn."""


def read_seed(random_state: Any) -> int:
    """Return the seed as an integer >= 0.

    None draws a fresh one, so that the result can state which it was. A `Generator` or `RandomState` is advanced by
    one draw, as in scikit-learn: a second call with the same object has another seed.
    """
    if random_state is None:
        return secrets.randbits(63)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63, dtype=np.uint64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63, dtype=np.uint64))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ParameterError(
            f"random_state must be an integer >= 0, a numpy Generator or RandomState, or None for a new seed each "
            f"time; got {random_state!r}."
        )
    return int(random_state)


@dataclass(frozen=True)
class Streams:
    """One random generator per repeat, created on access: `for rng in streams`.

    Accessing the same repeat again returns a generator in its initial state.
    """

    seed: int
    key: str
    n_repeats: int

    def __len__(self) -> int:
        return self.n_repeats

    def __getitem__(self, repeat: int) -> np.random.Generator:
        if not 0 <= repeat < self.n_repeats:
            raise IndexError(f"repeat {repeat} of {self.n_repeats}")
        return self._of_repeat(repeat)

    def _of_repeat(self, repeat: int) -> np.random.Generator:
        return stream(self.seed, self.key, repeat)

    def __iter__(self) -> Iterator[np.random.Generator]:
        return (self[repeat] for repeat in range(self.n_repeats))

    @property
    def shared(self) -> np.random.Generator:
        """Generator of the numbers that all repeats share; the same for any number of repeats."""
        return stream(self.seed, self.key)

    def apart(self, purpose: str) -> Streams:
        """Return streams that are independent of these, for another step of the same draws."""
        return replace(self, key=f"{purpose} of {self.key}")


def stream(seed: int, key: str, *repeat: int) -> np.random.Generator:
    """Return the generator of a repeat, or of work without repeats, such as drawing folds."""
    digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*words, *repeat)))


def mix64(keys: Keys, salt: int) -> Keys:
    """Return random bits from keys; another salt gives independent bits (the finalizer of splitmix64)."""
    bits = keys + np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits


def hash64(*words: Any) -> int:
    """Return 64 bits that depend on all of the words, and on nothing else."""
    text = "\0".join(map(str, words))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(eq=False)
class KeyedStream:
    """A random generator whose numbers depend on the keys of the rows they are drawn for.

    It has the two methods that samplers use to draw one number per row. Each call returns other numbers.
    """

    rows: Keys
    words: tuple[Any, ...]
    n_calls: int = 0

    def random(self, size: int) -> npt.NDArray[np.float64]:
        """Return uniform numbers in [0, 1)."""
        numbers: npt.NDArray[np.float64] = (self._bits(size) >> np.uint64(11)).astype(np.float64)
        numbers *= _UNIT
        return numbers

    def standard_normal(self, size: int) -> npt.NDArray[np.float64]:
        """Return standard normal numbers."""
        from scipy.special import ndtri

        # Midpoints of the intervals, so that neither 0 nor 1 occurs.
        return np.asarray(ndtri(((self._bits(size) >> np.uint64(12)) + 0.5) * (2 * _UNIT)))

    def _bits(self, size: int) -> Keys:
        if size != len(self.rows):
            raise ValueError(f"a keyed stream of {len(self.rows)} rows cannot draw {size} numbers")
        self.n_calls += 1
        first, second = (hash64(*self.words, self.n_calls, half) for half in ("first", "second"))
        return mix64(mix64(self.rows, first), second)


@dataclass(frozen=True, eq=False)
class KeyedStreams(Streams):
    """Streams of rows with keys, for samplers that draw row by row.

    Its generators have only `random` and `standard_normal`, for one number per row.

    Attributes
    ----------
    rows : uint64 array
        Key of each row.
    memory : dict
        Values that the draws of all chunks share, computed once.
    """

    rows: Keys = field(kw_only=True)
    memory: dict[str, Any] = field(kw_only=True, default_factory=dict)

    def _of_repeat(self, repeat: int) -> np.random.Generator:
        return cast(np.random.Generator, KeyedStream(self.rows, (self.seed, self.key, repeat)))

    @property
    def of_rows(self) -> KeyedStream:
        """Generator of numbers that are the same in all repeats of a row; `shared` is the same for all rows."""
        return KeyedStream(self.rows, (self.seed, self.key, "all repeats"))


class IndependentStreams(Streams):
    """Streams for draws that are independent from row to row and from repeat to repeat, instead of balanced ones."""


def cached(rngs: Streams, name: str, make: Callable[[], T]) -> T:
    """Return `make()`; keyed streams compute it once and keep it for the next chunks."""
    if not isinstance(rngs, KeyedStreams):
        return make()
    if name not in rngs.memory:
        rngs.memory[name] = make()
    value: T = rngs.memory[name]
    return value


class UserStreams(list[np.random.Generator]):
    """Generators of the user in place of seeded streams."""

    def __init__(self, rngs: Any) -> None:
        is_number = isinstance(rngs, int | np.integer)
        super().__init__((np.random.default_rng() for _ in range(int(rngs))) if is_number else rngs)
        if not self:
            raise ParameterError("rngs must be a positive number of repeats, or a generator for each repeat; got none.")

    def apart(self, purpose: str) -> UserStreams:
        """Return the same generators, which go on with other numbers."""
        return self

    @property
    def shared(self) -> np.random.Generator:
        """The generator of the first repeat."""
        return self[0]


R = TypeVar("R")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which matrix products use one thread."""
    return one_thread("blas")


def one_thread(api: str) -> AbstractContextManager[Any]:
    """Return a context in which libraries of an interface ("blas" or "openmp") use one thread.

    Many small products, or nodes of trees, lose more by synchronizing threads than they gain, especially on a busy
    machine; and with one thread sums are formed in the same order, hence are the same for any number of cores.
    """
    limits: AbstractContextManager[Any] = _controller(api).limit(limits=1, user_api=api)
    return limits


@cache
def _controller(api: str) -> Any:
    """Return what controls the libraries that are loaded when an interface is first used."""
    from threadpoolctl import ThreadpoolController

    import_module("scipy.linalg")  # SciPy has a BLAS of its own, which could not be controlled if it were loaded later

    return ThreadpoolController()


def keep_freed_memory() -> None:
    """Have glibc keep up to 64 MiB of freed memory of this process: the system takes long to provide it anew."""
    with suppress(Exception):  # another C library
        for option, size in ((_TRIM_THRESHOLD, 2**26), (_MMAP_THRESHOLD, 2**25)):
            ctypes.CDLL(None).mallopt(option, size)


def working_memory() -> float:
    """Return the memory budget for temporary tables in MiB, `sklearn.get_config()["working_memory"]`."""
    sklearn = sys.modules.get("sklearn")  # importing it takes half a second and 60 MiB
    return float(sklearn.get_config()["working_memory"] if sklearn else os.environ.get("SKLEARN_WORKING_MEMORY", 1024))


_MAX_JOBS = 10_000


def effective_jobs(n_jobs: int | None) -> int:
    """Return the number of workers of joblib: `n_jobs`, or that of the active configuration."""
    from joblib import effective_n_jobs

    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise ParameterError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}.")
    if n_jobs is not None and abs(n_jobs) > _MAX_JOBS:
        raise ParameterError(f"n_jobs must be at most {_MAX_JOBS:,}; got {n_jobs}. Use -1 for all processors.")
    return int(effective_n_jobs(n_jobs))


def parallel_map(function: Callable[[T], R], tasks: Sequence[T], n_jobs: int | None) -> Iterator[R]:
    """Yield the results of a function for each task, in the order of the tasks."""
    if len(tasks) <= 1 or effective_jobs(n_jobs) == 1:
        yield from map(function, tasks)
        return
    from concurrent.futures.process import BrokenProcessPool  # the base class of joblib's error

    from joblib import Parallel, delayed

    try:
        calls = (delayed(_in_worker)(os.getpid(), function, task) for task in tasks)
        yield from Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    except (PicklingError, AttributeError, TypeError) as error:
        if isinstance(error, PicklingError) or "pickle" in str(error):
            raise ParameterError(
                f"n_jobs={n_jobs!r} sends the model to other processes, but it cannot be pickled: {error}. "
                f"Use n_jobs=1, or joblib.parallel_config(backend='threading')."
            ) from error
        raise
    except BrokenProcessPool as error:
        raise ClusterError(
            f"One of the n_jobs={n_jobs!r} processes ended unexpectedly: it crashed, or the memory was used up. "
            f"Use fewer processes or rows, or n_jobs=1, which shows errors of the model."
        ) from error


def _in_worker(parent: int, function: Callable[[T], R], task: T) -> R:
    end_with_parent(parent)
    return function(task)


@cache
def end_with_parent(parent: int) -> None:
    """End this process soon after its parent, which cannot do that once it is killed; only if it is the parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    # A process of loky whose parent is another one has lost its own before it got to work.
    if os.getppid() == parent or any("popen_loky" in word for word in sys.orig_argv):
        threading.Thread(target=watch, daemon=True).start()


_WATCH_SECONDS = 1.0
_hides_progress: ContextVar[bool] = ContextVar("subgrove_hides_progress", default=False)


@contextmanager
def hidden_progress(hidden: bool = True) -> Iterator[None]:
    """Show no progress bars, as within another bar."""
    token = _hides_progress.set(hidden)
    try:
        yield
    finally:
        _hides_progress.reset(token)


@contextmanager
def progress_bar(total: int, what: str, unit: str = "", *, hides_inner: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a bar with the remaining time; yields a function that advances it. Bars within another one are not shown.

    With a `unit`, such as "rows", the bar shows how many of them are done. A generator that yields within a bar must
    not hide inner ones (`hides_inner`): if it is abandoned, they would remain hidden.

    The environment variable SUBGROVE_PROGRESS is 0 for no bars and 1 for bars; without it bars are shown if standard
    error is a terminal. If it is not, 1 prints one line at the end.
    """
    shows = _progress_setting() and not _hides_progress.get()
    with hidden_progress() if hides_inner and total > 0 else nullcontext():
        yield from _bar(total if shows else 0, what, unit)


def _progress_setting() -> bool:
    setting = os.environ.get("SUBGROVE_PROGRESS", "")
    if setting not in ("", "0", "1"):
        raise ParameterError(
            f"The environment variable SUBGROVE_PROGRESS must be 0 (no progress bars) or 1 (always); got {setting!r}."
        )
    return sys.stderr.isatty() if not setting else setting == "1"


def _bar(total: int, what: str, unit: str) -> Iterator[Callable[[int], None]]:
    if total <= 0:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # rich would leave an empty line
        start = time.perf_counter()
        yield lambda done: None
        print(f"{what}: done in {time.perf_counter() - start:.1f} s", file=sys.stderr)
        return
    done = f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}" if unit else "{task.percentage:>3.0f} %"
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(done))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
