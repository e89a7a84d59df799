"""The gallery: scripts of `examples/` become pages, with what each block printed and drew below it.

A script is a docstring (a question, then a summary) and blocks that start with `# %%`. Comment lines right below that
mark are prose, the rest is code. `python -m tools.gallery` runs the scripts at full size and writes `docs/gallery/`;
names of scripts after it render these only, `--small` takes the size that CI runs.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, PAGES = ROOT / "examples", ROOT / "docs" / "gallery"
DEMO = "bike"  # `make demo`: a program with options, not a page
ORDER = {
    "Start here": ["bike_in_ten_lines", "pdp_or_subgroups", "gap_explained"],
    "Kinds of data": ["nominal_columns", "gene_like", "time_rows", "large_parquet"],
    "Kinds of models": ["pipeline", "lightgbm_categories", "two_models"],
    "With other tools": ["mlflow_logging", "model_card", "skore_check"],
    "Careful conclusions": ["credit_audit", "choose_depth", "uncertainty", "own_sampler"],
}
WIDTH = 900  # pixels of the widest picture
THUMBNAIL = 400
MARK = "# %%"
IMAGE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)]+)\)")


@dataclass(frozen=True)
class Block:
    """Prose and code of a block, where it starts, and what came of running it."""

    prose: str
    code: str
    line: int
    printed: str = ""
    pictures: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Script:
    """A script: its question, its summary, and its blocks."""

    name: str
    question: str
    summary: str
    blocks: tuple[Block, ...]


def read_script(path: Path) -> Script:
    """The parts of a script; nothing is run."""
    source = path.read_text(encoding="utf-8")
    module = ast.parse(source)
    text = ast.get_docstring(module)
    if text is None:
        raise ValueError(f"{path.name} has no docstring. Its first line should be a question, followed by a summary.")
    question, _, summary = text.partition("\n")
    start = module.body[0].end_lineno or 0
    return Script(path.stem, question.strip(), summary.strip(), tuple(_blocks(source.splitlines(), start)))


def _blocks(lines: list[str], start: int) -> Iterator[Block]:
    """Blocks of the lines after the docstring."""
    cuts = [at for at in range(start, len(lines)) if lines[at].strip() == MARK]
    for first, last in zip([start, *cuts], [*cuts, len(lines)], strict=True):
        at = first + (first in cuts)
        while at < last and lines[at].startswith("#"):
            at += 1
        prose = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[first + (first in cuts) : at])
        code = "\n".join(lines[at:last]).strip("\n")
        at += next((skipped for skipped, line in enumerate(lines[at:last]) if line.strip()), 0)
        if prose or code:
            yield Block(prose.strip(), code, at)


@contextmanager
def _as_program(path: Path, *, small: bool) -> Iterator[None]:
    """Arguments as for a program of its own, and pictures without a screen."""
    import matplotlib as mpl

    arguments, screen, backend = sys.argv, os.environ.pop("DISPLAY", None), mpl.get_backend()
    sys.argv = [str(path), *(["--small"] if small else [])]
    mpl.use("agg")
    try:
        yield
    finally:
        sys.argv = arguments
        mpl.use(backend)
        if screen is not None:
            os.environ["DISPLAY"] = screen


def run_script(path: Path, *, small: bool = False) -> Script:
    """The script with what its blocks printed and drew.

    Parameters
    ----------
    path : Path
        The script.
    small : bool, default False
        Whether it is given `--small`.
    """
    script = read_script(path)
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    with _as_program(path, small=small):
        done = tuple(_run_block(block, path, namespace) for block in script.blocks)
    return replace(script, blocks=done)


def _run_block(block: Block, path: Path, namespace: dict[str, Any]) -> Block:
    from matplotlib import pyplot as plt

    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(compile("\n" * block.line + block.code, str(path), "exec"), namespace)
        pictures = tuple(_picture(plt.figure(number)) for number in plt.get_fignums())
    finally:
        plt.close("all")
    return replace(block, printed=printed.getvalue().rstrip(), pictures=pictures)


def _picture(figure: Any) -> bytes:
    """A figure as PNG of few colours, no wider than a page; the same figure gives the same bytes."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=min(100.0, WIDTH / figure.get_size_inches()[0]), metadata={"Software": None})
    return _png(Image.open(drawn).convert("RGB"))


def _png(image: Any) -> bytes:
    stored = io.BytesIO()
    image.quantize(128).save(stored, format="PNG", optimize=True)
    return stored.getvalue()


