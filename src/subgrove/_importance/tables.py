"""From what a result keeps of a feature to the lines of its tables, and to its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.result_tables import as_count
from subgrove._importance.fidelity_columns import EXPLAINED, MARK, certificate_columns, fails, verdict_column
from subgrove._importance.inference.intervals import interval_columns
from subgrove._importance.inference.variance_components import (
    MONTE_CARLO,
    TEST_ROWS,
    added,
    label,
    overall_parts,
    subgroup_parts,
)
from subgrove._scoring.estimate_variance import overall_skewness, subgroup_skewness
from subgrove._scoring.feature_result import FeatureResult

if TYPE_CHECKING:
    from subgrove._importance.result import ImportanceResult

_MOST_SHOWN = 20  # features in the text of a result


def overall_line(result: ImportanceResult, score: FeatureResult, at: int) -> dict[str, Any]:
    """The line of a feature in `overall`, for one loss."""
    n = float(score.sizes.sum())
    parts = overall_parts(score, at, result.weights, per_row=result.per_row_losses[at])
    variance, df = added(parts, result.covered)
    estimate = np.array(float(score.overall[at].mean()))
    leans = TEST_ROWS in result.covered and result.per_row_losses[at]
    shape = overall_skewness(score, at, result.weights) if leans else None
    columns = interval_columns(estimate, np.sqrt(variance), df, result.level, shape)
    unknown = TEST_ROWS in result.covered and not result.per_row_losses[at]
    return {
        **loss_column(result.losses, at),
        "feature": score.title,
        "n": as_count(n),
        **{name: float(value) for name, value in columns.items()},
        "mc_error": float(np.sqrt(parts[MONTE_CARLO][0])),
        "noise": "none" if unknown else label(result.covered, calibrated=_is_calibrated(score)),
        **certificate_columns(score),
    }


def subgroup_lines(result: ImportanceResult, score: FeatureResult, at: int) -> list[dict[str, Any]]:
    """The lines of a feature in `by_subgroup`, for one loss."""
    estimate = score.repeats[at].mean(axis=0)
    variance, df = added(subgroup_parts(score, at, result.weights), result.covered)
    shape = subgroup_skewness(score, at, result.weights) if TEST_ROWS in result.covered else None
    columns = interval_columns(estimate, np.sqrt(variance), df, result.level, shape)
    return [
        {
            **loss_column(result.losses, at),
            "feature": score.title,
            **subgroup_columns(score, k),
            "n": as_count(score.sizes[k]),
            **{name: float(values[k]) for name, values in columns.items()},
            "mc_error": float(np.sqrt(score.mc_variance[at, k])),
            "noise": label(result.covered, calibrated=_is_calibrated(score)),
            **verdict_column(score),
        }
        for k in range(len(score.rules))
    ]


def _is_calibrated(score: FeatureResult) -> bool:
    return isinstance(score, FeatureResult) and score.calibration is not None and score.calibration.is_used


def subgroup_columns(score: FeatureResult, k: int) -> dict[str, Any]:
    """What a line says of its subgroup."""
    fold = {"fold": score.folds[k]} if score.folds else {}
    return {**fold, "subgroup": k, "rule": score.rules[k]}


def loss_column(losses: Sequence[str], at: int) -> dict[str, str]:
    """The loss of a line, where there are several."""
    return {} if len(losses) == 1 else {"loss": losses[at]}


def over_draws(values: Floats, quantiles: Sequence[float]) -> dict[str, float]:
    """Mean, median and quantiles of one number for each repeat."""
    columns = {"mean": float(values.mean()), "median": float(np.median(values))}
    columns |= {f"q{100 * level:g}": float(np.quantile(values, level)) for level in quantiles}
    return columns


def shown(result: ImportanceResult) -> str:
    """A result as text: the largest importances first, those of redraws that fail marked."""
    lines = [
        f"<ImportanceResult: {_counted(len(result.scores), 'feature')}, {_counted(result.n_rows, 'row')}, "
        f"sampler {result.settings.get('sampler')}, loss {', '.join(result.losses)}>"
    ]
    width = max(len(name) for name in result.features)
    for score in sorted(result.scores, key=lambda score: -score.overall[0].mean())[:_MOST_SHOWN]:
        line = overall_line(result, score, 0)
        mark = f"  {MARK}" if fails(score) else ""
        lines.append(f"  {score.title:<{width}}  {line['estimate']:>12.6g}  +- {line['std_error']:.3g}{mark}")
    if len(result.scores) > _MOST_SHOWN:
        lines.append(f"  ... and {len(result.scores) - _MOST_SHOWN} more")
    if any(map(fails, result.scores)):
        lines.append(f"  {EXPLAINED}")
    return "\n".join(lines)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
