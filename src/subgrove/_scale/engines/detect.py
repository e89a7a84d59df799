"""Which engine does the work: the one that the user's ecosystem has active.

First what `joblib.parallel_config` names, then a `distributed.Client` that is active, then a Ray that is initialised,
else processes of this machine. Neither Dask nor Ray is imported to find that out.
"""

from __future__ import annotations

import sys
from typing import Any

from subgrove._core.parallel import effective_jobs
from subgrove._scale.engines.base import Engine, SerialEngine, Work
from subgrove.exceptions import ParameterError

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
    if kind == "ray" or (not kind and ray_is_active()):
        from subgrove._scale.engines.with_ray import RayEngine

        return RayEngine(work, n_jobs)
    return local_engine(work, kind, backend, n_jobs)


def local_engine(work: Work, kind: str, backend: Any, n_jobs: int | None) -> Engine:
    """Threads or processes of this machine, or neither."""
    from subgrove._scale.engines.local import ProcessEngine, ThreadEngine

    n_workers = effective_jobs(n_jobs)
    if n_workers == 1 or kind == "sequential":
        return SerialEngine(work)
    if kind == "threads":
        return ThreadEngine(work, n_workers)
    return ProcessEngine(work, n_workers, getattr(backend, "inner_max_num_threads", None))


def configured_backend() -> Any:
    """What `joblib.parallel_config(backend=...)` has set, or None; joblib itself does not tell set from default."""
    import joblib.parallel

    config = getattr(getattr(joblib.parallel, "_backend", None), "config", {})
    backend = config.get("backend") if isinstance(config, dict) else None
    return backend if isinstance(backend, joblib.parallel.ParallelBackendBase) else None


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


def ray_is_active() -> bool:
    """Whether this process is connected to a Ray cluster."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())
