"""Number of workers, parallel execution and progress bars."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pickle import PicklingError
from typing import Any, TypeVar

import numpy as np

from subgrove.exceptions import ParameterError

T = TypeVar("T")
R = TypeVar("R")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which matrix products use one thread.

    Many small products lose more by synchronizing threads than they gain, especially on a busy machine; and with one
    thread sums are formed in the same order, hence are the same for any number of cores.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def working_memory() -> float:
    """Return the memory budget for temporary tables in MiB, `sklearn.get_config()["working_memory"]`."""
    from sklearn import get_config

    return float(get_config()["working_memory"])


def effective_jobs(n_jobs: int | None) -> int:
    """Return the number of workers of joblib: `n_jobs`, or that of the active configuration."""
    from joblib import effective_n_jobs

    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise ParameterError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}.")
    return int(effective_n_jobs(n_jobs))


def parallel_map(function: Callable[[T], R], tasks: Sequence[T], n_jobs: int | None) -> Iterator[R]:
    """Yield the results of a function for each task, in the order of the tasks."""
    if len(tasks) <= 1 or effective_jobs(n_jobs) == 1:
        yield from map(function, tasks)
        return
    from joblib import Parallel, delayed

    try:
        yield from Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(task) for task in tasks)
    except (PicklingError, AttributeError, TypeError) as error:
        if isinstance(error, PicklingError) or "pickle" in str(error):
            raise ParameterError(
                f"n_jobs={n_jobs!r} sends the model to other processes, but it cannot be pickled: {error}. "
                f"Use n_jobs=1, or joblib.parallel_config(backend='threading')."
            ) from error
        raise


@contextmanager
def progress_bar(show: bool | None, total: int, what: str, unit: str = "") -> Iterator[Callable[[int], None]]:
    """Show a bar with the remaining time; yields a function that advances it.

    With a `unit`, such as "rows", the bar shows how many of them are done.

    `show` None means: if standard error is a terminal. If it is not, `show` True prints one line at the end.
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show or total <= 0:
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
