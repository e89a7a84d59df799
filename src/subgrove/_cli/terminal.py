"""What the command prints and writes: tables, notes and errors in the terminal, results in files.

Results go to standard output; notes, progress and errors to standard error, so that results can be piped. Exit codes::

    0    success
    1    internal error
    2    the file, the columns or the options are invalid; nothing was written
    3    the model or a sampler failed
    4    a chunk of the data could not be read
    130  interrupted by Ctrl-C; no file is left half-written (129 and 143: by the signals SIGHUP and SIGTERM)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from subgrove._core.files import utf8, write_files
from subgrove._core.text import first_of
from subgrove._core.text import number as number_text
from subgrove.exceptions import (
    ChunkError,
    ClusterError,
    InputError,
    ModelError,
    ParameterError,
    SamplerError,
    SubgroveError,
    SubgroveWarning,
)
from subgrove_command import BY_SIGNAL, INTERRUPTED

OK, UNEXPECTED, BAD_INPUT, MODEL_FAILED, CHUNK_FAILED = 0, 1, 2, 3, 4
MIN_ADDRESS_SPACE = 800 << 20  # bytes; a report takes 650 MB of address space, a third of it as memory
_OUT_OF_MEMORY = ("failed to map segment", "annot allocate memory", "can't start new thread")
STDOUT = "-"
Row = Sequence[Any]


@dataclass(frozen=True)
class Output:
    """The terminal. `quiet` omits notes and tables; `results` is whether tables may go to standard output."""

    quiet: bool = False
    results: bool = True

    def say(self, text: str) -> None:
        """Print a result."""
        if not self.quiet:
            print(printable(text), file=sys.stdout if self.results else sys.stderr)

    def note(self, *texts: str) -> None:
        """Print remarks on how a result was obtained, one in a line."""
        for text in () if self.quiet else texts:
            print(printable(text), file=sys.stderr)

    def table(self, title: str, header: Row, rows: Iterable[Row], right: Sequence[int] = ()) -> None:
        """Print a table; the columns in `right` are aligned right."""
        if self.quiet:
            return
        stream = sys.stdout if self.results else sys.stderr
        cells = [[_one_line(cell) for cell in row] for row in rows]
        title, header = _one_line(title), [_one_line(name) for name in header]
        if stream.isatty():
            _print_rich_table(title, header, cells, right, stream)
        else:
            print(f"\n{title}\n{plain_table(header, cells, right)}", file=stream)


def plain_table(header: Row, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table as aligned text."""
    columns = []
    for at, column in enumerate(zip(header, *rows, strict=True)):
        width = max(map(len, column))
        columns.append([cell.rjust(width) if at in right else cell.ljust(width) for cell in column])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _print_rich_table(
    title: str, header: Row, rows: Sequence[Sequence[str]], right: Sequence[int], stream: Any
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(header):
        table.add_column(Text(str(name)), justify="right" if at in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # plain text: names in a file are not markup
    Console(file=stream).print(table)


def printable(text: str) -> str:
    """Escape control characters, which a file could use to overwrite what a terminal shows."""
    return "".join(one if one in "\n\t" or one.isprintable() else f"\\x{ord(one):02x}" for one in text)


def _one_line(cell: Any) -> str:
    """Return text in one line, so that a name in a file cannot look like a line of its own."""
    return printable(" ".join(str(cell).splitlines()))


def number(value: float | None) -> str:
    """Format a number as the report does, "" if it is missing."""
    return "" if value is None or value != value else number_text(value)


def quoted(names: Iterable[Any], most: int = 5, width: int | None = None) -> str:
    """List the first names in quotes, each cut to a width."""
    return first_of([repr(str(name)[:width]) for name in names], most)


def check_output(path: Path | None, option: str, suffixes: tuple[str, ...], options: Any) -> None:
    """Reject a path that cannot be written or is a file to read, before time is spent on the results."""
    if path is None or str(path) == STDOUT:
        return
    inputs = [getattr(options, name, None) for name in ("data", "test", "model", "saved")]
    if path.suffix.lower() not in suffixes:
        raise ParameterError(f"{option} {path}: the name must end with {' or '.join(suffixes)}.")
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # raises for names that the system does not allow; `is_dir` does so up to Python 3.13 only
        if path.is_dir():
            raise ParameterError(f"{option} {path} is a folder. Name a file in it.")
        if path.exists() and any(one is not None and one.exists() and path.samefile(one) for one in inputs):
            raise ParameterError(f"{option} {path} is a file to read, and would be overwritten. Name another file.")
    except OSError as error:
        raise ParameterError(f"{option} {str(path)[:80]}: {error.strerror}. Choose another name.") from error
    folder = path.parent
    if not folder.is_dir():
        raise ParameterError(f"{option} {path}: there is no folder {folder}. Create it first.")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ParameterError(f"{option} {path}: permission to write denied. Choose another place.")


def write_results(texts: Mapping[Path | None, str]) -> None:
    """Write texts to files, all completely or none at all, or to standard output; as UTF-8 in both cases."""
    contents = {path: utf8(text) for path, text in texts.items() if path is not None}
    write_files({path: content for path, content in contents.items() if str(path) != STDOUT})
    if Path(STDOUT) in contents:
        sys.stdout.flush()
        sys.stdout.buffer.write(contents[Path(STDOUT)].removesuffix(b"\n") + b"\n")
        sys.stdout.buffer.flush()


def write_json(path: Path | None, values: Any) -> None:
    """Write plain values as JSON, if there is a path."""
    write_results({path: json.dumps(values, ensure_ascii=False, indent=1)})


@contextmanager
def errors_as_messages(output: Output, *, debug: bool) -> Iterator[None]:
    """Print errors of a command as a message and exit with their code; print warnings as notes."""
    try:
        _check_address_space()
        # By default Arrow reserves a gigabyte of address space at once, which fails under a limit (`ulimit -v`).
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        with _warnings_as_notes(output, debug):
            yield
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does; the stream must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(OK) from None
    except (Exception, KeyboardInterrupt) as error:
        code, text = _code_and_message(error)
        if debug:
            traceback.print_exc()
        print(printable(text), file=sys.stderr)
        raise typer.Exit(code) from None


def _code_and_message(error: BaseException) -> tuple[int, str]:
    if isinstance(error, KeyboardInterrupt):
        number = error.args[0] if error.args else signal.SIGINT
        return BY_SIGNAL + number, INTERRUPTED
    out_of_memory = isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)
    if out_of_memory and not isinstance(error, InputError):
        return BAD_INPUT, "Error: not enough memory. Use fewer rows (--sample-size) or columns (--columns)."
    if isinstance(error, SubgroveError):
        failed = MODEL_FAILED if isinstance(error, ModelError | SamplerError) else BAD_INPUT
        return CHUNK_FAILED if isinstance(error, ChunkError | ClusterError) else failed, f"Error: {error}"
    if isinstance(error, OSError):
        return BAD_INPUT, f"Error: {error.filename or 'a file'}: {error.strerror or error}."
    text = f"Unexpected {type(error).__name__}: {str(error)[:300]}"
    return UNEXPECTED, f"{text}. Please run again with --debug and report the output."


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
            output.note(*dict.fromkeys(f"Note: {one.message}" for one in caught))
