"""Run time on small data compared with an earlier commit: `make demo`, and importance and effects of 500 rows.

    python -m benchmarks.small --reference 6fcbc07          # a few minutes
    python -m benchmarks.small --reference 6fcbc07 --quick  # a smaller demo, fewer rounds

The reference commit and the working tree are installed in separate folders and run in turns, each time in a new
process. Times are processor time, which depends less on other load of the machine: the minimum of several calls in
each round. The ratio is the median over rounds; its limit is 1.05.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import machine
from benchmarks.timing import markdown

ROOT = Path(__file__).parent.parent
LIMIT = 1.05
CALLS = 7


def cases() -> dict[str, Callable[[], Any]]:
    """Calls on 500 rows: several models, samplers and containers."""
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
    from sklearn.linear_model import LinearRegression

    import subgrove as sg

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 8))
    X[:, 1] += X[:, 0]
    y = X[:, 0] * X[:, 1] + X.sum(axis=1) + rng.normal(size=1000)
    train, test, y_test = X[:500], X[500:], y[500:]
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(
        g=rng.integers(0, 4, 1000), h=rng.choice(["p", "q", "r"], 1000)
    )
    linear = LinearRegression().fit(train, y[:500])
    boosting = HistGradientBoostingRegressor(max_iter=50, random_state=0).fit(train, y[:500])
    forest = RandomForestClassifier(30, random_state=0).fit(train, y[:500] > 0)
    groups = sg.find_subgroups(train)

    def mixed(rows: Any) -> Any:
        return rows["a"] + 2 * rows["g"] + (rows["h"] == "p")

    def importance(model: Any, rows: Any = test, target: Any = y_test, **options: Any) -> Callable[[], Any]:
        # Commits before the parameter was called `random_state` also calibrated by default.
        earlier = "seed" in signature(sg.importance).parameters
        options |= {"seed": 0, "calibrate": False} if earlier else {"random_state": 0}
        return lambda: sg.importance(model, rows, target, n_repeats=10, **options).overall

    def effect(kind: Any) -> Callable[[], Any]:
        return lambda: [sg.effect(linear, test, f"x{at}", kind=kind, subgroups=None).curves for at in range(8)]

    return {
        "importance, linear, marginal": importance(linear, sampler="marginal"),
        "importance, linear, subgroups found": importance(linear, sampler=groups),
        "importance, linear, auto": importance(linear, train=train),
        "importance, boosting, subgroups": importance(boosting, sampler="subgroups", train=train),
        "importance, forest classifier, auto": importance(forest, target=y_test > 0, train=train),
        "importance, boosting, knockoffs": importance(boosting, sampler="knockoffs", train=train),
        "importance, frame of several kinds, auto": importance(mixed, frame[500:], train=frame[:500]),
        "find_subgroups": lambda: sg.find_subgroups(train),
        "effect, pdp": effect("pdp"),
        "effect, ale": effect("ale"),
    }


def measured() -> dict[str, float]:
    """Return the minimum processor time of each case, in this process."""
    seconds = {}
    for name, call in cases().items():
        call()
        times = []
        for _ in range(CALLS):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        seconds[name] = min(times)
    return seconds


def demo(root: Path, size: list[str]) -> float:
    """Return the processor time of the demo in this process, without the first plot, which searches fonts."""
    import matplotlib as mpl

    mpl.use("Agg")
    sys.path.insert(0, str(root))
    import matplotlib.pyplot as plt
    from rich.console import Console

    from examples.bike import run

    plt.plot([0, 1])
    trees, repeats, depth = map(int, size)
    with TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        start = time.process_time()
        run(Path(folder), trees, repeats, depth, Console(file=nowhere))
        return time.process_time() - start


@contextmanager
def installed(commit: str | None) -> Iterator[Path]:
    """Provide a folder with the files of a commit, or of the working tree, and the package in `installed`."""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        if commit is not None:
            subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(tree), commit], cwd=ROOT, check=True)
        else:
            tree.mkdir()
            for name in ("src", "examples"):
                ignored = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
                shutil.copytree(ROOT / name, tree / name, ignore=ignored)
            for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
                shutil.copy(ROOT / name, tree / name)
        try:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", "installed", "."]
            subprocess.run(command, cwd=tree, check=True)
            yield tree
        finally:
            if commit is not None:
                subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def settings(tree: Path, what: str, size: list[str]) -> dict[str, float]:
    """Measure a tree in a new process."""
    code = "import json, sys; sys.path.append(sys.argv[1]); from pathlib import Path; from benchmarks import small; "
    if what == "demo":
        code += "print(json.dumps({'make demo': small.demo(Path(sys.argv[2]), sys.argv[3:])}))"
    else:
        code += "print(json.dumps(small.measured()))"
    environment = os.environ | {
        "PYTHONPATH": str(tree / "installed"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-W", "ignore", "-c", code, str(ROOT), str(tree), *size]
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tree}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True, help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=["demo", "calls"], default=["calls", "demo"])
    parser.add_argument("--quick", action="store_true", help="two rounds, a smaller demo")
    arguments = parser.parse_args()
    rounds = 2 if arguments.quick else arguments.rounds
    size = ["20", "5", "2"] if arguments.quick else ["200", "50", "5"]
    times: dict[str, list[tuple[float, float]]] = {}
    with installed(arguments.reference) as before, installed(None) as here:
        for at in range(rounds):
            for what in arguments.only:
                pair = {tree: settings(tree, what, size) for tree in ((before, here) if at % 2 else (here, before))}
                for name in pair[here]:
                    times.setdefault(name, []).append((pair[before][name], pair[here][name]))
    lines = []
    for name, pairs in times.items():
        change = median(now / then for then, now in pairs)
        both = [f"{1000 * median(one):.1f}" for one in zip(*pairs, strict=True)]
        lines.append([name, *both, f"{change:.3f}", "ok" if change <= LIMIT else "MISSED"])
    print(machine())
    print(f"\nAgainst {arguments.reference}, {rounds} alternating rounds, processor time.\n")
    print(markdown(["what", "before (ms)", "now (ms)", "ratio", f"at most {LIMIT}"], lines))


if __name__ == "__main__":
    main()
