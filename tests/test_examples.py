"""Examples run, and pages that show their code show what is run."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_own_sampler_of_the_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "own_sampler.py")], capture_output=True, text=True, check=True
    )
    assert "temp" in done.stdout


@pytest.mark.parametrize("name", ["Nearest", "FittedNearest"])
def test_the_page_on_samplers_shows_the_code_of_the_example(name: str) -> None:
    source = (ROOT / "examples" / "own_sampler.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "add_a_sampler.md").read_text(encoding="utf-8")
    start = source.index(f"class {name}")
    end = min(at for at in (source.find("\n\n\n", start), len(source)) if at > 0)
    assert source[start:end].strip() in page


def test_own_sampler_conditions_on_what_it_says() -> None:
    """Redrawn temperatures of humid days come from humid days: nearest in humidity."""
    import numpy as np

    import subgrove as sg

    Nearest = runpy.run_path(str(ROOT / "examples" / "own_sampler.py"))["Nearest"]
    X = sg.datasets.bike().X
    fitted = Nearest(by="hum").fit(X, ["hum"])
    (redrawn,) = fitted.redraw(X, "hum", [np.random.default_rng(1)])
    assert np.corrcoef(redrawn, X["hum"])[0, 1] > 0.95
