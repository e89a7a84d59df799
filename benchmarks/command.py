"""How long `subgrove explain` takes, from the start of the process to the written page, and what it says first.

Five data sets with regression and classification, levels and missing values, of which at most 10,000 rows are drawn;
and two with more classes, which take longer::

    python benchmarks/command.py                  # the data sets beside the repository, or those of SUBGROVE_DATA
    python benchmarks/command.py --jobs 2 --only bank-marketing

Seconds of the clock depend on what else the machine does; seconds of the processors hardly do. The start of
`subgrove --help` is measured too, five times, the quickest counts. A warning from anywhere makes a run fail.
"""

from __future__ import annotations

import argparse
import json
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
MORE = ("wine_quality as classes", "letter")  # six and 26 classes: as many times the trees
LIMIT = 60.0  # seconds


@dataclass(frozen=True)
class Timed:
    """A data set, and what explaining it took."""

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


def explained(name: str, jobs: int | None = None) -> Timed:
    """Run the command on a data set; a warning or an error of it raises."""
    found = folder()
    if found is None:
        raise SystemExit("There are no data sets. Set SUBGROVE_DATA to their folder.")
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
        # Seven different whole numbers would be taken for classes; they are marks, from bad to good.
        words += ["--task", "regression"] if name == "wine_quality" else []
        words += ["--n-jobs", str(jobs)] if jobs else []
        start, before = time.perf_counter(), processor_seconds()
        done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
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
    """Quickest of five starts of `subgrove --help`."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([*COMMAND, "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", choices=[*SETS, *MORE], nargs="*", default=[*SETS, *MORE])
    options = parser.parse_args()
    print(f"subgrove --help: {start_seconds():.2f} s\n")
    print("| data set | rows | features | nominal | missing | task | held-out performance | page | processor | clock |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.only:
        one = explained(name, options.jobs)
        counts = f"{one.rows:,} | {one.features} | {one.levels} | {one.missing} | {one.task}"
        cost = f"{one.page / 1000:.0f} kB | {one.processor:.0f} s | {one.seconds:.0f} s"
        print(f"| {one.name} | {counts} | {one.performance} | {cost} |", flush=True)


if __name__ == "__main__":
    main()
