"""One rule decides what is concluded: no sentence goes beyond interval, adjusted p-value, size and fidelity check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import subgrove as sg
from subgrove._importance.explanation import differs, finding_of, overall_findings
from subgrove._report.features import estimate_of
from subgrove._report.wording import headline

LEVEL = 0.95
numbers = st.floats(-1e3, 1e3)


@pytest.mark.parametrize(
    ("low", "high", "p_holm", "baseline", "finding"),
    [
        (1.0, 3.0, 0.01, 10.0, "important"),
        (1.0, 3.0, 0.05, 10.0, "important"),
        (1.0, 3.0, 0.01, 200.0, "important"),
        (1.0, 3.0, 0.01, 201.0, "small"),
        (1.0, 3.0, 0.01, 0.0, "important"),
        (1.0, 3.0, 0.06, 10.0, "suggestive"),
        (1.0, 3.0, float("nan"), 10.0, "suggestive"),
        (-3.0, -1.0, 1.0, 10.0, "negative"),
        (-0.5, 0.5, 1.0, 10.0, "negligible"),
        (-0.5, 1.5, 0.2, 10.0, "uncertain"),
        (-0.5, 0.5, 0.2, 0.0, "uncertain"),
        (0.0, 0.0, 1.0, 10.0, "none"),
        (float("nan"), float("nan"), 0.01, 10.0, "unknown"),
    ],
)
def test_interval_adjusted_p_value_and_size_decide(
    low: float, high: float, p_holm: float, baseline: float, finding: str
) -> None:
    line = {"estimate": (low + high) / 2, "conf_low": low, "conf_high": high, "p_holm": p_holm}
    assert finding_of(line, baseline, LEVEL) == finding
    failed = finding_of(line, baseline, LEVEL, unrealistic=True)
    assert failed == ("none" if finding == "none" else "unreliable")


@given(numbers, numbers, numbers, st.floats(0, 1), st.floats(0, 1e3), st.booleans(), st.sampled_from(["", "skewed"]))
def test_important_needs_all_the_evidence(
    a: float, b: float, c: float, p: float, baseline: float, unrealistic: bool, reliable: str
) -> None:
    low, estimate, high = sorted((a, b, c))
    line = {"estimate": estimate, "conf_low": low, "conf_high": high, "p_holm": p, "reliable": reliable}
    every = low > 0 and p <= 0.05 and estimate >= 0.01 * baseline and not unrealistic and not reliable
    assert (finding_of(line, baseline, LEVEL, unrealistic=unrealistic) == "important") == every


@pytest.fixture(scope="module")
def imp() -> sg.ImportanceResult:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(400, 6)), columns=list("abcdef"))
    y = X["a"] + 0.12 * X["b"] + 0.3 * rng.normal(size=400)

    def model(X: Any) -> Any:
        return X["a"] + 0.12 * X["b"] + 0.02 * X["c"]

    return sg.importance(model, X[200:], y[200:], train=X[:200], random_state=1)


@given(
    st.floats(-3, 3),
    st.floats(0.01, 3),
    st.sampled_from(["passed", "small difference", "failed", "unknown"]),
)
def test_explain_and_report_conclude_the_same_for_any_numbers(
    imp: sg.ImportanceResult, shift: float, spread: float, verdict: Any
) -> None:
    score = imp.scores[0]
    assert score.fidelity_check is not None
    changed = replace(
        score,
        overall=score.overall * 0 + shift,
        influence=score.influence * spread,
        fidelity_check=replace(score.fidelity_check, verdict=verdict),
    )
    result = replace(imp, scores=(changed, *imp.scores[1:]))
    line, finding = overall_findings(result, 0)[score.title]
    text = str(result.explain(score.title))
    title = headline(
        score.title, estimate_of(line, finding), estimate_of(line, finding), LEVEL, True, "1 % of the gain"
    )
    relied_on = "The model relies on a" in text
    assert relied_on == (finding == "important") == title.startswith("a is important")
    if relied_on:
        assert line["conf_low"] > 0
        assert line["p_holm"] <= 0.05
        assert line["estimate"] >= 0.01 * (result.settings["constant_loss"]["absolute_error"] - result.baseline[0])
        assert verdict != "failed"
    if verdict == "failed":
        assert "No conclusion on a" in text
        assert "most important where" not in text


def test_adjustment_is_for_all_features_of_the_result(imp: sg.ImportanceResult) -> None:
    findings = overall_findings(imp, 0)
    table = imp.overall.set_index("feature")
    assert {name: line["p_holm"] for name, (line, _) in findings.items()} == table["p_holm"].to_dict()
    assert findings["a"][1] == "important"
    assert findings["d"][1] == "none"


def test_a_difference_of_the_extremes_is_adjusted_for_the_number_of_pairs() -> None:
    assert differs((3.0, 1.0), (0.0, 1.0), 2, LEVEL)
    assert not differs((3.0, 1.0), (0.0, 1.0), 8, LEVEL)
    assert not differs((1.0, 1.0), (0.0, 0.0), 2, LEVEL)


def test_the_largest_of_equal_subgroups_rarely_differs_from_the_smallest() -> None:
    """400 sets of 6 equal estimates: at most 5 % of them may be called different; 3 standard errors are 3.3 %."""
    rng = np.random.default_rng(0)
    estimates = rng.normal(size=(400, 6))
    share = np.mean([differs((row.max(), 1.0), (row.min(), 1.0), 6, LEVEL) for row in estimates])
    assert share <= 0.05 + 0.033
