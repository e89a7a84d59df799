"""The program `subgrove`: its commands are functions of an options dataclass, with an option for each field."""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from shutil import copyfileobj
from typing import Annotated, Any, get_type_hints

import typer

from subgrove._cli.data_commands import dependence, fidelity, subgroups
from subgrove._cli.explain import demo, explain, report
from subgrove._cli.terminal import STDOUT, Output, errors_as_messages
from subgrove._core.execution import hidden_progress
from subgrove._core.files import TemporaryFolder
from subgrove._version import __version__
from subgrove_command import begin

STDIN = "-"
_EXIT_CODES = (
    "Exit codes: 0 success; 1 internal error; 2 the file or an option is invalid, nothing was written; 3 the model or "
    "a sampler failed; 4 a chunk of the data could not be read; 130 interrupted by Ctrl-C "
    "(129 and 143: by SIGHUP and SIGTERM)."
)

app = typer.Typer(
    name="subgrove",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 110},
)


def main() -> None:
    """Run the command line; characters that the terminal cannot encode are escaped."""
    for name in ("stdout", "stderr"):  # None if the stream is closed, as by >&-
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # open until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="subgrove")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"subgrove {__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Feature importance and effects of a model when features depend on each other, overall and by subgroup.

    \b
    Example report:   subgrove demo
    Your own file:    subgrove explain data.csv --target price
    Its options:      subgrove explain --help
    """


@contextmanager
def _input_as_file(options: Any) -> Iterator[Any]:
    """Replace standard input (-) as the data of a command by a temporary file."""
    if str(getattr(options, "data", "")) != STDIN:
        yield options
        return
    with TemporaryFolder() as folder:
        path = folder / "standard input"
        with path.open("wb") as file:
            copyfileobj(sys.stdin.buffer, file)
        yield replace(options, data=path)


def _command(function: Callable[[Any, Output], None]) -> Callable[..., None]:
    """Return a function that has a keyword parameter for each field of the options of a command."""
    options = get_type_hints(function)["options"]

    def call(**values: Any) -> None:
        begin()
        parsed = options(**values)
        piped = any(str(values.get(name)) == STDOUT for name in ("out", "json", "markdown"))
        output = Output(quiet=parsed.quiet, results=not piped)
        with (
            errors_as_messages(output, debug=parsed.debug),
            hidden_progress(parsed.quiet),
            _input_as_file(parsed) as parsed,
        ):
            function(parsed, output)

    call.__doc__ = function.__doc__
    call.__signature__ = inspect.Signature(list(_parameters(options)))  # type: ignore[attr-defined]  # typer reads it
    return call


def _parameters(options: type[Any]) -> Iterator[inspect.Parameter]:
    """Fields of a dataclass as keyword parameters; those of the class itself come before inherited ones."""
    hints = get_type_hints(options, include_extras=True)
    by_name = {one.name: one for one in fields(options)}
    order = dict.fromkeys(name for kind in options.__mro__ for name in inspect.get_annotations(kind) if name in by_name)
    for name in order:
        one = by_name[name]
        default = [] if one.default_factory is not MISSING else one.default
        empty = inspect.Parameter.empty if default is MISSING else default
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=empty, annotation=hints[name])


for function in (explain, subgroups, dependence, fidelity, demo, report):
    app.command(function.__name__)(_command(function))
