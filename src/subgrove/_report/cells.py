"""Numbers, names and estimates as they stand on the page, alone and in the columns of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from statistics import NormalDist

from markupsafe import Markup, escape

from subgrove._core import text
from subgrove._core.text import common_decimals, fixed
from subgrove._report import svg
from subgrove._report.model_summary import ClassSummary
from subgrove._report.summary import Estimate
from subgrove._report.wording import with_range

NEARLY_ZERO = f"\u2248{svg.SPACE}0"
_DIGITS = 5  # of the largest number of a column
_SMALL, _LARGE = 1e-6, 1e12  # where the largest is beyond these, each number of a column has its own decimals

# Numbers and names on the page


def name(words: str) -> Markup:
    """Return a name that may be broken at underscores, dots, slashes and hyphens."""
    return Markup(re.sub(r"([_./-]+)(?=\w)", r"\1<wbr>", str(escape(words if words.strip() else "(no name)"))))


def percent(share: float | None) -> str:
    """Return a share in percent; a dash for an unknown one."""
    if share is None or not math.isfinite(share):
        return svg.UNKNOWN
    return svg.prose(text.percent(share).replace("less than", "<").replace("more than", ">"))


def explained(share: float | None) -> str:
    """Return an explained share on held-out rows in percent, where a value below 0 means 0."""
    return percent(None if share is None else max(share, 0.0))


def cell(value: float | int | str | bool | None) -> str:
    """Return a setting as text."""
    if value is None:
        return svg.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return svg.typeset(f"{value:.6g}") if isinstance(value, float) else value


def with_noise(value: float | None, noise: float | None) -> str:
    """Return a number with its noise, such as "303 \u00b1 41", both to two digits of the noise."""
    if value is None or not noise or not math.isfinite(noise):
        return svg.number(value)
    typed, margin = (svg.typeset(one) for one in common_decimals([value, noise], noise))
    space = " " if "\u00d7" in typed else svg.SPACE  # long numbers may be broken there
    return f"{typed}{space}\u00b1{svg.SPACE}{margin}"


def half_interval(std_error: float | None, level: float) -> float | None:
    """Return half the width of a normal interval of that level."""
    return None if std_error is None else NormalDist().inv_cdf((1 + level) / 2) * std_error


def half_width(estimate: Estimate) -> float | None:
    """Return half the width of the interval; None if there is none."""
    if estimate.conf_low is None:
        return None
    high = 2 * estimate.estimate - estimate.conf_low if estimate.conf_high is None else estimate.conf_high
    return (high - estimate.conf_low) / 2


def exact(estimate: Estimate) -> str:
    """Return all digits of an estimate and its interval."""
    if estimate.conf_low is not None and estimate.conf_high is None:
        return f"{estimate.estimate}, at least {estimate.conf_low}"
    if estimate.conf_low is None or estimate.conf_high is None:
        return f"{estimate.estimate}"
    return f"{estimate.estimate}, interval {estimate.conf_low} to {estimate.conf_high}"


def estimate_text(estimate: Estimate | None) -> str:
    """Return an estimate with its interval, such as "303 (262 to 350)"; a dash for an unknown one."""
    return svg.UNKNOWN if estimate is None else svg.typeset(with_range(estimate))


def recall_picture(one: ClassSummary, rows: int) -> Markup:
    """Return precision against recall of a class; a dashed line is the precision by chance."""
    x, y = svg.LinearScale(0, 1, 34, 234), svg.LinearScale(0, 1, 146, 24)
    ticks = [(0.0, "0"), (0.5, "0.5"), (1.0, "1")]
    grid = [svg.line(x.start, y(at), x.end, y(at), class_="grid") for at, _ in ticks]
    labels = [svg.text(28, y(at) + 4, words, text_anchor="end") for at, words in ticks]
    labels += [svg.text(x(at), 162, words, text_anchor="middle") for at, words in ticks]
    labels += [svg.text(134, 178, "recall", text_anchor="middle"), svg.text(4, 12, "precision")]
    chance = svg.line(x.start, y(one.n / rows), x.end, y(one.n / rows), class_="chance")
    line = svg.path([(x(recall), y(precision)) for recall, precision in one.curve], class_="thin")
    label = f"Precision and recall of {one.label}"
    return svg.picture(244, 184, label, *grid, *labels, chance, svg.group(line, class_="curve pdp"))


# Columns of a table


def cell_scale(values: Iterable[float | None]) -> svg.LinearScale:
    """Return the scale, in percent, of the charts in a column; it includes 0."""
    return svg.scale_of([0.0, *values], 3.0, 97.0, spare=0.02)


def estimate_scale(estimates: Iterable[Estimate | None]) -> svg.LinearScale:
    """Return the scale of a column of estimates and their intervals."""
    known = [one for one in estimates if one is not None]
    return cell_scale(value for one in known for value in (one.estimate, one.conf_low, one.conf_high))


def decimals_of(values: Iterable[float | None]) -> int | None:
    """Return the most decimals in a column; None where each number has its own."""
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    if not _SMALL <= largest < _LARGE:
        return None
    return max(0, _DIGITS - 1 - math.floor(math.log10(largest)))


def decimals_of_estimates(estimates: Iterable[Estimate | None]) -> int | None:
    """Return the most decimals in a column of estimates."""
    return decimals_of(one.estimate for one in estimates if one is not None)


def estimate_cell(estimate: Estimate | None, most: int | None = None) -> tuple[str, str]:
    """Return an estimate and its interval ("" if there is none); in a column "\u2248 0" where all of it rounds to 0."""
    if estimate is None or most is None:
        value, _, interval = estimate_text(estimate).partition(" (")
        return value, interval.removesuffix(")")
    noise = half_width(estimate)
    digits = abs(estimate.estimate) / 10 if noise is None else noise  # three digits where the noise is unknown
    bounds = [one for one in (estimate.conf_low, estimate.conf_high) if one is not None]
    texts = [fixed(one, _places(digits, most)) for one in (estimate.estimate, *bounds)]
    if _all_zero(texts):
        return ("0" if estimate.estimate == 0 and not noise else NEARLY_ZERO), ""
    value, *ends = map(svg.typeset, texts)
    return value, " to ".join(ends) if len(ends) == 2 else f"at least {ends[0]}" if ends else estimate.unreliable


def number_cell(value: float, noise: float | None, most: int | None) -> str:
    """Return a number with its noise after \u00b1; "\u2248 0" where both round to 0."""
    if most is None or value == 0 == (noise or 0.0):
        return with_noise(value, noise)
    texts = [fixed(one, _places(noise, most)) for one in ([value, noise] if noise else [value])]
    return NEARLY_ZERO if _all_zero(texts) else f"{svg.SPACE}\u00b1{svg.SPACE}".join(map(svg.typeset, texts))


def rough(value: float, noise: float, most: int | None) -> str:
    """Return a number to the decimal that a noise of this size allows."""
    return svg.number(value) if most is None else svg.typeset(fixed(value, _places(noise, most)))


def _places(noise: float | None, most: int) -> int:
    """Return the decimals for two digits of the noise, but not more than the column has."""
    return min(most, max(0, 1 - math.floor(math.log10(noise)))) if noise else most


def _all_zero(texts: list[str]) -> bool:
    return not any(float(one.replace(",", "")) for one in texts)
