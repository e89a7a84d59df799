"""The command as a process: what a shell, a pipe and Ctrl-C see."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .conftest import rows
from .run import COMMAND, environment, invoke, run

COMMANDS = ["explain", "subgroups", "dependence", "fidelity", "demo", "report", "selfcheck"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_the_command_understands(command: str) -> None:
    """Each example is taken apart by the command itself; files that it names need not be there."""
    told = invoke(command, "--help")
    assert told.exit_code == 0
    examples = [line.split("|")[0].split() for line in told.stdout.splitlines() if line.startswith("  subgrove ")]
    assert examples
    for words in examples:
        assert words[1] == command
        assert invoke(*words[1:], "--help").exit_code == 0


def test_help_names_all_commands_and_the_exit_codes() -> None:
    told = invoke("--help").stdout
    assert [command for command in COMMANDS if f"\n  {command} " not in told] == []
    for code in ("0 done", "2 the file", "3 the model", "130 stopped"):
        assert code in " ".join(told.split())


def test_the_version_is_that_of_the_package() -> None:
    import subgrove

    assert invoke("--version").stdout == f"subgrove {subgrove.__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom subgrove._cli.app import main\nsys.argv = ['subgrove', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *(name for name in ('pandas', 'sklearn', 'scipy.stats', 'matplotlib', 'jinja2', 'pyarrow', "
        "'polars') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"


def test_an_unknown_option_is_a_mistake_of_usage() -> None:
    result = invoke("explain", "data.csv", "--target", "y", "--colour", "red")
    assert result.exit_code == 2
    assert "--colour" in result.stderr


def test_a_piped_command_prints_no_colours_and_no_progress(houses: Path) -> None:
    done = run("subgroups", houses, "-f", "a", "-t", "price")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(houses: Path) -> None:
    first = subprocess.Popen(
        [*COMMAND, "subgroups", str(houses)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert first.stdout is not None
    first.stdout.close()
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 0
    assert errors == b""


def interrupted(words: list[Any], folder: Path, when: str) -> subprocess.Popen[str]:
    """A command that is sent Ctrl-C's signal once it has said something."""
    options: dict[str, Any] = {"text": True, "cwd": folder, "env": {**environment(), "PYTHONUNBUFFERED": "1"}}
    process = subprocess.Popen([*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    assert process.stdout is not None
    for line in process.stdout:
        if when in line:
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    return process


def test_ctrl_c_while_computing_leaves_nothing_behind(folder: Path) -> None:
    rows(800).to_csv("houses.csv", index=False)
    process = interrupted(["explain", "houses.csv", "-t", "price", "--json", "out.json"], folder, "Held-out")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip().endswith("Stopped. Nothing half-written is left.")
    assert "Traceback" not in errors
    assert [path.name for path in folder.iterdir()] == ["houses.csv"]


def test_an_interrupted_write_leaves_the_old_page_whole(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Path, target: Path) -> None:
        assert self.exists()  # so there was something to clear away
        raise KeyboardInterrupt

    Path("report.html").write_text("the old page")
    monkeypatch.setattr(Path, "replace", stop)
    result = invoke("explain", houses, "-t", "price", "-f", "a", "--repeats", 3)
    assert result.exit_code == 130
    assert sorted(os.listdir()) == ["houses.csv", "report.html"]
    assert Path("report.html").read_text() == "the old page"


def test_something_unexpected_is_told_in_a_sentence(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from subgrove._cli import explain

    def wrong(*_: Any) -> None:
        raise ZeroDivisionError("no such thing")

    monkeypatch.setattr(explain, "pose", wrong)
    result = invoke("explain", houses, "-t", "price")
    assert result.exit_code == 1
    assert "Unexpected ZeroDivisionError: no such thing" in result.stderr
    assert "--debug" in result.stderr


def test_completion_offers_the_commands() -> None:
    asked = {"_SUBGROVE_COMPLETE": "complete_bash", "COMP_WORDS": "subgrove su", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, env={**environment(), **asked})
    assert done.stdout.split() == ["subgroups"]


@pytest.mark.slow
def test_two_gigabytes_are_read_with_half_of_that(folder: Path) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(20_000, 6)).round(6)
    block = "".join(",".join(map(str, row)) + f",{'north' if row[0] > 0 else 'south'}\n" for row in numbers.tolist())
    with Path("large.csv").open("w", encoding="utf-8") as file:
        file.write("a,b,c,d,e,y,region\n")
        for _ in range(2_100_000_000 // len(block)):
            file.write(block)
    done = run("subgroups", "large.csv", "-f", "a", "-t", "y", preexec_fn=partial(limit, 1_000_000_000))
    assert Path("large.csv").stat().st_size > 2e9
    assert done.returncode == 0, done.stderr
    assert "10,000 of " in done.stderr
    assert "region" in done.stdout


def limit(addresses: int) -> None:
    """Leave a process so many bytes of addresses."""
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))


def test_a_file_is_explained_in_little_memory(houses: Path) -> None:
    words = ("explain", houses, "-t", "price", "-f", "a", "--repeats", 2, "-q")
    done = run(*words, preexec_fn=partial(limit, 1_000_000_000))
    assert (done.returncode, done.stderr) == (0, "")


def test_too_little_memory_is_told_before_anything_is_loaded(houses: Path, folder: Path) -> None:
    done = run("explain", houses, "-t", "price", preexec_fn=partial(limit, 500_000_000))
    assert done.returncode == 2
    assert done.stderr.startswith(
        "Error: There is not enough memory: the limit is 476 MB of addresses, at least 800 MB"
    )
    assert os.listdir() == ["houses.csv"]


def test_a_stream_without_the_characters_gets_them_escaped_and_json_stays_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    frame = rows(80).rename(columns={"a": "\u65e5\u672c"})
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ("subgroups", "data.csv", "-t", "price", "-f", "\u65e5\u672c")
    told = run(*words, cwd=tmp_path)
    assert (told.returncode, "Unexpected" in told.stderr) == (0, False)
    assert "\\u65e5\\u672c" in told.stdout
    piped = subprocess.run([*COMMAND, *words, "--json", "-"], capture_output=True, cwd=tmp_path, env=environment())
    assert "\u65e5\u672c" in piped.stdout.decode("utf-8")
