"""Sentences state what the numbers show, for any numbers."""

from __future__ import annotations

import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from subgrove._core.text import common_decimals
from subgrove._importance.explanation import finding_of
from subgrove._report.findings import highlights
from subgrove._report.summary import (
    DependenceSummary,
    Estimate,
    FidelitySummary,
    GapStepSummary,
    PredictorShare,
    SubgroupSummary,
)
from subgrove._report.svg import shorten, width_of
from subgrove._report.wording import (
    contrast,
    dependence_sentence,
    fidelity_sentence,
    gap_sentences,
    headline,
    subgroup_sentence,
    with_interval,
)
from tests.report.hand_made import fidelity, numeric_feature, summary_of

CLAIMS_IMPORTANCE = re.compile(r"\bis important\b|\bhas a small importance\b")
BAD = re.compile(r"\bnan\b|None|-0(?![.\d])|\binf\b")
sizes = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-12)
p_values = st.sampled_from([0.0, 0.001, 0.049, 0.051, 0.5, 1.0])
BASELINE = 100.0


def with_finding(
    value: float,
    error: float | None,
    low: float | None,
    high: float | None,
    p: float = 0.001,
    unrealistic: bool = False,
) -> Estimate:
    line = {"estimate": value, "conf_low": low, "conf_high": high, "p_holm": p}
    known = {name: float("nan") if number is None else number for name, number in line.items()}
    finding = finding_of(known, BASELINE, 0.95, unrealistic=unrealistic)
    return Estimate(value, error, low, high, p, 0.0, "test rows", finding)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    value, p, unrealistic = draw(sizes), draw(p_values), draw(st.booleans())
    error = draw(st.one_of(st.none(), st.just(0.0), st.floats(1e-9, 1e6)))
    if error is None:
        return with_finding(value, None, None, None, p, unrealistic)
    skew = draw(st.floats(0.5, 2))  # intervals need not be symmetric
    return with_finding(value, error, value - 2 * error / skew, value + 2 * error * skew, p, unrealistic)


def claims(sentence: str, one: Estimate) -> None:
    """Check what a sentence claims of an estimate; its p_value stands for the adjusted one here."""
    assert not BAD.search(sentence), sentence
    if CLAIMS_IMPORTANCE.search(sentence):
        assert one.conf_low is not None
        assert one.conf_low > 0
        assert one.p_value is not None
        assert one.p_value <= 0.05
        assert one.finding != "unreliable"
        assert ("is important" in sentence) == (one.estimate >= 0.01 * BASELINE)
    if "adds little" in sentence or "is not used" in sentence or "is uncertain" in sentence:
        assert one.conf_low is not None
        assert one.conf_low <= 0
    if "predicts better" in sentence:
        assert one.conf_high is not None
        assert one.conf_high < 0


@given(estimates(), estimates(), st.booleans())
def test_a_headline_claims_what_the_evidence_shows(one: Estimate, marginal: Estimate, independent: bool) -> None:
    claims(headline("x", one, marginal, 0.95, independent, "1 % of the gain"), one)


@given(estimates(), st.integers(1, 5000))
def test_a_subgroup_sentence_claims_what_the_evidence_shows(one: Estimate, n: int) -> None:
    sentence = subgroup_sentence("x", "z <= 3", n, one, 0.95)
    claims(sentence, one)
    assert with_interval(one, 0.95) in sentence or "is not used" in sentence
    assert f" {n:,} row{'s' * (n != 1)}" in sentence


@given(estimates())
def test_numbers_in_a_sentence_are_the_rounded_numbers_of_the_summary(one: Estimate) -> None:
    sentence = subgroup_sentence("x", "z <= 3", 100, one, 0.95)
    shown = re.search(
        r"(?:important|importance|resampled|little|uncertain|subgroups): (\S+) \(95 % interval (\S+) to (\S+)\)",
        sentence,
    )
    if shown is None:
        return
    assert one.conf_low is not None
    assert one.conf_high is not None
    margin = (one.conf_high - one.conf_low) / 2
    assert list(shown.groups()) == common_decimals([one.estimate, one.conf_low, one.conf_high], margin)
    for text, value in zip(shown.groups(), [one.estimate, one.conf_low, one.conf_high], strict=True):
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.006, abs=0.06 * margin)


