"""The commands and their options. Here is what a user can say; what is done with it is in files of its own.

Everything heavy is imported in the commands, so that `subgrove --help` answers at once.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from subgrove._cli import options as o
from subgrove._cli.runner import request, run

if TYPE_CHECKING:
    from subgrove._cli.output import Output

_EXITS = (
    "Exit codes: 0 done; 1 unexpected, or a failed selfcheck; 2 the file or an option cannot be used, nothing was "
    "written; 3 the model or a sampler failed; 4 a part of the data or a cluster failed; "
    "130 stopped by Ctrl-C."
)

app = typer.Typer(
    name="subgrove",
    epilog=_EXITS,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 110},
)


def main() -> None:
    """Run the command line. What a terminal or a pipe has no character for is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="subgrove")


def _version(asked: bool) -> None:
    if asked:
        from subgrove._version import __version__

        typer.echo(f"subgrove {__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Which features a model relies on, in data whose features depend on each other, told subgroup by subgroup.

    \b
    A first look:     subgrove demo
    Your own file:    subgrove explain data.csv --target price
    Its options:      subgrove explain --help
    """


@app.command()
def explain(
    data: o.DataPath,
    target: o.Target,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", readable=False, help="The page.")] = Path(
        "report.html"
    ),
    json: o.Json = None,
    markdown: o.Markdown = None,
    features: o.Features = None,
    task: Annotated[
        Literal["regression", "classification"] | None,
        typer.Option("--task", help="What the target is; told by its values by default.", show_default=False),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            metavar="FILE",
            readable=False,
            help="Rows to explain on; by default 30 % of DATA.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            metavar="FILE",
            readable=False,
            help="A model: .skops, .onnx, .joblib, .pkl.",
            show_default=False,
        ),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option("--trust", metavar="TYPE", help="A type that may be loaded from .skops.", show_default=False),
    ] = None,
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Load a pickle, which may run anything.")
    ] = False,
    forest: Annotated[bool, typer.Option("--forest", help="Train a random forest, not boosted trees.")] = False,
    max_depth: o.MaxDepth = 2,
    repeats: Annotated[
        int | None, typer.Option("--repeats", min=1, help="How often features are redrawn.", show_default=False)
    ] = None,
    loss: Annotated[
        str | None, typer.Option("--loss", help="What importance is measured in.", show_default=False)
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Title of the report.", show_default=False)] = None,
    seed: o.Seed = 1,
    jobs: o.Jobs = None,
    max_rows: o.MaxRows = 10_000,
    columns: o.Columns = None,
    drop: o.Drop = None,
    nominal: o.Nominal = None,
    numeric: o.Numeric = None,
    na: o.Missing = None,
    delimiter: o.Delimiter = None,
    day_first: o.DayFirst = None,
    cluster: o.Cluster = None,
    checkpoint: o.Checkpoint = None,
    sample: o.Sample = None,
    row_key: o.RowKey = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Explain a model of a file's target, and write a report to hand over.

    Without --model, boosted trees are trained on 70 % of the rows and explained on the others; how good they are is
    told first, by 5-fold cross-validation.

    \b
    subgrove explain bikes.csv --target cnt
    subgrove explain bikes.csv --target cnt --drop casual,registered --nominal season,weekday
    subgrove explain credit.parquet -t class --forest --out credit.html --json credit.json
    subgrove explain rows.csv -t price --model model.skops --test new_rows.csv
    subgrove explain rows.csv -t price --quiet --json - | jq '.features[0].headline'
    subgrove explain folder_of_parquet/ -t price --cluster tcp://host:8786 --checkpoint kept
    """
    given = locals()

    def work(output: Output) -> None:
        from subgrove._cli.explain import Explain, Outputs
        from subgrove._cli.explain import explain as do
        from subgrove._cli.large_options import Large, is_large
        from subgrove._cli.models import Trust

        settings: dict[str, Any] = {
            "max_depth": max_depth,
            "n_repeats": repeats,
            "loss": loss,
            "title": title,
            "n_jobs": jobs,
        }
        asked = Explain(
            request=request(given),
            target=target,
            outputs=Outputs(out, json, markdown),
            test=test,
            model=model,
            trust=Trust(trust_pickle, tuple(trust or ())),
            forest=forest,
            task=task,
            features=tuple(features or ()),
            settings={name: value for name, value in settings.items() if value is not None},
        )
        parts = Large(cluster, checkpoint, sample, row_key)
        if is_large(data, parts):
            from subgrove._cli.large import explain_large

            explain_large(asked, parts, output)
        else:
            do(asked, output)

    run(work, debug=debug, quiet=quiet, piped=(out, json, markdown))


@app.command()
def subgroups(
    data: o.DataPath,
    features: o.Features = None,
    target: o.MaybeTarget = None,
    max_depth: o.MaxDepth = 2,
    json: o.Json = None,
    seed: o.Seed = 1,
    jobs: o.Jobs = None,
    max_rows: o.MaxRows = 10_000,
    columns: o.Columns = None,
    drop: o.Drop = None,
    nominal: o.Nominal = None,
    numeric: o.Numeric = None,
    na: o.Missing = None,
    delimiter: o.Delimiter = None,
    day_first: o.DayFirst = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Show the tree and the rules of a feature's subgroups, in which it hardly depends on the others.

    \b
    subgrove subgroups bikes.csv --feature temp --target cnt
    subgrove subgroups bikes.csv --feature temp --max-depth 3 --json rules.json
    """
    given = locals()

    def work(output: Output) -> None:
        from subgrove._cli.data_commands import Look
        from subgrove._cli.data_commands import subgroups as do

        do(Look(request(given), tuple(features or ()), target, json, jobs), max_depth, output)

    run(work, debug=debug, quiet=quiet, piped=(json,))


@app.command()
def dependence(
    data: o.DataPath,
    features: o.Features = None,
    target: o.MaybeTarget = None,
    json: o.Json = None,
    seed: o.Seed = 1,
    jobs: o.Jobs = None,
    max_rows: o.MaxRows = 10_000,
    columns: o.Columns = None,
    drop: o.Drop = None,
    nominal: o.Nominal = None,
    numeric: o.Numeric = None,
    na: o.Missing = None,
    delimiter: o.Delimiter = None,
    day_first: o.DayFirst = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Show how well each feature is foretold by the others, and by which.

    \b
    subgrove dependence bikes.csv --target cnt
    subgrove dependence bikes.csv --target cnt --feature temp --feature hum --json -
    """
    given = locals()

    def work(output: Output) -> None:
        from subgrove._cli.data_commands import Look
        from subgrove._cli.data_commands import dependence as do

        do(Look(request(given), tuple(features or ()), target, json, jobs), output)

    run(work, debug=debug, quiet=quiet, piped=(json,))


@app.command()
def fidelity(
    data: o.DataPath,
    features: o.Features = None,
    target: o.MaybeTarget = None,
    samplers: Annotated[
        list[str] | None,
        typer.Option("--sampler", "-s", metavar="NAME", help="A sampler to compare; repeat it.", show_default=False),
    ] = None,
    json: o.Json = None,
    seed: o.Seed = 1,
    jobs: o.Jobs = None,
    max_rows: o.MaxRows = 10_000,
    columns: o.Columns = None,
    drop: o.Drop = None,
    nominal: o.Nominal = None,
    numeric: o.Numeric = None,
    na: o.Missing = None,
    delimiter: o.Delimiter = None,
    day_first: o.DayFirst = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Show which ways to redraw a feature make rows that look real, learned on one half of the rows.

    \b
    subgrove fidelity bikes.csv --target cnt
    subgrove fidelity bikes.csv --target cnt --sampler subgroups --sampler imputation
    """
    given = locals()

    def work(output: Output) -> None:
        from subgrove._cli.data_commands import Look
        from subgrove._cli.data_commands import fidelity as do

        do(Look(request(given), tuple(features or ()), target, json, jobs), tuple(samplers or ()), output)

    run(work, debug=debug, quiet=quiet, piped=(json,))


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", readable=False, help="The page.")] = Path(
        "subgrove-demo.html"
    ),
    json: o.Json = None,
    markdown: o.Markdown = None,
    seed: o.Seed = 1,
    jobs: o.Jobs = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Write the report on rented bikes, from data that come with subgrove.

    \b
    subgrove demo
    subgrove demo --out bikes.html --json bikes.json
    """

    def work(output: Output) -> None:
        from subgrove._cli.explain import Outputs
        from subgrove._cli.report_commands import demo as do

        do(Outputs(out, json, markdown), seed, jobs, output)

    run(work, debug=debug, quiet=quiet, piped=(out, json, markdown))


@app.command()
def report(
    saved: Annotated[
        Path, typer.Argument(metavar="JSON", readable=False, help="What --json wrote.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            readable=False,
            help="The page, or .md for Markdown.",
            show_default="JSON's name",
        ),
    ] = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Build the page again from a report that was saved as JSON.

    \b
    subgrove report out.json
    subgrove report out.json --out page.html
    """

    def work(output: Output) -> None:
        from subgrove._cli.report_commands import rebuild as do

        do(saved, out, output)

    run(work, debug=debug, quiet=quiet, piped=(out,))


@app.command()
def selfcheck(
    json: o.Json = None,
    seed: o.Seed = 1,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Check on this machine that subgrove computes what is known to be true; exit code 1 if it does not.

    \b
    subgrove selfcheck
    subgrove selfcheck --seed 7 --json -
    """

    def work(output: Output) -> None:
        from subgrove._cli.checking import check as do

        do(seed, json, output)

    run(work, debug=debug, quiet=quiet, piped=(json,))
