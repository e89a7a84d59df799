"""Pictures of effects side by side."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import QuadMesh

import subgrove as sg
import subgrove.plots
from subgrove.exceptions import ParameterError
from subgrove.plots.effects import effects

from .effects_cases import classes, effect_of, model, table
from .seen import cut_off, legend_texts, overlaps


def test_pdp_and_ale_stand_beside_subgroups_on_the_same_scale() -> None:
    left, right = effects([effect_of("temp"), effect_of("temp", "ale")], effect_of("temp", depth=2))
    assert legend_texts(left)[0] == "PDP"
    assert legend_texts(left)[1].startswith("ALE + ")
    assert len(legend_texts(right)) == len(effect_of("temp", depth=2).lines)
    assert left.get_ylim() == right.get_ylim()
    assert (left.get_ylabel(), right.get_ylabel()) == ("mean prediction", "")
    assert overlaps(left) == []
    assert cut_off(left) == []
    assert plt.get_fignums() == [1]


def test_effects_that_are_not_comparable_have_scales_of_their_own() -> None:
    left, right = effects(effect_of("temp"), effect_of("temp", "ale"))
    assert left.get_ylim() != right.get_ylim()
    assert right.get_ylabel().split() == ["accumulated", "local", "effect", "on", "prediction"]


def test_a_panel_may_be_a_mapping() -> None:
    (ax,) = effects({"here": effect_of("temp"), "there": effect_of("temp", "mplot")})
    assert legend_texts(ax) == ["here", "there"]


def test_outputs_in_subgroups_have_a_panel_each_and_one_legend() -> None:
    axes = effects(effect_of("temp", depth=1, model=classes))
    assert [ax.get_ylabel() for ax in axes] == [f"mean prediction of {k} (PDP)" for k in range(3)]
    assert [len(legend_texts(ax)) for ax in axes] == [2, 0, 0]
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert overlaps(axes[0]) == []


def test_surfaces_in_subgroups_have_a_panel_each_and_one_bar() -> None:
    groups = sg.find_subgroups(table(4)[["temp", "hum", "season"]], features=[["temp", "hum"]], max_depth=1)
    found = sg.effect(model, table(), ["temp", "hum"], subgroups=groups, grid_resolution=5)
    axes = effects(found)
    assert len(axes) == 2
    assert [" ".join(ax.get_title(loc="left").split()) for ax in axes] == found.curves["rule"].unique().tolist()
    assert len(axes[0].figure.figure.axes) == 3
    limits = [each.get_clim() for ax in axes for each in ax.collections if isinstance(each, QuadMesh)]
    assert limits[0] == limits[1]
    assert overlaps(axes[0]) == []
    assert cut_off(axes[0]) == []


def test_panels_are_put_into_rows() -> None:
    axes = effects(*[effect_of(name) for name in ("temp", "hum", "season", "when")])
    tops = [round(ax.get_position().y1, 3) for ax in axes]
    assert len(set(tops[:3])) == 1
    assert tops[3] < tops[0]
    assert len(axes[0].figure.figure.axes) == 4
    assert overlaps(axes[0]) == []


def test_columns_says_how_many_stand_beside_each_other() -> None:
    axes = effects(*[effect_of(name) for name in ("temp", "hum", "wait")], columns=1)
    assert len({round(ax.get_position().x0, 3) for ax in axes}) == 1


def test_nothing_to_draw_is_rejected() -> None:
    with pytest.raises(ParameterError, match="at least one panel"):
        effects()


@pytest.mark.parametrize("wrong", [None, "temp", [], 3])
def test_something_else_than_effects_is_rejected_by_name(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^effect must be an Effect.*; got \w+\.$"):
        effects(wrong)
    assert plt.get_fignums() == []
