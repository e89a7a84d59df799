"""What curves show, in sentences: rising, falling, flat or neither, by how much over the middle 90 % of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from subgrove._report.numbers import alike, number, short, tidy
from subgrove._report.summary import Line

FLAT = 0.05
"""A curve is flat if it moves by less than this share of the standard deviation of the predictions."""
_BACK = 0.1  # a curve still rises if it goes back by no more than this share of how far it moves
_MOST_SUBGROUPS = 8  # that have a sentence of their own

Shape = Literal["flat", "rises", "falls", "rises, then falls", "falls, then rises", "goes up and down"]


@dataclass(frozen=True)
class Course:
    """How a curve of numbers goes between two values of the feature.

    Attributes
    ----------
    shape : str
    low, high : float
        Between which values of the feature.
    start, end : float
        Prediction at these.
    least, most : float
        Prediction at the lowest and the highest point between.
    turn : float
        Value of the feature at the highest (or lowest) point, where the curve turns.
    """

    shape: Shape
    low: float
    high: float
    start: float
    end: float
    least: float
    most: float
    turn: float


def course(line: Line, low: float, high: float, spread: float) -> Course | None:
    """How a curve goes between two values of the feature; None where it has fewer than two points there."""
    x = np.array([float(value) for value in line.x])
    y = np.array(line.y)
    if len(x) < 2 or not low < high:
        return None
    low, high = max(low, float(x[0])), min(high, float(x[-1]))
    if not low < high:
        return None
    inside = (x > low) & (x < high)
    at = np.concatenate([[low], x[inside], [high]])
    values = np.interp(at, x, y)
    steps = np.diff(values)
    up, down = float(steps[steps > 0].sum()), float(-steps[steps < 0].sum())
    least, most = float(values.min()), float(values.max())
    turn = float(at[values.argmax()])
    ends = float(values[0]), float(values[-1])
    if most - least <= FLAT * spread or most == least:
        shape: Shape = "flat"
    elif down <= _BACK * up:
        shape = "rises"
    elif up <= _BACK * down:
        shape = "falls"
    else:
        shape, turn = _turning(values, at)
    return Course(shape, low, high, *ends, least, most, turn)


def _turning(values: np.ndarray, at: np.ndarray) -> tuple[Shape, float]:
    """Whether a curve turns once, and where."""
    size = float(values.max() - values.min())
    for sign, shape in ((1.0, "rises, then falls"), (-1.0, "falls, then rises")):
        top = int((sign * values).argmax())
        before, after = np.diff(sign * values[: top + 1]), np.diff(sign * values[top:])
        back = -float(before[before < 0].sum()) + float(after[after > 0].sum())
        if 0 < top < len(values) - 1 and back <= _BACK * size:
            return shape, float(at[top])  # type: ignore[return-value]  # a literal of the two above
    return "goes up and down", float(at[int(values.argmax())])


def course_words(one: Course, unit: str) -> str:
    """How a curve goes, in words: "rises by 2,310, from 3,010 to 5,320"."""
    size = one.most - one.least
    if one.shape == "flat":
        return f"is flat: it moves by {number(size)}{unit}"
    low, high, start, end, change = alike([one.least, one.most, one.start, one.end, abs(one.end - one.start)], size)
    if one.shape in ("rises", "falls"):
        return f"{one.shape} by {change}{unit}, from {start} to {end}"
    if one.shape == "goes up and down":
        return f"goes up and down between {low} and {high}{unit}"
    peak = high if one.shape == "rises, then falls" else low
    return f"{one.shape}: from {start} over {peak} at {number(one.turn)} to {end}{unit}"


def numeric_sentences(
    name: str,
    lines: Sequence[Line],
    bounds: Sequence[tuple[float, float] | None],
    rules: Sequence[str],
    spread: float,
    ends: tuple[str, str] | None,
) -> list[str]:
    """Sentences of one output. `bounds` are the middle 90 % of all rows, then those of each subgroup.

    `ends` are the first of these in words, where numbers stand for dates.
    """
    told: list[str] = []
    whole = next((line for line in lines if line.kind == "pdp" and line.subgroup is None), None)
    found = None if whole is None or bounds[0] is None else course(whole, *bounds[0], spread)
    if whole is not None and found is not None:
        of = f"mean probability of class {whole.output}" if whole.output is not None else "mean prediction"
        shown = ends or tuple(alike([found.low, found.high], found.high - found.low))
        told.append(
            f"Over the middle 90 % of the rows ({name} from {shown[0]} to {shown[1]}), the {of} {_words(found, ends)}."
        )
        told += _against_ale(name, lines, found, bounds[0], spread, whole.output)
    parts = [line for line in lines if line.kind == "pdp" and line.subgroup is not None]
    for line in parts[:_MOST_SUBGROUPS]:
        assert line.subgroup is not None
        own = bounds[1 + line.subgroup]
        inside = None if own is None else course(line, *own, spread)
        if inside is not None:
            told.append(f"Where {short(rules[line.subgroup])}, it {_words(inside, ends)}.")
    return [tidy(sentence) for sentence in told]


def _words(one: Course, ends: tuple[str, str] | None) -> str:
    """In words; a turn among dates is left out, for it is a number here."""
    if ends is not None and one.shape in ("rises, then falls", "falls, then rises"):
        return one.shape
    return course_words(one, "")


def _against_ale(
    name: str,
    lines: Sequence[Line],
    found: Course,
    bounds: tuple[float, float] | None,
    spread: float,
    output: str | None,
) -> list[str]:
    """Where steps between neighbouring rows tell another story than one value for all rows."""
    ale = next((line for line in lines if line.kind == "ale" and line.output == output), None)
    near = None if ale is None or bounds is None else course(ale, *bounds, spread)
    if near is None:
        return []
    one, two = found.end - found.start, near.end - near.start
    if abs(one - two) <= 2 * FLAT * spread or abs(one - two) <= 0.5 * max(abs(one), abs(two)):
        return []
    told = alike([one, two], min(abs(value) for value in (one, two) if value) if one or two else 1.0)
    return [
        f"The ALE curve, which compares rows that are near, changes by {told[1]} where the PDP changes by {told[0]}: "
        f"the PDP averages over rows in which {name} does not have such values."
    ]


def level_sentences(name: str, lines: Sequence[Line], rules: Sequence[str], spread: float) -> list[str]:
    """Sentences of one output of a feature with levels: which has the highest and the lowest mean."""
    told = []
    for line in [line for line in lines if line.kind == "pdp"][: 1 + _MOST_SUBGROUPS]:
        # a level that no row of the subgroup has is beyond the data
        seen = [(y, str(x)) for x, y, support in zip(line.x, line.y, line.support, strict=True) if support]
        if len(seen) < 2:
            continue
        least, most = min(seen), max(seen)
        start = "In all rows" if line.subgroup is None else f"Where {short(rules[line.subgroup])}"
        of = f"mean probability of class {line.output}" if line.output is not None else "mean prediction"
        size = most[0] - least[0]
        if size <= FLAT * spread or size == 0:
            told.append(f"{start}, the {of} hardly differs between levels of {name} (by {number(size)}).")
        else:
            high, low, by = alike([most[0], least[0], size], size)
            told.append(
                f"{start}, the {of} is highest for {name} = {most[1]} ({high}) and lowest for {least[1]} ({low}), a "
                f"difference of {by}."
            )
    return [tidy(sentence) for sentence in told]
