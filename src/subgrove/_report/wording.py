"""Sentences about importance, dependence and fidelity, written from the numbers.

`reading` turns an estimate into a category, and every sentence follows it:

- "important": the interval lies above 0, and the estimate is at least 1 % of the baseline loss;
- "small": the interval lies above 0, but the estimate is below 1 % of the baseline loss;
- "negative": the interval lies below 0, so the model predicts better with resampled values;
- "negligible": the interval includes 0 and ends below 10 % of the baseline loss;
- "uncertain": the interval includes 0 and is wider than that;
- "none": no loss changed at all;
- "unknown": there is no interval, or no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from subgrove._core.text import common_decimals, count_of, listed, number, percent
from subgrove._report.numbers import short, tidy, with_interval, with_range
from subgrove._report.summary import Estimate, FidelitySummary, GapStepSummary, PredictorShare, SubgroupSummary

Reading = Literal["important", "small", "negative", "negligible", "uncertain", "none", "unknown"]
IMPORTANT = 0.01
"""Share of the baseline loss from which on an importance counts as important."""
NEGLIGIBLE = 0.1
"""Share of the baseline loss below which an interval that includes 0 has to end, to be called negligible."""
SMALL_SUBGROUP = 30
"""Number of rows below which a subgroup is small."""
ALL_ROWS = "all rows"
_COMPARED = 20  # rows of a subgroup that is compared with another
_STRONG = 0.1  # share of the explained part from which on a predictor is named


def reading(one: Estimate | None, baseline: float) -> Reading:
    """Return the category of an estimate; `baseline` is the loss of the baseline predictions."""
    if one is None or one.conf_low is None or one.conf_high is None:
        return "unknown"
    if one.estimate == 0 and one.conf_low == 0 == one.conf_high:
        return "none"
    if one.conf_low > 0:
        return "important" if one.estimate >= IMPORTANT * abs(baseline) else "small"
    if one.conf_high < 0:
        return "negative"
    return "negligible" if one.conf_high < NEGLIGIBLE * abs(baseline) else "uncertain"


def headline(name: str, one: Estimate, marginal: Estimate, baseline: float, level: float, independent: bool) -> str:
    """Return the finding on a feature. `independent`: no other column was found to predict it."""
    interval, given = with_interval(one, level), "" if independent else " given the other features"
    finding = {
        "important": f"{name} is important{given}: {interval}",
        "small": f"{name} has a small importance{given}: {interval}, less than {percent(IMPORTANT)} of the loss",
        "negative": f"The model predicts better when {name} is resampled{given}: {interval}",
        "negligible": f"{name} adds little{given}: {interval}",
        "uncertain": f"The importance of {name}{given} is uncertain: {interval}",
        "none": f"{name} is not used: no loss changes when it is resampled",
        "unknown": f"{name} has an importance of {interval}{given}; its uncertainty is unknown",
    }[reading(one, baseline)]
    shuffled = reading(marginal, baseline)
    if independent or shuffled == "unknown":
        return tidy(f"{finding}.")
    return tidy(f"{finding}. Shuffling gives {'0' if shuffled == 'none' else with_range(marginal)}.")


def subgroup_sentence(name: str, rule: str, n: int, one: Estimate | None, baseline: float, level: float) -> str:
    """Return the finding on a feature in one subgroup."""
    where = "In all rows" if rule == ALL_ROWS else f"Where {short(rule)}"
    if n == 0 or one is None:
        return tidy(f"{where}, there are no test rows.")
    interval, rows = with_interval(one, level), count_of(n, "row")
    finding = {
        "important": f"{name} is important: {interval}, {rows}",
        "small": f"{name} has a small importance: {interval}, {rows}",
        "negative": f"the model predicts better when {name} is resampled: {interval}, {rows}",
        "negligible": f"{name} adds little: {interval}, {rows}",
        "uncertain": f"the importance of {name} is uncertain: {interval}, {rows}",
        "none": f"{name} is not used: no loss changes in {rows}",
        "unknown": f"the importance of {name} is {interval} in {rows}, too few for an interval",
    }[reading(one, baseline)]
    few = "; a small subgroup, so the interval is rough" if 1 < n < SMALL_SUBGROUP else ""
    return tidy(f"{where}, {finding}{few}.")


def contrast(name: str, subgroups: Sequence[SubgroupSummary], baseline: float) -> str | None:
    """Return where a feature is important and where it is not, if there is such a pair of large enough subgroups."""
    large = [(one, one.estimate) for one in subgroups if one.n >= _COMPARED and one.estimate is not None]
    by_reading = {word: [pair for pair in large if reading(pair[1], baseline) == word] for word in Reading.__args__}  # type: ignore[attr-defined]  # of a Literal
    low = by_reading["small"] + by_reading["negligible"] or by_reading["negative"] + by_reading["none"]
    if not by_reading["important"] or not low:
        return None
    most, high = max(by_reading["important"], key=lambda pair: pair[1].estimate)
    least, low_estimate = min(low, key=lambda pair: pair[1].estimate)
    if high.estimate <= low_estimate.estimate:  # more certain of one than of the other, but not larger
        return None
    words = {
        "negative": f"the model predicts better without it: {with_range(low_estimate)}",
        "none": "it is not used",
    }.get(reading(low_estimate, baseline), f"it adds little: {with_range(low_estimate)}")
    return tidy(
        f"{name} is most important where {short(most.rule)}: {with_range(high)}. Where {short(least.rule)}, {words}."
    )


def gap_sentences(name: str, steps: Sequence[GapStepSummary], marginal: Estimate) -> list[str]:
    """Return the way from marginal to conditional importance in words."""
    if not steps:
        return []
    start, end = steps[0].start, steps[-1].end
    fall = start - end
    ends = common_decimals([start, end], abs(fall) or abs(start))
    sentences = [
        f"Shuffling {name} changes the loss by {ends[0]}; resampling it given the other columns, by {ends[1]}."
    ]
    if any(step.noise is None for step in steps):
        return [tidy(sentences[0])]
    noise = sum((step.noise or 0.0) ** 2 for step in steps) ** 0.5
    if abs(fall) <= 2 * noise:
        sentences.append("The difference is within noise.")
    elif fall < 0:
        sentences.append("Conditional importance is larger than marginal importance here.")
    elif marginal.conf_low is not None and marginal.conf_low > 0 and fall <= start:
        sentences.append(f"{percent(fall / start)} of the marginal importance is shared with {shared_with(steps)}.")
    return [tidy(sentence) for sentence in sentences]


def shared_with(steps: Sequence[GapStepSummary], most: int = 3) -> str:
    """Return the columns that a feature shares its importance with: those of significant steps, the largest first."""
    significant = [step for step in steps if step.step > 2 * (step.noise or 0.0)] or list(steps)
    largest = sorted(significant, key=lambda step: -step.step)[:most]
    return listed([step.column for step in largest])


def dependence_sentence(
    name: str,
    explained: float | None,
    predictors: Sequence[PredictorShare],
    misleads: bool,
    fidelity: FidelitySummary | None,
    note: str,
) -> str:
    """Return how well the other columns predict a feature, and what that means for shuffling it."""
    if explained is None:
        return tidy(f"How well the other columns predict {name} is unknown{f': {note}' if note else ''}.")
    if explained < 0.01:
        sentence = f"The other columns do not predict {name} (random forest, R2 below 1 %)"
    else:
        strong = [f"{one.column} ({percent(one.share)})" for one in predictors[:3] if one.share >= _STRONG * explained]
        sentence = f"The other columns explain {percent(min(explained, 1.0))} of {name}"
        sentence += f", mainly {listed(strong)}" if strong else ""
    if misleads:
        return tidy(f"{sentence}. Shuffling it creates unrealistic rows.")
    if fidelity is not None and fidelity.verdict == "passed":
        return tidy(f"{sentence}. Rows with shuffled values are realistic.")
    return tidy(f"{sentence}.")


def fidelity_sentence(name: str, one: FidelitySummary, reason: str, how: str) -> str:
    """Return the result of a fidelity check; `how` is "resampled" or "shuffled"."""
    if one.verdict == "passed":
        auc = (
            "" if one.auc is None else f" (AUC {number(one.auc)} of a classifier of real and {how} rows; 0.5 is chance)"
        )
        return tidy(f"Rows with {how} {name} are realistic{auc}.")
    if one.verdict == "failed":
        return tidy(f"Rows with {how} {name} fail the fidelity check: {reason}.")
    return tidy(f"The fidelity of rows with {how} {name} is unknown: {reason}.")


def fidelity_mark(one: FidelitySummary) -> tuple[str, str]:
    """Return the style and the text of a verdict in a table."""
    return {"passed": ("good", "passed"), "failed": ("bad", "failed")}.get(one.verdict, ("soft", "unknown"))
