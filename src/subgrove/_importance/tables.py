"""The numbers that an importance result holds, the lines of its tables, its text, and differences of two results.

Differences have the standard error of paired rows where the rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import count_of, with_errors
from subgrove._core.validate import proportion
from subgrove._data.to_containers import as_count
from subgrove._importance import intervals
from subgrove._scoring.estimate_variance import (
    monte_carlo_variance,
    overall_skewness,
    overall_variance,
    reliability,
    subgroup_skewness,
)
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.auto.choice import SamplerChoice
from subgrove.samplers.base import Feature

MARK = "!"
NOT_REALISTIC = "resampled rows are not realistic"
_KINDS = {"marginal": "marginal", "left out": "LOCO"} | dict.fromkeys(
    ("auto", "cart", "forest_nodes", "imputation", "intervals", "knockoffs", "shifted_subgroups", "subgroups"),
    "conditional",
)
_MAX_SHOWN = 20  # features in the text of a result
_ROUNDING = 1e-12  # smaller relative differences count as 0


@dataclass(frozen=True, eq=False)
class ResultInputs:
    """What a result was computed from, as far as it is held in memory: subgroups used for reporting, at least."""

    subgroups: Mapping[Feature, Partition]


@dataclass(frozen=True, eq=False)
class ImportanceData:
    """Scores of features with the settings that they were computed with; `ImportanceResult` documents the fields."""

    scores: tuple[FeatureResult, ...]
    losses: tuple[str, ...]
    baseline: tuple[float, ...]
    settings: Mapping[str, Any]
    weights: Floats | None = None
    backend: str = "pandas"
    index: Any = field(default=None, repr=False)
    row_mask: Any = field(default=None, repr=False)
    per_row_losses: tuple[bool, ...] = ()
    level: float = 0.95
    sources: tuple[str, ...] | None = None
    predictions: Floats | None = field(default=None, repr=False)
    residuals: Floats | None = field(default=None, repr=False)
    _source: ResultInputs | None = field(default=None, repr=False)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in the order of the tables."""
        return tuple(score.title for score in self.scores)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.scores[0].n_rows

    @property
    def covered(self) -> tuple[str, ...]:
        """Sources of noise that standard errors, p-values and intervals cover."""
        return intervals.default_sources(self.settings) if self.sources is None else self.sources

    def _each(self) -> Iterator[tuple[int, FeatureResult, dict[str, Any]]]:
        """Yield the scores of each loss and feature, with the columns of a table that name them."""
        for at in range(len(self.losses)):
            for score in self.scores:
                yield at, score, {**loss_column(self.losses, at), "feature": score.title}

    def with_level(self, level: float) -> Self:
        """Return the same result with intervals of another confidence level.

        Parameters
        ----------
        level : float
            Coverage of the intervals, between 0 and 1.
        """
        return replace(self, level=proportion("level", level))

    def for_loss(self, loss: str) -> Self:
        """Return the result of one of several losses.

        Parameters
        ----------
        loss : str
            Its name, one of `losses`.
        """
        if not isinstance(loss, str) or loss not in self.losses:
            raise ParameterError(f"loss={loss!r} is not among the losses of this result: {', '.join(self.losses)}.")
        at = self.losses.index(loss)
        return replace(
            self,
            scores=tuple(score.for_loss(at) for score in self.scores),
            losses=(loss,),
            baseline=(self.baseline[at],),
            per_row_losses=(self.per_row_losses[at],),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    def _reject_groups(self, method: str) -> None:
        if self.scores[0].clusters is not None:
            raise ParameterError(
                f"{method} assumes independent rows, but this result was computed with groups=. Read .overall, whose "
                f"intervals and p-values are cluster-robust."
            )

    def _reject_scores(self, what: str, needs: str) -> None:
        without = [loss for loss, per_row in zip(self.losses, self.per_row_losses, strict=True) if not per_row]
        if without:
            raise ParameterError(
                f"{what} needs {needs}, but {', '.join(without)} is a score of all rows together. "
                f"Read .overall or .repeats, or use .for_loss(...) of a loss that has a value for each row."
            )


def loss_column(losses: tuple[str, ...], at: int) -> dict[str, str]:
    """Return the loss of a line of a table, where there are several."""
    return {} if len(losses) == 1 else {"loss": losses[at]}


def overall_line(result: ImportanceData, score: FeatureResult, at: int) -> dict[str, Any]:
    """Return the line of a feature in `overall`, for one loss."""
    per_row = result.per_row_losses[at]
    components = intervals.overall_components(score, at, result.weights, per_row=per_row)
    variance, df = intervals.total_variance(components, result.covered)
    estimate = np.array(float(score.overall[at].mean()))
    over_rows = intervals.TEST_ROWS in result.covered
    correction = overall_skewness(score, at, result.weights) if over_rows and per_row else None
    columns = intervals.interval_columns(estimate, np.sqrt(variance), df, result.level, correction)
    check = score.fidelity_check
    return {
        **loss_column(result.losses, at),
        "feature": score.title,
        "n": as_count(float(score.sizes.sum())),
        **{name: float(value) for name, value in columns.items()},
        "reliable": "" if correction is None else reliability(score, at, result.weights, correction),
        "mc_error": float(np.sqrt(components[intervals.MONTE_CARLO][0])),
        "noise": "none" if over_rows and not per_row else intervals.label(result.covered, score),
        **({} if check is None else {"auc": check.auc, "mmd": check.mmd, "fidelity": check.verdict}),
    }


def subgroup_lines(result: ImportanceData, score: FeatureResult, at: int) -> list[dict[str, Any]]:
    """Return the lines of a feature in `by_subgroup`, for one loss."""
    estimate = score.repeats[at].mean(axis=0)
    variance, df = intervals.total_variance(intervals.subgroup_components(score, at, result.weights), result.covered)
    correction = subgroup_skewness(score, at, result.weights) if intervals.TEST_ROWS in result.covered else None
    columns = intervals.interval_columns(estimate, np.sqrt(variance), df, result.level, correction)
    check = score.fidelity_check
    return [
        {
            **loss_column(result.losses, at),
            "feature": score.title,
            **subgroup_columns(score, k),
            "n": as_count(score.sizes[k]),
            **{name: float(values[k]) for name, values in columns.items()},
            "reliable": "" if correction is None else reliability(score, at, result.weights, correction.of(k), k),
            "mc_error": float(np.sqrt(score.mc_variance[at, k])),
            "noise": intervals.label(result.covered, score),
            **({} if check is None else {"fidelity": check.verdict}),
        }
        for k in range(len(score.rules))
    ]


def subgroup_columns(score: FeatureResult, k: int) -> dict[str, Any]:
    """Return the columns that name a subgroup of a feature."""
    fold = {"fold": score.folds[k]} if score.folds else {}
    return {**fold, "subgroup": k, "rule": score.rules[k]}


def is_unrealistic(score: FeatureResult) -> bool:
    """Return whether the resampled rows of a feature failed the fidelity check."""
    return score.fidelity_check is not None and score.fidelity_check.verdict == "failed"


def score_of(scores: Sequence[FeatureResult], feature: Any) -> FeatureResult:
    """Return the scores of a feature or group of features by its name; None stands for the only one."""
    if feature is None and len(scores) == 1:
        return scores[0]
    members = frozenset(map(str, feature)) if isinstance(feature, list | tuple) else None
    for score in scores:
        if score.title == str(feature) or frozenset(score.feature) == members:
            return score
    names = ", ".join(score.title for score in scores)
    raise ParameterError(f"feature={feature!r} is not among the features of this result: {names}.")


def sampler_choices(result: ImportanceData) -> dict[str, list[SamplerChoice]]:
    """Return feature -> the choice of `sampler="auto"`, one for each fold of cross-fitting."""
    stored = result.settings.get("choices") or {}
    return {name: [SamplerChoice.from_dict(one) for one in choices] for name, choices in stored.items()}


def importance_kind(result: ImportanceData) -> str:
    """Return "conditional" or "marginal"; "LOCO" for refitted models, "" for other samplers."""
    given = result.settings.get("given")
    if given and not any(given.values()) and None not in given.values():
        return "marginal"
    return _KINDS.get(str(result.settings.get("sampler")), "")


def result_text(result: ImportanceData) -> str:
    """Return a result as text: the largest importances first, those of unrealistic rows marked."""
    kind, groups = importance_kind(result), result.settings.get("n_groups")
    grouped = "" if groups is None else f" in {groups:,} groups"
    lines = [
        f"<ImportanceResult: {f'{kind} importance'.strip()} of {count_of(len(result.scores), 'feature')}, "
        f"{count_of(result.n_rows, 'row')}{grouped}, sampler {result.settings.get('sampler')}, "
        f"loss {', '.join(result.losses)}>"
    ]
    shown = sorted(result.scores, key=lambda score: -score.overall[0].mean())[:_MAX_SHOWN]
    table = [overall_line(result, score, 0) for score in shown]
    errors = [np.nan if line["reliable"] else line["std_error"] for line in table]
    texts, width = with_errors([line["estimate"] for line in table], errors), max(map(len, result.features))
    for score, line, text in zip(shown, table, texts, strict=True):
        reason, mark = f"  ({line['reliable']})" if line["reliable"] else "", f"  {MARK}" * is_unrealistic(score)
        lines.append(f"  {score.title:<{width}}  {text}{reason}{mark}")
    if len(result.scores) > _MAX_SHOWN:
        lines.append(f"  ... and {len(result.scores) - _MAX_SHOWN} more")
    if any(map(is_unrealistic, result.scores)):
        lines.append(f"  {MARK} {NOT_REALISTIC}, see .fidelity_checks")
    return "\n".join(lines)


def differences(one: ImportanceData, two: ImportanceData) -> list[dict[str, Any]]:
    """Return the lines of `ImportanceResult.compare`, for features and losses that both results have."""
    losses = [(one.losses.index(loss), two.losses.index(loss)) for loss in one.losses if loss in two.losses]
    # Calibrated results have weights of their own: paired differences need the same weight for every row.
    theirs = {score.title: score.uncalibrated() for score in with_rows(two.scores, "compare")}
    shared = [score.uncalibrated() for score in with_rows(one.scores, "compare") if score.title in theirs]
    if not losses or not shared:
        raise ParameterError("The two results have no loss, or no feature, in common.")
    paired, covers_draws = same_rows(one, two), intervals.MONTE_CARLO in one.covered
    same_seed = all(one.settings.get(key) == two.settings.get(key) for key in ("random_state", "sampler", "n_repeats"))
    covered = [intervals.TEST_ROWS, *([intervals.MONTE_CARLO] if covers_draws else [])]
    lines = []
    for place, (mine, yours) in enumerate(losses):
        for first in shared:
            second = theirs[first.title]
            same_draws = paired and same_seed and _same_subgroups(first, second)
            if paired:
                rows = intervals.paired_variance(first, second, losses, one.weights, same_draws=same_draws)
                variance, df = float(rows[place]), min(first.n_units, second.n_units) - 1
            else:
                own, other = overall_variance(first, one.weights)[mine], overall_variance(second, two.weights)[yours]
                variance, df = float(own + other), _welch(float(own), float(other), first.n_units, second.n_units)
            if covers_draws and not same_draws:  # otherwise the variance of the rows includes it
                draws = [monte_carlo_variance(each, at, per_row=True) for each, at in ((first, mine), (second, yours))]
                variance += float(np.nansum(draws))
            a, b = float(first.overall[mine].mean()), float(second.overall[yours].mean())
            columns = intervals.interval_columns(np.array(a - b), np.sqrt(variance), np.array(df), one.level)
            p = float(columns["p_value"])
            line = {
                **loss_column(one.losses, mine),
                "feature": first.title,
                "n": as_count(float(first.sizes.sum())),
                "this": a,
                "other": b,
                **{name: float(value) for name, value in columns.items()},
                "p_value": 1.0 if abs(a - b) <= _ROUNDING * max(abs(a), abs(b)) else min(1.0, 2 * min(p, 1 - p)),
                "noise": intervals.label(covered, first),
            }
            lines.append(line)
    return lines


def same_rows(one: ImportanceData, two: ImportanceData) -> bool:
    """Return whether two results are of the same rows, with the same weights."""
    first, second = (np.ones(each.n_rows) if each.weights is None else each.weights for each in (one, two))
    same_data = one.settings.get("fingerprint") == two.settings.get("fingerprint")
    return same_data and np.array_equal(first, second)


def _same_subgroups(first: FeatureResult, second: FeatureResult) -> bool:
    return np.array_equal(first.code, second.code) and first.overall.shape == second.overall.shape


def _welch(own: float, other: float, n: float, m: float) -> float:
    """Return Welch and Satterthwaite's degrees of freedom of a difference, from both variances and numbers of rows."""
    spread = own**2 / max(n - 1, 1e-9) + other**2 / max(m - 1, 1e-9)
    return (own + other) ** 2 / spread if spread > 0 else n + m - 2
