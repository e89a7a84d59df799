"""Without PyTorch everything else works, and what needs it says how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError


def test_what_needs_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ParameterError, match=r"pip install 'subgrove\[torch\]'"):
        sg.DeviceModel(lambda X: X)


def test_it_is_not_imported_unless_it_is_needed() -> None:
    code = (
        "import sys, numpy as np, subgrove as sg\n"
        "X, y = np.eye(9), np.ones(9)\n"
        "sg.importance(lambda X: X[:, 0], X, y, sampler='marginal', n_repeats=1, check_fidelity=False)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
