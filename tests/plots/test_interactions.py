"""The picture of the strength of interactions."""

from __future__ import annotations

import numpy as np
import pytest

import subgrove as sg
from subgrove._effects.interaction_strength import PairStrength
from subgrove.exceptions import ParameterError
from subgrove.plots.effects import interaction_strength
from subgrove.trees.nodes import ALL_ROWS

from .seen import cut_off, legend_texts, overlaps, row_names


def made(rules: tuple[str, ...] = (ALL_ROWS,), outputs: tuple[int, ...] = (0,)) -> sg.InteractionStrength:
    """A result in which the last pair is the strongest."""
    names = ("temp", "hum"), ("temp", "windspeed"), ("hum", "windspeed")
    pairs = [
        PairStrength(output, number, rule, *pair, 50, 0.1 * at, 10.0 * at + number)
        for output in outputs
        for number, rule in enumerate(rules)
        for at, pair in enumerate(names)
    ]
    return sg.InteractionStrength(tuple(pairs), "prediction", 1, 1, {}, "pandas")


def test_the_strongest_pairs_are_at_the_top() -> None:
    ax = interaction_strength(made(), top=2)
    assert [name.split("\n")[0] for name in row_names(ax)] == ["hum and windspeed", "temp and windspeed"]
    (points,) = [line for line in ax.lines if line.get_marker() not in ("None", "")]
    assert np.asarray(points.get_xdata()).tolist() == [20.0, 10.0]
    assert not overlaps(ax)
    assert not cut_off(ax)


def test_subgroups_and_outputs_have_points_of_their_own() -> None:
    ax = made(("hum <= 50", "hum > 50"), (0, 1)).plot()
    assert legend_texts(ax) == [f"output {k}, {rule}" for k in (0, 1) for rule in ("hum <= 50", "hum > 50")]


def test_other_results_are_rejected() -> None:
    with pytest.raises(ParameterError, match="must be an InteractionStrength"):
        interaction_strength("h")  # type: ignore[arg-type]
