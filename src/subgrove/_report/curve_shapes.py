"""Shapes of curves and the sentences on them: rising, falling, flat or neither, and by how much.

Curves are described over the middle 90 % of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from subgrove._core.text import common_decimals, letter, number
from subgrove._report.summary import ReportCurve
from subgrove._report.wording import tidy

FLAT = 0.05
"""A curve is flat if it moves by less than this share of the standard deviation of the predictions."""
_BACK = 0.1  # a curve still rises if it goes back by no more than this share of how far it moves
_MOST_SUBGROUPS = 8  # that have a sentence each

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


def curve_shape(line: ReportCurve, low: float, high: float, spread: float) -> CurveShape | None:
    """Return the shape of a curve between two values of the feature; None if it has fewer than two points there."""
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
    return CurveShape(shape, low, high, *ends, least, most, turn)


def _turning(values: np.ndarray, at: np.ndarray) -> tuple[Shape, float]:
    """Return whether a curve has one turning point, and where."""
    size = float(values.max() - values.min())
    for sign, shape in ((1.0, "rises, then falls"), (-1.0, "falls, then rises")):
        top = int((sign * values).argmax())
        rise, fall = np.diff(sign * values[: top + 1]), np.diff(sign * values[top:])
        back = -float(rise[rise < 0].sum()) + float(fall[fall > 0].sum())
        if 0 < top < len(values) - 1 and back <= _BACK * size:
            return shape, float(at[top])  # type: ignore[return-value]  # a literal of the two above
    return "goes up and down", float(at[int(values.argmax())])


def shape_words(one: CurveShape) -> str:
    """Return a shape in words, such as "rises by 2,310, from 3,010 to 5,320"."""
    size = one.most - one.least
    if one.shape == "flat":
        return f"is flat: it changes by {number(size)}"
    low, high, start, end, change = common_decimals(
        [one.least, one.most, one.start, one.end, abs(one.end - one.start)], size
    )
    if one.shape in ("rises", "falls"):
        return f"{one.shape} by {change}, from {start} to {end}"
    if one.shape == "goes up and down":
        return f"goes up and down between {low} and {high}"
    peak = high if one.shape == "rises, then falls" else low
    return f"{one.shape}: from {start} over {peak} at {_plain(number(one.turn), one.turn)} to {end}"


def numeric_sentences(
    name: str,
    lines: Sequence[ReportCurve],
    bounds: Sequence[tuple[float, float] | None],
    spread: float,
    ends: tuple[str, str] | None,
) -> list[str]:
    """Return the sentences on one output. `bounds` are the middle 90 % of all rows, then of each subgroup.

    `ends` are the first of these as text, where numbers stand for dates.
    """
    sentences: list[str] = []
    overall = next((line for line in lines if line.kind == "pdp" and line.subgroup is None), None)
    shape = None if overall is None or bounds[0] is None else curve_shape(overall, *bounds[0], spread)
    if overall is not None and shape is not None:
        shown = ends or [
            _plain(text, max(abs(shape.low), abs(shape.high)))
            for text in common_decimals([shape.low, shape.high], shape.high - shape.low)
        ]
        sentences.append(
            f"Over the middle 90 % of the rows ({name} from {shown[0]} to {shown[1]}), the {_output(overall)} "
            f"{_words(shape, ends)}."
        )
        sentences += _against_ale(name, lines, shape, bounds[0], spread)
    by_subgroup = [line for line in lines if line.kind == "pdp" and line.subgroup is not None]
    for line in by_subgroup[:_MOST_SUBGROUPS]:
        assert line.subgroup is not None
        own = bounds[1 + line.subgroup]
        inside = None if own is None else curve_shape(line, *own, spread)
        if inside is not None:
            subject = "it" if line.output is None else f"the {_output(line)}"
            sentences.append(f"In subgroup {letter(line.subgroup)}, {subject} {_words(inside, ends)}.")
    return [tidy(sentence) for sentence in sentences]


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


def _against_ale(
    name: str, lines: Sequence[ReportCurve], shape: CurveShape, bounds: tuple[float, float] | None, spread: float
) -> list[str]:
    """Return where the ALE curve, of differences between neighbouring rows, differs from the PDP."""
    ale = next((line for line in lines if line.kind == "ale"), None)
    near = None if ale is None or bounds is None else curve_shape(ale, *bounds, spread)
    if near is None:
        return []
    one, two = shape.end - shape.start, near.end - near.start
    if abs(one - two) <= 2 * FLAT * spread or abs(one - two) <= 0.5 * max(abs(one), abs(two)):
        return []
    changes = common_decimals([one, two], min(abs(value) for value in (one, two) if value) if one or two else 1.0)
    return [
        f"The ALE curve, which compares neighbouring rows, changes by {changes[1]} where the PDP changes by "
        f"{changes[0]}: the PDP averages over combinations with {name} that do not occur."
    ]


def level_sentences(name: str, lines: Sequence[ReportCurve], spread: float) -> list[str]:
    """Return the sentences on one output of a feature with levels: the highest and the lowest mean."""
    sentences = []
    for line in [line for line in lines if line.kind == "pdp"][: 1 + _MOST_SUBGROUPS]:
        # a level that no row of the subgroup has is beyond the data
        seen = [(y, str(x)) for x, y, support in zip(line.x, line.y, line.support, strict=True) if support]
        if len(seen) < 2:
            continue
        least, most = min(seen), max(seen)
        start = "In all rows" if line.subgroup is None else f"In subgroup {letter(line.subgroup)}"
        size = most[0] - least[0]
        if size <= FLAT * spread or size == 0:
            sentences.append(
                f"{start}, the {_output(line)} hardly differs between levels of {name} (by {number(size)})."
            )
        else:
            high, low, by = common_decimals([most[0], least[0], size], size)
            sentences.append(
                f"{start}, the {_output(line)} is highest for {name} = {most[1]} ({high}) and lowest for {least[1]} "
                f"({low}), a difference of {by}."
            )
    return [tidy(sentence) for sentence in sentences]


def numeric_direction(name: str, one: CurveShape, *, dated: bool) -> str:
    """Return what predictions do as a number increases, such as "rise with temp up to 22.5, then fall"."""
    turn = "" if dated else f" up to {number(one.turn)}"
    return {
        "rises": f"rise with {name}",
        "falls": f"fall with {name}",
        "rises, then falls": f"rise with {name}{turn}, then fall",
        "falls, then rises": f"fall with {name}{turn}, then rise",
        "goes up and down": "",
        "flat": "",
    }[one.shape]


def level_direction(name: str, line: ReportCurve, spread: float) -> str:
    """Return for which levels predictions are highest and lowest; "" if they hardly differ."""
    seen = [(y, str(x)) for x, y, support in zip(line.x, line.y, line.support, strict=True) if support]
    if len(seen) < 2 or max(seen)[0] - min(seen)[0] <= FLAT * spread:
        return ""
    return f"are highest for {name} = {max(seen)[1]} and lowest for {min(seen)[1]}"
