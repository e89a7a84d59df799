"""Without matplotlib everything but plots works, and a plot names the line that installs it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

import subgrove as sg


@pytest.mark.parametrize("name", sg.plots.__all__)
def test_plot_without_matplotlib_names_the_line_that_installs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(package: str, *rest: Any) -> Any:
        return None if package == "matplotlib" else find_spec(package, *rest)

    monkeypatch.setattr("subgrove.plots._figure.find_spec", without)
    n_positional = {"subgroup_importance": 2}.get(name, 1)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'subgrove\[plot\]'"):
        getattr(sg.plots, name)(*[None] * n_positional)
