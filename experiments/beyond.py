"""docs/beyond_the_paper.md, written from the tables in experiments/results and from nothing else.

`python -m experiments summary` writes it with the page on reproduction and leaves pictures as they are;
`python -m experiments.beyond` takes over those that were drawn into experiments/out/figures.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from experiments.__main__ import summaries
from experiments.store import replace_file
from experiments.summary import DRAWN, RESULTS, publish, ran_table, tables_of, with_pictures, wrapped

PAGE = RESULTS.parents[1] / "docs" / "beyond_the_paper.md"
_PICTURES = Path("images", "beyond")  # beside the page

_HEAD = """# Beyond the paper

What this package does that the paper does not: measured on the paper's own simulation, and on data that are harder.
This page is written by `python -m experiments summary` from the tables in `experiments/results`; a test fails if it was
changed by hand. Sentences about numbers are made from the numbers, also where a goal is missed.

The sections on [dependence structures](#dependence-structures-of-many-kinds) and on [other packages
there](#other-packages-on-the-dependence-structures) are of the default sampler as it is now. The tables of
`ground_truth`, `data_fidelity`, `inference` and `peers` are of the default before [decision
0034](decisions/0034-smooth-and-reweighted-samplers.md), which added candidates; they have not been computed again yet.
"""


def sections() -> dict[str, tuple[str, str]]:
    """Name of the tables -> module that reports on them, and the command that makes them."""
    found = {
        "ground_truth_auto": ("ground_truth_samplers", "ground_truth --sampler auto"),
        "ground_truth_auto_own": ("ground_truth_samplers", "ground_truth --sampler auto --forest own"),
        "data_fidelity_auto": ("data_fidelity_samplers", "data_fidelity --sampler auto"),
    }
    return found | {name: (name, f"{name} --sampler auto" if name == "peers" else name) for name in summaries("BEYOND")}


def write(results: Path = RESULTS, page: Path = PAGE, drawn: Path | None = None) -> Path:
    """Write the page, whole or not at all; pictures that were drawn replace those beside it."""
    pictures = page.parent / _PICTURES
    text(results, pictures)  # before anything is changed, since a report may fail
    for pattern in ("beyond_*.png", *(f"{name}*.png" for name in summaries("BEYOND"))) if drawn is not None else ():
        for path in sorted(drawn.glob(pattern)) if drawn else ():
            publish(path, pictures / path.name)
    replace_file(page, text(results, pictures).encode())
    return page


def text(results: Path = RESULTS, pictures: Path = PAGE.parent / _PICTURES) -> str:
    """The page, with the pictures that are there."""
    known = sections()
    found = {name: tables for name in known if (tables := tables_of(name, results))}
    commands = [f"- `python -m experiments {command}`" for _, command in known.values()]
    parts = [_HEAD, "## How to run it", "\n".join(commands), "## What was run"]
    parts += [ran_table(found)] if found else []
    missing = [f"`{command}`" for name, (_, command) in known.items() if name not in found]
    if missing:
        parts.append(f"**{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no results yet.**")
    for name, tables in found.items():
        own = {title: table for title, table in tables.items() if title != "run"}
        parts.append(with_pictures(str(import_module(f"experiments.{known[name][0]}").report(own)), pictures))
    return "\n\n".join(wrapped(part.strip()) for part in parts) + "\n"


if __name__ == "__main__":
    print(write(drawn=DRAWN))
