"""What a person sees: tables with colour in a terminal, plain aligned text elsewhere.

Results go to standard output; notes, progress and errors to standard error, so that results can be piped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = Sequence[Any]


@dataclass(frozen=True)
class Output:
    """Where words go. `quiet` leaves out notes and tables; `results` is whether standard output is free for tables."""

    quiet: bool = False
    results: bool = True

    def say(self, text: str) -> None:
        """A result, in words."""
        if not self.quiet:
            print(safe(text), file=sys.stdout if self.results else sys.stderr)

    def note(self, text: str) -> None:
        """Something to know about the way to a result."""
        if not self.quiet:
            print(safe(text), file=sys.stderr)

    def table(self, title: str, header: Row, rows: Iterable[Row], right: Sequence[int] = ()) -> None:
        """A table; the columns in `right` are aligned right."""
        if self.quiet:
            return
        stream = sys.stdout if self.results else sys.stderr
        cells = [[safe(str(cell)) for cell in row] for row in rows]
        if stream.isatty():
            _rich_table(title, header, cells, right, stream)
        else:
            print(
                f"\n{title}\n{plain_table(header, cells, right)}" if title else plain_table(header, cells, right),
                file=stream,
            )


def plain_table(header: Row, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table as aligned text."""
    lines = [[str(cell) for cell in header], *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    texts = [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join(text.rstrip() for text in texts)


def _rich_table(title: str, header: Row, rows: Sequence[Sequence[str]], right: Sequence[int], stream: Any) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(header):
        table.add_column(Text(str(name)), justify="right" if at in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as it stands: names from a file are no markup
    Console(file=stream).print(table)


def safe(text: str) -> str:
    """Text without control characters, which a file could use to write over what a terminal shows."""
    return "".join(one if one in "\n\t" or one.isprintable() else f"\\x{ord(one):02x}" for one in text)


def number(value: float | None) -> str:
    """A number with three significant digits, "" if there is none."""
    if value is None or value != value:
        return ""
    if value == 0:
        return "0"
    if 1000 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"
