"""Sentences of a gap stay true: when it is nothing, negative, within noise, or more than all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove._importance.gap.words import listed, number, percent


def gap(marginal: float, steps: dict[str, tuple[float, float]], noise: float = 1.0, **more: Any) -> sg.Gap:
    """A gap with steps (size, standard error); its own standard errors are `noise`."""
    parts, before = [], marginal
    for name, (step, error) in steps.items():
        parts.append(sg.GapStep(name, before, before - step, step, error, 0.0))
        before -= step
    pair = (noise, 0.0)
    kind = more.pop("kind", "trees" if steps else "no split")
    return sg.Gap("temp", "absolute_error", marginal, before, tuple(parts), pair, pair, pair, kind=kind, **more)


def test_shares_of_the_marginal_importance() -> None:
    told = gap(1234.0, {"season": (753.0, 5.0), "hum": (234.0, 5.0)})
    assert told.sentences == (
        "Shuffled alone, temp costs 1,234 (absolute error).",
        "season already tells 61 % of that; hum tells another 19 %.",
        "20 % is what temp alone knows, as far as its subgroups can tell.",
    )
    assert str(told) == " ".join(told.sentences)
    assert told.steps["share"].sum() + told.conditional / told.marginal == pytest.approx(1)


def test_steps_within_noise_are_named_together() -> None:
    told = gap(100.0, {"season": (60.0, 5.0), "hum": (3.0, 5.0), "wind": (-2.0, 5.0), "yr": (10.0, 2.0)})
    assert told.sentences[1] == (
        "season already tells 60 % of that; hum and wind tell nothing more that is clear of noise (1 % together); "
        "yr tells another 10 %."
    )


def test_a_first_step_within_noise_is_not_called_more() -> None:
    told = gap(100.0, {"hum": (3.0, 5.0), "season": (60.0, 5.0)})
    assert told.sentences[1].startswith(
        "hum tells nothing that is clear of noise (3 %); season already tells 60 % of that"
    )


def test_everything_is_told_by_others() -> None:
    told = gap(100.0, {"season": (100.2, 1.0)}, noise=1.0)
    assert told.sentences[1:] == (
        "season already tells all of that.",
        "Nothing that is clear of noise is left for temp alone.",
    )


def test_noise_larger_than_the_gap_is_said() -> None:
    told = gap(100.0, {"season": (10.0, 6.0)}, noise=6.0)
    assert told.sentences[1:] == (
        "Given season, it costs 90: the difference of 10 is no more than noise (standard error 6), so it cannot be "
        "said that other columns tell any of what temp tells.",
    )


def test_costs_are_never_below_nothing() -> None:
    told = gap(-2.0, {"season": (1.0, 6.0)}, noise=6.0)
    assert told.sentences[1].startswith(
        "Given season, it costs nothing (the absolute error gets better by 3): the diff"
    )
    worse = gap(-20.0, {"season": (-15.0, 1.0)})
    assert worse.sentences[1:] == (
        "Given season, it costs nothing (the absolute error gets better by 5), which is 15 more.",
        "Given season, it costs 15 more.",
    )


def test_noise_of_draws_counts_too() -> None:
    part = sg.GapStep("season", 100.0, 90.0, 10.0, 1.0, 6.0)
    pair = (1.0, 6.0)
    told = sg.Gap("temp", "absolute_error", 100.0, 90.0, (part,), pair, pair, pair)
    assert "no more than noise" in told.sentences[1]


def test_a_negative_gap_is_told_in_amounts() -> None:
    told = gap(100.0, {"season": (-50.0, 5.0), "hum": (10.0, 2.0)}, noise=5.0)
    assert told.sentences[1:] == (
        "Given season and hum, it costs 140, which is 40 more: held to what other columns say, temp matters more to "
        "the model, not less.",
        "Given season, it costs 50 more; given hum too, it costs 10 less.",
    )


def test_shares_that_would_be_nonsense_are_amounts() -> None:
    down_and_up = gap(100.0, {"season": (120.0, 5.0), "hum": (-70.0, 5.0)})
    assert "%" not in str(down_and_up)
    assert down_and_up.sentences[1:] == (
        "Given season, it costs 120 less; given hum too, it costs 70 more.",
        "What is left is 50.",
    )
    below = gap(100.0, {"season": (150.0, 5.0)})
    assert below.sentences[-1] == "Nothing is left: given all of them, the absolute error gets better by 50."


def test_a_marginal_importance_within_noise_or_below_nothing() -> None:
    assert gap(1.5, {}).sentences[0] == (
        "Shuffled alone, temp costs 1.5 (absolute error), which is within noise (standard error 1)."
    )
    assert gap(-5.0, {}).sentences[0] == ("Shuffled alone, temp costs nothing: the absolute error gets better by 5.")
    assert "%" not in str(gap(-5.0, {"season": (20.0, 1.0)}))
    assert np.isnan(gap(-5.0, {"season": (20.0, 1.0)}).steps["share"]).all()


def test_no_column_at_all() -> None:
    assert gap(100.0, {}).sentences[1:] == (
        "Its tree has no split: no column tells anything about temp, as far as the tree can see.",
    )
    assert gap(0.0, {}, noise=0.0).sentences[0] == "Shuffled alone, temp costs nothing (absolute error)."
    assert gap(0.0, {"season": (0.0, 0.0)}, noise=0.0).sentences[1] == "Given season, it costs nothing either."


def test_orders_are_named_and_no_column_is_before_another() -> None:
    told = gap(100.0, {"season": (50.0, 5.0), "hum": (20.0, 5.0), "wind": (1.0, 5.0)}, orders="all orders")
    assert told.sentences[1] == (
        "Averaged over all orders of the columns, season tells 50 % of that; hum tells 20 % of that; "
        "wind tells nothing that is clear of noise (1 %)."
    )


def test_samplers_without_trees_do_not_speak_of_subgroups() -> None:
    told = gap(100.0, {"season": (50.0, 5.0), "the other 3 columns": (20.0, 5.0)}, kind="sampler")
    assert told.sentences[1] == "season already tells 50 % of that; the other 3 columns tell another 20 %."
    assert told.sentences[2] == "30 % is what temp alone knows, as far as the sampler can tell."
    alone = gap(100.0, {"the other 8 columns": (50.0, 5.0)}, kind="sampler")
    assert alone.sentences[1] == "The other 8 columns already tell 50 % of that."


def test_a_score_says_that_noise_of_test_rows_is_not_known() -> None:
    told = gap(0.5, {"season": (0.2, np.nan)}, noise=np.nan, per_row=False)
    assert told.sentences[-1].endswith("of its noise, only that of the draws is known.")
    assert "40 %" in str(told)


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.0, "0"), (1234.4, "1,234"), (-1234.4, "-1,234"), (99.96, "100"), (0.012345, "0.0123"), (2.5e12, "2.50e+12")],
)
def test_numbers_are_readable(value: float, text: str) -> None:
    assert number(value) == text


def test_percents_and_lists_are_readable() -> None:
    shown = [percent(share) for share in (-0.001, 0.0, 0.001, 0.006, 0.614, -0.06)]
    assert shown == ["0 %", "0 %", "less than 1 %", "1 %", "61 %", "-6 %"]
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_the_text_of_a_gap_lists_ends_and_steps() -> None:
    lines = repr(gap(100.0, {"season": (60.0, 5.0)})).splitlines()
    assert lines[0] == "<Gap of 'temp': absolute_error>"
    assert [line.split()[0] for line in lines[1:]] == ["marginal", "-", "conditional"]
