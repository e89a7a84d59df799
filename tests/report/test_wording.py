"""Sentences say what the numbers show, for any numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgrove._report.numbers import alike, with_interval
from subgrove._report.summary import Certificate, Estimate, GapPart, Share, SubgroupSummary
from subgrove._report.wording import (
    certificate_sentence,
    contrast,
    dependence_sentence,
    headline,
    one_step,
    reading,
    subgroup_sentence,
)

CLAIMS_NEED = re.compile(r"(?<!hardly )\bmatters?\b")
BAD = re.compile(r"\bnan\b|None|-0(?![.\d])|\binf\b")
sizes = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-12)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    estimate = draw(sizes)
    error = draw(st.one_of(st.none(), st.just(0.0), st.floats(1e-9, 1e6)))
    if error is None:
        return Estimate(estimate, None, None, None, None, None, "none")
    lean = draw(st.floats(0.5, 2))  # intervals need not have the estimate in their middle
    return Estimate(estimate, error, estimate - 2 * error / lean, estimate + 2 * error * lean, 0.5, 0.0, "test rows")


baselines = st.floats(0, 1e6)


def claims(sentence: str, one: Estimate) -> None:
    """What a sentence may say of an estimate."""
    assert not BAD.search(sentence), sentence
    if CLAIMS_NEED.search(sentence):
        assert one.conf_low is not None
        assert one.conf_low > 0
    if "hardly matters" in sentence or "makes no difference" in sentence or "No need" in sentence:
        assert one.conf_low is not None
        assert one.conf_low <= 0
    if "does better" in sentence:
        assert one.conf_high is not None
        assert one.conf_high < 0


@given(estimates(), estimates(), baselines, st.booleans())
def test_a_headline_claims_what_the_interval_shows(
    one: Estimate, marginal: Estimate, baseline: float, alone: bool
) -> None:
    claims(headline("x", one, marginal, baseline, 0.95, alone), one)


@given(estimates(), baselines, st.integers(1, 5000))
def test_a_subgroup_sentence_claims_what_the_interval_shows(one: Estimate, baseline: float, n: int) -> None:
    sentence = subgroup_sentence("x", "z <= 3", n, one, baseline, 0.95)
    claims(sentence, one)
    assert with_interval(one, 0.95) in sentence or "makes no difference" in sentence
    assert f" {n:,} row{'s' * (n != 1)}" in sentence


@given(estimates(), baselines)
def test_numbers_in_a_sentence_are_the_rounded_numbers_of_the_summary(one: Estimate, baseline: float) -> None:
    sentence = subgroup_sentence("x", "z <= 3", 100, one, baseline, 0.95)
    shown = re.search(r"(?:matters|redrawn|shown|costs):? (\S+) \(95 % interval (\S+) to (\S+)\)", sentence)
    if shown is None:
        return
    assert one.conf_low is not None
    assert one.conf_high is not None
    margin = (one.conf_high - one.conf_low) / 2
    assert list(shown.groups()) == alike([one.estimate, one.conf_low, one.conf_high], margin)
    for text, value in zip(shown.groups(), [one.estimate, one.conf_low, one.conf_high], strict=True):
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.006, abs=0.06 * margin)


@given(st.lists(st.tuples(estimates(), st.integers(0, 60)), min_size=1, max_size=5), baselines)
def test_a_contrast_is_between_a_subgroup_that_matters_and_one_that_does_not(
    parts: list[tuple[Estimate, int]], baseline: float
) -> None:
    groups = [SubgroupSummary(k, f"z = {k}", 9, n, one if n else None, "") for k, (one, n) in enumerate(parts)]
    said = contrast("x", groups, baseline)
    if said is None:
        return
    assert not BAD.search(said)
    most, least = (groups[int(k)] for k in re.findall(r"z = (\d)", said))
    assert reading(most.estimate, baseline) == "matters"
    assert reading(least.estimate, baseline) in ("hardly", "better", "nothing")
    assert most.estimate is not None
    assert least.estimate is not None
    assert most.estimate.estimate > least.estimate.estimate


@given(estimates(), estimates(), st.one_of(st.none(), st.floats(0, 1e6)))
def test_a_gap_in_one_step_tells_shares_only_where_they_are_clear(
    marginal: Estimate, conditional: Estimate, noise: float | None
) -> None:
    step = marginal.estimate - conditional.estimate
    part = GapPart("the other 3 columns", marginal.estimate, conditional.estimate, step, noise)
    told = " ".join(one_step("x", [part], marginal, conditional))
    assert not BAD.search(told)
    if " % of what" in told:
        assert noise is not None
        assert 2 * noise < step <= marginal.estimate


@given(
    st.one_of(st.none(), st.floats(-1, 1)),
    st.lists(st.floats(0.005, 1), max_size=4),
    st.booleans(),
    st.sampled_from([None, "passed", "failed", "unknown"]),
)
def test_dependence_is_told_without_odd_numbers(
    explained: float | None, shares: list[float], misleads: bool, verdict: str | None
) -> None:
    by = [Share(f"c{at}", share) for at, share in enumerate(sorted(shares, reverse=True))]
    certificate = None if verdict is None else Certificate(verdict, 0.5, None, "")
    told = dependence_sentence("x", explained, by, misleads, certificate, "it has one value")
    assert not BAD.search(told)
    assert ("rows that the data do not have" in told) == (misleads and explained is not None)


@pytest.mark.parametrize(
    ("low", "high", "baseline", "word"),
    [
        (1.0, 3.0, 10.0, "matters"),
        (-3.0, -1.0, 10.0, "better"),
        (-0.5, 0.5, 10.0, "hardly"),
        (-0.5, 1.5, 10.0, "unclear"),
        (-0.5, 0.5, 0.0, "unclear"),
        (0.0, 0.0, 10.0, "nothing"),
    ],
)
def test_the_interval_decides_the_word(low: float, high: float, baseline: float, word: str) -> None:
    assert reading(Estimate((low + high) / 2, 0.1, low, high, 0.5, 0.0, "test rows"), baseline) == word


def test_rows_and_certificates_have_their_words() -> None:
    one = Estimate(4.1, 4.5, -4.8, 13.0, 0.2, 0.1, "test rows")
    rule = "season in {SUMMER} and hum > 66"
    assert subgroup_sentence("temp", rule, 40, one, 500.0, 0.95) == (
        "Where season in {SUMMER} and hum > 66, temp hardly matters: 4.1 (95 % interval -4.8 to 13.0), 40 rows."
    )
    assert "take it with care" in subgroup_sentence("temp", rule, 12, one, 500.0, 0.95)
    assert "no test row" in subgroup_sentence("temp", rule, 0, None, 500.0, 0.95)
    single = replace(one, std_error=None, conf_low=None, conf_high=None)
    assert "in 1 row, too few" in subgroup_sentence("temp", rule, 1, single, 500.0, 0.95)
    assert "In all rows" in subgroup_sentence("temp", "all rows", 40, one, 500.0, 0.95)
    failing = Certificate("failed", 0.8, 0.9, "")
    assert "do not pass for real ones: AUC" in certificate_sentence("temp", failing, "AUC 0.80", "redrawn")
    passing = Certificate("passed", None, None, "")
    assert certificate_sentence("temp", passing, "", "shuffled") == "Rows with temp shuffled pass for real ones."


def test_there_is_no_contrast_between_equal_estimates() -> None:
    sure, unsure = (Estimate(1.0, 0.5, low, 3 - low, 0.5, 0.0, "test rows") for low in (0.5, 0.0))
    parts = [SubgroupSummary(at, f"z = {at}", 9, 50, one, "") for at, one in enumerate((sure, unsure))]
    assert [reading(one, 100.0) for one in (sure, unsure)] == ["matters", "hardly"]
    assert contrast("z", parts, 100.0) is None
