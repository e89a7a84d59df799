"""Count the modules that a call passes through: `python -m tools.call_flow`, with `--write` into CONTRIBUTING.md.

A module is entered when one of its Python functions is called while the call runs; imports are made beforehand, by a
first run of the same call that is not counted.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tools.structure import write_section

LIMITS = {
    "sg.importance(model, X, y)": 50,
    'sg.effect(model, X, "temp", subgroups=None)': 20,
    'sg.effect(model, X, "temp")': 27,  # eight of them, each of 300 to 400 lines, grow a tree
    "subgrove explain bike.csv --target cnt": 120,
}
"""Calls, and the most modules that they may enter."""


def modules_entered(call: Callable[[], Any]) -> set[str]:
    """Return the modules of the package whose functions run during a call."""
    call()
    seen: set[str] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_globals.get("__name__", ""))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name for name in seen if name.split(".")[0] == "subgrove"}


def calls() -> dict[str, Callable[[], Any]]:
    """Return the measured calls by the names in `LIMITS`."""
    import subgrove as sg
    from subgrove._cli.app import main

    data = sg.datasets.bike()

    def model(X: Any) -> Any:
        return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")

    def explain() -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bike.csv"
            data.X.assign(cnt=data.y).to_csv(file, index=False)
            argv = [
                "subgrove",
                "explain",
                str(file),
                "--target",
                "cnt",
                "--out",
                str(Path(folder) / "bike.html"),
                "--n-jobs",
                "1",
            ]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                sys.argv, previous = argv, sys.argv
                try:
                    main()
                finally:
                    sys.argv = previous

    importance, plain_effect, effect, command = LIMITS
    return {
        importance: lambda: sg.importance(model, data.X, data.y, random_state=1),
        plain_effect: lambda: sg.effect(model, data.X, "temp", subgroups=None),
        effect: lambda: sg.effect(model, data.X, "temp"),
        command: explain,
    }


def table() -> str:
    """Return the counts as a Markdown table."""
    rows = [f"| `{name}` | {len(modules_entered(call))} | {LIMITS[name]} |" for name, call in calls().items()]
    return "\n".join(["| call | modules entered | at most |", "|---|--:|--:|", *rows])


def main() -> None:
    """Print the table, and the modules of each call with --list."""
    text = table()
    print(text)
    if "--list" in sys.argv[1:]:
        for name, call in calls().items():
            print(f"\n{name}\n  " + "\n  ".join(sorted(modules_entered(call))))
    if "--write" in sys.argv[1:]:
        write_section("calls", text)


if __name__ == "__main__":
    main()
