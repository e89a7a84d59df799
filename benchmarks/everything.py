"""Run all benchmarks one after the other, with their output in files and their run times in a table.

    python -m benchmarks.everything                       # all; first prints the run time of the last time
    python -m benchmarks.everything --quick               # those that have a small size, at that size
    python -m benchmarks.everything --only trees effects
    python -m benchmarks.everything --peers peers/bin/python   # the interpreter that has the other packages

`make bench` does the first. Scripts whose packages are not installed (of a GPU or a cluster) are skipped and listed;
failures are reported at the end. Run times are stored in `benchmarks/results/minutes.csv`.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks.machine import machine

FOLDER = Path(__file__).parent
MINUTES = FOLDER / "results" / "minutes.csv"
SELF = ("everything", "machine")
NEEDS = {"gpu": ("torch",), "large_file": ("pyarrow",), "cluster": ("distributed",), "peers": ("alibi", "effector")}
ARGUMENTS = {"small": ["--reference", "6fcbc07"]}  # the commit before the work on large data and speed


def scripts() -> dict[str, str]:
    """Text of each script by its name; parts of scripts have no `main`."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
    return {name: text for name, text in found.items() if "def main(" in text and name not in SELF}


def minutes_before() -> dict[str, float]:
    """Return the minutes of the last run of each script at full size."""
    if not MINUTES.exists():
        return {}
    with MINUTES.open(encoding="utf-8", newline="") as file:
        return {row["script"]: float(row["minutes"]) for row in csv.DictReader(file)}


def keep_minutes(minutes: dict[str, float]) -> None:
    """Write the file under a temporary name, then rename it."""
    MINUTES.parent.mkdir(exist_ok=True)
    unfinished = MINUTES.with_suffix(".tmp")
    with unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["script", "minutes"], *([name, f"{taken:.1f}"] for name, taken in sorted(minutes.items()))])
    unfinished.replace(MINUTES)


def run(name: str, python: str, arguments: list[str], out: Path) -> bool:
    """Run a script; show and store its output."""
    command = [python, "-m", f"benchmarks.{name}", *ARGUMENTS.get(name, []), *arguments]
    print(f"\n## {name}: {' '.join(command[1:])}\n", flush=True)
    with (out / f"{name}.md").open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=FOLDER.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            file.write(line)
    return process.wait() == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(scripts()), help="which (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, for scripts that have them")
    parser.add_argument("--peers", help="interpreter for benchmarks.peers")
    parser.add_argument("--out", type=Path, default=Path("bench"), help="folder for the output (default: bench)")
    options = parser.parse_args()
    texts, before = scripts(), minutes_before()
    chosen = options.only or list(texts)
    left_out = {name: "has no small size" for name in chosen if options.quick and '"--quick"' not in texts[name]}
    for name in chosen:
        lacking = [module for module in NEEDS.get(name, ()) if find_spec(module) is None]
        if lacking and not (name == "peers" and options.peers):
            left_out[name] = f"needs {', '.join(lacking)}"
    chosen = [name for name in chosen if name not in left_out]
    options.out.mkdir(parents=True, exist_ok=True)
    print(machine())
    known = sum(before.get(name, 0.0) for name in chosen)
    unknown = [name for name in chosen if name not in before]
    if not options.quick:
        print(f"{len(chosen)} benchmarks: {known:.0f} minutes in the last run", end="")
        print(f", without {', '.join(unknown)}, whose time is unknown." if unknown else ".")
    failed = []
    for name in chosen:
        python = options.peers if name == "peers" and options.peers else sys.executable
        start = time.perf_counter()
        done = run(name, python, ["--quick"] if options.quick else [], options.out)
        taken = (time.perf_counter() - start) / 60
        print(f"\n{name} took {taken:.1f} minutes.", flush=True)
        if not done:
            failed.append(name)
        elif not options.quick:
            before[name] = taken
            keep_minutes(before)
    for name, why in left_out.items():
        print(f"Skipped: {name} ({why}).")
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}. What they printed is in {options.out}.")


if __name__ == "__main__":
    main()
