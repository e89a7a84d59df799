"""The outcomes allowed for hostile input, in bounded time: finite numbers, or an error of subgrove."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from subgrove.exceptions import SubgroveError

SECONDS = 60  # after which a case counts as a hang; each takes a fraction of a second


@contextmanager
def bounded() -> Iterator[None]:
    """Raise TimeoutError where a case hangs."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no result after {SECONDS} s")

    if not hasattr(signal, "SIGALRM"):  # Windows
        yield
        return
    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def outcome(compute: Callable[[], Any]) -> Any:
    """Return the table that was computed, or None after an error of subgrove; any other exception is a failure."""
    with bounded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, message = None, ""
        try:
            table = compute()
        except SubgroveError as error:
            message = str(error)
    if table is None:
        assert len(message) > 20, "an error says what is wrong"
        assert "Traceback" not in message
        return None
    assert np.isfinite(np.asarray(table["estimate"], dtype=float)).all()
    return table
