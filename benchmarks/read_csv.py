"""Time and memory of reading a CSV file of a given size with the command's reader.

    python -m benchmarks.read_csv               2 GB in a temporary folder
    python -m benchmarks.read_csv --megabytes 100

Twelve columns of numbers, one of cities, one of dates and a target; 10,000 rows are sampled. Memory is the peak of the
process, with Python and pandas. Writing the file is not counted.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import machine
from benchmarks.timing import markdown
from subgrove._cli.options import DataOptions
from subgrove._cli.reading import read_table_file


def write(path: Path, megabytes: int) -> None:
    """Write the same 100,000 rows until the file is large enough."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(100_000, 13)).round(5).tolist()
    cities, days = rng.choice(["Berlin", "Hamburg", "Ulm"], 100_000), rng.integers(1, 28, 100_000)
    rows = zip(numbers, cities, days, strict=True)
    block = "".join(f"{city},2024-01-{day:02},{','.join(map(str, values))}\n" for values, city, day in rows)
    with path.open("w") as file:
        file.write(f"city,day,{','.join(f'x{k}' for k in range(12))},y\n")
        for _ in range(max(1, round(megabytes * 1e6 / len(block)))):
            file.write(block)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="20 MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write(path, 20 if options.quick else options.megabytes)
        size, start, clock = path.stat().st_size, time.process_time(), time.perf_counter()
        table = read_table_file(DataOptions(data=path))
        seconds = [f"{time.process_time() - start:.1f}", f"{time.perf_counter() - clock:.1f}"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(machine("numpy", "pandas") + "\n")
    head = ["GB", "rows", "processor time (s)", "wall time (s)", "peak MiB"]
    print(markdown(head, [[f"{size / 1e9:.2f}", f"{table.total:,}", *seconds, f"{peak:.0f}"]]))


if __name__ == "__main__":
    main()
