"""docs/reproduction.md, written from the tables in experiments/results and from nothing else.

Every experiment that has tables there gets its section, which its own `report` makes; the others are named as missing.
`python -m experiments summary` leaves pictures as they are; `python -m experiments.summary` takes over those that were
drawn into experiments/out/figures, which should then be of a whole run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd

from experiments.__main__ import summaries
from experiments.parts.sections import markdown
from experiments.store import replace_file

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DRAWN = HERE / "out" / "figures"
PAGE = HERE.parent / "docs" / "reproduction.md"
_PICTURES = Path("images", "reproduction")  # beside the page

_ORDER = ("figures", "ground_truth", "depth", "data_fidelity", "model_fidelity", "bike")  # that of the paper
_IMAGE = re.compile(r"!\[[^\]]*\]\(images/\w+/(?P<name>[^)\s]+\.png)\)\n*")
_KEPT = ("|", "#", "!", "-", " ", "`", ">")
_FILL: Any = {"break_long_words": False, "break_on_hyphens": False}
_COLORS = 255  # of a picture on the page
_VERSIONS = ("subgrove", "python", "numpy", "scipy", "scikit-learn", "pandas")

Tables = dict[str, pd.DataFrame]


def write(results: Path = RESULTS, page: Path = PAGE, drawn: Path | None = None) -> Path:
    """Write the page, whole or not at all.

    Parameters
    ----------
    results : path
        Folder of the tables, `NAME_TITLE.csv`.
    page : path
        The page; its pictures are in `images/reproduction` beside it.
    drawn : path, optional
        Folder of pictures that replace those beside the page, where an experiment has results.
    """
    pictures = page.parent / _PICTURES
    text(results, pictures)  # before anything is changed, since a report may fail
    for name in summaries() if drawn is not None else ():
        for path in sorted(drawn.glob(f"{name}_*.png")) if drawn and tables_of(name, results) else ():
            publish(path, pictures / path.name)
    replace_file(page, text(results, pictures).encode())
    return page


def text(results: Path = RESULTS, pictures: Path = PAGE.parent / _PICTURES) -> str:
    """The page, with the pictures that are there."""
    names = ordered(summaries())
    found = {name: tables for name in names if (tables := tables_of(name, results))}
    missing = [name for name in names if name not in found]
    parts = [_HEAD, _commands(names), *_state(found, missing)]
    parts += [section(name, tables, pictures) for name, tables in found.items()]
    return "\n\n".join(wrapped(part.strip()) for part in parts) + "\n"


def wrapped(part: str) -> str:
    """Markdown with paragraphs in lines of 120; tables, headings, lists and pictures stay as they are."""
    return "\n".join(line if line.startswith(_KEPT) else fill(line, 120, **_FILL) for line in part.split("\n"))


def ordered(names: Iterable[str]) -> list[str]:
    """Experiments in the order of the paper; those that it does not have come last."""
    return sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def tables_of(name: str, results: Path = RESULTS) -> Tables:
    """The stored tables of an experiment by their title; none if it has not been run."""
    start = f"{name}_"
    paths = sorted(results.glob(f"{start}*.csv"))
    return {path.stem.removeprefix(start): pd.read_csv(path) for path in paths}


def section(name: str, tables: Tables, pictures: Path) -> str:
    """What an experiment reports on its tables, below a heading, and pictures of it that the report does not show."""
    own = {title: table for title, table in tables.items() if title != "run"}
    try:
        said = str(import_module(f"experiments.{name}").report(own)).strip()
    except KeyError as error:
        raise KeyError(
            f"{name}: its report needs {error}, which the tables in experiments/results do not have. Write them anew "
            f"with `python -m experiments {name} table`."
        ) from error
    said = said if said.startswith("## ") else f"## {name}\n\n{said}"
    return "\n\n".join([with_pictures(said, pictures), *_further_pictures(name, said, pictures)])


def with_pictures(said: str, pictures: Path) -> str:
    """The text without pictures that are not there."""
    return _IMAGE.sub(lambda found: found[0] if (pictures / found["name"]).is_file() else "", said).strip()


def _further_pictures(name: str, said: str, pictures: Path) -> list[str]:
    shown = {found["name"] for found in _IMAGE.finditer(said)}
    others = [path for path in sorted(pictures.glob(f"{name}_*.png")) if path.name not in shown]
    return [f"![{path.stem.replace('_', ' ')}]({_PICTURES.as_posix()}/{path.name})" for path in others]


_HEAD = """# Reproduction

The tables and figures of the paper, computed anew with this package, with the published numbers beside ours. This page
is written by `python -m experiments summary` from the tables in `experiments/results`; a test fails if it was changed
by hand. Sentences about numbers are made from the numbers, also where we differ.
"""


def _commands(names: list[str]) -> str:
    lines = [f"| `python -m experiments {name}` | {line} |" for name in names if (line := summaries()[name])]
    return "\n".join(
        [
            "## How to run it",
            "",
            "| command | what it computes |",
            "| --- | --- |",
            *lines,
            "| `python -m experiments summary` | this page |",
            "",
            "With `--reps`, `--cells` and `--jobs` you say how much is run, and `--quick` tries everything in seconds. "
            "A run that is stopped goes on where it was. Each unit has its own seed, so any part of a run gives the "
            "numbers of the whole. Pictures are drawn into `experiments/out/figures`.",
        ]
    )


def _state(found: Mapping[str, Tables], missing: list[str]) -> list[str]:
    """Which experiments have results, of how many units, and with which versions."""
    parts = ["## What was run"]
    if found:
        parts.append(ran_table(found))
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        verb = "has" if len(missing) == 1 else "have"
        parts.append(f"**{listed} {verb} no results yet**, so there is no section on them.")
    return parts


def ran_table(found: Mapping[str, Tables]) -> str:
    """Of how many units and repetitions the results of experiments are, and with which versions."""
    lines = [_ran(name, tables) for name, tables in found.items()]
    return markdown(("experiment", "units", "cells", "repetitions of a cell", "versions"), lines)


def _ran(name: str, tables: Tables) -> tuple[str, ...]:
    if "run" not in tables:
        return name, "see its section", "", "", ""
    line = tables["run"].iloc[0]
    low, high = int(line["fewest_in_a_cell"]), int(line["most_in_a_cell"])
    versions = ", ".join(f"{package} {line[package]}" for package in _VERSIONS if package in line)
    repetitions = str(low) if low == high else f"{low} to {high}"
    return name, str(int(line["units"])), str(int(line["cells"])), repetitions, versions


def publish(drawn: Path, place: Path) -> None:
    """Store a picture with fewer colours, which takes a third of the space."""
    from io import BytesIO

    from PIL import Image

    buffer = BytesIO()
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    replace_file(place, buffer.getvalue())


if __name__ == "__main__":
    print(write(drawn=DRAWN))
