"""What every command has in common: how its work is run, and what it reads. Heavy imports wait until then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from subgrove._cli.output import Output
    from subgrove._cli.reading import Request


def run(work: Callable[[Output], None], *, debug: bool, quiet: bool, piped: tuple[Path | None, ...] = ()) -> None:
    """Do the work of a command; `piped` are the outputs that may claim standard output for themselves."""
    from subgrove._cli.errors import FailedError, guarded
    from subgrove._cli.files import STDOUT
    from subgrove._cli.output import Output

    output = Output(quiet=quiet, results=all(str(path) != STDOUT for path in piped))
    try:
        with guarded(debug, output):
            work(output)
    except FailedError as failed:
        raise typer.Exit(failed.code) from None


def request(options: dict[str, Any]) -> Request:
    """What is to be read, from the options that all commands on a file have."""
    from subgrove._cli.reading import Request

    return Request(
        path=options["data"],
        most=options["max_rows"],
        seed=options["seed"],
        delimiter=options["delimiter"],
        only=tuple(options["columns"]) if options["columns"] else None,
        drop=tuple(options["drop"] or ()),
        nominal=tuple(options["nominal"] or ()),
        numeric=tuple(options["numeric"] or ()),
        missing=tuple(options["na"] or ()),
        day_first=options["day_first"],
    )
