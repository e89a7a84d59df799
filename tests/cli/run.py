"""The command, run in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from subgrove._cli.app import app

COMMAND = [sys.executable, "-m", "subgrove._cli"]


def invoke(*arguments: Any) -> Any:
    """What a command prints and its exit code; `stdout` and `stderr` are apart."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run(*arguments: Any, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user has it."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False, env=environment(), **options)


def environment() -> dict[str, str]:
    """Warnings of Python are errors, but for those of import time."""
    return {**os.environ, "COLUMNS": "200"}


def refused(result: Any, *words: str) -> str:
    """The message of a command that refused its input: exit code 2, short, no traceback."""
    assert result.exit_code == 2, result.output
    message: list[str] = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(message) == 1, result.stderr
    assert "Traceback" not in result.output
    assert len(message[0]) < 420
    for word in words:
        assert word in message[0], message[0]
    return message[0]
