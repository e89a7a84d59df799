"""Follow the README as a newcomer does, and print how long each step takes: `python -m tools.newcomer`.

In a fresh virtual environment and an empty folder, the commands and the Python code of the README run in their order,
as printed. Nothing else is done, except that `houses.csv`, which stands for the reader's own file, is written first.
`--installed` leaves the installation out and uses the subgrove of this environment.
"""

from __future__ import annotations

import argparse
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(?P<language>console|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
OWN_FILE = "houses.csv"


@dataclass(frozen=True)
class Step:
    """A step of the README: what was run, whether it installs, how long it took, what it printed, pages it wrote."""

    command: str
    installs: bool
    seconds: float
    printed: str
    pages: tuple[str, ...]


def readme_steps(text: str) -> Iterator[list[str]]:
    """Arguments of each command of a page; a block of Python is one command."""
    for block in BLOCK.finditer(text):
        if block["language"] == "console":
            yield from (shlex.split(line) for line in block["text"].splitlines() if line.strip())
        else:
            examples = doctest.DocTestParser().get_examples(block["text"])
            yield ["python", "-c", "".join(example.source for example in examples) or block["text"]]


def write_own_file(path: Path) -> None:
    """A table of 400 houses; larger houses have more rooms."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(1)
    area = rng.gamma(8, 15, 400).round(1)
    rooms = (area / 30 + rng.normal(0, 0.7, 400)).round().clip(1)
    town = rng.choice(["north", "south", "west"], 400)
    price = 2000 * area + 5000 * rooms + 40000 * (town == "north") + rng.normal(0, 20000, 400)
    pd.DataFrame({"area": area, "rooms": rooms, "town": town, "price": price.round()}).to_csv(path, index=False)


def clone(folder: Path) -> Path:
    """A copy of the files of the repository, without what was built."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    for name in listed.stdout.decode().splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def _programs(folder: Path, *, installed: bool) -> Path:
    """A folder with `python`, `pip` and `subgrove`: those of a fresh environment, or of this one."""
    if not installed:
        venv.create(folder, with_pip=True)
        return folder / "bin"
    folder.mkdir()
    for name, arguments in {"python": "", "subgrove": " -m subgrove._cli"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{arguments} "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def follow(text: str, folder: Path, *, installed: bool = False) -> Iterator[Step]:
    """Run the steps of a page in a folder; a command that fails raises `subprocess.CalledProcessError`."""
    programs = _programs(folder / "environment", installed=installed)
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    if not installed:
        environment.pop("PYTHONPATH", None)
    work = folder / "work"
    work.mkdir()
    write_own_file(work / OWN_FILE)
    for arguments in readme_steps(text):
        installs = arguments[0] == "pip"
        if installs and installed:
            continue
        place = clone(folder / "clone") if installs else work
        known, start = set(work.glob("*.html")), time.perf_counter()
        done = subprocess.run(arguments, cwd=place, env=environment, check=True, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - start
        pages = tuple(sorted(page.name for page in set(work.glob("*.html")) - known))
        yield Step(shlex.join(arguments), installs, seconds, done.stdout.decode(), pages)


def seconds_to_first_page(steps: Sequence[Step]) -> float:
    """Seconds from the end of the installation to the end of the first step that wrote a page."""
    total = 0.0
    for step in steps:
        total += 0.0 if step.installs else step.seconds
        if step.pages:
            return total
    return float("inf")


def main() -> None:
    """Follow the README and print what each step took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--installed", action="store_true", help="use the subgrove of this environment")
    installed = parser.parse_args().installed
    text, steps = (ROOT / "README.md").read_text(encoding="utf-8"), []
    with tempfile.TemporaryDirectory() as folder:
        for step in follow(text, Path(folder), installed=installed):
            steps.append(step)
            title = step.command.splitlines()[0]
            print(f"{step.seconds:6.1f} s  {title}  {' '.join(step.pages)}")
    print(f"First page {seconds_to_first_page(steps):.1f} s after the installation.")


if __name__ == "__main__":
    main()
