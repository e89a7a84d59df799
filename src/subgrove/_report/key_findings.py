"""The key findings of a report in at most five sentences, and what not to conclude from it."""

from __future__ import annotations

from collections.abc import Sequence

from subgrove._core.text import count_of, listed, number, percent
from subgrove._report.numbers import tidy, with_range
from subgrove._report.summary import DataSummary, DependenceSummary, FeatureSummary, ModelSummary
from subgrove._report.wording import IMPORTANT, SMALL_SUBGROUP, contrast, reading, shared_with

_MOST = 5
_NAMED = 3  # important features with their numbers
_NEARLY_PERFECT = 0.98  # skill from which on a column may contain the target
_REDUNDANT = 0.9  # explained share from which on a feature is called nearly redundant
_OVERSTATED = 0.25  # share of the marginal importance that the gap has to exceed


def highlights(
    model: ModelSummary, data: DataSummary, features: Sequence[FeatureSummary], baseline: float, loss: str
) -> tuple[str, ...]:
    """Return the key findings: performance, important features, overstatement, subgroups, reliability."""
    sentences = [_performance(model, data), *_leakage(model, features), _important(features, baseline, loss)]
    more = (_overstated(features, baseline, loss), _where(features, baseline), _unreliable(features))
    sentences += [one for one in more if one is not None]
    return tuple(tidy(sentence) for sentence in sentences[:_MOST])


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


def _important(features: Sequence[FeatureSummary], baseline: float, loss: str) -> str:
    """Name the features that are important in size and significantly so, and count the others."""
    important = [one for one in features if reading(one.conditional, baseline) == "important"]
    share = percent(IMPORTANT)
    if not important:
        return f"No feature is important given the others: none raises the {loss} by {share} or more when resampled."
    first, *others = important[:_NAMED]
    verb = "is" if len(important) == 1 else "are"
    effects = [f"{first.feature} raises the {loss} by {with_range(first.conditional)}"]
    effects += [f"{one.feature} by {with_range(one.conditional)}" for one in others]
    effects += [f"{len(important) - _NAMED} more by less"] * (len(important) > _NAMED)
    return (
        f"{len(important)} of {count_of(len(features), 'feature')} {verb} important (at least {share} of the baseline "
        f"loss, interval above 0). Resampled given the other features, {listed(effects)}."
    )


def _overstated(features: Sequence[FeatureSummary], baseline: float, loss: str) -> str | None:
    """Name the feature that shuffling overstates most: significantly, and by more than a quarter."""
    found = []
    for one in features:
        gap = one.marginal.estimate - one.conditional.estimate
        noise = sum((step.noise or 0.0) ** 2 for step in one.gap) ** 0.5
        large = gap > 2 * noise and gap > _OVERSTATED * one.marginal.estimate
        if reading(one.marginal, baseline) == "important" and large:
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


def _where(features: Sequence[FeatureSummary], baseline: float) -> str | None:
    return next((found for one in features if (found := contrast(one.feature, one.subgroups, baseline))), None)


def _failed(features: Sequence[FeatureSummary]) -> list[str]:
    return [one.feature for one in features if one.fidelity is not None and one.fidelity.verdict == "failed"]


def _unreliable(features: Sequence[FeatureSummary]) -> str | None:
    failed = _failed(features)
    if not failed:
        return None
    return f"The conditional importance of {listed(failed)} is unreliable: resampled rows fail the fidelity check."


def cautions(
    model: ModelSummary,
    features: Sequence[FeatureSummary],
    dependence: Sequence[DependenceSummary],
    level: float,
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
    sentences += [
        "Importance describes what this model needs to predict, not causes. Changing a feature in the world need not "
        "change the target.",
        "A feature that is redundant with others has a low conditional importance even if the model relies on it: two "
        "copies of a column are both low, and dropping both may cost much.",
        *_redundant(dependence),
        f"Intervals ({percent(level)}) cover the choice of test rows and the random draws. They do not cover "
        "retraining the model, other training rows for the subgroups, or multiple testing over features.",
        "Curves are means of predictions. Beyond the range of a subgroup's rows the model extrapolates, and a curve "
        "over all rows includes such predictions where features are dependent.",
        *_about_fidelity(features),
    ]
    small = sum(0 < one.n < SMALL_SUBGROUP for each in features for one in each.subgroups)
    if small:
        verb = "has" if small == 1 else "have"
        sentences.append(
            f"{count_of(small, 'subgroup')} {verb} fewer than {SMALL_SUBGROUP} test rows; intervals there are rough."
        )
    return tuple(tidy(sentence) for sentence in sentences)


def _redundant(dependence: Sequence[DependenceSummary]) -> list[str]:
    found = [
        f"{one.feature} (predicted by {one.predictors[0].column})"
        for one in dependence
        if one.predictors and (one.explained or 0) >= _REDUNDANT
    ]
    return [f"Nearly redundant here: {listed(found)}."] if found else []


def _about_fidelity(features: Sequence[FeatureSummary]) -> list[str]:
    sentences = []
    if failed := _failed(features):
        sentences.append(
            f"For {listed(failed)}, resampled rows are not realistic, so part of the conditional importance is the "
            "model's behaviour on rows that do not occur."
        )
    unknown = [one.feature for one in features if one.fidelity is None or one.fidelity.verdict == "unknown"]
    if unknown:
        sentences.append(f"For {listed(unknown)}, the fidelity of resampled rows could not be checked.")
    return sentences
