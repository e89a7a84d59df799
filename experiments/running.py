"""Running units: skips what is done, each worker stores its own unit, and a run can be stopped at any moment."""

from __future__ import annotations

import importlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.store import Store
from experiments.units import Unit, reject_twins, seed_of

THREADS_VARIABLE = "SUBGROVE_EXPERIMENT_THREADS"
_LINE_EVERY_S = 60.0


@dataclass(frozen=True)
class Failure:
    """A unit that raised, and what it raised."""

    key: str
    trace: str


def run_all(experiment: str, units: Sequence[Unit], store: Store, jobs: int = 1) -> list[Failure]:
    """Compute the units that are not in the store yet; the failures are given back, the rest is stored.

    Parameters
    ----------
    experiment : str
        Name of the module `experiments.NAME` whose `run` computes a unit.
    units : sequence of Unit
        In the order in which they are begun.
    store : Store
        Where results go; what it has already is not computed again.
    jobs : int, default 1
        Worker processes; with 1, units are computed in this process.
    """
    reject_twins(units)
    os.environ[THREADS_VARIABLE] = str(max(1, (os.cpu_count() or 1) // jobs))
    store.sweep()
    done = store.done()
    missing = [unit for unit in units if unit.key not in done]
    with _progress(experiment, len(units), len(units) - len(missing)) as step:
        results = _in_this_process if jobs == 1 or len(missing) < 2 else _in_workers
        failures = []
        for failure in results(experiment, missing, store, jobs):
            step()
            failures += [failure] if failure is not None else []
    return failures


def threads() -> int:
    """Threads that a unit may use for forests, whose numbers do not depend on it: the cores that jobs leave idle."""
    return int(os.environ.get(THREADS_VARIABLE, "1"))


def compute(experiment: str, unit: Unit, store: Store) -> Failure | None:
    """Compute and store one unit."""
    from threadpoolctl import threadpool_limits

    try:
        module = importlib.import_module(f"experiments.{experiment}")
        # One thread, so that sums are made in the same order on every machine and with any number of jobs.
        with threadpool_limits(1):
            rows = module.run(unit, seed_of(experiment, unit.key))
    except Exception:
        return Failure(unit.key, traceback.format_exc())
    store.write(unit.key, [{"cell": unit.cell, **row} for row in rows])
    return None


def _in_this_process(experiment: str, units: Sequence[Unit], store: Store, jobs: int) -> Iterator[Failure | None]:
    for unit in units:
        yield compute(experiment, unit, store)


def _in_workers(experiment: str, units: Sequence[Unit], store: Store, jobs: int) -> Iterator[Failure | None]:
    # Spawned: a forked copy of a process that has had threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker) as pool:
        futures: list[Future[Failure | None]] = [pool.submit(compute, experiment, unit, store) for unit in units]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            # What is under way is finished and stored; what has not begun is left for the next run.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End this worker when its parent has died silently: no more work would arrive."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _progress(experiment: str, total: int, done: int) -> Iterator[Callable[[], None]]:
    console = Console(stderr=True)
    if done:
        console.print(f"{experiment}: {done} of {total} units are there already")
    if console.is_terminal:
        columns = (TextColumn(experiment), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = (TextColumn("left:"), TimeRemainingColumn())
        with Progress(*columns, *left, console=console) as bar:
            task = bar.add_task(experiment, total=total - done)
            yield lambda: bar.advance(task)
    else:
        yield _Lines(console, experiment, total - done).advance


class _Lines:
    """Progress where there is no terminal: a line a minute, and one at the end."""

    def __init__(self, console: Console, experiment: str, total: int) -> None:
        self.console, self.experiment, self.total = console, experiment, total
        self.done = 0
        self.begun = self.labels = time.monotonic()

    def advance(self) -> None:
        """Count a unit."""
        self.done += 1
        now = time.monotonic()
        if now - self.labels >= _LINE_EVERY_S or self.done == self.total:
            self.labels = now
            left = (now - self.begun) / self.done * (self.total - self.done)
            self.console.print(f"{self.experiment}: {self.done} of {self.total} units, about {left / 60:.1f} min left")
