"""Options of the commands, each declared once as a field of a dataclass.

A command is a function of one of these dataclasses; `app` turns the fields into options of the command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def _option(text: str, *names: str, show_default: bool | str = False, **settings: Any) -> Any:
    return typer.Option(*names, help=text, show_default=show_default, **settings)


def _columns(text: str, *names: str) -> Any:
    return _option(text, *names, metavar="COL")


def _file(text: str, *names: str, show_default: bool | str = False) -> Any:
    return _option(text, *names, metavar="FILE", readable=False, show_default=show_default)


_MOST_JOBS = 1024  # each is a process of a hundred megabytes


def _check_jobs(n_jobs: int | None) -> int | None:
    if n_jobs is not None and not (n_jobs < 0 or 0 < n_jobs <= _MOST_JOBS):
        raise typer.BadParameter(f"n_jobs must be 1 to {_MOST_JOBS:,}, or -1 for all cores; got {n_jobs:,}.")
    return n_jobs


Target = _columns("Target column to predict.", "--target", "-t")
Features = _columns("Features to analyse, repeated or comma-separated; default: all.", "--features", "--feature", "-f")
MaxDepth = _option("Largest number of conditions in the rule of a subgroup.", min=0, max=10, show_default=True)
JsonFile = _file("Write the results as JSON; - for standard output.", "--json")
ReportPage = _file("HTML page to write; - for standard output.", "--out", "-o", show_default=True)


@dataclass(frozen=True, kw_only=True)
class TerminalOptions:
    """What is printed."""

    quiet: Annotated[bool, _option("Print errors only.", "--quiet", "-q")] = False
    debug: Annotated[bool, _option("Print the traceback of an error.", "--debug")] = False


@dataclass(frozen=True, kw_only=True)
class RunOptions(TerminalOptions):
    """How results are computed."""

    random_state: Annotated[int, _option("Seed of all random numbers.", min=0, max=2**32 - 1, show_default=True)] = 1
    n_jobs: Annotated[
        int | None,
        _option("Number of processes; -1 for all cores.", "--n-jobs", "-j", callback=_check_jobs, show_default="1"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class DataOptions(RunOptions):
    """Which rows and columns of a file are read, and how."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            readable=False,
            help="CSV (also gzipped), TSV, Excel or Parquet file; - for standard input; or a folder of Parquet files.",
            show_default=False,
        ),
    ]
    sample_size: Annotated[
        int, _option("Number of rows drawn at random from larger data.", min=1, max=10**9, show_default=True)
    ] = 10_000
    columns: Annotated[list[str], _columns("Columns to use, repeated or comma-separated; all by default.")] = field(
        default_factory=list
    )
    drop: Annotated[list[str], _columns("Columns to leave out.")] = field(default_factory=list)
    nominal: Annotated[list[str], _columns("Columns of numbers to read as categories.")] = field(default_factory=list)
    numeric: Annotated[list[str], _columns("Columns of text to read as numbers.")] = field(default_factory=list)
    na: Annotated[list[str], _option("Text to read as a missing value; may be repeated.", metavar="TEXT")] = field(
        default_factory=list
    )
    delimiter: Annotated[str | None, _option("Delimiter of the cells; detected by default.", metavar="CHAR")] = None
    encoding: Annotated[str | None, _option("Encoding of a text file; detected by default.", metavar="NAME")] = None
    decimal: Annotated[
        Literal[".", ","] | None, _option("Decimal separator of numbers; inferred from each column by default.")
    ] = None
    sheet: Annotated[
        str | None, _option("Sheet of an Excel workbook; by default the first with a table.", metavar="NAME")
    ] = None
    day_first: Annotated[bool | None, _option("Order of dates such as 3/4/2024.", "--day-first/--month-first")] = None


@dataclass(frozen=True, kw_only=True)
class FeatureOptions(DataOptions):
    """Features to analyse without a model."""

    features: Annotated[list[str], Features] = field(default_factory=list)
    target: Annotated[str | None, _columns("Target column, which is not used as a feature.", "--target", "-t")] = None
    json: Annotated[Path | None, JsonFile] = None


@dataclass(frozen=True, kw_only=True)
class SubgroupOptions(FeatureOptions):
    """Options of `subgrove subgroups`."""

    max_depth: Annotated[int, MaxDepth] = 2


@dataclass(frozen=True, kw_only=True)
class FidelityOptions(FeatureOptions):
    """Options of `subgrove fidelity`."""

    samplers: Annotated[
        list[str], _option("Sampler to compare; may be repeated.", "--sampler", "-s", metavar="NAME")
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ReportOptions(RunOptions):
    """Files that a report is written to."""

    out: Annotated[Path, ReportPage] = Path("report.html")
    json: Annotated[Path | None, JsonFile] = None
    markdown: Annotated[Path | None, _file("Write the report as Markdown; - for standard output.")] = None


@dataclass(frozen=True, kw_only=True)
class DemoOptions(ReportOptions):
    """Options of `subgrove demo`."""

    out: Annotated[Path, ReportPage] = Path("subgrove-demo.html")


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ReportOptions, DataOptions):
    """Options of `subgrove explain`."""

    target: Annotated[str, Target]
    features: Annotated[list[str], Features] = field(default_factory=list)
    task: Annotated[
        Literal["regression", "classification"] | None, _option("Kind of target; inferred from its values by default.")
    ] = None
    test: Annotated[Path | None, _file("Held-out rows to explain the model on; 30 % of DATA by default.")] = None
    time: Annotated[
        str | None, _columns("Column that orders the rows in time: the last 30 % are held out.", "--time")
    ] = None
    group: Annotated[
        str | None, _columns("Column of groups of dependent rows, such as persons, which are not divided.", "--group")
    ] = None
    forest: Annotated[bool, _option("Train a random forest instead of gradient boosting.", "--forest")] = False
    max_depth: Annotated[int, MaxDepth] = 2
    min_share: Annotated[
        float,
        _option("Share of the model's gain from which on a feature is important.", min=0, max=1, show_default=True),
    ] = 0.01
    n_repeats: Annotated[int | None, _option("Number of times each feature is resampled.", min=1)] = None
    loss: Annotated[str | None, _option("Loss that importance is measured in.")] = None
    title: Annotated[str | None, _option("Title of the report.")] = None
    model: Annotated[Path | None, _file("Fitted model: .skops, .onnx, .joblib or .pkl.", "--model", "-m")] = None
    trust: Annotated[list[str], _option("Type that may be loaded from a .skops file.", metavar="TYPE")] = field(
        default_factory=list
    )
    trust_pickle: Annotated[bool, _option("Load a pickle, which can run any code.", "--trust-pickle")] = False


@dataclass(frozen=True, kw_only=True)
class RebuildOptions(TerminalOptions):
    """Options of `subgrove report`."""

    saved: Annotated[
        Path, typer.Argument(metavar="JSON", readable=False, help="Report saved by --json.", show_default=False)
    ]
    out: Annotated[
        Path | None, _file("HTML page to write, or .md for Markdown.", "--out", "-o", show_default="name of JSON")
    ] = None
