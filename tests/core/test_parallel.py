"""How many processors work at once, and what is printed meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove._core.execution import effective_jobs, parallel_map, progress_bar
from subgrove.exceptions import ClusterError, ParameterError


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TTY_COMPATIBLE", "FORCE_COLOR"):  # with these rich takes anything for a terminal
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8])
def test_n_jobs_may_be_any_nonzero_integer(kind: Any) -> None:
    assert effective_jobs(kind(1)) == 1
    for n_jobs in (1, 2):
        assert list(parallel_map(abs, [-1, 2, -3], kind(n_jobs))) == [1, 2, 3]


@pytest.mark.parametrize("n_jobs", [0, np.int64(0), True, np.True_, 1.0, np.float64(1), "1"])
def test_invalid_n_jobs_raises(n_jobs: Any) -> None:
    with pytest.raises(ParameterError, match="n_jobs must be a whole number other than 0, or None; got"):
        effective_jobs(n_jobs)


def test_progress_without_a_terminal_is_one_line_at_the_end(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBGROVE_PROGRESS", "1")
    with progress_bar(2, "Working") as done:
        done(1)
        done(1)
        assert capfd.readouterr() == ("", "")
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(r"Working: done in \d+\.\d s\n", err)


def test_progress_without_a_terminal_is_silent_after_an_error(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBGROVE_PROGRESS", "1")
    with pytest.raises(ValueError, match="the user's own"), progress_bar(2, "Working"):
        raise ValueError("the user's own")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("setting", ["", "0"])
def test_default_progress_is_silent_without_a_terminal(
    setting: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBGROVE_PROGRESS", setting)
    with progress_bar(2, "Working") as done:
        done(2)
    assert capfd.readouterr() == ("", "")


def test_bars_within_a_bar_are_not_shown(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBGROVE_PROGRESS", "1")
    with progress_bar(2, "Outer"), progress_bar(2, "Inner"):
        pass
    with progress_bar(1, "Next"):
        pass
    err = capfd.readouterr().err
    assert ["Inner" in err, "Outer" in err, "Next" in err] == [False, True, True]


class Unpicklable:
    """A model that holds an open thing."""

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle this model")


def test_model_that_cannot_be_sent_to_other_processes_is_named_with_a_remedy() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ParameterError, match=r"n_jobs=2 sends the model to other processes.*Use n_jobs=1"):
        sg.importance(Unpicklable(), X, X[:, 0], sampler="marginal", n_repeats=2, random_state=1, n_jobs=2)


def test_an_abandoned_run_over_chunks_hides_no_later_bars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBGROVE_PROGRESS", "1")

    def chunks() -> Iterator[int]:
        with progress_bar(2, "Chunks", hides_inner=False):
            yield 1
            yield 2

    abandoned = chunks()
    assert next(abandoned) == 1
    with progress_bar(1, "Later"):
        pass
    assert "Later: done" in capsys.readouterr().err
    del abandoned


def end_process(_: int) -> None:
    os._exit(1)


def test_process_that_dies_is_an_error_with_advice() -> None:
    with pytest.raises(ClusterError, match=r"One of the n_jobs=2 processes ended .*Use fewer processes or rows, or"):
        list(parallel_map(end_process, [1, 2, 3], 2))


def test_one_thread_holds_for_a_library_that_is_loaded_later() -> None:
    lines = """
        import subgrove
        from subgrove._core.execution import one_blas_thread
        with one_blas_thread():
            import scipy.linalg
            from threadpoolctl import threadpool_info
            print({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(lines)], capture_output=True, text=True, env=os.environ | threads
    )
    assert done.stdout.strip() == "{1}", done.stderr
