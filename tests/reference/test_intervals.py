"""Borders of Intervals against the grids of R's iml (0.11.1) for accumulated local effects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from subgrove.samplers.intervals import Intervals

from .cases import FOLDER, frame

HERE = FOLDER.parent / "iml"
pytestmark = pytest.mark.skipif(not HERE.exists(), reason="the outputs of R's iml are not beside the repository")
TABLES = {"bike_effects": "bike_full", "wine_effects": "openml_wine"}


def grids(name: str) -> list[dict[str, Any]]:
    """Effects of numeric columns."""
    effects = json.loads((HERE / f"{name}.json").read_text())["effects"]
    return [one for one in effects if one["method"] == "ale" and not isinstance(one["grid"][0], str)]


@pytest.mark.parametrize("name", TABLES)
def test_borders_are_the_grid_of_iml(name: str) -> None:
    assert len(grids(name)) >= 6
    for effect in grids(name):
        column = frame(TABLES[name])[[effect["feature"]]].astype(float)
        borders = Intervals(effect["grid_size"]).fit(column).borders[effect["feature"]]
        assert borders.tolist() == pytest.approx(effect["grid"], rel=1e-12)
