"""How many processors work at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


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
