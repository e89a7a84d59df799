"""The sentences of a report on importance, dependence and fidelity.

What may be concluded from an estimate is its `finding`; `_importance/explanation.py` has the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from subgrove._core.text import TOGETHER, common_decimals, count_of, listed, number, percent
from subgrove._importance.explanation import differs
from subgrove._report.summary import DependenceSummary, Estimate, FidelitySummary, GapStepSummary, SubgroupSummary

ALL_ROWS = "all rows"
_COMPARED = 20  # rows of a subgroup that is compared with another
_MOST_RULE = 140  # characters of a rule that a sentence quotes
_MEMBERS = 4  # of a group that are named
_STRONG = 0.1  # share of the explained part from which on a predictor is named


def with_interval(one: Estimate, level: float) -> str:
    """Return an estimate and its interval with the level, or the estimate alone if it has no interval."""
    return with_range(one, f"{percent(level)} interval ")


def with_range(one: Estimate, words: str = "") -> str:
    """Return an estimate and its interval, such as "303 (262 to 350)"."""
    if one.conf_low is None:
        return number(one.estimate)
    if one.conf_high is None:
        estimate, low = common_decimals([one.estimate, one.conf_low], one.estimate - one.conf_low)
        return f"{estimate} ({words}at least {low})"
    values, noise = [one.estimate, one.conf_low, one.conf_high], (one.conf_high - one.conf_low) / 2
    estimate, low, high = common_decimals(values, noise)
    return f"{estimate} ({words}{low} to {high})"


def short(rule: str) -> str:
    """Return a rule that fits into a sentence: with fewer levels, such as "country in {Chad, Mali and 28 others}"."""
    for most in (len(rule), 8, 5, 3, 1):
        found = re.sub(r"(?<= in )\{([^{}]*)\}", partial(_fewer_levels, most), rule)
        if len(found) <= _MOST_RULE:
            return found
    return f"{found[: _MOST_RULE - 4].rstrip()} ..."


def _fewer_levels(most: int, match: re.Match[str]) -> str:
    """Return the first levels of a list, and the number of the others."""
    levels = match[1].split(", ")
    left = len(levels) - most
    return match[0] if left < 2 else f"{{{', '.join(levels[:most])} and {left} others}}"


def tidy(sentence: str) -> str:
    """Return a sentence on one line: names of columns may contain anything."""
    return re.sub(r"[\s\x00-\x1f\x7f]+", " ", sentence).strip()


def headline(name: str, one: Estimate, marginal: Estimate, level: float, independent: bool, limit: str) -> str:
    """Return the finding on a feature or group. `independent`: no other column was found to predict it.

    `limit` is the size from which on an importance is important, in words.
    """
    interval, given = with_interval(one, level), "" if independent else " given the other features"
    finding = {
        "important": f"{name} is important{given}: {interval}",
        "small": f"{name} has a small importance{given}: {interval}, less than {limit}",
        "suggestive": f"{name}{given} is not significant once adjusted for all features: {interval}",
        "negative": f"The model predicts better when {name} is resampled{given}: {interval}",
        "negligible": f"{name} adds little{given}: {interval}",
        "uncertain": f"The importance of {name}{given} is uncertain: {interval}",
        "none": f"{name} is not used: no loss changes when it is resampled",
        "unreliable": f"No conclusion on {name}{given}: resampled rows are not realistic. The estimate is {interval}",
        "without gain": f"Resampling {name}{given} raises the loss, {interval}, of a model without gain",
        "unknown": f"{name} has an importance of {interval}{given}; its uncertainty is unknown",
    }[one.finding]
    if independent or marginal.conf_low is None:
        return tidy(f"{finding}.")
    return tidy(f"{finding}. Shuffling gives {'0' if marginal.finding == 'none' else with_range(marginal)}.")


def subgroup_sentence(name: str, rule: str, n: int, one: Estimate | None, level: float) -> str:
    """Return the finding on a feature in one subgroup."""
    where = "In all rows" if rule == ALL_ROWS else f"Where {short(rule)}"
    if n == 0 or one is None:
        return tidy(f"{where}, there are no test rows.")
    interval, rows = with_interval(one, level), count_of(n, "row")
    finding = {
        "important": f"{name} is important: {interval}, {rows}",
        "small": f"{name} has a small importance: {interval}, {rows}",
        "suggestive": f"{name} is not significant once adjusted for all subgroups: {interval}, {rows}",
        "negative": f"the model predicts better when {name} is resampled: {interval}, {rows}",
        "negligible": f"{name} adds little: {interval}, {rows}",
        "uncertain": f"the importance of {name} is uncertain: {interval}, {rows}",
        "none": f"{name} is not used: no loss changes in {rows}",
        "unreliable": f"the estimate is {interval}, {rows}, but resampled rows fail the fidelity check",
        "without gain": f"resampling {name} raises the loss, {interval}, {rows}, of a model without gain",
        "unknown": f"the importance of {name} is {interval} in {rows}, without a reliable interval",
    }[one.finding]
    return tidy(f"{where}, {finding}.")


def contrast(name: str, subgroups: Sequence[SubgroupSummary], level: float) -> str | None:
    """Return where a feature is most and least important, if these subgroups differ significantly."""
    known = [(one, one.estimate) for one in subgroups if one.n >= _COMPARED and one.estimate is not None]
    large = [(one, estimate) for one, estimate in known if estimate.finding not in ("unreliable", "unknown")]
    if len(large) < 2:
        return None
    (most, high), (least, low) = (pick(large, key=lambda pair: pair[1].estimate) for pick in (max, min))
    largest, smallest = ((one.estimate, one.std_error or 0.0) for one in (high, low))
    if high.finding != "important" or not differs(largest, smallest, len(large), level):
        return None
    better = f"the model predicts better without it: {with_range(low)}"
    usual = f"its importance is {with_range(low)}"
    words = {"negative": better, "none": "it is not used"}.get(low.finding, usual)
    most_important = f"{name} is most important where {short(most.rule)}: {with_range(high)}"
    return tidy(f"{most_important}. Where {short(least.rule)}, {words}.")


def gap_sentences(name: str, steps: Sequence[GapStepSummary], marginal: Estimate) -> Iterator[str]:
    """Yield the way from marginal to conditional importance in words."""
    if not steps:
        return
    start, end = steps[0].start, steps[-1].end
    fall = start - end
    ends = common_decimals([start, end], abs(fall) or abs(start))
    yield f"Shuffling {name} changes the loss by {ends[0]}; resampling it given the other columns, by {ends[1]}."
    if any(step.noise is None for step in steps):
        return
    noise = sum((step.noise or 0.0) ** 2 for step in steps) ** 0.5
    if abs(fall) <= 2 * noise:
        yield "The difference is within noise."
    elif fall < 0:
        yield "Conditional importance is larger than marginal importance here."
    elif marginal.conf_low is not None and marginal.conf_low > 0 and fall <= start:
        yield f"{percent(fall / start)} of the marginal importance is shared with {shared_with(steps)}."


def shared_with(steps: Sequence[GapStepSummary], most: int = 3) -> str:
    """Return the columns that a feature shares its importance with: those of significant steps, the largest first."""
    significant = [step for step in steps if step.step > 2 * (step.noise or 0.0)] or list(steps)
    return listed([step.column for step in sorted(significant, key=lambda step: -step.step)[:most]])


def dependence_sentence(one: DependenceSummary, fidelity: FidelitySummary | None, note: str) -> str:
    """Return how well the other columns predict a feature, and what that means for shuffling it."""
    name, explained = one.feature, one.explained
    if explained is None:
        return tidy(f"How well the other columns predict {name} is unknown{f': {note}' if note else ''}.")
    if explained < 0.01:
        sentence = f"The other columns do not predict {name} (random forest, R2 below 1 %)"
    else:
        strong = [each for each in one.predictors[:3] if each.share >= _STRONG * explained]
        names = [f"{each.column} ({percent(each.share)})" for each in strong]
        sentence = f"The other columns explain {percent(min(explained, 1.0))} of {name}"
        sentence += f", mainly {listed(names)}" if names else ""
    passed = fidelity is not None and fidelity.verdict == "passed"
    realistic = " Rows with shuffled values are realistic." if passed else ""
    return tidy(f"{sentence}.{' Shuffling it creates unrealistic rows.' if one.misleads else realistic}")


def fidelity_sentence(name: str, one: FidelitySummary, reason: str, how: str) -> str:
    """Return the result of a fidelity check; `how` is "resampled" or "shuffled"."""
    rows, classifier = f"Rows with {how} {name}", f"a classifier of real and {how} rows; 0.5 is chance"
    auc = "" if one.auc is None else f" (AUC {number(one.auc)} of {classifier})"
    sentences = {
        "passed": f"{rows} are realistic{auc}.",
        "small difference": f"{rows} differ from real ones, but not much: {reason}.",
        "uncertain sampler": f"The sampler of {name} is uncertain: {reason}.",
        "failed": f"{rows} fail the fidelity check: {reason}.",
    }
    return tidy(sentences.get(one.verdict, f"The fidelity of rows with {how} {name} is unknown: {reason}."))


def group_words(name: str, members: Sequence[str], strongest: Sequence[str]) -> str:
    """Return a group in a sentence: its own name, or its columns; of many the strongest, which come first."""
    if name not in (TOGETHER.join(members), ", ".join(members)):
        return name
    return listed(members if len(members) <= _MEMBERS else strongest, _MEMBERS)
