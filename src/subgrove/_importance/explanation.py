"""The story of a feature in plain sentences, made from the numbers of a result and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.text import first_of
from subgrove._importance.tables import overall_line, subgroup_lines
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import ParameterError
from subgrove.samplers.auto.choice import SamplerChoice
from subgrove.samplers.base import title

if TYPE_CHECKING:
    from subgrove._importance.result import ImportanceResult

CHOICE_COLUMNS = ("feature", "sampler", "score", "score_gap", "std_error", "complexity", "chosen")
_SURE = 0.05


@dataclass(frozen=True)
class Explanation:
    """A story in sentences.

    Attributes
    ----------
    feature : str
        Whose story it is.
    sentences : tuple of str
        In the order in which they are told.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> model = lambda X: 100 * X["temp"]
    >>> imp = sg.importance(model, test.X, test.y, train=train.X, features=["temp"], random_state=1)
    >>> story = imp.explain("temp")
    >>> story.feature, len(story.sentences) > 1
    ('temp', True)
    """

    feature: str
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_of(self)


def choice_lines(result: ImportanceResult) -> list[dict[str, Any]]:
    """One line for each feature, fold and candidate."""
    lines: list[dict[str, Any]] = []
    for name, made in _choices(result).items():
        for fold, choice in enumerate(made):
            own = {"fold": fold} if len(made) > 1 else {}
            lines += [{"feature": name, **own, **line} for line in choice.lines()]
    return lines


def _choices(result: ImportanceResult) -> dict[str, list[SamplerChoice]]:
    stored = result.settings.get("choices") or {}
    return {name: [SamplerChoice.from_dict(one) for one in made] for name, made in stored.items()}


def explained(result: ImportanceResult, feature: Any, marginal: ImportanceResult | None) -> Explanation:
    """What `ImportanceResult.explain` returns."""
    name = title(tuple(feature)) if isinstance(feature, list | tuple) else str(feature)
    score = next((one for one in result.scores if one.title == name), None)
    if score is None:
        raise ParameterError(
            f"feature={feature!r} is not among the features of this result: {', '.join(result.features)}."
        )
    sentences = [*redrawn(result, score)]
    for at in range(len(result.losses)):
        sentences += _costs(result, score, at)
    sentences += _weighted(result, score)
    if all(result.per_row_losses):
        for at in range(len(result.losses)):
            sentences += _where(result, score, at)
    sentences += _trusted(result, score)
    if marginal is not None:
        sentences += result.explain_gap(marginal, score.title).sentences
    return Explanation(score.title, tuple(sentences))


def redrawn(result: ImportanceResult, score: FeatureResult) -> list[str]:
    """How a feature was redrawn, and why so."""
    if _is_loco(result):
        return []
    made = _choices(result).get(score.title, [])
    if not made:
        return [f"{score.title} is redrawn by the sampler {result.settings.get('sampler')!r}{_by_sampler(score)}."]
    sentences = []
    for fold, choice in enumerate(made):
        start = f"In the rows of fold {fold}, " if len(made) > 1 else ""
        sentences.append(start + choice.reason)
        sentences += choice.details()
    return sentences


def _by_sampler(score: FeatureResult) -> str:
    if len(score.rules) > 1:
        return f", within {len(score.rules)} subgroups by {first_of(score.conditioning)}"
    return f", from columns {first_of(score.conditioning)}" if score.conditioning else ""


def _costs(result: ImportanceResult, score: FeatureResult, at: int) -> list[str]:
    line = overall_line(result, score, at)
    sentences = [_told_cost(result, score, at, line)]
    if np.isnan(line["std_error"]):
        return sentences
    sentences.append(_verdict(result, score, at, line))
    if line["mc_error"] > 0.5 * line["std_error"] > 0:
        sentences.append(
            f"The number of redraws ({result.settings.get('n_repeats')}) is small: another run with other draws would "
            f"differ by about {_number(line['mc_error'])}."
        )
    return sentences


def _weighted(result: ImportanceResult, score: FeatureResult) -> list[str]:
    """Which columns calibrate the estimate, and what it is without calibration."""
    calibration = score.calibration if isinstance(score, FeatureResult) else None
    if calibration is None or not calibration.is_used:
        return []
    further = result.settings["calibrated"]["further_rows"]
    plain = first_of([_number(float(value)) for value in calibration.plain.overall.mean(axis=1)])
    return [
        f"The estimate is calibrated on {further} additional rows by {first_of(calibration.columns)}; uncalibrated it "
        f"is {plain}."
    ]


def _told_cost(result: ImportanceResult, score: FeatureResult, at: int, line: dict[str, Any]) -> str:
    loss, before, estimate = _loss(result, at), result.baseline[at], line["estimate"]
    size = _number(abs(estimate))
    start = f"Redrawn like this, {score.title} makes the {loss} of the model"
    if _is_loco(result):
        start = f"Fitting again without {score.title} makes the {loss} of the model"
    if result.per_row_losses[at]:
        moved = f"{'grow' if estimate >= 0 else 'fall'} by {size}"
        moved += f", from {_number(before)} to {_number(before + estimate)}"
    else:  # of a score more may be better, and its sign is turned
        moved = f"{'worse' if estimate >= 0 else 'better'} by {size}"
    if np.isnan(line["std_error"]):
        return f"{start} {moved}; there is no interval for it."
    interval = f"{_number(line['conf_low'])} to {_number(line['conf_high'])}"
    return f"{start} {moved} ({100 * result.level:.4g} % interval {interval}; noise: {line['noise']})."


def _verdict(result: ImportanceResult, score: FeatureResult, at: int, line: dict[str, Any]) -> str:
    p, name, loss = float(line["p_value"]), score.title, _loss(result, at)
    if line["estimate"] == 0 and line["std_error"] == 0:
        return f"No prediction changed in a way that the {loss} sees: {name} makes no difference here."
    if line["conf_high"] < 0:
        how = "without" if _is_loco(result) else "with other values of"
        return f"So the model does better {how} {name} on these rows, by more than noise."
    if p >= _SURE:
        return f"That cannot be told from nothing (one-sided p {_p(p)}): no need for {name} is shown by these rows."
    if _is_loco(result):
        return f"So models of this kind need {name} beyond what the other columns tell (one-sided p {_p(p)})."
    if _is_conditional(score, result):
        return f"So the model needs {name} beyond what the other columns tell (one-sided p {_p(p)})."
    return f"So the model uses {name} (one-sided p {_p(p)})."


def _loss(result: ImportanceResult, at: int) -> str:
    return result.losses[at].replace("_", " ")


def _is_loco(result: ImportanceResult) -> bool:
    return bool(result.settings.get("method") == "loco")


def _is_conditional(score: FeatureResult, result: ImportanceResult) -> bool:
    if any(choice.chosen != "marginal" for choice in _choices(result).get(score.title, [])):
        return True
    return bool(score.conditioning) or result.settings.get("sampler") in ("knockoffs", "imputation", "auto")


def _where(result: ImportanceResult, score: FeatureResult, at: int) -> list[str]:
    """Where it matters most and least, if subgroups differ by more than noise."""
    lines = [line for line in subgroup_lines(result, score, at) if line["n"] and not np.isnan(line["std_error"])]
    if len({line["rule"] for line in lines}) < max(2, len(lines)):
        return []  # without subgroups, or with the same ones in both folds
    if not any(line["estimate"] or line["std_error"] for line in lines):
        return []
    most, least = (pick(lines, key=lambda line: float(line["estimate"])) for pick in (max, min))
    noise = float(np.hypot(most["std_error"], least["std_error"]))
    if most["estimate"] - least["estimate"] <= 2 * noise:
        return [f"It matters about as much in all {len(lines)} subgroups of the result, as far as these rows can tell."]
    return [
        f"It matters most where {most['rule']}: {_with_error(most)}; least where {least['rule']}: {_with_error(least)}."
    ]


def _with_error(line: dict[str, Any]) -> str:
    return f"{_number(line['estimate'])} +- {_number(line['std_error'])} ({line['n']:.0f} rows)"


def _trusted(result: ImportanceResult, score: FeatureResult) -> list[str]:
    fidelity_check = score.fidelity_check
    if fidelity_check is None:
        return []
    if fidelity_check.verdict == "passed":
        auc = (
            ""
            if np.isnan(fidelity_check.auc)
            else f" (a classifier tells them apart with AUC {fidelity_check.auc:.2f})"
        )
        return [f"Rows with {score.title} redrawn pass for real ones{auc}."]
    start = {"failed": "Do not trust this number", "unknown": "Whether redrawn rows pass for real ones is not known"}
    return [f"{start[fidelity_check.verdict]}: {fidelity_check.reason}."]


def _number(value: float) -> str:
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 0.001 else "below 0.001"
