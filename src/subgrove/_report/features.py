"""The summary of each feature: estimates, subgroups, fidelity, gap, curves and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import number
from subgrove._data.columns import number_text
from subgrove._data.table import TypedColumn
from subgrove._importance import explanation
from subgrove._importance.gap_result import Gap
from subgrove._importance.result import ImportanceResult
from subgrove._importance.tables import differences
from subgrove._report import curve_shapes, wording
from subgrove._report import summary as structs
from subgrove._report.curves import FeatureCurves, curves_of_features, distribution
from subgrove._report.inputs import ReportInputs
from subgrove._report.model_summary import ImportantSize
from subgrove._report.summary import Estimate, FeatureSummary
from subgrove._scoring.feature_result import FeatureResult, with_rows
from subgrove._subgroups import Partition

MOST_ROWS = 800_000
"""Rows that may be predicted for the steps of all gaps together."""
MOST_FITS = 9
"""Number of times that samplers may be refitted, for all features together."""
_NO_COLUMN = ("no split", "no columns")  # kinds of gaps that no column explains
_SETS = 4  # the three strongest columns and all others
_TREES = ("marginal", "subgroups")


@dataclass(frozen=True, eq=False)
class FeatureGaps:
    """The gap of each feature that has steps, the difference of each feature, and the number of rows predicted."""

    by_feature: dict[str, Gap]
    differences: dict[str, dict[str, Any]]
    rows_predicted: int

    def unexplained(self, feature: str) -> bool:
        """Whether no column explains the gap, so that it is due to the donor rows alone."""
        found = self.by_feature.get(feature)
        return found is not None and found.kind in _NO_COLUMN

    def steps(self, feature: str, n_columns: int) -> tuple[structs.GapStepSummary, ...]:
        """Return the steps of a feature; one step for all columns where they were not computed one by one."""
        found = self.by_feature.get(feature)
        if self.unexplained(feature) or not n_columns:
            return ()
        if found is not None:
            values = ((one.column, one.start, one.end, one.step, one.noise) for one in found.parts)
            return tuple(structs.GapStepSummary(*each) for each in values)
        line = self.differences[feature]
        title = "the other column" if n_columns == 1 else f"the other {n_columns} columns"
        noise = None if np.isnan(line["std_error"]) else float(line["std_error"])
        return (structs.GapStepSummary(title, line["other"], line["this"], -line["estimate"], noise),)


def feature_gaps(conditional: ImportanceResult, marginal: ImportanceResult, n_columns: int) -> FeatureGaps:
    """Return the gaps of the features, the most significant first."""
    single = {score.title for score in conditional.scores if len(score.feature) == 1}
    lines = {line["feature"]: line for line in differences(conditional, marginal) if line["feature"] in single}
    gaps: dict[str, Gap] = {}
    n_rows, n_fits = 0, 0
    for feature in sorted(lines, key=lambda name: -_significance(lines[name])):
        rows, fits = _cost(conditional, feature, n_columns)
        if rows and (n_rows + rows > MOST_ROWS or n_fits + fits > MOST_FITS):
            continue
        gap = conditional.explain_gap(marginal, feature)
        gaps[feature] = gap
        n_rows += gap.n_rows_predicted
        n_fits += fits if gap.n_rows_predicted else 0
    return FeatureGaps(gaps, lines, n_rows)


def _significance(line: dict[str, Any]) -> float:
    return abs(line["estimate"]) / line["std_error"] if line["std_error"] > 0 else 0.0


def _cost(result: ImportanceResult, feature: str, n_columns: int) -> tuple[int, int]:
    """Return how many rows the steps of a feature predict at most, and how often its sampler is refitted."""
    n_resampled = result.n_rows * int(result.settings["n_repeats"])
    selected = [one["selected"] for one in (result.settings.get("choices") or {}).get(feature, [])]
    if feature in result.subgroups and (not selected or selected[0] in _TREES):
        score = next(one for one in result.scores if one.title == feature)
        return max(len(score.conditioning) - 1, 0) * n_resampled, 0
    sets = max(min(n_columns, _SETS) - 1, 0)
    return sets * n_resampled, sets


MIDDLE = (0.05, 0.95)
"""Quantiles between which curves are described."""
_DAYS = 10 * 86_400e6  # microseconds; dates further apart are written without their time


@dataclass(frozen=True, eq=False)
class ReportResults:
    """Results for all features: importance of both kinds, gaps, and the standard deviation of predictions.

    Nothing is called important if the model is not better than a constant prediction (`has_gain`).
    """

    inputs: ReportInputs
    conditional: ImportanceResult
    marginal: ImportanceResult
    gaps: FeatureGaps
    spread: float
    has_gain: bool

    @property
    def baseline(self) -> float:
        """Loss of the baseline predictions."""
        return float(self.conditional.baseline[0])

    @cached_property
    def important(self) -> ImportantSize:
        """From which size on an importance counts as important."""
        gain, of = explanation.reference_of(self.conditional, 0)
        return ImportantSize(self.inputs.min_share * gain, self.inputs.min_share, of)

    @cached_property
    def estimates(self) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
        """The conditional and the marginal estimate of each feature and group.

        P-values are adjusted for the groups and the features that belong to none; those of members of groups for all
        features.
        """
        return _estimates(self.conditional, self.share), _estimates(self.marginal, self.share, checked=False)

    @property
    def share(self) -> float | None:
        """Share of the gain that counts as important; None if there is no gain."""
        return self.inputs.min_share if self.has_gain else None


def _estimates(result: ImportanceResult, share: float | None, *, checked: bool = True) -> dict[str, Estimate]:
    grouped = {name for score in result.scores if len(score.feature) > 1 for name in score.feature}
    features = tuple(score for score in result.scores if len(score.feature) == 1)
    others = tuple(score for score in result.scores if score.title not in grouped)
    both = (replace(result, scores=some) for some in (features, others))
    found = [explanation.overall_findings(one, 0, share, checked=checked) for one in both]
    return {name: estimate_of(*line) for name, line in (found[0] | found[1]).items()}


def estimate_of(line: Mapping[str, Any], finding: explanation.Finding) -> Estimate:
    """Return the estimate in a row of a table; None for unknown numbers and for intervals that do not hold."""
    if reason := str(line.get("reliable") or ""):
        low = line["conf_low"] if explanation.has_lower_bound(line) and line["conf_low"] > 0 else np.nan
        line = {**line, "conf_low": low, "conf_high": np.nan, "p_value": np.nan}
    known = {name: _known(line[name]) for name in ("std_error", "conf_low", "conf_high", "p_value", "mc_error")}
    return Estimate(float(line["estimate"]), **known, noise=str(line["noise"]), finding=finding, unreliable=reason)


def fidelity_of(score: FeatureResult, how: str) -> structs.FidelitySummary | None:
    """Return the fidelity check of the "resampled" or "shuffled" rows of a feature."""
    check = score.fidelity_check
    if check is None:
        return None
    found = structs.FidelitySummary(check.verdict, _known(check.auc), _known(check.mmd), "")
    return msgspec.structs.replace(found, sentence=wording.fidelity_sentence(score.title, found, check.reason, how))


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)


def feature_summaries(results: ReportResults, advance: Callable[[int], None]) -> tuple[list[FeatureSummary], int]:
    """Return all features by rank, and the number of rows predicted for curves; `advance` reports progress."""
    single = [score for score in with_rows(results.conditional.scores, "report") if len(score.feature) == 1]
    summaries, n_rows = [], 0
    ranked = sorted(single, key=lambda score: -float(score.overall[0].mean()))
    titles, partitions = [score.title for score in ranked], results.conditional.subgroups
    curves = curves_of_features(results.inputs, titles, partitions)
    for place, score in enumerate(ranked):
        own = curves[score.title]
        summaries.append(_summary(results, score, place + 1, own))
        n_rows += own.rows_predicted
        advance(1)
    return summaries, n_rows


def group_summaries(results: ReportResults) -> tuple[structs.GroupSummary, ...]:
    """Return the groups of features, the most important first."""
    summaries = []
    conditional, marginal = results.estimates
    for score in results.conditional.scores:
        if len(score.feature) > 1:
            members = sorted(score.feature, key=lambda one: -marginal[one].estimate)
            name = wording.group_words(score.title, score.feature, members)
            one, other = conditional[score.title], marginal[score.title]
            sentence = wording.headline(name, one, other, results.conditional.level, False, results.important.words)
            fidelity = fidelity_of(score, "resampled")
            summaries.append(structs.GroupSummary(name, tuple(score.feature), one, other, fidelity, sentence))
    return tuple(sorted(summaries, key=lambda one: -one.conditional.estimate))


def _summary(results: ReportResults, score: FeatureResult, rank: int, curves: FeatureCurves) -> FeatureSummary:
    inputs, result, name = results.inputs, results.conditional, score.title
    conditional, marginal = (each[name] for each in results.estimates)
    other = next(one for one in results.marginal.scores if one.title == name)
    partition = result.subgroups.get(name)
    choice = next(iter((result.settings.get("choices") or {}).get(name, [])), None)
    sampler = str(choice["selected"] if choice else result.settings["sampler"])
    series = inputs.used.table.series(name)
    independent = sampler == "marginal"
    sentences, direction = _effect_words(results, score, curves)
    summary = FeatureSummary(
        feature=name,
        kind=series.info.kind,
        rank=rank,
        conditional=conditional,
        marginal=marginal,
        headline=wording.headline(name, conditional, marginal, result.level, independent, results.important.words),
        sampler=sampler,
        candidates=tuple(_candidates(choice)) if choice else (),
        fidelity=fidelity_of(score, "resampled"),
        marginal_fidelity=fidelity_of(other, "shuffled"),
        gap=results.gaps.steps(name, len(inputs.test.table.names) - 1),
        story=(),
        tree=tuple(_nodes(partition, inputs.train.n)),
        subgroups=tuple(_subgroups(results, score, partition)),
        lines=curves.lines,
        distribution=distribution(series, score.code, len(score.rules)),
        x_labels=curves.x_labels,
        effect_sentences=tuple(sentences),
        direction=direction,
    )
    return msgspec.structs.replace(summary, story=tuple(_story(results, score, summary)))


def _subgroups(
    results: ReportResults, score: FeatureResult, partition: Partition | None
) -> Iterator[structs.SubgroupSummary]:
    sizes = (results.inputs.train.n,) if partition is None else partition.sizes
    for line, finding in explanation.subgroup_findings(results.conditional, score, 0, results.share):
        n, at = int(line["n"]), int(line["subgroup"])
        estimate = estimate_of(line, finding) if n else None
        sentence = wording.subgroup_sentence(score.title, line["rule"], n, estimate, results.conditional.level)
        n_train = round(sizes[at]) if at < len(sizes) else None
        yield structs.SubgroupSummary(at, line["rule"], n_train, n, estimate, sentence)


def _nodes(partition: Partition | None, n_train: int) -> Iterator[structs.TreeNode]:
    """Yield the nodes of the tree whose leaves are the subgroups, depth first; one node if there is no tree."""
    if partition is None:
        yield structs.TreeNode(None, "", "", n_train, None, 0)
        return
    tree, branches = partition.tree, partition.tree.branches
    leaf = {node.id: place for place, node in enumerate(tree.leaves)}
    for node in tree.nodes:
        branch = branches.get(node.id)
        column, rule = (branch.column.name, str(branch)) if branch else ("", "")
        p_value = None if node.is_leaf else _known(node.p_value)
        parent = None if node.parent is None else node.parent - 1
        yield structs.TreeNode(parent, column, rule, round(node.n), p_value, leaf.get(node.id))


def _candidates(choice: Mapping[str, Any]) -> Iterator[structs.CandidateSummary]:
    for one in choice["scores"]:
        score, gap, error = (_known(one[key]) for key in ("score", "score_gap", "std_error"))
        selected = one["name"] == choice["selected"]
        yield structs.CandidateSummary(one["name"], score, gap, error, int(one["complexity"]), selected)


def _story(results: ReportResults, score: FeatureResult, summary: FeatureSummary) -> list[str]:
    """Return how the feature is resampled, its importance and where it is largest, its fidelity, and its gap."""
    result, name = results.conditional, summary.feature
    sentences = [*explanation.resampling_sentences(result, score), _loss_change(summary.conditional, results)]
    if (difference := wording.contrast(name, summary.subgroups, result.level)) is not None:
        sentences.append(difference)
    if summary.fidelity is not None:
        sentences.append(summary.fidelity.sentence)
    if results.gaps.unexplained(name):
        change = number(summary.marginal.estimate)
        sentences.append(f"Shuffling it changes the loss by {change}; the two differ only by the donor rows.")
    else:
        sentences += wording.gap_sentences(name, summary.gap, summary.marginal)
    return [wording.tidy(sentence) for sentence in sentences]


def _loss_change(one: Estimate, results: ReportResults) -> str:
    loss = results.conditional.losses[0].replace("_", " ")
    change = wording.with_interval(one, results.conditional.level)
    if not one.estimate:
        return f"The {loss} stays at {number(results.baseline)} when it is resampled: a change of {change}."
    verb = "falls" if one.estimate < 0 else "rises"
    ends = f"from {number(results.baseline)} to {number(results.baseline + one.estimate)}"
    return f"The {loss} {verb} {ends} when it is resampled: a change of {change}."


def _effect_words(results: ReportResults, score: FeatureResult, curves: FeatureCurves) -> tuple[list[str], str]:
    """Return the sentences on curves, and what predictions do as the feature increases.

    The latter is "" for several outputs, or if it is unknown.
    """
    name, spread, series = score.title, results.spread, results.inputs.used.table.series(score.title)
    if curves.error:
        return [wording.tidy(f"There are no curves of {name}: {curves.error}")], ""
    by_output = {line.output: [each for each in curves.lines if each.output == line.output] for line in curves.lines}
    by_kind = {line.kind: line for line in curves.lines if line.subgroup is None and len(by_output) == 1}
    main = by_kind.get("ale", by_kind.get("pdp"))  # ALE compares neighbouring rows, PDP may include unrealistic ones
    if series.info.kind != "numeric":
        shown = [curve_shapes.level_sentences(name, own, spread) for own in by_output.values()]
        direction = "" if main is None else curve_shapes.level_direction(name, main, spread)
        return list(map(wording.tidy, chain(*shown))), direction
    bounds, dated = _middle_ranges(series.values, score), series.info.is_date or series.info.is_duration
    ends = _date_texts(bounds[0], series) if dated and bounds[0] is not None else None
    shown = [curve_shapes.numeric_sentences(name, own, bounds, spread, ends) for own in by_output.values()]
    shape = curve_shapes.curve_shape(main, bounds[0], spread)
    direction = "" if shape is None else curve_shapes.numeric_direction(name, shape, dated=dated)
    return list(map(wording.tidy, chain(*shown))), direction


def _date_texts(bounds: tuple[float, float], series: TypedColumn) -> tuple[str, str]:
    """Return two dates or durations as text; days only, where they are far apart."""
    far = series.info.is_date and bounds[1] - bounds[0] > _DAYS
    low, high = (number_text(round(value), series.info) for value in bounds)
    return (low.partition("T")[0], high.partition("T")[0]) if far else (low, high)


def _middle_ranges(values: Floats, score: FeatureResult) -> list[tuple[float, float] | None]:
    """Return the range of the middle 90 % of all rows, and of the rows of each subgroup."""
    known = ~np.isnan(values)
    masks = [known] + [known & (score.code == k) for k in range(len(score.rules))]
    return [tuple(np.quantile(values[mask], MIDDLE).tolist()) if mask.any() else None for mask in masks]
