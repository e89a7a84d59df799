"""Shapes of curves and the sentences on them: rising, falling, flat or neither, and by how much.

Curves are described over the middle 90 % of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.text import common_decimals, letter, number
from subgrove._report.summary import ReportCurve

FLAT = 0.05
"""A curve is flat if it moves by less than this share of the standard deviation of the predictions."""
_BACK = 0.1  # a curve still rises if it goes back by no more than this share of how far it moves
_MOST_SUBGROUPS = 8  # that have a sentence each

Range = tuple[float, float]
Shape = Literal["flat", "rises", "falls", "rises, then falls", "falls, then rises", "goes up and down"]


@dataclass(frozen=True)
class CurveShape:
    """The shape of a curve between two values of the feature.

    Attributes
    ----------
    shape : str
    low, high : float
        The two values of the feature.
    start, end : float
        Prediction at these.
    least, most : float
        Lowest and highest prediction between them.
    turn : float
        Value of the feature at the turning point.
    """

    shape: Shape
    low: float
    high: float
    start: float
    end: float
    least: float
    most: float
    turn: float


def curve_shape(line: ReportCurve | None, bounds: Range | None, spread: float) -> CurveShape | None:
    """Return the shape of a curve between two values of the feature; None if it has fewer than two points there."""
    if line is None or bounds is None or len(line.x) < 2:
        return None
    x = np.array([float(value) for value in line.x])
    low, high = max(bounds[0], float(x[0])), min(bounds[1], float(x[-1]))
    if not low < high:
        return None
    at = np.concatenate([[low], x[(x > low) & (x < high)], [high]])
    values = np.interp(at, x, np.array(line.y))
    least, most = float(values.min()), float(values.max())
    steps = np.diff(values)
    up, down = float(steps[steps > 0].sum()), float(-steps[steps < 0].sum())
    shape, turn = _turning(values, at)
    if most - least <= FLAT * spread or most == least:
        shape = "flat"
    elif down <= _BACK * up:
        shape = "rises"
    elif up <= _BACK * down:
        shape = "falls"
    return CurveShape(shape, low, high, float(values[0]), float(values[-1]), least, most, turn)


def _turning(values: Floats, at: Floats) -> tuple[Shape, float]:
    """Return whether a curve has one turning point, and where."""
    shapes: tuple[tuple[float, Shape], ...] = ((1.0, "rises, then falls"), (-1.0, "falls, then rises"))
    for sign, shape in shapes:
        top = int((sign * values).argmax())
        rise, fall = np.diff(sign * values[: top + 1]), np.diff(sign * values[top:])
        back = -float(rise[rise < 0].sum()) + float(fall[fall > 0].sum())
        if 0 < top < len(values) - 1 and back <= _BACK * np.ptp(values):
            return shape, float(at[top])
    return "goes up and down", float(at[int(values.argmax())])


def shape_words(one: CurveShape) -> str:
    """Return a shape in words, such as "rises by 2,310, from 3,010 to 5,320"."""
    size = one.most - one.least
    if one.shape == "flat":
        return f"is flat: it changes by {number(size)}"
    values = [one.least, one.most, one.start, one.end, abs(one.end - one.start)]
    low, high, start, end, change = common_decimals(values, size)
    if one.shape in ("rises", "falls"):
        return f"{one.shape} by {change}, from {start} to {end}"
    if one.shape == "goes up and down":
        return f"goes up and down between {low} and {high}"
    peak = high if one.shape == "rises, then falls" else low
    return f"{one.shape}: from {start} over {peak} at {_plain(number(one.turn), one.turn)} to {end}"


def numeric_sentences(
    name: str, lines: Sequence[ReportCurve], bounds: Sequence[Range | None], spread: float, ends: tuple[str, str] | None
) -> Iterator[str]:
    """Yield the sentences on one output. `bounds` are the middle 90 % of all rows, then of each subgroup.

    `ends` are the first of these as text, where numbers stand for dates.
    """
    overall = next((line for line in lines if line.kind == "pdp" and line.subgroup is None), None)
    shape = curve_shape(overall, bounds[0], spread)
    if overall is not None and shape is not None:
        low, high = ends or _range_texts(shape)
        rows = f"Over the middle 90 % of the rows ({name} from {low} to {high})"
        yield f"{rows}, the {_output(overall)} {_words(shape, ends)}."
        ale = next((line for line in lines if line.kind == "ale"), None)
        yield from _against_ale(name, shape, curve_shape(ale, bounds[0], spread), spread)
    by_subgroup = [(line, line.subgroup) for line in lines if line.kind == "pdp" and line.subgroup is not None]
    for line, subgroup in by_subgroup[:_MOST_SUBGROUPS]:
        if inside := curve_shape(line, bounds[1 + subgroup], spread):
            subject = "it" if line.output is None else f"the {_output(line)}"
            yield f"In subgroup {letter(subgroup)}, {subject} {_words(inside, ends)}."


def _range_texts(one: CurveShape) -> tuple[str, str]:
    low, high = common_decimals([one.low, one.high], one.high - one.low)
    largest = max(abs(one.low), abs(one.high))
    return _plain(low, largest), _plain(high, largest)


def _plain(text: str, largest: float) -> str:
    """Return a value of a feature without a separator if the largest is below 10,000: it may be a year."""
    return text if abs(largest) >= 1e4 else text.replace(",", "")


def _output(line: ReportCurve) -> str:
    return f"mean probability of class {line.output}" if line.output is not None else "mean prediction"


def _words(one: CurveShape, ends: tuple[str, str] | None) -> str:
    """Return a shape in words, without the turning point for dates, which are numbers here."""
    if ends is not None and one.shape in ("rises, then falls", "falls, then rises"):
        return one.shape
    return shape_words(one)


def _against_ale(name: str, pdp: CurveShape, ale: CurveShape | None, spread: float) -> Iterator[str]:
    """Yield where the ALE curve, of differences between neighbouring rows, differs from the PDP."""
    if ale is None:
        return
    one, two = pdp.end - pdp.start, ale.end - ale.start
    if abs(one - two) <= 2 * FLAT * spread or abs(one - two) <= 0.5 * max(abs(one), abs(two)):
        return
    first, second = common_decimals([one, two], min(abs(value) for value in (one, two) if value))
    changes = f"changes by {second} where the PDP changes by {first}"
    why = f"the PDP averages over combinations with {name} that do not occur"
    yield f"The ALE curve, which compares neighbouring rows, {changes}: {why}."


def _extremes(line: ReportCurve) -> list[tuple[float, str]]:
    """Return the lowest and the highest mean with their levels; nothing if there are less than two."""
    # a level that no row of the subgroup has is beyond the data
    seen = [(y, str(x)) for x, y, support in zip(line.x, line.y, line.support, strict=True) if support]
    return [min(seen), max(seen)] if len(seen) > 1 else []


def level_sentences(name: str, lines: Sequence[ReportCurve], spread: float) -> Iterator[str]:
    """Yield the sentences on one output of a feature with levels: the highest and the lowest mean."""
    for line in [line for line in lines if line.kind == "pdp"][: 1 + _MOST_SUBGROUPS]:
        if not (ends := _extremes(line)):
            continue
        (small, least), (large, most) = ends
        start = "In all rows" if line.subgroup is None else f"In subgroup {letter(line.subgroup)}"
        size, subject = large - small, f"{start}, the {_output(line)}"
        if size <= FLAT * spread or size == 0:
            yield f"{subject} hardly differs between levels of {name} (by {number(size)})."
        else:
            high, low, by = common_decimals([large, small, size], size)
            words = f"highest for {name} = {most} ({high}) and lowest for {least} ({low})"
            yield f"{subject} is {words}, a difference of {by}."


def numeric_direction(name: str, one: CurveShape, *, dated: bool) -> str:
    """Return what predictions do as a number increases, such as "rise with temp up to 22.5, then fall"."""
    turn = "" if dated else f" up to {number(one.turn)}"
    words: dict[Shape, str] = {
        "rises": f"rise with {name}",
        "falls": f"fall with {name}",
        "rises, then falls": f"rise with {name}{turn}, then fall",
        "falls, then rises": f"fall with {name}{turn}, then rise",
    }
    return words.get(one.shape, "")


def level_direction(name: str, line: ReportCurve, spread: float) -> str:
    """Return for which levels predictions are highest and lowest; "" if they hardly differ."""
    ends = _extremes(line)
    if not ends or ends[1][0] - ends[0][0] <= FLAT * spread:
        return ""
    return f"are highest for {name} = {ends[1][1]} and lowest for {ends[0][1]}"
