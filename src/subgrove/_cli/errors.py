"""Errors as messages and exit codes.

::

    0    success
    1    internal error
    2    the file, the columns or the options are invalid; nothing was written
    3    the model or a sampler failed
    4    a chunk of the data could not be read
    130  interrupted by Ctrl-C; no file is left half-written
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from subgrove._cli.output import Output, printable
from subgrove.exceptions import (
    ChunkError,
    ClusterError,
    InputError,
    ModelError,
    SamplerError,
    SubgroveError,
    SubgroveWarning,
)

OK, UNEXPECTED, BAD_INPUT, MODEL_FAILED, CHUNK_FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130
MIN_ADDRESS_SPACE = 800 << 20  # bytes; a report takes 650 MB of address space, a third of it as memory
_OUT_OF_MEMORY = ("failed to map segment", "Cannot allocate memory", "cannot allocate memory", "can't start new thread")


class FailedError(Exception):
    """The command ends with this exit code; the message has been printed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def errors_as_messages(output: Output, *, debug: bool) -> Iterator[None]:
    """Print errors of a command as a message and raise its exit code; print warnings as notes."""
    try:
        _check_address_space()
        # By default Arrow reserves a gigabyte of address space at once, which fails under a limit (`ulimit -v`).
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        with _warnings_as_notes(output, debug):
            yield
    except FailedError:
        raise
    except KeyboardInterrupt:
        _fail(INTERRUPTED, "Interrupted. No file is left half-written.", debug)
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does; the stream must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FailedError(OK) from None
    except Exception as error:
        code, text = _code_and_message(error)
        _fail(code, text, debug)


def _code_and_message(error: Exception) -> tuple[int, str]:
    if _is_out_of_memory(error) and not isinstance(error, InputError):
        return BAD_INPUT, "Error: not enough memory. Use fewer rows (--sample-size) or columns (--columns)."
    if isinstance(error, SubgroveError):
        return _exit_code(error), f"Error: {error}"
    if isinstance(error, OSError):
        return BAD_INPUT, f"Error: {error.filename or 'a file'}: {error.strerror or error}."
    text = f"Unexpected {type(error).__name__}: {str(error)[:300]}"
    return UNEXPECTED, f"{text}. Please run again with --debug and report the output."


def _exit_code(error: SubgroveError) -> int:
    if isinstance(error, ModelError | SamplerError):
        return MODEL_FAILED
    return CHUNK_FAILED if isinstance(error, ChunkError | ClusterError) else BAD_INPUT


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)


def _check_address_space() -> None:
    """Reject a limit of address space under which numerical libraries fail to load, some of them by hanging."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit not in (resource.RLIM_INFINITY, -1) and limit < MIN_ADDRESS_SPACE:
        raise InputError(
            f"Not enough memory: the limit of address space is {limit >> 20} MB, at least "
            f"{MIN_ADDRESS_SPACE >> 20} MB are needed. Raise it (ulimit -v)."
        )


def _fail(code: int, text: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(printable(text), file=sys.stderr)
    raise FailedError(code) from None


@contextmanager
def _warnings_as_notes(output: Output, debug: bool) -> Iterator[None]:
    """Print each warning of subgrove once, as a note; warnings of other packages are shown with --debug only."""
    with warnings.catch_warnings(record=True) as caught:
        if not debug:
            warnings.simplefilter("ignore")
        warnings.simplefilter("always", SubgroveWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(one.message) for one in caught):
                output.note(f"Note: {text}")
