"""Cards of notebook views: a heading, a small table, tiny charts, and no script.

Requirements:

- text from the data is escaped; only `Markup`, made here and by `svg`, is not;
- it is readable in light and dark notebooks, whose theme need not be that of the system: text inherits the colour of
  the notebook, backgrounds are transparent, and the two colours of charts have contrast with black and white;
- charts repeat the numbers beside them, so nothing is lost where styles or pictures are removed;
- it is small: at most `MOST_ROWS` rows of a table, and long text is shortened (its title has more of it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import compress, islice
from math import isfinite, isnan
from typing import Any

from markupsafe import Markup

from subgrove._report import svg
from subgrove.plots._palette import LIGHT

MOST_ROWS = 20
MOST_CHARACTERS = 160
_MOST_TITLE = 1000
COLOUR = LIGHT["s1"]  # of dots, bars and curves
WARNING = LIGHT["s2"]  # of unreliable estimates
WIDTH, HEIGHT, MARGIN = 140, 16, 4  # of a chart, in pixels


def chart_scale(values: Iterable[float], *, zero: bool = True) -> svg.LinearScale:
    """Return the horizontal scale of charts, with all finite values, and 0 by default."""
    return svg.scale_of([*values, *([0.0] * zero)], MARGIN, WIDTH - MARGIN, spare=0.0)


def card(title: str, note: str, *blocks: Markup | None) -> str:
    """Return the view of a result."""
    head = f'<p class="subgrove-title">{_shortened(title)}</p>'
    about = f'<p class="subgrove-note">{_shortened(note, 600)}</p>' if note else ""
    body = "".join(block for block in blocks if block is not None)
    style = svg.template_text("notebook.css").replace("\n", "")
    return f'<div class="subgrove-card"><style>{style}</style>{head}{about}{body}</div>'


def table(heads: Sequence[str | None], rows: Iterable[Sequence[Any]], n: int, source: str = "") -> Markup:
    """Return a table of the first of `n` rows; `source` names the attribute that has all.

    A column whose head is None is left out.
    """
    names, kept = [head for head in heads if head is not None], [head is not None for head in heads]
    shown = [list(compress(row, kept)) for row in islice(rows, MOST_ROWS)]
    numeric = [any(isinstance(row[at], int | float) for row in shown) for at in range(len(names))]
    kinds = [' class="subgrove-number"' if own else "" for own in numeric]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(names, kinds, strict=True))
    lines = ([f"<td{kind}>{_content(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)] for row in shown)
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    more = _more(n - len(shown), source)
    foot = f'<tfoot><tr><td colspan="{len(names)}">{more}</td></tr></tfoot>' if more else ""
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>")


def sentences(texts: Sequence[str], source: str = "") -> Markup:
    """Return a paragraph for each of the first sentences."""
    shown = [f"<p>{_shortened(text, 600)}</p>" for text in texts[:MOST_ROWS]]
    more = _more(len(texts) - len(shown), source)
    return Markup("".join(shown) + (f'<p class="subgrove-note">{more}</p>' if more else ""))


def _more(n: int, source: str) -> str:
    return escape(f"and {n:,} more" + (f": {source} has all" if source else "")) if n > 0 else ""


def folded(title: str, block: Markup) -> Markup:
    """Return a block that is shown when its title is clicked."""
    return Markup(f"<details><summary>{_shortened(title)}</summary>{block}</details>")


def between(low: float, high: float) -> str:
    """Return an interval as text."""
    return svg.UNKNOWN if isnan(low) or isnan(high) else f"{svg.number(low)} to {svg.number(high)}"


def dot(scale: svg.LinearScale, value: float, low: float, high: float, *, warning: bool = False) -> Markup:
    """Return a dot with its interval, and a line at 0 if the scale includes it; empty for an unknown value."""
    if not isfinite(value):
        return Markup("")
    colour, middle = WARNING if warning else COLOUR, HEIGHT / 2
    parts = [_zero(scale)]
    if isfinite(low) and isfinite(high):
        parts.append(svg.line(_at(scale, low), middle, _at(scale, high), middle, stroke=colour, stroke_width=2))
    fill = "none" if warning else colour  # not by colour alone
    parts.append(svg.circle(_at(scale, value), middle, 3.5, fill=fill, stroke=colour, stroke_width=1.5))
    return _svg(*parts)


def bar(scale: svg.LinearScale, start: float, end: float) -> Markup:
    """Return a bar from one value to another; empty for unknown values."""
    if not (isfinite(start) and isfinite(end)):
        return Markup("")
    left, right = sorted((_at(scale, start), _at(scale, end)))
    return _svg(_zero(scale), svg.rectangle(left, 4, max(right - left, 1.0), HEIGHT - 8, fill=COLOUR))


def curve(
    x: Sequence[float], y: Sequence[float], all_x: Sequence[float], all_y: Sequence[float], *, points: bool
) -> Markup:
    """Return a curve, or points, on scales that include `all_x` and `all_y`; unknown values are left out."""
    across, up = chart_scale(all_x, zero=False), svg.scale_of(all_y, 2 * HEIGHT - 3, 3, spare=0.0)
    known = [(_at(across, one), round(up(two), 1)) for one, two in zip(x, y, strict=True) if isfinite(two)]
    if points or len(known) < 2:
        return _svg(*(svg.circle(a, b, 2.5, fill=COLOUR) for a, b in known), height=2 * HEIGHT)
    path = " ".join(f"{a},{b}" for a, b in known)
    return _svg(svg.tag("polyline", points=path, fill="none", stroke=COLOUR, stroke_width=1.8), height=2 * HEIGHT)


def _at(scale: svg.LinearScale, value: float) -> float:
    return round(min(max(scale(value), scale.start), scale.end), 1)


def _svg(*parts: Markup, height: svg.Value = HEIGHT) -> Markup:
    return svg.tag("svg", *parts, width=WIDTH, height=height, viewBox=f"0 0 {WIDTH} {height}", aria_hidden="true")


def _zero(scale: svg.LinearScale) -> Markup:
    if not scale.low <= 0 <= scale.high:
        return Markup("")
    return svg.line(_at(scale, 0.0), 0, _at(scale, 0.0), HEIGHT, stroke="currentColor", stroke_opacity=0.5)


def _content(cell: Any) -> str:
    if isinstance(cell, Markup):
        return cell
    if isinstance(cell, str):
        return _shortened(cell)
    return f"{cell:,}" if isinstance(cell, int) else svg.number(cell)


def _shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return escaped text; the beginning of long text."""
    if len(text) <= most:
        return escape(text)
    return f'<span title="{escape(text[:_MOST_TITLE])}">{escape(text[: most - 1])}…</span>'
