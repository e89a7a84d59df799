"""Sentences about importance, written from the numbers: what the words claim, the numbers show.

One function, `reading`, turns an estimate into a word, and every sentence goes by it:

- "matters": the interval lies above 0;
- "better": it lies below 0, so the model does better with other values;
- "hardly": it holds 0, and ends below a tenth of the model's loss, so there is not much to miss;
- "unclear": it holds 0 and is wider than that;
- "nothing": no loss changed at all;
- "unknown": there is no interval, or no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from subgrove._report.numbers import alike, counted, listed, number, percent, short, tidy, with_interval, with_range
from subgrove._report.summary import Certificate, Estimate, GapPart, Share, SubgroupSummary

Reading = Literal["matters", "better", "hardly", "unclear", "nothing", "unknown"]
LITTLE = 0.1
"""Share of the model's loss below which an importance is little."""
SMALL_SUBGROUP = 30
"""Rows below which a subgroup is small."""
WHOLE = "all rows"
_CONTRAST = 20  # rows of a subgroup that is set beside another


def reading(one: Estimate | None, baseline: float) -> Reading:
    """What an estimate says; `baseline` is the loss of the rows as they are."""
    if one is None or one.conf_low is None or one.conf_high is None:
        return "unknown"
    if one.estimate == 0 and one.conf_low == 0 == one.conf_high:
        return "nothing"
    if one.conf_low > 0:
        return "matters"
    if one.conf_high < 0:
        return "better"
    return "hardly" if one.conf_high < LITTLE * abs(baseline) else "unclear"


def headline(name: str, one: Estimate, marginal: Estimate, baseline: float, level: float, alone: bool) -> str:
    """The sentence to remember of a feature. `alone`: no other column was seen to tell anything of it."""
    told = with_interval(one, level)
    said = {
        "matters": f"{name} matters{'' if alone else ' beyond what the other columns tell'}: {told}",
        "better": f"The model does better when {name} is redrawn: {told}",
        "hardly": f"{name} hardly matters{'' if alone else ' once the other columns are known'}: {told}",
        "unclear": f"No need for {name} is shown by these rows: {told}",
        "nothing": f"{name} makes no difference: no loss changes when it is redrawn",
        "unknown": f"{name} costs {told}; there is no interval, so how sure that is cannot be said",
    }[reading(one, baseline)]
    shuffled = reading(marginal, baseline)
    if alone or shuffled == "unknown":
        return tidy(f"{said}.")
    if shuffled == "nothing":
        return tidy(f"{said}. Shuffled alone, it costs nothing.")
    return tidy(f"{said}. Shuffled alone, it costs {with_range(marginal)}.")


def subgroup_sentence(name: str, rule: str, n: int, one: Estimate | None, baseline: float, level: float) -> str:
    """What a feature is worth in one subgroup."""
    where = "In all rows" if rule == WHOLE else f"Where {short(rule)}"
    if n == 0 or one is None:
        return tidy(f"{where}, there is no test row, so nothing can be said of {name}.")
    told, rows = with_interval(one, level), counted(n, "row")
    said = {
        "matters": f"{name} matters: {told}, {rows}",
        "better": f"the model does better when {name} is redrawn: {told}, {rows}",
        "hardly": f"{name} hardly matters: {told}, {rows}",
        "unclear": f"no need for {name} is shown: {told}, {rows}",
        "nothing": f"{name} makes no difference: no loss changes in {rows}",
        "unknown": f"{name} costs {told} in {rows}, too few for an interval",
    }[reading(one, baseline)]
    few = "; few rows, so take it with care" if 1 < n < SMALL_SUBGROUP else ""
    return tidy(f"{where}, {said}{few}.")


