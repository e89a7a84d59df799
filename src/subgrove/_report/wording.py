"""The sentences of a report on importance, dependence and fidelity, its key findings and its cautions.

What may be concluded from an estimate is its `finding`; `_importance/evidence.py` has the rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from subgrove._core.text import common_decimals, count_of, listed, number, percent
from subgrove._importance.evidence import IMPORTANT, differs
from subgrove._report.summary import (
    DataSummary,
    DependenceSummary,
    Estimate,
    FeatureSummary,
    FidelitySummary,
    GapStepSummary,
    ModelSummary,
    PredictorShare,
    SubgroupSummary,
)

ALL_ROWS = "all rows"
_COMPARED = 20  # rows of a subgroup that is compared with another
_MOST_RULE = 140  # characters of a rule that a sentence quotes
_STRONG = 0.1  # share of the explained part from which on a predictor is named


def with_interval(one: Estimate, level: float) -> str:
    """Return an estimate and its interval with the level, or the estimate alone if it has no interval."""
    return with_range(one, f"{percent(level)} interval ")


def with_range(one: Estimate, words: str = "") -> str:
    """Return an estimate and its interval, such as "303 (262 to 350)"."""
    if one.conf_low is None or one.conf_high is None:
        return number(one.estimate)
    estimate, low, high = common_decimals(
        [one.estimate, one.conf_low, one.conf_high], (one.conf_high - one.conf_low) / 2
    )
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


def headline(name: str, one: Estimate, marginal: Estimate, level: float, independent: bool) -> str:
    """Return the finding on a feature. `independent`: no other column was found to predict it."""
    interval, given = with_interval(one, level), "" if independent else " given the other features"
    finding = {
        "important": f"{name} is important{given}: {interval}",
        "small": f"{name} has a small importance{given}: {interval}, less than {percent(IMPORTANT)} of the loss",
        "suggestive": f"{name}{given} is not significant once adjusted for all features: {interval}",
        "negative": f"The model predicts better when {name} is resampled{given}: {interval}",
        "negligible": f"{name} adds little{given}: {interval}",
        "uncertain": f"The importance of {name}{given} is uncertain: {interval}",
        "none": f"{name} is not used: no loss changes when it is resampled",
        "unreliable": f"No conclusion on {name}{given}: resampled rows are not realistic. The estimate is {interval}",
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
        "unknown": f"the importance of {name} is {interval} in {rows}, without a reliable interval",
    }[one.finding]
    return tidy(f"{where}, {finding}.")


def contrast(name: str, subgroups: Sequence[SubgroupSummary], level: float) -> str | None:
    """Return where a feature is most and least important, if these subgroups differ significantly."""
    large = [
        (one, one.estimate)
        for one in subgroups
        if one.n >= _COMPARED and one.estimate is not None and one.estimate.finding not in ("unreliable", "unknown")
    ]
    if len(large) < 2:
        return None
    (most, high), (least, low) = (pick(large, key=lambda pair: pair[1].estimate) for pick in (max, min))
    largest, smallest = ((one.estimate, one.std_error or 0.0) for one in (high, low))
    if high.finding != "important" or not differs(largest, smallest, len(large), level):
        return None
    words = {
        "negative": f"the model predicts better without it: {with_range(low)}",
        "none": "it is not used",
    }.get(low.finding, f"its importance is {with_range(low)}")
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
        classifier = f"a classifier of real and {how} rows; 0.5 is chance"
        auc = "" if one.auc is None else f" (AUC {number(one.auc)} of {classifier})"
        return tidy(f"Rows with {how} {name} are realistic{auc}.")
    if one.verdict == "failed":
        return tidy(f"Rows with {how} {name} fail the fidelity check: {reason}.")
    return tidy(f"The fidelity of rows with {how} {name} is unknown: {reason}.")


# Key findings and cautions

_MOST = 5
_NAMED = 3  # important features with their numbers
_NEARLY_PERFECT = 0.98  # skill from which on a column may contain the target
_REDUNDANT = 0.9  # explained share from which on a feature is called nearly redundant
_OVERSTATED = 0.25  # share of the marginal importance that the gap has to exceed


def highlights(
    model: ModelSummary,
    data: DataSummary,
    features: Sequence[FeatureSummary],
    baseline: float,
    loss: str,
    level: float,
) -> tuple[str, ...]:
    """Return the key findings: performance, important features, overstatement, subgroups, reliability.

    What not to rely on is always stated, and no other sentence relies on it.
    """
    failed = _failed(features)
    reliable = [one for one in features if one.feature not in failed]
    sentences = [_performance(model, data), *_leakage(model, features), _important(features, loss)]
    contrasts = [contrast(one.feature, one.subgroups, level) for one in reliable]
    where = next((sentence for sentence in contrasts if sentence), None)
    sentences += [one for one in (_overstated(reliable, baseline, loss), where) if one is not None]
    sentences = sentences[: _MOST - bool(failed)]
    if failed:
        sentences.append(
            f"The conditional importance of {listed(failed)} is unreliable: resampled rows fail the fidelity check."
        )
    return tuple(tidy(sentence) for sentence in sentences)


def _performance(model: ModelSummary, data: DataSummary) -> str:
    score = model.scores[0]
    error = "" if score.std_error is None else f" (standard error {number(score.std_error)})"
    rows = count_of(data.n_test, "held-out row")
    sentence = f"The model predicts {model.target} with a {score.name} of {number(score.value)}{error} on {rows}"
    if score.constant is None or score.skill is None:
        return f"{sentence}."
    constant = f"the best constant prediction ({number(score.constant)})"
    if model.verdict == "useless":
        return f"{sentence}, not significantly better than {constant}: the findings below describe an unreliable model."
    weak = ", a weak model" if model.verdict == "weak" else ""
    return f"{sentence}, {percent(score.skill)} below that of {constant}{weak}."


def _leakage(model: ModelSummary, features: Sequence[FeatureSummary]) -> list[str]:
    """Warn of a nearly perfect model, which may have a column that is known only with the target."""
    skills = [one.skill or 0.0 for one in model.scores if one.std_error is not None]  # one row may be right by chance
    if max(skills, default=0.0) < _NEARLY_PERFECT or not features:
        return []
    most = max(features, key=lambda one: one.marginal.estimate).feature
    return [
        "The model is nearly perfect. Check that no column contains the target or is known only after it, "
        f"starting with {most}, the feature with the largest importance."
    ]


def _important(features: Sequence[FeatureSummary], loss: str) -> str:
    """Name the important features, or say that none is shown to be."""
    important = [one for one in features if one.conditional.finding == "important"]
    rule = f"at least {percent(IMPORTANT)} of the baseline loss, significant after Holm's adjustment"
    if not important:
        return f"No feature is shown to be important given the others ({rule})."
    first, *others = important[:_NAMED]
    verb = "is" if len(important) == 1 else "are"
    effects = [f"{first.feature} raises the {loss} by {with_range(first.conditional)}"]
    effects += [f"{one.feature} by {with_range(one.conditional)}" for one in others]
    effects += [f"{len(important) - _NAMED} more by less"] * (len(important) > _NAMED)
    return (
        f"{len(important)} of {count_of(len(features), 'feature')} {verb} important ({rule}). Resampled given the "
        f"other features, {listed(effects)}."
    )


def _overstated(features: Sequence[FeatureSummary], baseline: float, loss: str) -> str | None:
    """Name the feature that shuffling overstates most: significantly, and by more than a quarter."""
    found = []
    for one in features:
        gap = one.marginal.estimate - one.conditional.estimate
        noise = sum((step.noise or 0.0) ** 2 for step in one.gap) ** 0.5
        large = gap > 2 * noise and gap > _OVERSTATED * one.marginal.estimate
        if (one.marginal.conf_low or 0.0) > 0 and one.marginal.estimate >= IMPORTANT * abs(baseline) and large:
            found.append((gap, one))
    if not found:
        return None
    _, one = max(found, key=lambda pair: pair[0])
    columns = shared_with(one.gap, 2) if one.gap else "the other features"
    verb = "are" if " and " in columns or (columns.startswith("the other ") and columns != "the other column") else "is"
    return (
        f"Shuffling overstates {one.feature}: it raises the {loss} by {with_range(one.marginal)}, but by "
        f"{with_range(one.conditional)} once {columns} {verb} held fixed."
    )


def _failed(features: Sequence[FeatureSummary]) -> list[str]:
    return [one.feature for one in features if one.fidelity is not None and one.fidelity.verdict == "failed"]


def cautions(
    model: ModelSummary, features: Sequence[FeatureSummary], dependence: Sequence[DependenceSummary], level: float
) -> tuple[str, ...]:
    """Return what not to conclude: from any report, and from this one."""
    sentences = []
    if model.verdict == "useless":
        sentences.append(
            "This model does not predict the target significantly better than a constant. Its importances and curves "
            "describe the model and say nothing about the data."
        )
    elif model.verdict == "weak":
        sentences.append("This model is weak. Features that it does not use may be important to a better model.")
    if _leakage(model, features):
        sentences.append(
            "A nearly perfect model may use a column that contains the target. The importance of all other columns is "
            "then that of what this column leaves unexplained."
        )
    redundant = [
        f"{one.feature} (predicted by {one.predictors[0].column})"
        for one in dependence
        if one.predictors and (one.explained or 0) >= _REDUNDANT
    ]
    sentences += [
        "Importance describes what this model needs to predict, not causes. Changing a feature in the world need not "
        "change the target.",
        "A feature that is redundant with others has a low conditional importance even if the model relies on it: two "
        "copies of a column are both low, and dropping both may cost much.",
        *([f"Nearly redundant here: {listed(redundant)}."] if redundant else []),
        f"Intervals ({percent(level)}) cover the choice of test rows, of donors and of random draws. They do not cover "
        "retraining the model, other training rows for the subgroups, or multiple testing over features.",
        "Curves are means of predictions. Beyond the range of a subgroup's rows the model extrapolates, and a curve "
        "over all rows includes such predictions where features are dependent.",
    ]
    if failed := _failed(features):
        sentences.append(
            f"For {listed(failed)}, resampled rows are not realistic, so part of the conditional importance is the "
            "model's behaviour on rows that do not occur."
        )
    unknown = [one.feature for one in features if one.fidelity is None or one.fidelity.verdict == "unknown"]
    if unknown:
        sentences.append(f"For {listed(unknown)}, the fidelity of resampled rows could not be checked.")
    marked = sum(
        one.estimate is not None and one.estimate.finding == "unknown" for f in features for one in f.subgroups
    )
    if marked:
        verb = "has" if marked == 1 else "have"
        sentences.append(
            f"{count_of(marked, 'subgroup')} {verb} no interval: there are fewer than 50 test rows, or few of them "
            "have most of the loss."
        )
    return tuple(tidy(sentence) for sentence in sentences)
