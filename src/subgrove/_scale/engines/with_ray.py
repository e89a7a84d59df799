"""A Ray cluster: the work is put into the object store once, and each process of Ray loads it once."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import ray
from ray import exceptions as failures

from subgrove._scale.engines import base


class RayEngine(base.Engine):
    """Processes of the cluster that this process is connected to, a core for each chunk."""

    name = "the Ray cluster"

    def __init__(self, work: base.Work, n_jobs: int | None) -> None:
        if not ray.is_initialized():  # requested by joblib.parallel_config(backend="ray")
            ray.init()
        self.most = n_jobs if n_jobs is not None and n_jobs > 0 else None
        self.sent = base.pickle_work(work)
        self.stored = ray.put(self.sent)
        self.task = ray.remote(num_cpus=1, max_retries=0)(run_in_ray)

    def room(self) -> int:
        """Two chunks for each core that the cluster has now."""
        return 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1) if self.most is None else self.most

    def start(self, chunk: base.SupportsChunk) -> Any:
        """A reference to the reply; the work goes along as a reference too, which is not copied."""
        try:
            return self.task.remote([self.stored], self.sent.run, chunk)
        except (failures.RaySystemError, ConnectionError) as error:
            raise base.ClusterLostError(str(error)) from error

    def first_done(self, tickets: Sequence[Any]) -> Any:
        """Whichever is done; the oldest of several."""
        done, _ = ray.wait(list(tickets), num_returns=1)
        return done[0]

    def sums(self, ticket: Any) -> base.ChunkArrays:
        """What the work gave, its error, or what was lost."""
        try:
            return base.unwrap(ray.get(ticket))
        except failures.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except failures.ObjectLostError as error:
            self.stored = ray.put(self.sent)
            raise base.WorkerLostError(str(error)) from error
        except (failures.WorkerCrashedError, failures.NodeDiedError, failures.OutOfMemoryError) as error:
            raise base.WorkerLostError(str(error)) from error
        except (failures.RaySystemError, ConnectionError) as error:
            raise base.ClusterLostError(str(error)) from error

    def close(self, outstanding: Sequence[Any]) -> None:
        """Cancel what is outstanding, with the processes that are at it, and let go of the work."""
        for ticket in outstanding:
            with contextlib.suppress(Exception):  # a cluster that is gone has nothing left of us
                ray.cancel(ticket, force=True)
        del self.stored


def run_in_ray(stored: list[Any], run: str, chunk: base.SupportsChunk) -> base.ChunkReply:
    """What a process of Ray does with a chunk."""
    return base.run_with_warnings(base.load_cached(run, lambda: ray.get(stored[0])), chunk)
