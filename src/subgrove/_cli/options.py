"""Options that several commands share, each with its one line of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _some_jobs(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("0 processes share no work. Pass 1 or more, or -1 for all cores.")
    return jobs


DataPath = Annotated[
    Path, typer.Argument(metavar="DATA", readable=False, help="CSV, TSV or Parquet file; .gz too.", show_default=False)
]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COL", help="The column to be foretold.", show_default=False)
]
MaybeTarget = Annotated[
    str | None, typer.Option("--target", "-t", metavar="COL", help="A column that is no feature.", show_default=False)
]
Names = list[str] | None
Columns = Annotated[
    Names,
    typer.Option(
        "--columns",
        metavar="COL",
        help="Use these columns only; repeat it, or put commas between.",
        show_default=False,
    ),
]
Drop = Annotated[
    Names,
    typer.Option("--drop", metavar="COL", help="Leave these columns out.", show_default=False),
]
Nominal = Annotated[
    Names,
    typer.Option("--nominal", metavar="COL", help="Read these numbers as levels.", show_default=False),
]
Numeric = Annotated[
    Names,
    typer.Option("--numeric", metavar="COL", help="Read these texts as numbers.", show_default=False),
]
Missing = Annotated[
    Names,
    typer.Option(
        "--na",
        metavar="TEXT",
        help="Read this text as missing; repeat it for more.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHAR",
        help="What separates cells; found by itself.",
        show_default=False,
    ),
]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first",
        help="How dates such as 3/4/2024 are meant.",
        show_default=False,
    ),
]
MaxRows = Annotated[int, typer.Option("--max-rows", min=1, help="Of more rows, draw so many at random.")]
Features = Annotated[
    Names,
    typer.Option(
        "--features",
        "--feature",
        "-f",
        metavar="COL",
        help="The features to look at; repeat it, or put commas between. All by default.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same numbers.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", help="Processes to share the work; -1 for all cores.", show_default="1", callback=_some_jobs
    ),
]
MaxDepth = Annotated[int, typer.Option("--max-depth", min=0, max=10, help="Most conditions in a rule.")]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the results as JSON; - for standard output.",
        show_default=False,
    ),
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--markdown",
        metavar="FILE",
        help="Write the report as Markdown; - for standard output.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Ask about all rows of Parquet data on this cluster: tcp://... of Dask, ray://... of Ray.",
        show_default=False,
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Ask about all rows of Parquet data, and keep what is done here.",
        show_default=False,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        metavar="N",
        min=2,
        help="Ask about all rows of Parquet data; draw so many to train and to redraw from.",
        show_default="100000",
    ),
]
RowKey = Annotated[
    str | None,
    typer.Option(
        "--row-key",
        metavar="COL",
        help="A column that tells rows apart; their order does not matter then.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
