"""Notebook views of importance, refits, relative importance, gaps, depth profiles and explanations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from subgrove._core.html_views import html_of
from subgrove._core.text import count_of
from subgrove._importance import tables
from subgrove._importance.conditioning_steps import RelativeImportance
from subgrove._importance.depth_profile import DepthProfile
from subgrove._importance.explanation import Explanation
from subgrove._importance.gap_result import Gap, total_error
from subgrove._importance.intervals import SAMPLER
from subgrove._importance.refits import RefitsResult
from subgrove._importance.result import ImportanceResult
from subgrove._report.notebook_cards import MOST_ROWS, bar, between, card, chart_scale, dot, folded, sentences, table
from subgrove._report.svg import number
from subgrove._scoring.feature_result import FeatureResult

TableRow = dict[str, Any]


@html_of.register
def importance_html(result: ImportanceResult) -> str:
    """Return the largest importances with intervals, marked if the fidelity check failed; subgroups are folded away."""
    best = sorted(result.scores, key=lambda score: -float(score.overall[0].mean()))[:MOST_ROWS]
    lines = [tables.overall_line(result, score, 0) for score in best]
    marks = [tables.is_unrealistic(score) for score in best]
    checked = any(score.fidelity_check is not None for score in best)
    heads = ["feature", *_interval_heads(result.level), "fidelity check" if checked else None]
    cells = [[*row, _verdict(score)] for row, score in zip(_with_intervals(lines, marks), best, strict=True)]
    shown = table(heads, cells, len(result.scores), ".overall")
    warning = [f"{tables.MARK} {tables.NOT_REALISTIC}."] if any(marks) else []
    kind = tables.importance_kind(result)
    title = _words(f"{f'{kind} importance'.strip()} of {count_of(len(result.scores), 'feature')}")
    return card(title, _about(result, lines), shown, sentences(warning), _subgroups(result, best))


@html_of.register
def refits_html(result: RefitsResult) -> str:
    """Return the largest importances over refits, with intervals."""
    lines = result._largest_first()
    n = result.estimates.shape[2]
    several = _several_losses(result.losses)
    noise = f"intervals cover noise of {lines[0]['noise']}"
    note = f"{_words(result.losses[0])}, mean over {count_of(n, 'refit')}; {noise}{several}."
    heads = ["feature", *_interval_heads(result.level)]
    shown = table(heads, _with_intervals(lines[:MOST_ROWS]), len(lines), ".overall")
    return card(f"Importance of {count_of(len(result.features), 'feature')}, over refits", note, shown)


@html_of.register
def relative_html(result: RelativeImportance) -> str:
    """Return importance step by step, from no conditioning column to all."""
    losses = result.results[0].losses
    lines = result._lines(losses[0])
    names = ["given nothing", *(f"+ {name}" for name in result.added[1:])]
    named = [{**line, "feature": name} for line, name in zip(lines, names, strict=True)]
    changes = [(None, None), *((line["change"], line["change_std_error"]) for line in lines[1:])]
    cells = [[*row, *change] for row, change in zip(_with_intervals(named), changes, strict=True)]
    heads = ["columns", *_interval_heads(result.results[0].level), "change", "std. error"]
    note = f"{_words(losses[0])}, {count_of(result.results[0].n_rows, 'row')}{_several_losses(losses)}."
    title = f"Importance of {result.feature}, given more and more columns"
    return card(title, note, table(heads, cells, len(cells), ".table"))


@html_of.register
def gap_html(gap: Gap) -> str:
    """Return the steps from marginal to conditional importance as bars, and in words."""
    scale = chart_scale([gap.marginal, gap.conditional, *(end for part in gap.parts for end in (part.start, part.end))])
    first = ["marginal", gap.marginal, total_error(gap.marginal_noise), bar(scale, 0.0, gap.marginal)]
    bars = [bar(scale, part.start, part.end) for part in gap.parts]
    steps = [[f"given {each.column}", 0.0 - each.step, each.noise, bars[at]] for at, each in enumerate(gap.parts)]
    last = ["conditional", gap.conditional, total_error(gap.conditional_noise), bar(scale, 0.0, gap.conditional)]
    rows = [first, *steps[: MOST_ROWS - 2], last]
    shown = table(["", "importance", "std. error", ""], rows, len(steps) + 2, ".steps")
    note = f"{_words(gap.loss)}{', mean over ' + gap.orders if gap.orders else ''}."
    return card(f"From marginal to conditional importance of {gap.feature}", note, shown, sentences(gap.sentences))


@html_of.register
def depth_profile_html(profile: DepthProfile) -> str:
    """Return the sufficient depth for each feature, and its gain over one subgroup."""
    choices = profile.choices
    rows = []
    for choice in choices[:MOST_ROWS]:
        one, selected = (choice.scores[0], choice.scores[choice.depth]) if choice.scores else (np.nan, np.nan)
        picture = bar(chart_scale([one]), 0.0, selected) if one > 0 else Markup("")
        row = [choice.feature, choice.depth, choice.n_subgroups[choice.depth], choice.measure, one, selected, picture]
        rows.append([*row, *_at_depths(profile, choice.feature, choice.depth)])
    heads = ["feature", "depth", "subgroups", "score", "one subgroup", "this depth", ""]
    heads += ["importance, one subgroup", "importance, this depth"] if profile.importance else []
    shown = table(heads, rows, len(choices), ".table")
    title = f"Sufficient depth for {count_of(len(choices), 'feature')}"
    note = "Held-out scores; less is better."
    return card(title, note, shown, folded("Reasons", sentences(profile.reasons, ".reasons")))


@html_of.register
def explanation_html(explanation: Explanation) -> str:
    """Return the sentences, one below the other."""
    return card(explanation.feature, "", sentences(explanation.sentences, ".sentences"))


def _at_depths(profile: DepthProfile, feature: str, depth: int) -> list[float]:
    if not profile.importance:
        return []
    results = [profile.importance[at] for at in (0, min(depth, max(profile.importance)))]
    return [float(score.overall[0].mean()) for result in results for score in result.scores if score.title == feature]


def _about(result: ImportanceResult, lines: Sequence[TableRow]) -> str:
    loco = result.settings.get("method") == "loco"
    how = "each left out, and the model refitted" if loco else f"sampler {result.settings.get('sampler')}"
    noise = "" if lines[0]["noise"] == "none" else f"; intervals cover noise of {lines[0]['noise']}"
    baseline = f"Baseline {_words(result.losses[0]).lower()}: {number(result.baseline[0])}"
    return f"{baseline}; {count_of(result.n_rows, 'row')}; {how}{noise}{_several_losses(result.losses)}."


def _several_losses(losses: Sequence[str]) -> str:
    return f"; the first of {len(losses)} losses" if len(losses) > 1 else ""


def _words(loss: str) -> str:
    text = loss.replace("_", " ")
    return text[:1].upper() + text[1:]


def _interval_heads(level: float) -> list[str]:
    return ["importance", f"{100 * level:.4g} % interval", ""]


def _with_intervals(lines: Sequence[TableRow], marks: Sequence[bool] = ()) -> Iterator[list[Any]]:
    """Yield feature, estimate, interval and its chart; all on one scale."""
    scale = chart_scale(line[name] for line in lines for name in ("estimate", "conf_low", "conf_high"))
    for at, line in enumerate(lines):
        value, low, high = float(line["estimate"]), float(line["conf_low"]), float(line["conf_high"])
        picture = dot(scale, value, low, high, warning=bool(marks) and marks[at])
        yield [str(line["feature"]), value, between(low, high), picture]


def _verdict(score: FeatureResult) -> str:
    verdict = "" if score.fidelity_check is None else score.fidelity_check.verdict
    return f"failed {tables.MARK}" if tables.is_unrealistic(score) else verdict


def _subgroups(result: ImportanceResult, best: Sequence[FeatureResult]) -> Markup | None:
    """Return importance in the subgroups of the shown features."""
    if not result.per_row_losses[0] or SAMPLER in result.covered:
        return None
    total = sum(len(score.rules) for score in result.scores if len(score.rules) > 1)
    lines = [line for score in best if len(score.rules) > 1 for line in tables.subgroup_lines(result, score, 0)]
    if not lines:
        return None
    rows = zip(_with_intervals(lines[:MOST_ROWS]), lines, strict=False)
    cells = [[*row[:1], str(line["rule"]), line["n"], *row[1:]] for row, line in rows]
    heads = ["feature", "subgroup", "rows", *_interval_heads(result.level)]
    return folded(f"By subgroup ({total:,})", table(heads, cells, total, ".by_subgroup"))
