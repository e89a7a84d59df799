"""Sentences state what the numbers show, for any numbers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from subgrove._core.text import common_decimals
from subgrove._report.summary import Estimate, FidelitySummary, GapStepSummary, PredictorShare, SubgroupSummary
from subgrove._report.wording import (
    contrast,
    dependence_sentence,
    fidelity_sentence,
    gap_sentences,
    headline,
    highlights,
    reading,
    subgroup_sentence,
    with_interval,
)
from tests.report.hand_made import fidelity, numeric_feature, summary_of

CLAIMS_IMPORTANCE = re.compile(r"\bis important\b|\bhas a small importance\b")
BAD = re.compile(r"\bnan\b|None|-0(?![.\d])|\binf\b")
sizes = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-12)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    estimate = draw(sizes)
    error = draw(st.one_of(st.none(), st.just(0.0), st.floats(1e-9, 1e6)))
    if error is None:
        return Estimate(estimate, None, None, None, None, None, "none")
    skew = draw(st.floats(0.5, 2))  # intervals need not be symmetric
    return Estimate(estimate, error, estimate - 2 * error / skew, estimate + 2 * error * skew, 0.5, 0.0, "test rows")


baselines = st.floats(0, 1e6)


def claims(sentence: str, one: Estimate) -> None:
    """Check what a sentence claims of an estimate."""
    assert not BAD.search(sentence), sentence
    if CLAIMS_IMPORTANCE.search(sentence):
        assert one.conf_low is not None
        assert one.conf_low > 0
    if "adds little" in sentence or "is not used" in sentence or "is uncertain" in sentence:
        assert one.conf_low is not None
        assert one.conf_low <= 0
    if "predicts better" in sentence:
        assert one.conf_high is not None
        assert one.conf_high < 0


@given(estimates(), estimates(), baselines, st.booleans())
def test_a_headline_claims_what_the_interval_shows(
    one: Estimate, marginal: Estimate, baseline: float, independent: bool
) -> None:
    claims(headline("x", one, marginal, baseline, 0.95, independent), one)


@given(estimates(), baselines, st.integers(1, 5000))
def test_a_subgroup_sentence_claims_what_the_interval_shows(one: Estimate, baseline: float, n: int) -> None:
    sentence = subgroup_sentence("x", "z <= 3", n, one, baseline, 0.95)
    claims(sentence, one)
    assert with_interval(one, 0.95) in sentence or "is not used" in sentence
    assert f" {n:,} row{'s' * (n != 1)}" in sentence


@given(estimates(), baselines)
def test_numbers_in_a_sentence_are_the_rounded_numbers_of_the_summary(one: Estimate, baseline: float) -> None:
    sentence = subgroup_sentence("x", "z <= 3", 100, one, baseline, 0.95)
    shown = re.search(
        r"(?:important|importance|resampled|little|uncertain): (\S+) \(95 % interval (\S+) to (\S+)\)", sentence
    )
    if shown is None:
        return
    assert one.conf_low is not None
    assert one.conf_high is not None
    margin = (one.conf_high - one.conf_low) / 2
    assert list(shown.groups()) == common_decimals([one.estimate, one.conf_low, one.conf_high], margin)
    for text, value in zip(shown.groups(), [one.estimate, one.conf_low, one.conf_high], strict=True):
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.006, abs=0.06 * margin)


@given(st.lists(st.tuples(estimates(), st.integers(0, 60)), min_size=1, max_size=5), baselines)
def test_a_contrast_is_between_an_important_and_an_unimportant_subgroup(
    parts: list[tuple[Estimate, int]], baseline: float
) -> None:
    groups = [SubgroupSummary(k, f"z = {k}", 9, n, one if n else None, "") for k, (one, n) in enumerate(parts)]
    sentence = contrast("x", groups, baseline)
    if sentence is None:
        return
    assert not BAD.search(sentence)
    most, least = (groups[int(k)] for k in re.findall(r"z = (\d)", sentence))
    assert reading(most.estimate, baseline) == "important"
    assert reading(least.estimate, baseline) in ("small", "negligible", "negative", "none")
    assert most.estimate is not None
    assert least.estimate is not None
    assert most.estimate.estimate > least.estimate.estimate


@given(estimates(), estimates(), st.one_of(st.none(), st.floats(0, 1e6)))
def test_a_gap_has_a_share_only_where_it_is_significant(
    marginal: Estimate, conditional: Estimate, noise: float | None
) -> None:
    step = marginal.estimate - conditional.estimate
    part = GapStepSummary("the other 3 columns", marginal.estimate, conditional.estimate, step, noise)
    text = " ".join(gap_sentences("x", [part], marginal))
    assert not BAD.search(text)
    if " % of the marginal" in text:
        assert noise is not None
        assert 2 * noise < step <= marginal.estimate


@given(
    st.one_of(st.none(), st.floats(-1, 1)),
    st.lists(st.floats(0.005, 1), max_size=4),
    st.booleans(),
    st.sampled_from([None, "passed", "failed", "unknown"]),
)
def test_dependence_is_described_without_invalid_numbers(
    explained: float | None, shares: list[float], misleads: bool, verdict: str | None
) -> None:
    by = [PredictorShare(f"c{at}", share) for at, share in enumerate(sorted(shares, reverse=True))]
    fidelity = None if verdict is None else FidelitySummary(verdict, 0.5, None, "")
    sentence = dependence_sentence("x", explained, by, misleads, fidelity, "it has one value")
    assert not BAD.search(sentence)
    assert ("unrealistic rows" in sentence) == (misleads and explained is not None)


@pytest.mark.parametrize(
    ("low", "high", "baseline", "word"),
    [
        (1.0, 3.0, 10.0, "important"),
        (1.0, 3.0, 200.0, "important"),
        (1.0, 3.0, 201.0, "small"),
        (1.0, 3.0, 0.0, "important"),
        (-3.0, -1.0, 10.0, "negative"),
        (-0.5, 0.5, 10.0, "negligible"),
        (-0.5, 1.5, 10.0, "uncertain"),
        (-0.5, 0.5, 0.0, "uncertain"),
        (0.0, 0.0, 10.0, "none"),
    ],
)
def test_interval_and_size_decide_the_reading(low: float, high: float, baseline: float, word: str) -> None:
    assert reading(Estimate((low + high) / 2, 0.1, low, high, 0.5, 0.0, "test rows"), baseline) == word


def test_subgroups_and_fidelity_checks_in_words() -> None:
    one = Estimate(4.1, 4.5, -4.8, 13.0, 0.2, 0.1, "test rows")
    rule = "season in {SUMMER} and hum > 66"
    assert subgroup_sentence("temp", rule, 40, one, 500.0, 0.95) == (
        "Where season in {SUMMER} and hum > 66, temp adds little: 4.1 (95 % interval -4.8 to 13.0), 40 rows."
    )
    assert "the interval is rough" in subgroup_sentence("temp", rule, 12, one, 500.0, 0.95)
    assert "no test rows" in subgroup_sentence("temp", rule, 0, None, 500.0, 0.95)
    single = replace(one, std_error=None, conf_low=None, conf_high=None)
    assert "in 1 row, too few" in subgroup_sentence("temp", rule, 1, single, 500.0, 0.95)
    assert "In all rows" in subgroup_sentence("temp", "all rows", 40, one, 500.0, 0.95)
    failed = FidelitySummary("failed", 0.8, 0.9, "")
    assert "fail the fidelity check: AUC" in fidelity_sentence("temp", failed, "AUC 0.80", "resampled")
    passed = FidelitySummary("passed", None, None, "")
    assert fidelity_sentence("temp", passed, "", "shuffled") == "Rows with shuffled temp are realistic."


def test_there_is_no_contrast_between_equal_estimates() -> None:
    significant, other = (Estimate(1.0, 0.5, low, 3 - low, 0.5, 0.0, "test rows") for low in (0.5, 0.0))
    parts = [SubgroupSummary(at, f"z = {at}", 9, 50, one, "") for at, one in enumerate((significant, other))]
    assert [reading(one, 100.0) for one in (significant, other)] == ["important", "negligible"]
    assert contrast("z", parts, 100.0) is None


def test_no_finding_counts_a_feature_whose_resampled_rows_are_unrealistic() -> None:
    reliable, unreliable = numeric_feature("temp"), replace(numeric_feature("hum"), fidelity=fidelity("failed"))
    made = summary_of([reliable, unreliable])
    findings = highlights(made.model, made.data, [reliable, unreliable], made.baseline, "absolute error")
    (counted,) = [sentence for sentence in findings if "important (at least" in sentence]
    assert counted.startswith("1 of 2 features is important")
    assert "hum" not in counted
    assert any("unreliable" in sentence and "hum" in sentence for sentence in findings)
