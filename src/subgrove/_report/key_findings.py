"""The findings of a report in at most five sentences, and what not to conclude from it."""

from __future__ import annotations

from collections.abc import Sequence

from subgrove._report.numbers import counted, listed, number, percent, tidy, with_range
from subgrove._report.summary import DependenceSummary, FeatureSummary, ModelSummary
from subgrove._report.wording import SMALL_SUBGROUP, contrast, reading

_MOST = 5
_NEARLY_PERFECT = 0.98  # share of a loss saved from which on a column may hold the target
_TWIN = 0.9  # share foretold by one column from which on two columns are called nearly the same


def highlights(model: ModelSummary, features: Sequence[FeatureSummary], baseline: float, loss: str) -> tuple[str, ...]:
    """The findings."""
    told = [_how_good(model), *_too_good(model, features), _what_matters(features, baseline, loss)]
    told += [one for one in (_misled(features, baseline), _where(features, baseline), _untrusted(features)) if one]
    return tuple(tidy(sentence) for sentence in told[:_MOST])


def _how_good(model: ModelSummary) -> str:
    score = model.scores[0]
    start = f"{score.name[:1].upper()}{score.name[1:]} on held-out rows: {number(score.value)}"
    if score.constant is None or score.skill is None:
        return f"{start}."
    beside = f"{start}, beside {number(score.constant)} of the best constant answer"
    if model.verdict == "useless":
        return f"{beside}: the model is not shown to be better, so read what follows with great care."
    if model.verdict == "weak":
        return f"{beside}: a weak model, which saves {percent(score.skill)}."
    return f"{beside}: the model saves {percent(score.skill)}."


def _too_good(model: ModelSummary, features: Sequence[FeatureSummary]) -> list[str]:
    """A warning where the model is nearly perfect: a column that is known only with the target makes it so."""
    known = [one.skill or 0.0 for one in model.scores if one.std_error is not None]  # one row is foretold by chance
    if max(known, default=0.0) < _NEARLY_PERFECT or not features:
        return []
    most = max(features, key=lambda one: one.marginal.estimate).feature
    return [
        f"That is nearly perfect. Check that no column holds the target in another form, or is known only after it; "
        f"{most}, which the model leans on most, comes first."
    ]


def _what_matters(features: Sequence[FeatureSummary], baseline: float, loss: str) -> str:
    clear = [one for one in features if reading(one.conditional, baseline) == "matters"]
    if not clear:
        return "No feature is shown to matter beyond what the others tell."
    names = listed([f"{one.feature} {with_range(one.conditional)}" for one in clear], 3)
    return (
        f"{counted(len(clear), 'feature')} of {len(features)} {'matters' if len(clear) == 1 else 'matter'} beyond what "
        f"the others tell; in {loss}, with intervals: {names}."
    )


def _misled(features: Sequence[FeatureSummary], baseline: float) -> str | None:
    """The feature that shuffling overrates most: beyond noise, and by more than a quarter of what it shows."""
    found = []
    for one in features:
        gap = one.marginal.estimate - one.conditional.estimate
        noise = sum((part.noise or 0.0) ** 2 for part in one.gap) ** 0.5
        if reading(one.marginal, baseline) == "matters" and gap > 2 * noise and gap > 0.25 * one.marginal.estimate:
            found.append((gap, one))
    if not found:
        return None
    _, one = max(found, key=lambda pair: pair[0])
    return (
        f"Shuffling overrates {one.feature} most: it costs {with_range(one.marginal)} shuffled alone, but "
        f"{with_range(one.conditional)} once it keeps to what the other columns say."
    )


def _where(features: Sequence[FeatureSummary], baseline: float) -> str | None:
    for one in features:
        said = contrast(one.feature, one.subgroups, baseline)
        if said:
            return said
    return None


def _untrusted(features: Sequence[FeatureSummary]) -> str | None:
    wrong = [one.feature for one in features if one.certificate is not None and one.certificate.verdict == "failed"]
    if not wrong:
        return None
    return f"Do not rely on the conditional importance of {listed(wrong)}: redrawn rows do not pass for real ones."


def cautions(
    model: ModelSummary,
    features: Sequence[FeatureSummary],
    dependence: Sequence[DependenceSummary],
    level: float,
) -> tuple[str, ...]:
    """What not to conclude: what holds for every report, and what this one adds."""
    told = []
    if model.verdict == "useless":
        told.append(
            "This model is not shown to foretell the target. Its importances and curves describe the model; they say "
            "nothing about the world."
        )
    elif model.verdict == "weak":
        told.append("This model is weak. What it does not use may still matter for the target, to a better model.")
    if _too_good(model, features):
        told.append(
            "A nearly perfect model may have been told the answer. If a column holds the target, what is said of the "
            "other columns is about what little that one leaves."
        )
    told += [
        "Importance says what this model needs to foretell, not what causes what. Changing a feature in the world need "
        "not change the target.",
        "A feature that others tell has a low conditional importance even if the model leans on it: of two columns "
        "that hold the same, each is low, and dropping both may cost much.",
        *_twins(dependence),
        f"Intervals ({percent(level)}) cover the choice of test rows and the redraws. They do not cover training the "
        "model again, other training rows for the subgroups, or looking at many features at once.",
        "Curves are means of predictions. Beyond the range of a subgroup's rows the model extrapolates, and a curve of "
        "all rows averages that in where features depend on each other.",
    ]
    wrong = [one.feature for one in features if one.certificate is not None and one.certificate.verdict == "failed"]
    if wrong:
        told.append(
            f"For {listed(wrong)}, redrawn rows do not pass for real ones, so the conditional importance is not what "
            "it is called: part of it is the model's answer to rows that do not occur."
        )
    unknown = [one.feature for one in features if one.certificate is None or one.certificate.verdict == "unknown"]
    if unknown:
        told.append(f"For {listed(unknown)}, whether redrawn rows pass for real ones could not be judged.")
    small = sum(0 < one.n < SMALL_SUBGROUP for each in features for one in each.subgroups)
    if small:
        verb = "has" if small == 1 else "have"
        told.append(
            f"{counted(small, 'subgroup')} {verb} fewer than {SMALL_SUBGROUP} test rows: the interval there is "
            "a rough one."
        )
    return tuple(tidy(sentence) for sentence in told)


def _twins(dependence: Sequence[DependenceSummary]) -> list[str]:
    same = [
        f"{one.feature} (foretold by {one.predictors[0].column})"
        for one in dependence
        if one.predictors and (one.explained or 0) >= _TWIN
    ]
    return [f"Here this holds for {listed(same)}."] if same else []
