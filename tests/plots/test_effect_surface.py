"""The picture of the effect of two features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

import subgrove as sg
from subgrove.exceptions import ParameterError
from subgrove.plots.effects import effect

from .effects_cases import SEASONS, classes, effect_of, model, table
from .seen import cut_off, legend_texts, overlaps, words


def meshes(ax: Axes) -> list[QuadMesh]:
    return [each for each in ax.collections if isinstance(each, QuadMesh)]


def test_two_numeric_features_are_a_heat_map_with_lines_and_a_bar() -> None:
    ax = effect(effect_of(["temp", "hum"]))
    assert len(meshes(ax)) == 1
    assert any(isinstance(each, QuadContourSet) for each in ax.collections)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("temp", "hum")
    _, bar = ax.figure.figure.axes
    assert bar.get_ylabel() == "mean prediction (PDP)"


def test_colours_are_the_values_of_the_surface() -> None:
    found = effect_of(["temp", "hum"])
    (mesh,) = meshes(effect(found))
    expected = found.curves.pivot(index="x2", columns="x1", values="estimate").to_numpy()
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(expected.shape), expected)


@pytest.mark.parametrize("pair", [["temp", "season"], ["season", "temp"]])
def test_a_numeric_feature_and_one_with_levels_are_a_line_for_each_level(pair: list[str]) -> None:
    found = effect_of(pair)
    ax = effect(found)
    assert legend_texts(ax) == [f"season: {season} (n = 50)" for season in SEASONS]
    assert ax.get_xlabel() == "temp"
    thin = [np.asarray(line.get_xydata()) for line in ax.lines if line.get_linewidth() == 1.1]
    name = {column: f"x{place + 1}" for place, column in enumerate(pair)}
    for season, line in zip(SEASONS, thin, strict=True):
        rows = found.curves[found.curves[name["season"]] == season]
        np.testing.assert_allclose(line[:, 1], np.interp(line[:, 0], rows[name["temp"]], rows["estimate"]))


def test_many_levels_are_a_heat_map() -> None:
    ax = effect(effect_of(["temp", "place"]))
    assert len(meshes(ax)) == 1
    assert overlaps(ax) == []


def test_two_features_with_few_levels_have_their_values_in_the_cells() -> None:
    found = sg.effect(model, few_levels(), ["season", "rain"], subgroups=None)
    shown = words(effect(found))
    assert {f"{value:.0f}" for value in found.curves["estimate"]} <= set(shown)


def few_levels() -> pd.DataFrame:
    return table().assign(rain=pd.Categorical(np.where(np.arange(200) % 3 == 0, "yes", "no")))


def test_outputs_of_surfaces_are_rejected_with_a_remedy() -> None:
    with pytest.raises(ParameterError, match=r"3 surfaces have no room in one axes. plots\.effects"):
        effect(effect_of(["temp", "hum"], model=classes))
    effect(effect_of(["temp", "hum"], model=classes), output=1)


def test_a_flat_surface_is_drawn() -> None:
    ax = effect(effect_of(["temp", "hum"], model=lambda X: np.full(len(X), 7.0)))
    assert len(meshes(ax)) == 1
    assert overlaps(ax) == []


def test_a_constant_feature_is_drawn() -> None:
    ax = effect(effect_of(["temp", "constant"]))
    assert "3" in words(ax)


@pytest.mark.parametrize("pair", [["temp", "hum"], ["temp", "season"], ["season", "place"], ["when", "hum"]])
@pytest.mark.parametrize(
    ("size", "layout"), [((6.4, 4.8), None), ((3.5, 3.2), "constrained"), ((10.0, 4.0), "constrained")]
)
def test_fits_axes_of_many_sizes(pair: list[str], size: tuple[float, float], layout: Any) -> None:
    ax = Figure(figsize=size, layout=layout).add_subplot()
    assert effect(effect_of(pair), ax=ax) is ax
    assert overlaps(ax) == []
    assert cut_off(ax, slack=2.0) == []
