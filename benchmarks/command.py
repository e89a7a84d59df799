"""Run time of `subgrove explain`, from the start of the process to the written page, and held-out performance.

Five data sets with regression and classification, levels and missing values, at most 10,000 rows of each, and two with
more classes, which take longer::

    python benchmarks/command.py                  # the data sets beside the repository, or those of SUBGROVE_DATA
    python benchmarks/command.py --jobs 2 --only bank-marketing
    python benchmarks/command.py --reference ../other    # processor time beside that of another checkout, in turns

The other checkout is compiled in place: `python setup.py build_ext --inplace`.

Wall time depends on other load of the machine, processor time hardly does. The time of `subgrove --help` is the minimum
of five runs. A warning from any package makes a run fail.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments lie beside this folder

from experiments.data import folder, manifest

COMMAND = [sys.executable, "-W", "error", "-m", "subgrove._cli"]
SETS = ("wind", "wine_quality", "bank-marketing", "credit-g", "eucalyptus")  # each within `LIMIT`
MORE = ("wine_quality as classes", "letter")  # six and 26 classes, with a tree for each
LIMIT = 60.0  # seconds


@dataclass(frozen=True)
class Timed:
    """A data set, the size of its report, and the run time."""

    name: str
    rows: int
    features: int
    task: str
    levels: int
    missing: int
    seconds: float
    processor: float
    page: int
    performance: str
    notes: str


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def explained(name: str, jobs: int | None = None, reference: Path | None = None) -> Timed:
    """Run the command on a data set, of another checkout if that is given; raise an error if it fails or warns."""
    found = folder()
    if found is None:
        raise SystemExit("No data sets found. Set SUBGROVE_DATA to their folder.")
    entry = manifest().set_index("name").loc[name.removesuffix(" as classes")]
    with tempfile.TemporaryDirectory() as place:
        page, out = Path(place) / "report.html", Path(place) / "report.json"
        words = [
            "explain",
            str(found / entry["file"]),
            "--target",
            entry["target"],
            "--out",
            str(page),
            "--json",
            str(out),
            "--debug",
        ]
        # Seven distinct integers would be read as classes; they are ordered quality scores.
        words += ["--task", "regression"] if name == "wine_quality" else []
        words += ["--n-jobs", str(jobs)] if jobs else []
        start, before = time.perf_counter(), processor_seconds()
        own = {} if reference is None else {"PYTHONPATH": str(reference / "src")}
        done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, env=os.environ | own)
        seconds, processor = time.perf_counter() - start, processor_seconds() - before
        if done.returncode:
            raise SystemExit(f"{name}: exit code {done.returncode}\n{done.stderr}")
        report, size = json.loads(out.read_text(encoding="utf-8")), page.stat().st_size
    missing = int(pd.read_parquet(found / entry["file"]).isna().sum().sum())
    data, labels = report["data"], next(line for line in done.stdout.splitlines() if line.startswith("Held-out"))
    kinds = [column["kind"] for column in data["columns"]]
    return Timed(
        name,
        data["n_train"] + data["n_test"],
        len(report["features"]),
        report["model"]["task"],
        kinds.count("nominal"),
        missing,
        seconds,
        processor,
        size,
        labels.split(": ", 1)[1],
        done.stderr,
    )


def start_seconds() -> float:
    """Return the minimum time of five runs of `subgrove --help`."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([*COMMAND, "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def print_ratios(names: list[str], reference: Path, rounds: int) -> None:
    """Print the least processor time of some rounds beside that of another checkout, in turns."""
    print("| data set | processor time | of the other checkout | ratio |\n| --- | --: | --: | --: |")
    for name in names:
        turns = [(explained(name).processor, explained(name, None, reference).processor) for _ in range(rounds)]
        own, other = (min(times) for times in zip(*turns, strict=True))
        print(f"| {name} | {own:.1f} s | {other:.1f} s | {own / other:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", choices=[*SETS, *MORE], nargs="*", default=[*SETS, *MORE])
    parser.add_argument("--reference", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if options.reference:
        print_ratios([name for name in options.only if name in SETS], options.reference.resolve(), options.rounds)
        return
    print(f"subgrove --help: {start_seconds():.2f} s\n")
    heads = "data set, rows, features, nominal, missing, task, held-out performance, page, processor time, wall time"
    print(f"| {heads.replace(', ', ' | ')} |\n|{' --- |' * 10}")
    for name in options.only:
        one = explained(name, options.jobs)
        counts = f"{one.rows:,} | {one.features} | {one.levels} | {one.missing} | {one.task}"
        cost = f"{one.page / 1000:.0f} kB | {one.processor:.0f} s | {one.seconds:.0f} s"
        print(f"| {one.name} | {counts} | {one.performance} | {cost} |", flush=True)


if __name__ == "__main__":
    main()
