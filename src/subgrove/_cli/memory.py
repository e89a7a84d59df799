"""Little memory: what is needed at least, and how libraries are kept from claiming more than they use."""

from __future__ import annotations

import os

from subgrove.exceptions import InputError

LEAST = 800 << 20  # bytes of addresses; a report takes 650 MB of them, a third of it as memory


def claim_little() -> None:
    """Ask Arrow to take memory as it needs it, before it is imported.

    Its own way reserves a gigabyte of addresses at once, which fails under a limit (`ulimit -v`) or takes them from
    what is loaded later.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def reject_too_little() -> None:
    """Refuse a limit under which numerical libraries cannot be loaded; some would wait for memory for ever."""
    try:
        import resource
    except ImportError:  # there are no such limits on Windows
        return
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed not in (resource.RLIM_INFINITY, -1) and allowed < LEAST:
        raise InputError(
            f"There is not enough memory: the limit is {allowed >> 20} MB of addresses, at least {LEAST >> 20} MB are "
            f"needed. Raise it (ulimit -v)."
        )


def is_lack(error: BaseException) -> bool:
    """Whether an error says, in whatever class, that there was no memory."""
    told = ("failed to map segment", "Cannot allocate memory", "cannot allocate memory", "can't start new thread")
    return isinstance(error, MemoryError) or any(text in str(error) for text in told)
