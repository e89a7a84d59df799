"""Sentences of a gap are correct when it is 0, negative, within noise, or larger than the importance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import subgrove as sg


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
    explained = gap(1234.0, {"season": (753.0, 5.0), "hum": (234.0, 5.0)})
    assert explained.sentences == (
        "Shuffling temp increases the absolute error by 1,234, and by 247 once season and hum are held fixed.",
        "61 % of the 1,234 is shared with season; 19 % with hum.",
        "20 % remains for temp alone, given its subgroups.",
    )
    assert str(explained) == " ".join(explained.sentences)
    assert explained.steps["share"].sum() + explained.conditional / explained.marginal == pytest.approx(1)


def test_steps_within_noise_are_named_together() -> None:
    explained = gap(100.0, {"season": (60.0, 5.0), "hum": (3.0, 5.0), "wind": (-2.0, 5.0), "yr": (10.0, 2.0)})
    assert explained.sentences[1] == (
        "60 % of the 100 is shared with season; hum and wind share nothing significant (1 % together); 10 % with yr."
    )


def test_a_first_step_within_noise_is_named_first() -> None:
    explained = gap(100.0, {"hum": (3.0, 5.0), "season": (60.0, 5.0)})
    assert explained.sentences[1] == "hum shares nothing significant (3 %); 60 % of the 100 is shared with season."


def test_all_importance_may_be_shared() -> None:
    explained = gap(100.0, {"season": (100.2, 1.0)}, noise=1.0)
    assert explained.sentences[1:] == (
        "All of the 100 is shared with season.",
        "No significant importance remains for temp alone.",
    )


def test_a_gap_within_noise_is_stated() -> None:
    explained = gap(100.0, {"season": (10.0, 6.0)}, noise=6.0)
    assert explained.sentences[1:] == (
        "The importance is 90.0 once season is held fixed: the difference of 10.0 is within noise (standard error "
        "6.00), so there is no evidence that temp shares importance with other columns.",
    )


def test_a_negative_importance_is_named() -> None:
    explained = gap(-2.0, {"season": (1.0, 6.0)}, noise=6.0)
    assert explained.sentences[1].startswith("The importance is below 0 (-3.00) once season is held fixed: the diff")
    worse = gap(-20.0, {"season": (-15.0, 1.0)})
    assert worse.sentences[1:] == (
        "The importance is below 0 (-5.00) once season is held fixed, 15.0 more.",
        "With season held fixed, it is 15.0 more.",
    )


def test_noise_of_draws_counts_too() -> None:
    part = sg.GapStep("season", 100.0, 90.0, 10.0, 1.0, 6.0)
    pair = (1.0, 6.0)
    explained = sg.Gap("temp", "absolute_error", 100.0, 90.0, (part,), pair, pair, pair)
    assert "is within noise" in explained.sentences[1]


def test_a_negative_gap_is_stated_in_amounts() -> None:
    explained = gap(100.0, {"season": (-50.0, 5.0), "hum": (10.0, 2.0)}, noise=5.0)
    assert explained.sentences[1:] == (
        "The importance is 140 once season and hum are held fixed, 40.0 more: shuffling understates temp.",
        "With season held fixed, it is 50.0 more; with hum held fixed as well, it is 10.0 less.",
    )


def test_shares_that_would_be_nonsense_are_amounts() -> None:
    down_and_up = gap(100.0, {"season": (120.0, 5.0), "hum": (-70.0, 5.0)})
    assert "%" not in str(down_and_up)
    assert down_and_up.sentences[1:] == (
        "With season held fixed, it is 120 less; with hum held fixed as well, it is 70.0 more.",
        "50.0 remains.",
    )
    below = gap(100.0, {"season": (150.0, 5.0)})
    assert below.sentences[-1] == "Nothing remains: with all of them held fixed, the absolute error decreases by 50.0."


def test_a_marginal_importance_within_noise_or_below_0() -> None:
    assert gap(1.5, {}).sentences[0] == (
        "Shuffling temp increases the absolute error by 1.50, which is within noise (standard error 1.00)."
    )
    assert gap(-5.0, {}).sentences[0] == "Shuffling temp decreases the absolute error by 5.00."
    assert "%" not in str(gap(-5.0, {"season": (20.0, 1.0)}))
    assert np.isnan(gap(-5.0, {"season": (20.0, 1.0)}).steps["share"]).all()


def test_no_column_at_all() -> None:
    assert gap(100.0, {}).sentences[1:] == (
        "The tree of temp has no split: no column is significantly associated with it.",
    )
    assert gap(0.0, {}, noise=0.0).sentences[0] == "Shuffling temp does not change the absolute error."
    assert gap(0.0, {"season": (0.0, 0.0)}, noise=0.0).sentences[1] == "Nor does it once season is held fixed."


def test_orders_are_named() -> None:
    explained = gap(100.0, {"season": (50.0, 5.0), "hum": (20.0, 5.0), "wind": (1.0, 5.0)}, orders="all orders")
    assert explained.sentences[1] == (
        "Averaged over all orders of the columns, 50 % of the 100 is shared with season; 20 % with hum; "
        "wind shares nothing significant (1 %)."
    )


def test_samplers_without_trees_do_not_mention_subgroups() -> None:
    explained = gap(100.0, {"season": (50.0, 5.0), "the other 3 columns": (20.0, 5.0)}, kind="sampler")
    assert explained.sentences[1] == "50 % of the 100 is shared with season; 20 % with the other 3 columns."
    assert explained.sentences[2] == "30 % remains for temp alone, given the columns that the sampler conditions on."
    alone = gap(100.0, {"the other 8 columns": (50.0, 5.0)}, kind="sampler")
    assert alone.sentences[1] == "50 % of the 100 is shared with the other 8 columns."


def test_a_score_states_that_noise_of_test_rows_is_not_known() -> None:
    explained = gap(0.5, {"season": (0.2, np.nan)}, noise=np.nan, per_row=False)
    assert explained.sentences[-1].endswith("only its Monte Carlo error is known.")
    assert "40 %" in str(explained)


def test_the_text_of_a_gap_lists_ends_and_steps() -> None:
    lines = repr(gap(100.0, {"season": (60.0, 5.0)})).splitlines()
    assert lines[0] == "<Gap of 'temp': absolute_error>"
    assert [line.split()[0] for line in lines[1:]] == ["marginal", "-", "conditional"]
