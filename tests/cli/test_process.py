"""The command as a process: exit codes, pipes and signals."""

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

from .commands import COMMAND, environment, invoke, run, still_running
from .conftest import rows

COMMANDS = ["explain", "subgroups", "dependence", "fidelity", "demo", "report"]


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_help_are_valid(command: str) -> None:
    """Each example is parsed by the command; its files need not exist."""
    shown = invoke(command, "--help")
    assert shown.exit_code == 0
    examples = [line.split("|")[0].split() for line in shown.stdout.splitlines() if line.startswith("  subgrove ")]
    assert examples
    for words in examples:
        assert words[1] == command
        assert invoke(*words[1:], "--help").exit_code == 0


def test_help_lists_commands_and_exit_codes() -> None:
    shown = invoke("--help").stdout
    assert [command for command in COMMANDS if f"\n  {command} " not in shown] == []
    for code in ("0 success", "2 the file", "3 the model", "130 interrupted"):
        assert code in " ".join(shown.split())


def test_version_is_that_of_the_package() -> None:
    import subgrove

    assert invoke("--version").stdout == f"subgrove {subgrove.__version__}\n"


def test_help_imports_no_heavy_package() -> None:
    program = (
        "import sys\nfrom subgrove._cli.app import main\nsys.argv = ['subgrove', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *(name for name in ('pandas', 'sklearn', 'scipy.stats', 'matplotlib', 'jinja2', 'pyarrow', "
        "'polars') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"


def test_unknown_option_gives_exit_code_2() -> None:
    result = invoke("explain", "data.csv", "--target", "y", "--colour", "red")
    assert result.exit_code == 2
    assert "--colour" in result.stderr


def test_piped_output_has_no_colours_and_no_progress(houses: Path) -> None:
    done = run("subgroups", houses, "-f", "a", "-t", "price")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stderr


def test_closed_pipe_is_not_an_error(houses: Path) -> None:
    first = subprocess.Popen(
        [*COMMAND, "subgroups", str(houses)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert first.stdout is not None
    first.stdout.close()
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 0
    assert errors == b""


def interrupted(
    words: list[Any], folder: Path, when: str, number: signal.Signals = signal.SIGINT
) -> subprocess.Popen[str]:
    """Start a command in a session of its own and send it a signal once it has printed a line."""
    options: dict[str, Any] = {"text": True, "cwd": folder, "env": {**environment(), "PYTHONUNBUFFERED": "1"}}
    # A parent that ignores the signal, as `nohup` does, hands that on.
    options |= {"start_new_session": True, "preexec_fn": partial(signal.signal, number, signal.SIG_DFL)}
    process = subprocess.Popen([*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    assert process.stdout is not None
    for line in process.stdout:
        if when in line:
            break
    time.sleep(0.3)
    process.send_signal(number)
    return process


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the list of processes from /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_request_to_end_leaves_no_process_and_no_file(folder: Path, number: signal.Signals) -> None:
    rows(800).to_csv("houses.csv", index=False)
    words = ["explain", "houses.csv", "-t", "price", "--n-jobs", "2"]
    process = interrupted(words, folder, "Held-out", number)
    _, errors = process.communicate(timeout=60)  # which ends when no process holds the pipe any more
    assert process.returncode == 128 + number
    assert errors.strip().endswith("Interrupted. No file is left half-written.")
    deadline = time.monotonic() + 10  # seconds; processes that are ending are still listed for a moment
    while still_running(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert still_running(process.pid) == []
    assert [path.name for path in folder.iterdir()] == ["houses.csv"]


def test_closed_standard_output_is_not_an_error(houses: Path) -> None:
    words = [sys.executable, "-c", "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])", *COMMAND]
    more = ["subgroups", str(houses), "-f", "a", "--json", "out.json"]
    done = subprocess.run([*words, *more], stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert Path("out.json").exists()


def test_ctrl_c_leaves_no_files(folder: Path) -> None:
    rows(800).to_csv("houses.csv", index=False)
    process = interrupted(["explain", "houses.csv", "-t", "price", "--json", "out.json"], folder, "Held-out")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip().endswith("Interrupted. No file is left half-written.")
    assert "Traceback" not in errors
    assert [path.name for path in folder.iterdir()] == ["houses.csv"]


MOMENTS = {
    "loading NumPy": ("numpy.linalg", ["--help"]),
    "loading the package": ("subgrove._core.kinds", ["explain", "houses.csv", "-t", "price"]),
    "loading the samplers": ("subgrove.samplers", ["demo"]),
    "loading the command": ("subgrove._cli.terminal", ["explain", "houses.csv", "-t", "price"]),
    "the options are parsed": ("subgrove._cli.app", ["explain", "houses.csv", "-t", "price"]),
    "the command loads pandas": ("pandas._libs", ["explain", "houses.csv", "-t", "price"]),
    "the command loads scikit-learn": ("sklearn.base", ["explain", "houses.csv", "-t", "price"]),
}


BY_OTHERS = [(moment, signal.SIGTERM) for moment in ("loading NumPy", "the command loads pandas")]


@pytest.mark.parametrize(("moment", "number"), [*((moment, signal.SIGINT) for moment in MOMENTS), *BY_OTHERS])
def test_ctrl_c_while_packages_are_imported_is_one_sentence(houses: Path, moment: str, number: signal.Signals) -> None:
    """This printed the traceback of an import; Python prints the name of each module once it is imported."""
    module, words = MOMENTS[moment]
    options: dict[str, Any] = {"text": True, "cwd": houses.parent, "env": environment()}
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options |= {"preexec_fn": partial(signal.signal, number, signal.SIG_DFL)}
    process = subprocess.Popen([COMMAND[0], "-X", "importtime", *COMMAND[1:], *words], **options)
    assert process.stderr is not None
    seen = next((line for line in process.stderr if line.split("|")[-1].strip() == module), "")
    process.send_signal(number)
    _, rest = process.communicate(timeout=60)
    printed = [line for line in rest.splitlines() if not line.startswith("import time:")]
    assert seen, "the module is not imported any more: choose another"
    assert (process.returncode, printed[-1]) == (128 + number, "Interrupted. No file is left half-written.")
    assert "Traceback" not in rest
    assert [path.name for path in houses.parent.iterdir()] == ["houses.csv"]


def test_interrupted_write_keeps_the_old_page(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Path, target: Path) -> None:
        assert self.exists()  # a temporary file exists
        raise KeyboardInterrupt

    Path("report.html").write_text("the old page")
    monkeypatch.setattr(Path, "replace", stop)
    result = invoke("explain", houses, "-t", "price", "-f", "a", "--n-repeats", 3)
    assert result.exit_code == 130
    assert sorted(os.listdir()) == ["houses.csv", "report.html"]
    assert Path("report.html").read_text() == "the old page"


def test_internal_error_is_one_sentence(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from subgrove._cli import explain

    def fail(*_: Any) -> None:
        raise ZeroDivisionError("no such thing")

    monkeypatch.setattr(explain, "learning_task", fail)
    result = invoke("explain", houses, "-t", "price")
    assert result.exit_code == 1
    assert "Unexpected ZeroDivisionError: no such thing" in result.stderr
    assert "--debug" in result.stderr


def test_completion_lists_commands() -> None:
    variables = {"_SUBGROVE_COMPLETE": "complete_bash", "COMP_WORDS": "subgrove su", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, env={**environment(), **variables})
    assert done.stdout.split() == ["subgroups"]


@pytest.mark.slow
def test_two_gigabytes_are_read_in_one_gigabyte_of_address_space(folder: Path) -> None:
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
    assert "10,000 of the " in done.stderr
    assert "region" in done.stdout


def limit(size: int) -> None:
    """Limit the address space of a process to this many bytes."""
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def test_file_is_explained_in_one_gigabyte_of_address_space(houses: Path) -> None:
    words = ("explain", houses, "-t", "price", "-f", "a", "--n-repeats", 2, "-q")
    done = run(*words, preexec_fn=partial(limit, 1_000_000_000))
    assert (done.returncode, done.stderr) == (0, "")


def test_too_small_address_space_is_reported_first(houses: Path, folder: Path) -> None:
    done = run("explain", houses, "-t", "price", preexec_fn=partial(limit, 500_000_000))
    assert done.returncode == 2
    assert done.stderr.startswith("Error: Not enough memory: the limit of address space is 476 MB, at least 800 MB")
    assert os.listdir() == ["houses.csv"]


def test_ascii_terminal_gets_escapes_and_json_stays_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    frame = rows(80).rename(columns={"a": "\u65e5\u672c"})
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ("subgroups", "data.csv", "-t", "price", "-f", "\u65e5\u672c")
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, "Unexpected" in done.stderr) == (0, False)
    assert "\\u65e5\\u672c" in done.stdout
    piped = subprocess.run([*COMMAND, *words, "--json", "-"], capture_output=True, cwd=tmp_path, env=environment())
    assert "\u65e5\u672c" in piped.stdout.decode("utf-8")


def test_title_that_is_not_valid_unicode_is_escaped(houses: Path) -> None:
    result = invoke("explain", houses, "-t", "price", "-f", "a", "--n-repeats", 2, "--title", "caf\udce9")
    assert result.exit_code == 0, result.output
    assert "caf\\udce9" in Path("report.html").read_text(encoding="utf-8")