@given(st.lists(st.tuples(estimates(), st.integers(0, 60)), min_size=1, max_size=5))
def test_a_contrast_is_between_subgroups_that_differ_significantly(parts: list[tuple[Estimate, int]]) -> None:
    groups = [SubgroupSummary(k, f"z = {k}", 9, n, one if n else None, "") for k, (one, n) in enumerate(parts)]
    sentence = contrast("x", groups, 0.95)
    if sentence is None:
        return
    assert not BAD.search(sentence)
    most, least = (groups[int(k)].estimate for k in re.findall(r"z = (\d)", sentence))
    assert most is not None
    assert least is not None
    assert most.finding == "important"
    assert least.finding not in ("unreliable", "unknown")
    assert most.estimate - least.estimate > 1.95 * math.hypot(most.std_error or 0, least.std_error or 0)


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
    one = DependenceSummary("x", explained, tuple(by), misleads, "")
    sentence = dependence_sentence(one, fidelity, "it has one value")
    assert not BAD.search(sentence)
    assert ("unrealistic rows" in sentence) == (misleads and explained is not None)


def test_subgroups_and_fidelity_checks_in_words() -> None:
    one = Estimate(4.1, 4.5, -4.8, 13.0, 0.2, 0.1, "test rows", "negligible")
    rule = "season in {SUMMER} and hum > 66"
    assert subgroup_sentence("temp", rule, 40, one, 0.95) == (
        "Where season in {SUMMER} and hum > 66, temp adds little: 4.1 (95 % interval -4.8 to 13.0), 40 rows."
    )
    assert "no test rows" in subgroup_sentence("temp", rule, 0, None, 0.95)
    single = replace(one, std_error=None, conf_low=None, conf_high=None, finding="unknown")
    assert "in 1 row, without" in subgroup_sentence("temp", rule, 1, single, 0.95)
    assert "In all rows" in subgroup_sentence("temp", "all rows", 40, one, 0.95)
    failed = FidelitySummary("failed", 0.8, 0.9, "")
    assert "fail the fidelity check: AUC" in fidelity_sentence("temp", failed, "AUC 0.80", "resampled")
    passed = FidelitySummary("passed", None, None, "")
    assert fidelity_sentence("temp", passed, "", "shuffled") == "Rows with shuffled temp are realistic."


def test_there_is_no_contrast_between_estimates_within_noise() -> None:
    significant, other = with_finding(4.0, 1.0, 2.0, 6.0), with_finding(2.0, 1.2, -0.4, 4.4, 0.1)
    parts = [SubgroupSummary(at, f"z = {at}", 9, 50, one, "") for at, one in enumerate((significant, other))]
    assert [one.finding for one in (significant, other)] == ["important", "negligible"]
    assert contrast("z", parts, 0.95) is None
    none = SubgroupSummary(2, "z = 2", 9, 50, with_finding(0.0, 0.1, -0.2, 0.2, 0.5), "")
    assert contrast("z", [*parts, none], 0.95) == (
        "z is most important where z = 0: 4 (2 to 6). Where z = 2, its importance is 0.00 (-0.20 to 0.20)."
    )


def test_no_finding_counts_a_feature_whose_resampled_rows_are_unrealistic() -> None:
    reliable, unreliable = numeric_feature("temp"), numeric_feature("hum")
    conditional = replace(unreliable.conditional, finding="unreliable")
    unreliable = replace(unreliable, fidelity=fidelity("failed"), conditional=conditional)
    findings = highlights(replace(summary_of([reliable, unreliable]), groups=()))
    (counted,) = [sentence for sentence in findings if "important (at least" in sentence]
    assert counted.startswith("Of 2 features, 1 is important")
    assert "hum" not in counted
    assert not any(re.search(r"hum (raises|is most|shares)", sentence) for sentence in findings)
    assert findings[-1] == "The conditional importance of hum is unreliable: resampled rows fail the fidelity check."


def test_a_name_of_a_million_letters_is_shortened_at_once() -> None:
    start = time.process_time()
    short = shorten("n" * 1_000_000, 100.0, 12.0)
    assert time.process_time() - start < 5  # seconds; letter by letter from the end it took days
    assert short.endswith("…")
    assert width_of(short, 12.0) <= 100 < width_of("n" + short, 12.0)