def contrast(name: str, subgroups: Sequence[SubgroupSummary], baseline: float) -> str | None:
    """Where a feature matters and where it hardly does, if there is such a pair with enough rows."""
    enough = [one for one in subgroups if one.n >= _CONTRAST and one.estimate is not None]
    by_reading = {
        word: [one for one in enough if reading(one.estimate, baseline) == word] for word in ("matters", "hardly")
    }
    better = [one for one in enough if reading(one.estimate, baseline) in ("better", "nothing")]
    low = by_reading["hardly"] or better
    if not by_reading["matters"] or not low:
        return None
    most = max(by_reading["matters"], key=lambda one: one.estimate.estimate if one.estimate else 0.0)
    least = min(low, key=lambda one: one.estimate.estimate if one.estimate else 0.0)
    assert most.estimate is not None
    assert least.estimate is not None
    if most.estimate.estimate <= least.estimate.estimate:  # surer of one than of the other, but not more of it
        return None
    word = {
        "hardly": f"it hardly matters: {with_range(least.estimate)}",
        "better": f"the model does better when it is redrawn: {with_range(least.estimate)}",
        "nothing": "it makes no difference",
    }[str(reading(least.estimate, baseline))]
    return tidy(
        f"{name} matters where {short(most.rule)}: {with_range(most.estimate)}. Where {short(least.rule)}, {word}."
    )


def one_step(name: str, parts: Sequence[GapPart], marginal: Estimate, conditional: Estimate) -> list[str]:
    """What the gap of a feature says where it was not taken apart column by column."""
    if not parts:
        return []
    (part,) = parts
    ends = alike([part.before, part.after], abs(part.step) or abs(part.before))
    told = f"Shuffled alone, {name} costs {ends[0]}; redrawn given the other columns, {ends[1]}."
    if part.noise is None:
        return [tidy(told)]
    if abs(part.step) <= 2 * part.noise:
        return [tidy(told), "The difference is no more than noise."]
    if part.step < 0:
        return [tidy(told), "Held to what the other columns say, it costs more, not less."]
    if marginal.conf_low is not None and marginal.conf_low > 0 and part.step <= part.before:
        share = percent(part.step / part.before)
        return [tidy(told), f"So {share} of what shuffling shows is what {tidy(name)} shares with the other columns."]
    return [tidy(told)]


def dependence_sentence(
    name: str, explained: float | None, by: Sequence[Share], misleads: bool, certificate: Certificate | None, note: str
) -> str:
    """How much of a feature the others foretell, and what that means for shuffling it."""
    if explained is None:
        return tidy(f"How much of {name} the other columns foretell is not known{f': {note}' if note else ''}.")
    if explained < 0.01:
        told = f"The other columns foretell nothing of {name}, as far as a forest can see"
    else:
        strong = [f"{one.column} ({percent(one.share)})" for one in by[:3] if one.share >= 0.1 * explained]
        told = f"The other columns foretell {percent(min(explained, 1.0))} of {name}"
        told += f", mostly {listed(strong)}" if strong else ""
    if misleads:
        return tidy(f"{told}. Shuffling it alone makes rows that the data do not have.")
    if certificate is not None and certificate.verdict == "passed":
        return tidy(f"{told}. Rows with it shuffled pass for real ones.")
    return tidy(f"{told}.")


def certificate_sentence(name: str, one: Certificate, reason: str, how: str) -> str:
    """Whether redrawn rows pass for real ones, and what follows."""
    if one.verdict == "passed":
        return tidy(f"Rows with {name} {how} pass for real ones{_auc(one)}.")
    if one.verdict == "failed":
        return tidy(f"Rows with {name} {how} do not pass for real ones: {reason}.")
    return tidy(f"Whether rows with {name} {how} pass for real ones is not known: {reason}.")


def certificate_mark(one: Certificate) -> tuple[str, str]:
    """The verdict in a table: how it is coloured, and in words. What is not known is neither good nor bad."""
    return {"passed": ("good", "pass as real"), "failed": ("bad", "do not pass")}.get(
        one.verdict, ("soft", "not known")
    )


def _auc(one: Certificate) -> str:
    return "" if one.auc is None else f" (a classifier tells them apart with AUC {number(one.auc)}; 0.5 is chance)"
