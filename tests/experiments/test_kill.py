"""A run that is killed again and again ends with the numbers of an undisturbed one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from experiments.__main__ import main
from experiments.store import Store

KILLS = 10
HERE = Path(__file__).parent


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_killed_ten_times_at_random_the_table_is_that_of_an_undisturbed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that has everything loaded forks the runs, so that they are killed at work and not while importing.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *sys.path]))
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # or each run would load pytest
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["loaded_depth"])
    arguments = ["depth", "run", "--quick", "--reps", "10", "--out"]
    disturbed = Store(tmp_path / "disturbed" / "depth-quick")
    rng = np.random.default_rng(1)
    for kill in range(KILLS):
        process = context.Process(target=main, args=([*arguments, str(tmp_path / "disturbed")],))
        # Every third run may be killed before its first unit is there, the others are well under way.
        wanted = len(disturbed.done()) + (int(rng.integers(1, 4)) if kill % 3 else 0)
        process.start()
        while len(disturbed.done()) < wanted and process.is_alive():
            time.sleep(0.002)
        process.join(rng.uniform(0, 0.02))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL, "the run was over before it was killed"
    assert KILLS / 2 <= len(disturbed.done()) < 40
    # A leftover that is sure to be there, cut off in the middle of a row.
    (disturbed.folder / "linear-300-10" / "r0099.csv.1-aa.part").write_text("cell,scenario\nlinear,li")
    assert main([*arguments, str(tmp_path / "disturbed")]) == 0
    assert main([*arguments, str(tmp_path / "quiet")]) == 0
    quiet = Store(tmp_path / "quiet" / "depth-quick")
    assert disturbed.done() == quiet.done()
    assert len(quiet.done()) == 40
    pd.testing.assert_frame_equal(disturbed.read(), quiet.read(), check_exact=True)
