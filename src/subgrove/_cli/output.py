"""What the command prints and writes: tables and notes in the terminal, results in files.

Results go to standard output; notes, progress and errors to standard error, so that results can be piped.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subgrove._core.files import write_text
from subgrove.exceptions import ParameterError

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

    def note(self, text: str) -> None:
        """Print a remark on how a result was obtained."""
        if not self.quiet:
            print(printable(text), file=sys.stderr)

    def table(self, title: str, header: Row, rows: Iterable[Row], right: Sequence[int] = ()) -> None:
        """Print a table; the columns in `right` are aligned right."""
        if self.quiet:
            return
        stream = sys.stdout if self.results else sys.stderr
        cells = [[printable(str(cell)) for cell in row] for row in rows]
        if stream.isatty():
            _print_rich_table(title, header, cells, right, stream)
        else:
            print(f"\n{title}\n{plain_table(header, cells, right)}", file=stream)

    @property
    def progress(self) -> bool | None:
        """Whether to show progress: None for "if standard error is a terminal"."""
        return False if self.quiet else None


def plain_table(header: Row, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table as aligned text."""
    lines = [[str(cell) for cell in header], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join(text.rstrip() for text in texts)


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


def number(value: float | None) -> str:
    """Format a number with three significant digits, "" if it is missing."""
    if value is None or value != value:
        return ""
    if value == 0:
        return "0"
    if 1000 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def count(n: int, noun: str) -> str:
    """Return a number with its noun, as in "1 row" and "2 rows"."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def quoted(names: Iterable[Any], most: int = 5) -> str:
    """List the first names in quotes."""
    listed = [repr(str(name)) for name in names]
    return ", ".join(listed[:most]) + (" and others" if len(listed) > most else "")


def check_output(path: Path | None, option: str, suffixes: tuple[str, ...]) -> None:
    """Reject a path that cannot be written, before time is spent on the results."""
    if path is None or str(path) == STDOUT:
        return
    if path.suffix.lower() not in suffixes:
        raise ParameterError(f"{option} {path}: the name must end with {' or '.join(suffixes)}.")
    if path.is_dir():
        raise ParameterError(f"{option} {path} is a folder. Name a file in it.")
    folder = path.parent
    if not folder.is_dir():
        raise ParameterError(f"{option} {path}: there is no folder {folder}. Create it first.")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ParameterError(f"{option} {path}: permission to write denied. Choose another place.")


def write_result(path: Path, text: str) -> None:
    """Write text to a file, completely or not at all, or to standard output; as UTF-8 in both cases."""
    if str(path) == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write((text if text.endswith("\n") else text + "\n").encode())
        sys.stdout.buffer.flush()
    else:
        write_text(path, text)


def write_json(path: Path | None, values: Any) -> None:
    """Write plain values as JSON, if there is a path."""
    if path is not None:
        write_result(path, json.dumps(values, ensure_ascii=False, indent=1))
