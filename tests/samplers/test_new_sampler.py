"""A new sampler is one new file in `subgrove/samplers` and one line that imports it."""

from __future__ import annotations

import gc
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove.samplers.fit import samplers_by_name

PAGE = Path(__file__).parents[2] / "docs" / "add_a_sampler.md"
BIKE = sg.datasets.bike()
X, Y = BIKE.X.head(60), np.asarray(BIKE.y)[:60]


def model(X: Any) -> Any:
    return 2000 + 100 * X["temp"] - 10 * X["hum"]


@pytest.fixture
def new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Put the file of the page into the package; return the name of its module."""
    (source,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "Reversal" in block)
    (tmp_path / "reversal.py").write_text(source)
    monkeypatch.setattr(sg.samplers, "__path__", [*sg.samplers.__path__, str(tmp_path)])
    yield "subgrove.samplers.reversal"
    sys.modules.pop("subgrove.samplers.reversal", None)
    vars(sg.samplers).pop("reversal", None)
    gc.collect()  # a class that nobody refers to is no longer a known sampler


def test_new_sampler_is_one_file_and_one_import(new_file: str) -> None:
    with pytest.raises(sg.exceptions.ParameterError, match="'reversal' is not a sampler"):
        sg.importance(model, X, Y, sampler="reversal")
    importlib.import_module(new_file)
    imp = sg.importance(
        model, X, Y, sampler="reversal", features=["temp"], loss="squared_error", n_repeats=2, random_state=0
    )
    reversed_rows = X.assign(temp=X["temp"].to_numpy()[::-1])
    increase = np.mean((Y - model(reversed_rows)) ** 2 - (Y - model(X)) ** 2)
    assert imp.overall["estimate"][0] == pytest.approx(increase)
    assert imp.settings["sampler"] == "reversal"


def test_first_sampler_of_a_name_is_the_one_that_is_known() -> None:
    class Other(sg.samplers.Sampler):
        name = "marginal"

    assert Other in sg.samplers.Sampler.__subclasses__()
    assert samplers_by_name()["marginal"] is sg.samplers.Marginal
