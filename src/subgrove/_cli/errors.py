"""From errors to messages and exit codes: one or two sentences for a person, a number for a script.

::

    0    done
    1    something unexpected (a fault of subgrove), or a check of `selfcheck` that failed
    2    the file, the columns or the options cannot be used as given; nothing was written
    3    the model or a sampler failed on the rows
    4    a part of the data, or the cluster that works on it, failed; what is done is in the checkpoint
    130  stopped by Ctrl-C; nothing half-written is left
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from subgrove._cli.memory import claim_little, is_lack, reject_too_little
from subgrove._cli.output import Output, safe
from subgrove.exceptions import (
    ChunkError,
    ClusterError,
    InputError,
    ModelError,
    SamplerError,
    SubgroveError,
    SubgroveWarning,
)

OK, UNEXPECTED, BAD_INPUT, MODEL_FAILED, PART_FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class FailedError(Exception):
    """The command ends with this exit code; what there is to say has been said."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def guarded(debug: bool, output: Output) -> Iterator[None]:
    """Run a command's work: errors become a message and an exit code, warnings become notes."""
    try:
        reject_too_little()
        claim_little()
        with _noted(output, debug):
            yield
    except FailedError:
        raise
    except KeyboardInterrupt:
        _fail(INTERRUPTED, "Stopped. Nothing half-written is left.", debug)
    except BrokenPipeError:
        # Who read the output has gone, as `head` does; the stream must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FailedError(OK) from None
    except Exception as error:
        code, text = _told(error)
        _fail(code, text, debug)


def _told(error: Exception) -> tuple[int, str]:
    """Exit code and message of an error."""
    if is_lack(error) and not isinstance(error, InputError):
        return BAD_INPUT, "Error: there is not enough memory. Use fewer rows (--max-rows) or columns (--columns)."
    if isinstance(error, SubgroveError):
        return _code(error), f"Error: {error}"
    if isinstance(error, OSError):
        return BAD_INPUT, f"Error: {error.filename or 'a file'}: {error.strerror or error}."
    told = f"Unexpected {type(error).__name__}: {str(error)[:300]}"
    return UNEXPECTED, f"{told}. Run again with --debug and report what it prints."


def _code(error: SubgroveError) -> int:
    if isinstance(error, ModelError | SamplerError):
        return MODEL_FAILED
    return PART_FAILED if isinstance(error, ChunkError | ClusterError) else BAD_INPUT


def _fail(code: int, text: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(safe(text), file=sys.stderr)
    raise FailedError(code) from None


@contextmanager
def _noted(output: Output, debug: bool) -> Iterator[None]:
    """Warnings of subgrove as notes, each once. Warnings of others are for developers: shown with --debug only."""
    with warnings.catch_warnings(record=True) as caught:
        if not debug:
            warnings.simplefilter("ignore")
        warnings.simplefilter("always", SubgroveWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(str(one.message) for one in caught):
                output.note(f"Note: {text}")
