"""Start of the command `subgrove`.

It stands beside the package, since importing a module of the package imports all of it, which takes a second. A request
to end in that second (Ctrl-C, `kill`, a closed terminal) ends the process at once, with a sentence: an exception would
be raised inside whatever is being imported, which may take it for a part that is not installed.
"""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress
from typing import Any

INTERRUPTED = "Interrupted. No file is left half-written."
BY_SIGNAL = 128  # plus the number of the signal: exit code of an interrupted process
_COLLECTION = (20_000, 20, 100)  # new objects until a search for unused cycles: imports create 150,000 that stay
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP; `nohup` ignores it
_NUMBERS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


def main() -> None:
    """Run the command line; a request to end is handled as Ctrl-C, so that no process and no file is left."""
    gc.set_threshold(*_COLLECTION)
    for number in _NUMBERS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)
    from subgrove._cli.app import main as run

    gc.freeze()  # so that no search looks through what was imported
    run()


def begin() -> None:
    """Raise `KeyboardInterrupt` at a request to end from now on: there is something to clean up."""
    for number in _NUMBERS:
        if signal.getsignal(number) is _end:
            signal.signal(number, _interrupt)


def _end(number: int, _: Any) -> None:
    with suppress(OSError):  # standard error is closed
        os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(BY_SIGNAL + number)


def _interrupt(number: int, _: Any) -> None:
    signal.signal(number, signal.SIG_IGN)  # so that it is handled once
    raise KeyboardInterrupt(number)