def thumbnail(picture: bytes) -> bytes:
    """A small copy of a picture."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    return _png(image)


def picture_names(script: Script) -> Iterator[tuple[str, bytes]]:
    """File name and content of each picture."""
    pictures = [picture for block in script.blocks for picture in block.pictures]
    for number, picture in enumerate(pictures, start=1):
        yield f"{script.name}_{number}.png", picture


def page(script: Script) -> str:
    """The page of a script that was run, as Markdown."""
    names = iter([name for name, _ in picture_names(script)])
    parts = [f"# {script.question}", script.summary]
    for block in script.blocks:
        parts += _shown(block, [next(names) for _ in block.pictures])
    parts.append(last_line(script.name))
    return "\n\n".join(part for part in parts if part) + "\n"


def last_line(name: str) -> str:
    """Where the script of a page is."""
    return (
        f"The script is `examples/{name}.py`, as a notebook [{name}.ipynb](notebooks/{name}.ipynb). "
        f"[All examples](index.md)."
    )


def notebook(script: Script) -> str:
    """The script as a Jupyter notebook, without outputs: a cell for each prose and each code."""
    cells = [_cell("markdown", f"# {script.question}\n\n{script.summary}")]
    for block in script.blocks:
        texts = {"markdown": block.prose, "code": block.code}
        cells += [_cell(kind, text) for kind, text in texts.items() if text]
    for number, cell in enumerate(cells):
        cell["id"] = f"{script.name.replace('_', '-')}-{number}"
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


def _shown(block: Block, names: list[str]) -> Iterator[str]:
    yield block.prose
    if block.code:
        yield f"```python\n{block.code}\n```"
    if block.printed:
        yield f"```text\n{block.printed}\n```"
    what = re.sub(r"[\[\]`*]", "", re.split(r"(?<=[.:?])\s", " ".join(block.prose.split()))[0])
    for name in names:
        yield f"![{what}](images/{name})"


def index(scripts: dict[str, Script]) -> str:
    """The first page of the gallery: sections of questions, summaries and pictures."""
    parts = [
        "# Gallery",
        "Each page has one question, a script, and what the script prints and draws. The scripts are in "
        "`examples/` and need nothing but subgrove and what their first lines import: `python examples/two_models.py`. "
        "With `--small` they take a few seconds; that is how they are tested. `make gallery` runs them and writes "
        "these pages. The bike application of the paper as a whole is `make demo`.",
    ]
    for section, names in ORDER.items():
        parts += [f"## {section}", *(_entry(scripts[name]) for name in names)]
    return "\n\n".join(parts) + "\n"


def _entry(script: Script) -> str:
    """Question, summary and picture, one below the other: columns of a table leave a picture no room."""
    picture = f"[![{script.question}](images/{script.name}_small.png)]({script.name}.md)"
    return f"### [{script.question}]({script.name}.md)\n\n{script.summary}\n\n{picture}"


def write(script: Script, folder: Path) -> None:
    """The page of a script and its pictures; pictures of an earlier run go."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for old in [*images.glob(f"{script.name}_[0-9]*.png"), *images.glob(f"{script.name}_small.png")]:
        old.unlink()
    pictures = dict(picture_names(script))
    for name, picture in pictures.items():
        (images / name).write_bytes(picture)
    if pictures:
        (images / f"{script.name}_small.png").write_bytes(thumbnail(next(iter(pictures.values()))))
    (folder / f"{script.name}.md").write_text(page(script), encoding="utf-8")


def main() -> None:
    """Run scripts and write their pages."""
    every = [name for names in ORDER.values() for name in names if (EXAMPLES / f"{name}.py").exists()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scripts to render (default: all)")
    parser.add_argument("--small", action="store_true", help="the size that CI runs")
    parser.add_argument("--out", type=Path, default=PAGES, help="folder to write to (default: docs/gallery)")
    args = parser.parse_args()
    for name in args.names or every:
        start = time.perf_counter()
        try:
            write(run_script(EXAMPLES / f"{name}.py", small=args.small), args.out)
        except SystemExit as reason:  # a package is missing: the page stays as it is
            print(f"{name}: skipped. {reason}", flush=True)
            continue
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    scripts = {name: read_script(EXAMPLES / f"{name}.py") for name in every}
    (args.out / "notebooks").mkdir(exist_ok=True)
    for name, script in scripts.items():
        (args.out / "notebooks" / f"{name}.ipynb").write_text(notebook(script), encoding="utf-8")
    (args.out / "index.md").write_text(index(scripts), encoding="utf-8")


if __name__ == "__main__":
    main()
