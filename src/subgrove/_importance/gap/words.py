"""A gap in sentences that stay true: when it is nothing, negative, or no more than noise.

Shares are told where the marginal importance and the gap are clear of their noise and no share is below 0 or above all;
else amounts are. Clear means more than two standard errors, of test rows and draws together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from subgrove._importance.gap.result import Gap, GapStep

_CLEAR = 2.0  # standard errors
_ALL = 0.995
_OTHERS = re.compile(r"the other \d+ columns")


def sentences_of(gap: Gap) -> tuple[str, ...]:
    """The story of a gap."""
    told = [_start(gap), *_middle(gap)]
    if not gap.per_row:
        told.append(
            f"{_loss(gap).capitalize()} is a score of all rows together: of its noise, only that of the draws is known."
        )
    return tuple(told)


def number(value: float) -> str:
    """Three digits, or all before the point."""
    value += 0.0  # so that -0 is 0
    if value == 0 or 1e-4 <= abs(value) < 100:
        return f"{value:.3g}"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else f"{value:.2e}"


def percent(share: float) -> str:
    """A share in percent."""
    if 0 < share <= 0.005:
        return "less than 1 %"
    return f"{round(100 * share)} %"


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def together(errors: tuple[float, float]) -> float:
    """Noise of test rows and of draws together, as far as it is known."""
    return float(np.sqrt(np.nansum(np.square(errors))))


def _loss(gap: Gap) -> str:
    return gap.loss.replace("_", " ")


def _clear(value: float, noise: float) -> bool:
    return abs(value) > _CLEAR * noise


def _names(gap: Gap) -> str:
    return listed([part.column for part in gap.parts])


def _start(gap: Gap) -> str:
    noise = together(gap.marginal_noise)
    unclear = "" if _clear(gap.marginal, noise) else f", which is within noise (standard error {number(noise)})"
    if gap.marginal > 0:
        return f"Shuffled alone, {gap.feature} costs {number(gap.marginal)} ({_loss(gap)}){unclear}."
    if gap.marginal == 0:
        return f"Shuffled alone, {gap.feature} costs nothing ({_loss(gap)})."
    better = f"the {_loss(gap)} gets better by {number(-gap.marginal)}"
    return f"Shuffled alone, {gap.feature} costs nothing: {better}{unclear}."


def _middle(gap: Gap) -> list[str]:
    if gap.kind in ("no split", "no columns"):
        return _no_columns(gap)
    if gap.marginal == gap.conditional == 0:
        return [f"Given {_names(gap)}, it costs nothing either."]
    noise = together(gap.noise)
    if not _clear(gap.gap, noise):
        return [
            f"Given {_names(gap)}, it {_costs(gap)}: the difference of "
            f"{number(abs(gap.gap))} is no more than noise (standard error {number(noise)}), so it cannot be said that "
            f"other columns tell any of what {gap.feature} tells."
        ]
    if gap.gap < 0:
        more = f"Given {_names(gap)}, it {_costs(gap)}, which is {number(-gap.gap)} more"
        why = f": held to what other columns say, {gap.feature} matters more to the model, not less"
        return [f"{more}{why if gap.conditional > 0 else ''}.", *_amounts(gap)]
    if _shares_make_sense(gap):
        return [_shares(gap), _rest(gap)]
    return [*_amounts(gap), _rest_in_numbers(gap)]


def _costs(gap: Gap) -> str:
    if gap.conditional >= 0:
        return f"costs {number(gap.conditional) if gap.conditional else 'nothing'}"
    return f"costs nothing (the {_loss(gap)} gets better by {number(-gap.conditional)})"


def _no_columns(gap: Gap) -> list[str]:
    if gap.kind == "no columns":
        told = ["There is no other column that it could be conditional on."]
    else:
        told = [f"Its tree has no split: no column tells anything about {gap.feature}, as far as the tree can see."]
    told += [
        f"The two results differ by {number(abs(part.step))} only because values came from other rows."
        for part in gap.parts
    ]
    return told


def _shares_make_sense(gap: Gap) -> bool:
    if gap.marginal <= 0 or not _clear(gap.marginal, together(gap.marginal_noise)):
        return False
    if gap.conditional < 0 and _clear(gap.conditional, together(gap.conditional_noise)):
        return False
    clear = [part for part in gap.parts if _clear(part.step, part.noise)]
    return all(part.step > 0 for part in clear) and all(part.step <= 1.05 * gap.marginal for part in gap.parts)


def _shares(gap: Gap) -> str:
    """What each column tells, as shares of the marginal importance; those in noise are named together."""
    told: list[str] = []
    seen = False  # whether a column has told something
    for clear, group in groupby(gap.parts, key=lambda part: _clear(part.step, part.noise)):
        parts = list(group)
        told += _clear_shares(gap, parts, first=not seen) if clear else [_unclear(gap, parts, first=not seen)]
        seen = seen or clear
    text = "; ".join(told)
    return f"Averaged over {gap.orders} of the columns, {text}." if gap.orders else f"{_capital(text)}."


def _clear_shares(gap: Gap, parts: list[GapStep], *, first: bool) -> list[str]:
    told = []
    for place, part in enumerate(parts):
        share = part.step / gap.marginal
        if gap.orders or (first and not place):
            already = "" if gap.orders else "already "
            how_much = "all of that" if share >= _ALL else f"{percent(share)} of that"
            told.append(f"{part.column} {already}{_tells([part])} {how_much}")
        else:
            told.append(f"{part.column} {_tells([part])} another {percent(share)}")
    return told


def _unclear(gap: Gap, parts: list[GapStep], *, first: bool) -> str:
    more = "" if first or gap.orders else "more "
    share = percent(sum(part.step for part in parts) / gap.marginal) + " together" * (len(parts) > 1)
    return f"{listed([part.column for part in parts])} {_tells(parts)} nothing {more}that is clear of noise ({share})"


def _tells(parts: Sequence[GapStep]) -> str:
    return "tell" if len(parts) > 1 or _OTHERS.fullmatch(parts[0].column) else "tells"


def _capital(text: str) -> str:
    """Names of columns keep their letters; other words begin a sentence."""
    return f"The {text[4:]}" if text.startswith("the other ") else text


def _rest(gap: Gap) -> str:
    share = gap.conditional / gap.marginal
    if not _clear(gap.conditional, together(gap.conditional_noise)):
        return f"Nothing that is clear of noise is left for {gap.feature} alone."
    seen = "its subgroups" if gap.kind == "trees" else "the sampler"
    return f"{percent(share)} is what {gap.feature} alone knows, as far as {seen} can tell."


def _amounts(gap: Gap) -> list[str]:
    """What each column changes, in numbers of the loss."""
    told = []
    for place, part in enumerate(gap.parts):
        change = f"{number(abs(part.step))} {'less' if part.step > 0 else 'more'}" if part.step else "as much as before"
        unclear = "" if _clear(part.step, part.noise) or part.step == 0 else " (within noise)"
        too = " too" if place and not gap.orders else ""
        told.append(f"given {part.column}{too}, it costs {change}{unclear}")
    text = "; ".join(told)
    if gap.orders:
        return [f"Averaged over {gap.orders} of the columns: {text}."]
    return [f"{text[0].upper()}{text[1:]}."]


def _rest_in_numbers(gap: Gap) -> str:
    unclear = "" if _clear(gap.conditional, together(gap.conditional_noise)) else ", within noise of nothing"
    if gap.conditional > 0:
        return f"What is left is {number(gap.conditional)}{unclear}."
    return f"Nothing is left: given all of them, the {_loss(gap)} gets better by {number(-gap.conditional)}{unclear}."
