"""Lines of the tables of an importance result, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import count_of
from subgrove._data.to_containers import as_count
from subgrove._importance.inference.intervals import interval_columns
from subgrove._importance.inference.variance_components import (
    MONTE_CARLO,
    TEST_ROWS,
    known_sources,
    label,
    overall_components,
    subgroup_components,
    total_variance,
)
from subgrove._importance.result_data import ImportanceData
from subgrove._scoring.estimate_variance import overall_skewness, subgroup_skewness
from subgrove._scoring.feature_result import FeatureResult
from subgrove.samplers.auto.choice import SamplerChoice

MARK = "!"
NOT_REALISTIC = "resampled rows are not realistic"
FIDELITY_COLUMNS = ("feature", "n", "auc", "auc_std_error", "mmd", "fidelity", "reason")
CHOICE_COLUMNS = ("feature", "sampler", "score", "score_gap", "std_error", "complexity", "selected")
_MAX_SHOWN = 20  # features in the text of a result


def overall_line(result: ImportanceData, score: FeatureResult, at: int) -> dict[str, Any]:
    """Return the line of a feature in `overall`, for one loss."""
    per_row = result.per_row_losses[at]
    components = overall_components(score, at, result.weights, per_row=per_row)
    variance, df = total_variance(components, result.covered)
    estimate = np.array(float(score.overall[at].mean()))
    over_rows = TEST_ROWS in result.covered
    correction = overall_skewness(score, at, result.weights) if over_rows and per_row else None
    columns = interval_columns(estimate, np.sqrt(variance), df, result.level, correction)
    check = score.fidelity_check
    return {
        **result.loss_column(at),
        "feature": score.title,
        "n": as_count(float(score.sizes.sum())),
        **{name: float(value) for name, value in columns.items()},
        "mc_error": float(np.sqrt(components[MONTE_CARLO][0])),
        "noise": "none" if over_rows and not per_row else label(result.covered, calibrated=_is_calibrated(score)),
        **({} if check is None else {"auc": check.auc, "mmd": check.mmd, "fidelity": check.verdict}),
    }


def subgroup_lines(result: ImportanceData, score: FeatureResult, at: int) -> list[dict[str, Any]]:
    """Return the lines of a feature in `by_subgroup`, for one loss."""
    estimate = score.repeats[at].mean(axis=0)
    variance, df = total_variance(subgroup_components(score, at, result.weights), result.covered)
    correction = subgroup_skewness(score, at, result.weights) if TEST_ROWS in result.covered else None
    columns = interval_columns(estimate, np.sqrt(variance), df, result.level, correction)
    check = score.fidelity_check
    return [
        {
            **result.loss_column(at),
            "feature": score.title,
            **_subgroup_columns(score, k),
            "n": as_count(score.sizes[k]),
            **{name: float(values[k]) for name, values in columns.items()},
            "mc_error": float(np.sqrt(score.mc_variance[at, k])),
            "noise": label(result.covered, calibrated=_is_calibrated(score)),
            **({} if check is None else {"fidelity": check.verdict}),
        }
        for k in range(len(score.rules))
    ]


def _is_calibrated(score: FeatureResult) -> bool:
    return score.calibration is not None and score.calibration.is_used


def _subgroup_columns(score: FeatureResult, k: int) -> dict[str, Any]:
    fold = {"fold": score.folds[k]} if score.folds else {}
    return {**fold, "subgroup": k, "rule": score.rules[k]}


def component_lines(result: ImportanceData) -> list[dict[str, Any]]:
    """Return one line for each loss and feature: the standard error due to each source, and the largest source."""
    lines = []
    for at in range(len(result.losses)):
        for score in result.scores:
            components = overall_components(score, at, result.weights, per_row=result.per_row_losses[at])
            sources = known_sources(result.scores, result.settings)
            errors = {name: float(np.sqrt(components[name][0])) for name in sources}
            known = {name: error for name, error in errors.items() if error > 0}
            largest = max(known, key=lambda name: known[name]) if known else "none"
            lines.append({**result.loss_column(at), "feature": score.title, **errors, "largest": largest})
    return lines


def repeat_lines(result: ImportanceData) -> list[dict[str, Any]]:
    """Return one line for each loss, feature and repeat."""
    return [
        {**result.loss_column(at), "feature": score.title, "repeat": repeat, "estimate": float(value)}
        for at in range(len(result.losses))
        for score in result.scores
        for repeat, value in enumerate(score.overall[at])
    ]


def quantile_lines(result: ImportanceData, quantiles: Sequence[float], *, by_subgroup: bool) -> list[dict[str, Any]]:
    """Return one line for each loss and feature (or subgroup): mean, median and quantiles over repeats."""
    lines = []
    for at in range(len(result.losses)):
        for score in result.scores:
            for k in range(len(score.rules)) if by_subgroup else [None]:
                values = score.overall[at] if k is None else score.repeats[at, :, k]
                name = {} if k is None else _subgroup_columns(score, k)
                own = {**result.loss_column(at), "feature": score.title, **name}
                lines.append({**own, **_over_repeats(values, quantiles)})
    return lines


def _over_repeats(values: Floats, quantiles: Sequence[float]) -> dict[str, float]:
    columns = {"mean": float(values.mean()), "median": float(np.median(values))}
    return columns | {f"q{100 * level:g}": float(np.quantile(values, level)) for level in quantiles}


def fidelity_lines(scores: Sequence[FeatureResult]) -> list[dict[str, Any]]:
    """Return one line for each feature whose resampled rows were checked."""
    return [
        {
            "feature": score.title,
            "n": check.n,
            "auc": check.auc,
            "auc_std_error": check.auc_std_error,
            "mmd": check.mmd,
            "fidelity": check.verdict,
            "reason": check.reason,
        }
        for score in scores
        if (check := score.fidelity_check) is not None
    ]


def is_unrealistic(score: FeatureResult) -> bool:
    """Return whether the resampled rows of a feature failed the fidelity check."""
    return score.fidelity_check is not None and score.fidelity_check.verdict == "failed"


def sampler_choices(result: ImportanceData) -> dict[str, list[SamplerChoice]]:
    """Return feature -> the choice of `sampler="auto"`, one for each fold of cross-fitting."""
    stored = result.settings.get("choices") or {}
    return {name: [SamplerChoice.from_dict(one) for one in choices] for name, choices in stored.items()}


def choice_lines(result: ImportanceData) -> list[dict[str, Any]]:
    """Return one line for each feature, fold and candidate."""
    lines: list[dict[str, Any]] = []
    for name, choices in sampler_choices(result).items():
        for fold, choice in enumerate(choices):
            own = {"fold": fold} if len(choices) > 1 else {}
            lines += [{"feature": name, **own, **line} for line in choice.lines()]
    return lines


def result_text(result: ImportanceData) -> str:
    """Return a result as text: the largest importances first, those of unrealistic rows marked."""
    lines = [
        f"<ImportanceResult: {count_of(len(result.scores), 'feature')}, {count_of(result.n_rows, 'row')}, "
        f"sampler {result.settings.get('sampler')}, loss {', '.join(result.losses)}>"
    ]
    width = max(len(name) for name in result.features)
    for score in sorted(result.scores, key=lambda score: -score.overall[0].mean())[:_MAX_SHOWN]:
        line = overall_line(result, score, 0)
        mark = f"  {MARK}" if is_unrealistic(score) else ""
        lines.append(f"  {score.title:<{width}}  {line['estimate']:>12.6g}  +- {line['std_error']:.3g}{mark}")
    if len(result.scores) > _MAX_SHOWN:
        lines.append(f"  ... and {len(result.scores) - _MAX_SHOWN} more")
    if any(map(is_unrealistic, result.scores)):
        lines.append(f"  {MARK} {NOT_REALISTIC}, see .fidelity_checks")
    return "\n".join(lines)
