"""Everything about one feature, from the results of the verbs: estimates, subgroups, certificate, curves, sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._data.columns import number_text
from subgrove._data.table import TypedColumn
from subgrove._importance import ImportanceResult
from subgrove._importance.explanation import redrawn
from subgrove._importance.tables import overall_line, subgroup_lines
from subgrove._report.curves import Curves, curves_of
from subgrove._report.distribution import distribution
from subgrove._report.effect_words import level_sentences, numeric_sentences
from subgrove._report.gap_summaries import WITHOUT, Gaps
from subgrove._report.inputs import Asked
from subgrove._report.numbers import number, tidy, with_interval
from subgrove._report.summary import CandidateSummary, Certificate, Estimate, FeatureSummary, SubgroupSummary
from subgrove._report.trees import nodes_of
from subgrove._report.wording import certificate_sentence, contrast, headline, one_step, reading, subgroup_sentence
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.summed import Scores, with_rows
from subgrove._subgroups import Partition

MIDDLE = (0.05, 0.95)
"""Quantiles between which curves are put in words."""
_DAYS = 10 * 86_400e6  # microseconds; dates further from each other are told without their time


@dataclass(frozen=True, eq=False)
class Results:
    """What was computed of all features: importance of both kinds, gaps, and how flat a curve must be."""

    conditional: ImportanceResult
    marginal: ImportanceResult
    gaps: Gaps
    spread: float

    @property
    def baseline(self) -> float:
        """Loss of the rows as they are."""
        return float(self.conditional.baseline[0])


def estimate_of(line: Mapping[str, Any]) -> Estimate:
    """The numbers of a line of a table; None where they are not known."""
    known = {
        name: None if line[name] is None or np.isnan(line[name]) else float(line[name])
        for name in ("std_error", "conf_low", "conf_high", "p_value", "mc_error")
    }
    return Estimate(float(line["estimate"]), **known, noise=str(line["noise"]))


def certificate_of(score: Scores, how: str) -> Certificate | None:
    """Whether redrawn rows pass for real ones."""
    one = score.fidelity_check
    if one is None:
        return None
    auc, mmd = (None if np.isnan(value) else float(value) for value in (one.auc, one.mmd))
    plain = Certificate(one.verdict, auc, mmd, "")
    return Certificate(one.verdict, auc, mmd, certificate_sentence(score.title, plain, one.reason, how))


def feature_summaries(asked: Asked, results: Results, done: Callable[[int], None]) -> tuple[list[FeatureSummary], int]:
    """All features by rank, and rows that curves asked for; `done` is told of each feature."""
    by_estimate = sorted(
        with_rows(results.conditional.scores, "report"), key=lambda score: -float(score.overall[0].mean())
    )
    told, rows = [], 0
    for place, score in enumerate(by_estimate):
        curves = curves_of(asked, score.title, results.conditional.subgroups.get(score.title))
        told.append(_summary(asked, results, score, place + 1, curves))
        rows += curves.rows_predicted
        done(1)
    return told, rows


def _summary(asked: Asked, results: Results, score: FeatureResult, rank: int, curves: Curves) -> FeatureSummary:
    result, name = results.conditional, score.title
    other = next(one for one in results.marginal.scores if one.title == name)
    partition = result.subgroups.get(name)
    conditional, marginal = (
        estimate_of(overall_line(result, score, 0)),
        estimate_of(overall_line(results.marginal, other, 0)),
    )
    choice = next(iter((result.settings.get("choices") or {}).get(name, [])), None)
    sampler = str(choice["chosen"] if choice else result.settings["sampler"])
    series = asked.used.table.series(name)
    subgroups = _subgroups(asked, results, score, partition)
    certificate = certificate_of(score, "redrawn")
    gap = results.gaps.parts(name, len(asked.test.table.names) - 1)
    summary = FeatureSummary(
        name,
        series.info.kind,
        rank,
        conditional,
        marginal,
        headline(name, conditional, marginal, results.baseline, result.level, alone=sampler == "marginal"),
        sampler,
        _candidates(choice),
        certificate,
        certificate_of(other, "shuffled"),
        gap,
        (),
        nodes_of(partition, asked.train.n),
        subgroups,
        curves.lines,
        distribution(series, score.code, len(score.rules)),
        curves.x_labels,
        tuple(_effect_sentences(asked, results, score, series, curves)),
    )
    object.__setattr__(summary, "story", tuple(_story(results, score, summary)))  # written from the rest of it
    return summary


def _subgroups(
    asked: Asked, results: Results, score: FeatureResult, partition: Partition | None
) -> tuple[SubgroupSummary, ...]:
    sizes = (asked.train.n,) if partition is None else partition.sizes
    told = []
    for line in subgroup_lines(results.conditional, score, 0):
        n, at = int(line["n"]), int(line["subgroup"])
        estimate = estimate_of(line) if n else None
        sentence = subgroup_sentence(
            score.title, line["rule"], n, estimate, results.baseline, results.conditional.level
        )
        n_train = round(sizes[at]) if at < len(sizes) else None
        told.append(SubgroupSummary(at, line["rule"], n_train, n, estimate, sentence))
    return tuple(told)


def _candidates(choice: Mapping[str, Any] | None) -> tuple[CandidateSummary, ...]:
    scores = [] if choice is None else choice["scores"]

    def known(value: float) -> float | None:
        return None if value is None or np.isnan(value) else float(value)

    return tuple(
        CandidateSummary(
            one["name"],
            known(one["score"]),
            known(one["score_gap"]),
            known(one["std_error"]),
            int(one["complexity"]),
            choice is not None and one["name"] == choice["chosen"],
        )
        for one in scores
    )


def _story(results: Results, score: FeatureResult, told: FeatureSummary) -> list[str]:
    """How it was redrawn, what that costs and where, whether to trust it, and what the others already tell."""
    result, name = results.conditional, told.feature
    loss = result.losses[0].replace("_", " ")
    sentences = [*redrawn(result, score), _cost(told.conditional, results.baseline, result.level, loss)]
    if (differs := contrast(name, told.subgroups, results.baseline)) is not None:
        sentences.append(differs)
    if told.certificate is not None:
        sentences.append(told.certificate.sentence)
    gap = results.gaps.by_feature.get(name)
    if gap is not None and gap.kind in WITHOUT:
        sentences.append(
            f"Shuffled among the test rows it costs {number(gap.marginal)}: only the rows that gave values differ."
        )
    elif gap is None:
        sentences += one_step(name, told.gap, told.marginal, told.conditional)
    else:
        sentences += [one for one in gap.sentences if _agrees(one, told.conditional, results.baseline)]
    return [tidy(sentence) for sentence in sentences]


def _cost(one: Estimate, baseline: float, level: float, loss: str) -> str:
    before, after = number(baseline), number(baseline + one.estimate)
    if not one.estimate:
        return f"Redrawn like this, the {loss} stays at {before}: a change of {with_interval(one, level)}."
    moved = "falls" if one.estimate < 0 else "grows"
    return f"Redrawn like this, the {loss} {moved} from {before} to {after}: a change of {with_interval(one, level)}."


def _agrees(sentence: str, one: Estimate, baseline: float) -> bool:
    """Whether what is said to be left at the end of a gap is what the interval says: limits differ a little."""
    matters = reading(one, baseline) == "matters"
    if sentence.startswith("Nothing that is clear of noise is left"):
        return not matters
    return matters or " alone knows" not in sentence


def _effect_sentences(
    asked: Asked, results: Results, score: FeatureResult, series: TypedColumn, curves: Curves
) -> list[str]:
    if curves.refused:
        return [tidy(f"There are no curves of {score.title}: {curves.refused}")]
    numeric = series.info.kind == "numeric"
    bounds = _middles(series.values, score) if numeric else []
    ends = None
    if numeric and (series.info.is_date or series.info.is_duration) and bounds[0] is not None:
        ends = _moments(bounds[0], series)
    told = []
    for output in dict.fromkeys(line.output for line in curves.lines):
        own = [line for line in curves.lines if line.output == output]
        if numeric:
            told += numeric_sentences(score.title, own, bounds, score.rules, results.spread, ends)
        else:
            told += level_sentences(score.title, own, score.rules, results.spread)
    return told


def _moments(bounds: tuple[float, float], series: TypedColumn) -> tuple[str, str]:
    """Two dates or durations in words; days, where they are far from each other."""
    far = series.info.is_date and bounds[1] - bounds[0] > _DAYS
    low, high = (number_text(round(value), series.info) for value in bounds)
    return (low.partition("T")[0], high.partition("T")[0]) if far else (low, high)


def _middles(values: Floats, score: FeatureResult) -> list[tuple[float, float] | None]:
    """Where the middle 90 % of all rows lies, and that of each subgroup."""
    known = ~np.isnan(values)
    parts = [known] + [known & (score.code == k) for k in range(len(score.rules))]
    return [
        None
        if not part.any()
        else (float(np.quantile(values[part], MIDDLE[0])), float(np.quantile(values[part], MIDDLE[1])))
        for part in parts
    ]
