"""The picture of data fidelity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from subgrove import Fidelity
from subgrove.exceptions import ParameterError
from subgrove.plots.fidelity import fidelity

from .seen import cut_off, legend_texts, overlaps, row_names, words

SAMPLERS = ("unchanged", "subgroups", "knockoffs", "marginal")


def made(
    features: tuple[str, ...] = ("temp", "hum", "wind"), samplers: tuple[str, ...] = SAMPLERS, **more: Any
) -> Fidelity:
    """A result in which the second feature has the longest bar."""
    rng = np.random.default_rng(0)
    low = 5.0 - 0.3 * (np.arange(len(features)) % 2)
    place = np.linspace(1, 0, len(samplers))
    values = low[:, None, None] + (6 - low)[:, None, None] * place[None, :, None]
    values = values + 0.02 * rng.normal(size=(*values.shape[:2], 4))
    given: dict[str, Any] = {"auc": None, "notes": {}, "n": 100, "n_reference": 90, "settings": {"n_repeats": 4}}
    return Fidelity(features, samplers, np.exp(-values), **{**given, **more})


def points(ax: Axes) -> dict[str, list[float]]:
    """Where the points of each sampler are."""
    drawn = [line for line in ax.lines if line.get_marker() not in ("None", "")]
    return {str(line.get_label()): np.asarray(line.get_xdata()).tolist() for line in drawn}


def bars(ax: Axes) -> list[list[float]]:
    return [np.asarray(line.get_xdata()).tolist() for line in ax.lines if line.get_linewidth() == 5]


def test_features_with_the_longest_bars_are_at_the_top() -> None:
    ax = fidelity(made())
    assert row_names(ax)[0] == "hum"
    lengths = [high - low for low, high in bars(ax)]
    assert lengths == sorted(lengths, reverse=True)


def test_points_and_bars_are_those_of_the_table() -> None:
    result = made()
    ax = fidelity(result)
    table = result.table.set_index(["sampler", "feature"])["estimate"]
    names = row_names(ax)
    assert points(ax)["subgroups"] == pytest.approx([table["subgroups", name] for name in names])
    expected = [[table["marginal", name], table["unchanged", name]] for name in names]
    np.testing.assert_allclose(bars(ax), expected)


def test_the_legend_names_the_bounds_and_the_samplers() -> None:
    assert legend_texts(fidelity(made())) == ["from marginal to unchanged", "subgroups", "knockoffs"]


def test_all_that_is_drawn_is_seen_and_zero_is_not() -> None:
    ax = fidelity(made())
    low, high = ax.get_xlim()
    assert low > 0
    values = [value for row in (*points(ax).values(), *bars(ax)) for value in row]
    assert low < min(values) < max(values) < high


def test_a_failed_sampler_has_no_point_and_a_note() -> None:
    result = made(notes={("hum", "knockoffs"): "why"})
    squared = result.squared_mmd.copy()
    squared[1, 2] = np.nan
    ax = fidelity(Fidelity(result.features, SAMPLERS, squared, None, result.notes, 100, 90, {"n_repeats": 4}))
    assert np.isnan(points(ax)["knockoffs"]).tolist() == [True, False, False]
    assert any("1 without a point" in text for text in words(ax))


def test_the_note_says_how_many_rows_and_which_noise() -> None:
    (text,) = [text for text in words(fidelity(made())) if "resampled rows" in text]
    assert text.startswith("100 resampled rows against 90; lines: two standard errors")


def test_top_keeps_the_longest_bars_and_the_note_has_the_number_of_others() -> None:
    ax = fidelity(made(), top=1)
    assert row_names(ax) == ["hum"]
    assert any("2 features with shorter bars left out" in text for text in words(ax))


def test_bounds_alone_can_be_drawn() -> None:
    ax = fidelity(made(samplers=("unchanged", "marginal")))
    assert len(bars(ax)) == 3
    assert legend_texts(ax) == ["from marginal to unchanged"]


@pytest.mark.parametrize("n", [1, 3, 30])
def test_no_text_touches_another_or_leaves_the_figure(n: int) -> None:
    features = tuple(f"a feature with a rather long name, number {k}" for k in range(n))
    ax = fidelity(made(features, ("unchanged", *(f"sampler {k}" for k in range(6)), "marginal")))
    assert overlaps(ax) == []
    assert cut_off(ax) == []


def test_axes_of_the_user_are_drawn_on() -> None:
    _, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    assert fidelity(made(), ax=left) is left
    assert not right.lines


@pytest.mark.parametrize(
    ("result", "more", "message"),
    [
        ("temp", {}, "result must be what fidelity returned; got str"),
        (made(), {"ax": 3}, "ax must be matplotlib Axes"),
        (made(), {"top": 0}, "top"),
    ],
)
def test_what_cannot_be_drawn_is_rejected(result: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fidelity(result, **more)
