"""The key findings of a report, and its cautions.

What may be concluded from an estimate is its `finding`; `_importance/explanation.py` has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from subgrove._core.text import count_of, listed, number, percent
from subgrove._report.model_summary import ModelSummary
from subgrove._report.render import text_of
from subgrove._report.summary import DataSummary, Estimate, FeatureSummary, GroupSummary, Summary
from subgrove._report.suspicious_columns import leakage_sentence
from subgrove._report.wording import contrast, shared_with, tidy, with_range

_MOST = 5
_NAMED = 3  # important features with their numbers
_NEARLY_PERFECT = 0.98  # skill from which on a column may contain the target
_REDUNDANT = 0.9  # explained share from which on a feature is called nearly redundant
_SHARED = 0.25  # share of the marginal importance that the gap has to exceed

Driver = FeatureSummary | GroupSummary


def highlights(summary: Summary) -> tuple[str, ...]:
    """Return the key findings: performance, important features and groups, directions, overlap, subgroups, reliability.

    Redundant features are named as a group. What not to rely on is always stated, and no other sentence relies on it.
    """
    model, features, drivers = summary.model, summary.features, _drivers(summary)
    failed = [*_failed(drivers), *(name for name in _failed(features) if name not in {_name(one) for one in drivers})]
    reliable = [one for one in features if _name(one) not in failed]
    important = [one for one in drivers if one.conditional.finding == "important"]
    leakage, among = _leakage(model, features), [_important(important, drivers, summary)]
    # a column that determines the target comes first; a model that is merely nearly perfect does not
    sentences = [_performance(model, summary.data), *(leakage + among if model.leakage else among + leakage)]
    contrasts = [contrast(one.feature, one.subgroups, summary.level) for one in reliable]
    where = next((sentence for sentence in contrasts if sentence), None)
    others = (_redundant(important), _directions(important, features), where, _overlap(reliable, summary))
    sentences += [one for one in others if one is not None]
    sentences = sentences[: _MOST - bool(failed)]
    if failed:
        reason = "resampled rows fail the fidelity check"
        sentences.append(f"The conditional importance of {listed(failed)} is unreliable: {reason}.")
    return tuple(map(tidy, sentences))


def _name(one: Driver) -> str:
    return one.feature if isinstance(one, FeatureSummary) else one.name


def _loss(summary: Summary) -> str:
    return summary.loss.replace("_", " ")


def _grouped(summary: Summary) -> set[str]:
    return {name for group in summary.groups for name in group.features}


def _drivers(summary: Summary) -> list[Driver]:
    """Return groups, and features that belong to none, the most important first."""
    grouped = _grouped(summary)
    drivers: list[Driver] = [*summary.groups, *(one for one in summary.features if one.feature not in grouped)]
    return sorted(drivers, key=lambda one: -one.conditional.estimate)


def _performance(model: ModelSummary, data: DataSummary) -> str:
    score = model.scores[0]
    error = "" if score.std_error is None else f" (standard error {number(score.std_error)})"
    rows = count_of(data.n_test, "held-out row")
    sentence = f"The model predicts {model.target} with a {score.name} of {number(score.value)}{error} on {rows}"
    if model.verdict == "useless":
        return f"{model.verdict_sentence} The findings below describe an unreliable model."
    if model.verdict == "uncertain" or model.judged_by != score.name or score.constant is None or score.skill is None:
        return f"{sentence}. {model.verdict_sentence}"
    weak = ", a weak model" if model.verdict == "weak" else ""
    constant = f"the best constant prediction ({number(score.constant)})"
    return f"{sentence}, {percent(score.skill)} below that of {constant}{weak}."


def _leakage(model: ModelSummary, features: Sequence[FeatureSummary]) -> list[str]:
    """Name columns that nearly determine the target, or else warn of a nearly perfect model."""
    if model.leakage:
        return [leakage_sentence(model.leakage, model.target)]
    skills = [one.skill or 0.0 for one in model.scores if one.std_error is not None]  # one row may be right by chance
    if max(skills, default=0.0) < _NEARLY_PERFECT or not features:
        return []
    most = max(features, key=lambda one: one.marginal.estimate).feature
    check = "Check that no column contains the target or is known only after it"
    return [f"The model is nearly perfect. {check}, starting with {most}, the feature with the largest importance."]


def _important(important: Sequence[Driver], drivers: Sequence[Driver], summary: Summary) -> str:
    """Name the important features and groups, or say that none is shown to be."""
    loss, rule = _loss(summary), f"at least {summary.important.words}, significant after Holm's adjustment"
    if any(one.conditional.finding == "without gain" for one in drivers):
        return "No feature is called important, because the model is not better than a constant prediction."
    if not important:
        return f"No feature is shown to be important given the others ({rule}). {_by_marginal(drivers, loss)}"
    verb = "is" if len(important) == 1 else "are"
    effects = _effects([(one, one.conditional) for one in important[:_NAMED]], loss)
    effects += [f"{len(important) - _NAMED} more by less"] * (len(important) > _NAMED)
    n_groups = sum(isinstance(one, GroupSummary) for one in drivers)
    among = [count_of(len(drivers) - n_groups, "feature")] * (len(drivers) > n_groups)
    among += [f"{count_of(n_groups, 'group')} of redundant features"] * (n_groups > 0)
    found = f"Of {listed(among)}, {len(important)} {verb} important ({rule})"
    return f"{found}. Resampled given the other features, {'; '.join(effects)}."


def _by_marginal(drivers: Sequence[Driver], loss: str) -> str:
    """Name what has the largest marginal importance, where nothing adds to all others."""
    found = [one for one in drivers if one.marginal.finding == "important"]
    if not found:
        return ""
    largest = sorted(found, key=lambda one: -one.marginal.estimate)[:_NAMED]
    effects = _effects([(one, one.marginal) for one in largest], loss)
    caveat = "the model relies on them, but each can be replaced by other features"
    return f"Shuffled among all rows, {'; '.join(effects)}: {caveat}."


def _effects(found: Sequence[tuple[Driver, Estimate]], loss: str) -> list[str]:
    """Return by how much each feature or group raises the loss, in words."""
    first = found[0][0]
    verb = f"raises the {loss}" if isinstance(first, FeatureSummary) else f"together raise the {loss}"
    return [f"{_name(one)} {f'{verb} ' if one is first else ''}by {with_range(size)}" for one, size in found]


def _redundant(important: Sequence[Driver]) -> str | None:
    """Say of the most important group that its members can replace each other."""
    group = next((one for one in important if isinstance(one, GroupSummary)), None)
    if group is None:
        return None
    same = "carry largely the same information, so that each of them adds little to the others"
    return f"{group.name} {same}: read their joint importance."


def _directions(important: Sequence[Driver], features: Sequence[FeatureSummary]) -> str | None:
    """Say what predictions do as the most important features increase; of a group, its strongest member."""
    shown = []
    for one in important[:_NAMED]:
        members = [each for each in features if each.feature in getattr(one, "features", (_name(one),))]
        shown.append(max(members, key=lambda each: each.marginal.estimate))
    words = [one.direction for one in shown if one.direction]
    return f"Other things being equal, predictions {'; they '.join(words)}." if words else None


def _overlap(features: Sequence[FeatureSummary], summary: Summary) -> str | None:
    """Name the feature that shares most with the others: significantly, and more than a quarter of its importance."""
    grouped, found = _grouped(summary), []
    for one in features:
        gap = one.marginal.estimate - one.conditional.estimate
        noise = sum((step.noise or 0.0) ** 2 for step in one.gap) ** 0.5
        large = gap > 2 * noise and gap > _SHARED * one.marginal.estimate
        if (one.marginal.conf_low or 0.0) > 0 and one.marginal.estimate >= summary.important.size and large:
            found.append((one.feature not in grouped, gap, one))
    if not found:
        return None
    *_, one = max(found, key=lambda triple: triple[:2])
    columns = shared_with(one.gap, 2) if one.gap else "the other features"
    shuffled = f"shuffled among all rows it raises the {_loss(summary)} by {with_range(one.marginal)}"
    resampled = f"resampled given the other features by {with_range(one.conditional)}"
    return f"{one.feature} shares information with {columns}: {shuffled}, {resampled}."


def _failed(features: Sequence[Driver]) -> list[str]:
    return [_name(one) for one in features if one.fidelity is not None and one.fidelity.verdict == "failed"]


def cautions(summary: Summary) -> tuple[str, ...]:
    """Return what not to conclude: from any report, and from this one."""
    model, features = summary.model, summary.features
    redundant = [one for one in summary.dependence if one.predictors and (one.explained or 0) >= _REDUNDANT]
    names = {
        "leakage": _leakage(model, features),
        "redundant": [f"{one.feature} (predicted by {one.predictors[0].column})" for one in redundant],
        "failed": _failed(features),
        "unknown": [one.feature for one in features if one.fidelity is None or one.fidelity.verdict == "unknown"],
    }
    texts = {what: tidy(listed(some)) for what, some in names.items() if some}
    subgroups = [one.estimate for feature in features for one in feature.subgroups if one.estimate is not None]
    marked = sum(one.finding == "unknown" for one in subgroups)
    values = {**dict.fromkeys(names, ""), **texts, "marked": marked, "verdict": model.verdict, "level": summary.level}
    return tuple(text_of("cautions.txt.jinja", **values).splitlines())
