"""The commands of `subgrove`; their options are declared in `options`, their work is done in modules of their own.

Heavy modules are imported inside the commands, so that `subgrove --help` is quick.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from subgrove._cli.options import (
    DemoOptions,
    ExplainOptions,
    FeatureOptions,
    FidelityOptions,
    RebuildOptions,
    SubgroupOptions,
    command,
)

if TYPE_CHECKING:
    from subgrove._cli.terminal import Output

_EXIT_CODES = (
    "Exit codes: 0 success; 1 internal error; 2 the file or an option is invalid, nothing was written; 3 the model or "
    "a sampler failed; 4 a chunk of the data could not be read; 130 interrupted by Ctrl-C."
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="subgrove")


def _print_version(requested: bool) -> None:
    if requested:
        from subgrove._version import __version__

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


@command(app, ExplainOptions)
def explain(options: ExplainOptions, output: Output) -> None:
    """Explain a model of the target column and write a report.

    Without --model, gradient boosting is trained on 70 % of the rows and explained on the remaining 30 %. Its
    performance in 5-fold cross-validation is printed first.

    \b
    subgrove explain bikes.csv --target cnt
    subgrove explain bikes.csv --target cnt --drop casual,registered --nominal season,weekday
    subgrove explain credit.parquet -t class --forest --out credit.html --json credit.json
    subgrove explain rows.csv -t price --model model.skops --test new_rows.csv
    subgrove explain rows.csv -t price --quiet --json - | jq '.features[0].headline'
    subgrove explain folder_of_parquet/ -t price --sample-size 50000
    """
    from subgrove._cli import explain

    explain.explain(options, output)


@command(app, SubgroupOptions)
def subgroups(options: SubgroupOptions, output: Output) -> None:
    """Show the tree and the rules of the subgroups within which a feature hardly depends on the other features.

    \b
    subgrove subgroups bikes.csv --feature temp --target cnt
    subgrove subgroups bikes.csv --feature temp --max-depth 3 --json rules.json
    """
    from subgrove._cli import data_commands

    data_commands.subgroups(options, output)


@command(app, FeatureOptions)
def dependence(options: FeatureOptions, output: Output) -> None:
    """Show how well each feature is predicted by the other features, and by which.

    \b
    subgrove dependence bikes.csv --target cnt
    subgrove dependence bikes.csv --target cnt --feature temp --feature hum --json -
    """
    from subgrove._cli import data_commands

    data_commands.dependence(options, output)


@command(app, FidelityOptions)
def fidelity(options: FidelityOptions, output: Output) -> None:
    """Compare how realistic the rows of different samplers are; samplers are fitted on one half of the rows.

    \b
    subgrove fidelity bikes.csv --target cnt
    subgrove fidelity bikes.csv --target cnt --sampler subgroups --sampler imputation
    """
    from subgrove._cli import data_commands

    data_commands.fidelity(options, output)


@command(app, DemoOptions)
def demo(options: DemoOptions, output: Output) -> None:
    """Write a report on bike rentals, from data that come with subgrove.

    \b
    subgrove demo
    subgrove demo --out bikes.html --json bikes.json
    """
    from subgrove._cli import explain

    explain.demo(options, output)


@command(app, RebuildOptions)
def report(options: RebuildOptions, output: Output) -> None:
    """Build the page of a report that was saved as JSON.

    \b
    subgrove report out.json
    subgrove report out.json --out page.html
    """
    from subgrove._cli import explain

    explain.rebuild(options, output)
