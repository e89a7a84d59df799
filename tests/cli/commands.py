"""Run the command in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import subgrove
from subgrove._cli.app import app

COMMAND = [sys.executable, "-c", "from subgrove_command import main; main()"]  # as in the installed script


def invoke(*arguments: Any) -> Any:
    """Run the command in this process; the result has its exit code, `stdout` and `stderr`."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run(*arguments: Any, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a user does."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False, env=environment(), **options)


def environment() -> dict[str, str]:
    """Return the environment of a wide terminal, in which this package is imported from any folder."""
    return {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(Path(subgrove.__file__).parents[1])}


def error_message(result: Any, *words: str) -> str:
    """Return the error of a command with invalid input: exit code 2, one short line, no traceback."""
    assert result.exit_code == 2, result.output
    message: list[str] = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(message) == 1, result.stderr
    assert "Traceback" not in result.output
    assert len(message[0]) < 420
    for word in words:
        assert word in message[0], message[0]
    return message[0]


def still_running(session: int) -> list[str]:
    """Return the command lines of the processes of a session that have not ended."""
    running = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, own = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            words = (place / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended meanwhile
            continue
        if int(own) == session and state not in "ZX" and words.strip():  # without words it is about to end
            running.append(words)
    return running
