"""How many processors work at once, and how far they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

from subgrove.exceptions import ParameterError

T = TypeVar("T")
R = TypeVar("R")


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which matrix products use one thread.

    Many small products lose more to waiting for a second thread than they gain, badly so on a busy machine;
    and with one thread sums are formed in the same order, hence are the same, whatever the number of cores.
    """
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def effective_jobs(n_jobs: int | None) -> int:
    """How many workers joblib would use: `n_jobs`, or what the active configuration says."""
    from joblib import effective_n_jobs

    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0):
        raise ParameterError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}.")
    return int(effective_n_jobs(n_jobs))


def side_by_side(function: Callable[[T], R], tasks: Sequence[T], n_jobs: int | None) -> Iterator[R]:
    """Results of a function for each task, in order, as they come."""
    if len(tasks) <= 1 or effective_jobs(n_jobs) == 1:
        yield from map(function, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(task) for task in tasks)


@contextmanager
def progress_bar(show: bool | None, total: int, what: str) -> Iterator[Callable[[int], None]]:
    """A bar with the remaining time; gives a function that is told how much more has been done.

    `show` None means: if standard error is a terminal.
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show or total <= 0:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
