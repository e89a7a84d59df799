"""What may be concluded from an importance, by one rule, and the importance of a feature explained in sentences.

`explain`, the report and the command use the rule:

- "important": the interval lies above 0, the p-value is significant after Holm's adjustment for the number of
  features, the estimate is at least 1 % of the model's gain over the best constant prediction, and the resampled rows
  did not fail the fidelity check;
- "small": the same, but the estimate is below 1 % of the gain;
- "suggestive": the interval lies above 0, but the adjusted p-value is not significant;
- "negative": the interval lies below 0, so the model predicts better with resampled values;
- "negligible": the interval includes 0 and ends below 10 % of the gain;
- "uncertain": the interval includes 0 and is wider than that;
- "unreliable": resampled rows failed the fidelity check, so the estimate is that of rows that need not exist;
- "none": no loss changed at all;
- "without gain": the interval lies above 0, but the model is not better than a constant prediction (in reports, which
  judge the model);
- "unknown": there is no interval, or it does not hold (`reliable`).

Where the gain is unknown, or there is none, sizes are compared with the baseline loss.

If few rows have most of the loss, or there are fewer than 50 rows, the upper bound does not hold, but the lower one
does: such an estimate may be important, small or suggestive, and is otherwise unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from subgrove._core.html_views import HtmlView
from subgrove._core.text import count_of, first_of, number, percent
from subgrove._importance import tables
from subgrove._importance.intervals import adjusted_p_values
from subgrove._scoring.estimate_variance import ONE_SIDED
from subgrove._scoring.feature_result import FeatureResult

Finding = Literal[
    "important",
    "small",
    "suggestive",
    "negative",
    "negligible",
    "uncertain",
    "unreliable",
    "none",
    "without gain",
    "unknown",
]
IMPORTANT = 0.01
"""Share of the gain from which on an importance counts as important."""
NEGLIGIBLE = 0.1
"""Share of the gain below which an interval that includes 0 has to end, to be called negligible."""
GAIN, BASELINE = "the gain over the best constant prediction", "the baseline loss"


def reference_of(result: tables.ImportanceData, at: int) -> tuple[float, str]:
    """Return what the sizes of importances are compared with, and its name."""
    constant = (result.settings.get("constant_loss") or {}).get(result.losses[at])
    gain = 0.0 if constant is None else constant - result.baseline[at]
    return (gain, GAIN) if gain > 0 else (abs(result.baseline[at]), BASELINE)


def finding_of(
    line: Mapping[str, Any], gain: float, level: float, *, unrealistic: bool = False, share: float | None = IMPORTANT
) -> Finding:
    """Return what may be concluded from a line of a table that has adjusted p-values.

    Parameters
    ----------
    line : mapping
        `estimate`, `conf_low`, `conf_high`, `p_holm`, and `reliable` where the table has it.
    gain : float
        What sizes are compared with, see `reference_of`.
    level : float
        Level of the interval; an adjusted p-value is significant if it is at most 1 - level.
    unrealistic : bool, default False
        Whether the resampled rows failed the fidelity check.
    share : float or None, default 0.01
        Share of the gain from which on an importance counts as important; None if the model has no gain.
    """
    estimate, low, high = (float(line[name]) for name in ("estimate", "conf_low", "conf_high"))
    if estimate == 0 == low == high:
        return "none"
    if unrealistic:
        return "unreliable"
    if np.isnan(low) or np.isnan(high) or (line.get("reliable") and not (low > 0 and has_lower_bound(line))):
        return "unknown"
    if high < 0:
        return "negative"
    if low <= 0:
        return "negligible" if high < NEGLIGIBLE * gain else "uncertain"
    if not line["p_holm"] <= 1 - level + 1e-12:  # also if it is not known; 1 - 0.95 is slightly above 0.05
        return "suggestive"
    if share is None:
        return "without gain"
    return "important" if estimate >= share * gain else "small"


def has_lower_bound(line: Mapping[str, Any]) -> bool:
    """Return whether the lower bound of a line holds, although its interval does not."""
    return bool(line.get("reliable") in ONE_SIDED)


def overall_findings(
    result: tables.ImportanceData, at: int, share: float | None = IMPORTANT, *, checked: bool = True
) -> dict[str, tuple[dict[str, Any], Finding]]:
    """Return the line of each feature in `overall`, with adjusted p-values, and what may be concluded from it.

    `checked` is False for conclusions about shuffled rows, realistic or not.
    """
    lines = adjusted_p_values([tables.overall_line(result, score, at) for score in result.scores])
    gain, found = reference_of(result, at)[0], {}
    for score, line in zip(result.scores, lines, strict=True):
        unrealistic = checked and tables.is_unrealistic(score)
        found[score.title] = line, finding_of(line, gain, result.level, unrealistic=unrealistic, share=share)
    return found


def subgroup_findings(
    result: tables.ImportanceData, score: FeatureResult, at: int, share: float | None = IMPORTANT
) -> list[tuple[dict[str, Any], Finding]]:
    """Return the same for the subgroups of a feature; p-values are adjusted for their number."""
    gain, unrealistic = reference_of(result, at)[0], tables.is_unrealistic(score)
    lines = adjusted_p_values(tables.subgroup_lines(result, score, at))
    return [(line, finding_of(line, gain, result.level, unrealistic=unrealistic, share=share)) for line in lines]


def differs(most: tuple[float, float], least: tuple[float, float], n_subgroups: int, level: float) -> bool:
    """Return whether the largest and the smallest of several estimates differ significantly.

    The level is adjusted for the number of pairs that they were picked from (Bonferroni).

    Parameters
    ----------
    most, least : (float, float)
        Estimate and standard error.
    n_subgroups : int
        Number of estimates that they were picked from.
    level : float
        Confidence level.
    """
    from scipy.special import ndtri

    pairs = max(n_subgroups * (n_subgroups - 1) // 2, 1)
    margin = -ndtri((1 - level) / 2 / pairs) * np.hypot(most[1], least[1])
    return bool(most[0] - least[0] > margin)


@dataclass(frozen=True)
class Explanation(HtmlView):
    """Sentences about the importance of a feature, as returned by `ImportanceResult.explain`.

    Attributes
    ----------
    feature : str
        The feature.
    sentences : tuple of str
        In reading order.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> options = {"features": ["temp"], "loss": "absolute_error", "random_state": 1}
    >>> explanation = sg.importance(model, test.X, test.y, train=train.X, **options).explain("temp")
    >>> explanation.feature
    'temp'
    """

    feature: str
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return str(self)


def explained(result: tables.ImportanceData, feature: Any, min_share: float = IMPORTANT) -> Explanation:
    """Return how a feature was resampled, what that costs, where, and whether the estimate is reliable."""
    score = tables.score_of(result.scores, feature)
    losses = range(len(result.losses))
    sentences = [*resampling_sentences(result, score)]
    sentences += [sentence for at in losses for sentence in _cost_sentences(result, score, at, min_share)]
    sentences += _calibration_sentences(result, score)
    if all(result.per_row_losses) and not tables.is_unrealistic(score):
        sentences += [sentence for at in losses for sentence in _subgroup_sentences(result, score, at)]
    return Explanation(score.title, (*sentences, *_fidelity_sentences(score)))


def resampling_sentences(result: tables.ImportanceData, score: FeatureResult) -> list[str]:
    """Return how a feature was resampled, and why."""
    if _is_loco(result):
        return []
    choices = tables.sampler_choices(result).get(score.title, [])
    if not choices:
        sampler = result.settings.get("sampler")
        return [f"{score.title} is resampled by the sampler {sampler!r}{_conditioning(score)}."]
    sentences = []
    for fold, choice in enumerate(choices):
        start = f"In fold {fold}, " if len(choices) > 1 else ""
        sentences.append(start + choice.reason)
        sentences += choice.details()
    return sentences


def _conditioning(score: FeatureResult) -> str:
    if len(score.rules) > 1:
        return f", within {len(score.rules)} subgroups by {first_of(score.conditioning)}"
    return f", given {first_of(score.conditioning)}" if score.conditioning else ""


def _cost_sentences(result: tables.ImportanceData, score: FeatureResult, at: int, share: float) -> list[str]:
    line, finding = overall_findings(result, at, share)[score.title]
    sentences = [_cost(result, score, at, line)]
    if np.isnan(line["std_error"]):
        return sentences
    sentences.append(
        _conclusion(result, score, at, line, finding, f"{percent(share)} of {reference_of(result, at)[1]}")
    )
    if line["mc_error"] > 0.5 * line["std_error"] > 0:
        sentences.append(
            f"With {result.settings.get('n_repeats')} repeats the Monte Carlo error is large: another random state "
            f"would change the estimate by about {number(line['mc_error'])}."
        )
    return sentences


def _cost(result: tables.ImportanceData, score: FeatureResult, at: int, line: dict[str, Any]) -> str:
    baseline, estimate = result.baseline[at], line["estimate"]
    start = f"{'Refitting without' if _is_loco(result) else 'Resampling'} {score.title}"
    if result.per_row_losses[at]:
        verb = "increases" if estimate >= 0 else "decreases"
        change = f", from {number(baseline)} to {number(baseline + estimate)}"
    else:  # of some scores more is better: estimates have the sign of a loss
        verb, change = ("worsens" if estimate >= 0 else "improves"), ""
    text = f"{start} {verb} the {_loss(result, at)} by {number(abs(estimate))}{change}"
    if np.isnan(line["std_error"]):
        return f"{text}; there is no interval."
    if has_lower_bound(line) and line["conf_low"] > 0:
        bound = f"{100 * result.level:.4g} % interval from {number(line['conf_low'])} on"
        return f"{text} ({bound}, without an upper bound: {line['reliable']})."
    if line.get("reliable"):
        return f"{text}, without a reliable interval: {line['reliable']}."
    interval = f"{number(line['conf_low'])} to {number(line['conf_high'])}"
    return f"{text} ({100 * result.level:.4g} % interval {interval}; noise: {line['noise']})."


def _conclusion(
    result: tables.ImportanceData, score: FeatureResult, at: int, line: dict[str, Any], finding: Finding, limit: str
) -> str:
    """Return what may be concluded, by the rule that the report uses too; `limit` is the size that counts."""
    name, loss = score.title, _loss(result, at)
    who = "Models of this kind rely on" if _is_loco(result) else "The model relies on"
    how = "without" if _is_loco(result) else "with other values of"
    given = " beyond the other columns" if _is_loco(result) or _is_conditional(score, result) else ""
    many = len(result.scores) > 1
    p = f"{'Holm-adjusted ' if many else 'one-sided '}p {_p(float(line['p_holm']))}"
    return {
        "important": f"{who} {name}{given} ({p}).",
        "small": f"Its importance{given} is significant but small, below {limit} ({p}).",
        "suggestive": f"The interval lies above 0, but the evidence is not sufficient after adjusting for "
        f"{count_of(len(result.scores), 'feature')} ({p}).",
        "negative": f"The model does significantly better {how} {name} on these rows.",
        "negligible": f"Not significantly different from 0, and small at most ({p}).",
        "uncertain": f"Not significantly different from 0 ({p}): whether the model needs {name} is not shown.",
        "unreliable": f"No conclusion on {name}: its resampled rows are not realistic.",
        "none": f"{name} makes no difference here: no prediction changes the {loss}.",
        "unknown": f"No conclusion on {name}, since its interval is not reliable.",
    }[finding]


def _calibration_sentences(result: tables.ImportanceData, score: FeatureResult) -> list[str]:
    calibration = score.calibration
    if calibration is None or not calibration.is_used:
        return []
    further = result.settings["calibrated"]["further_rows"]
    plain = first_of([number(float(value)) for value in calibration.plain.overall.mean(axis=1)])
    return [
        f"The estimate is calibrated on {further} additional rows by {first_of(calibration.columns)}; uncalibrated it "
        f"is {plain}."
    ]


def _subgroup_sentences(result: tables.ImportanceData, score: FeatureResult, at: int) -> list[str]:
    """Return where the feature is most and least important, if subgroups differ significantly."""
    lines = [line for line in tables.subgroup_lines(result, score, at) if line["n"] and not np.isnan(line["std_error"])]
    if len({line["rule"] for line in lines}) < max(2, len(lines)):
        return []  # without subgroups, or with the same ones in both folds
    if not any(line["estimate"] or line["std_error"] for line in lines):
        return []
    most, least = (pick(lines, key=lambda line: float(line["estimate"])) for pick in (max, min))
    high, low = ((line["estimate"], line["std_error"]) for line in (most, least))
    if not differs(high, low, len(lines), result.level):
        return [f"Its importance does not differ significantly between the {len(lines)} subgroups."]
    return [
        f"It is most important where {most['rule']}: {_with_error(most)}; least where {least['rule']}: "
        f"{_with_error(least)}."
    ]


def _with_error(line: dict[str, Any]) -> str:
    return f"{number(line['estimate'])} +- {number(line['std_error'])} ({line['n']:.0f} rows)"


def _fidelity_sentences(score: FeatureResult) -> list[str]:
    check = score.fidelity_check
    if check is None:
        return []
    if check.verdict == "passed":
        auc = "" if np.isnan(check.auc) else f" (AUC {check.auc:.2f} of a classifier of resampled against real rows)"
        return [f"Rows with {score.title} resampled are realistic{auc}."]
    finding = {
        "small difference": "Resampled values differ from real ones, but not much",
        "uncertain sampler": f"The sampler of {score.title} is uncertain",
        "failed": "This estimate is unreliable",
    }.get(check.verdict, "Whether resampled rows are realistic is unknown")
    return [f"{finding}: {check.reason}."]


def _loss(result: tables.ImportanceData, at: int) -> str:
    return result.losses[at].replace("_", " ")


def _is_loco(result: tables.ImportanceData) -> bool:
    return bool(result.settings.get("method") == "loco")


def _is_conditional(score: FeatureResult, result: tables.ImportanceData) -> bool:
    if any(choice.selected != "marginal" for choice in tables.sampler_choices(result).get(score.title, [])):
        return True
    return bool(score.conditioning) or result.settings.get("sampler") in ("knockoffs", "imputation", "auto")


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 0.001 else "below 0.001"
