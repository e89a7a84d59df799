"""The frame of what results show of themselves in a notebook: a heading, a small table, tiny pictures, and no script.

Requirements this design meets:

- whatever comes from the data is text and is escaped here; only `Markup`, which this file alone makes, is not;
- it is read in light and dark notebooks, whose theme need not be that of the system: text has the colour that the
  notebook gives it, backgrounds are transparent, and the two colours of pictures stand out from black and from white;
- pictures repeat what stands beside them in numbers, so nothing is lost where style or pictures are taken out;
- it is small: at most `MOST_ROWS` rows of a table, and long text is cut (more of it shows when pointed at).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite, isinf, isnan

MOST_ROWS = 20
MOST_LETTERS = 160
_MOST_TITLE = 1000
COLOUR = "#2f86a6"  # of dots, bars and curves
MARKED = "#c8553d"  # of what is not to be trusted
UNKNOWN = "\u2013"  # a dash, where there is no number
WIDTH, HEIGHT = 140, 16  # of a picture, in pixels

_STYLE = """
div.subgrove-card{color:inherit;background:transparent;margin:.2em 0;max-width:100%;overflow-x:auto;line-height:1.4}
div.subgrove-card p{margin:.15em 0;max-width:60em;overflow-wrap:anywhere}
div.subgrove-card p.subgrove-title{font-weight:600}
div.subgrove-card p.subgrove-note,div.subgrove-card tfoot td,div.subgrove-card thead th{opacity:.75;font-size:.92em}
div.subgrove-card table{border-collapse:collapse;border:0;margin:.35em 0;table-layout:auto;color:inherit;
font-size:inherit}
div.subgrove-card table th,div.subgrove-card table td{padding:.12em 1em .12em 0;border:0;text-align:left;
vertical-align:baseline;font-weight:400;max-width:40em;white-space:normal;overflow-wrap:anywhere;color:inherit;
background:transparent}
div.subgrove-card table thead th{border-bottom:1px solid currentColor;white-space:nowrap}
div.subgrove-card table .subgrove-number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
div.subgrove-card svg{vertical-align:middle;overflow:visible}
div.subgrove-card summary{cursor:pointer}
""".replace("\n", "")


@dataclass(frozen=True)
class Markup:
    """HTML that this file made; everything else is text."""

    text: str


Cell = str | float | int | None | Markup


@dataclass(frozen=True)
class Scale:
    """From numbers to places in a picture."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float], *, zero: bool = True) -> Scale:
        """A scale that holds all finite values, and 0 if asked for."""
        known = [float(value) for value in values if isfinite(value)] + [0.0] * zero
        return cls(min(known, default=0.0), max(known, default=0.0))

    def at(self, value: float, length: float = WIDTH, margin: float = 4.0) -> float:
        """The place of a value, from `margin` to `length - margin`; the middle if all values are the same."""
        half = self.high / 2 - self.low / 2  # the width may be more than a float holds
        share = (value / 2 - self.low / 2) / half if half > 0 else 0.5
        return round(margin + (length - 2 * margin) * min(max(share, 0.0), 1.0), 1)


def card(title: str, note: str, *blocks: Markup | None) -> str:
    """What a notebook shows of a result."""
    head = f'<p class="subgrove-title">{_cut(title)}</p>'
    about = f'<p class="subgrove-note">{_cut(note, 600)}</p>' if note else ""
    body = "".join(block.text for block in blocks if block is not None)
    return f'<div class="subgrove-card"><style>{_STYLE}</style>{head}{about}{body}</div>'


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, total: int | None = None, rest: str = "") -> Markup:
    """A table of the first rows; of `total` rows, the others are in what `rest` names."""
    shown = rows[:MOST_ROWS]
    numeric = [any(_is_number(row[at]) for row in shown) for at in range(len(heads))]
    kinds = [' class="subgrove-number"' if own else "" for own in numeric]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(heads, kinds, strict=True))
    lines = ["".join(f"<td{kind}>{_inside(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) for row in shown]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = (len(rows) if total is None else total) - len(shown)
    told = f"and {more:,} more" + (f": {rest} has all" if rest else "")
    foot = f'<tfoot><tr><td colspan="{len(heads)}">{escape(told)}</td></tr></tfoot>' if more > 0 else ""
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>")


def sentences(texts: Sequence[str], rest: str = "") -> Markup:
    """A paragraph for each sentence, of the first ones."""
    said = [f"<p>{_cut(text, 600)}</p>" for text in texts[:MOST_ROWS]]
    more = len(texts) - len(said)
    told = f"and {more:,} more" + (f": {rest} has all" if rest else "")
    return Markup("".join(said) + (f'<p class="subgrove-note">{escape(told)}</p>' if more > 0 else ""))


def folded(title: str, block: Markup) -> Markup:
    """A block that is shown when its title is clicked."""
    return Markup(f"<details><summary>{_cut(title)}</summary>{block.text}</details>")


def number(value: float | None) -> str:
    """Three digits, or all before the point; a dash where it is not known."""
    if value is None or isnan(value):
        return UNKNOWN
    if isinf(value):
        return "∞" if value > 0 else "-∞"
    value = float(value) + 0.0  # so that -0 is 0
    if value == 0 or 1e-3 <= abs(value) < 100:
        return f"{value:.3g}"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else f"{value:.2e}"


def between(low: float, high: float) -> str:
    """An interval in words."""
    return UNKNOWN if isnan(low) or isnan(high) else f"{number(low)} to {number(high)}"


def counted(n: int, what: str) -> str:
    """A number of things."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def dot(scale: Scale, value: float, low: float, high: float, *, marked: bool = False) -> Markup:
    """A dot with its interval, and a line at 0 if the scale has it; empty where the value is not known."""
    if not isfinite(value):
        return Markup("")
    colour, x = MARKED if marked else COLOUR, scale.at(value)
    parts = [_zero(scale)]
    if isfinite(low) and isfinite(high):
        parts.append(
            _line(scale.at(low), HEIGHT / 2, scale.at(high), HEIGHT / 2, f'stroke="{colour}" stroke-width="2"')
        )
    fill = "none" if marked else colour  # told apart without colour, too
    parts.append(f'<circle cx="{x}" cy="{HEIGHT / 2}" r="3.5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>')
    return _svg("".join(parts))


def bar(scale: Scale, start: float, end: float) -> Markup:
    """A bar from one value to another; empty where one is not known."""
    if not (isfinite(start) and isfinite(end)):
        return Markup("")
    one, two = sorted((scale.at(start), scale.at(end)))
    box = f'<rect x="{one}" y="4" width="{round(max(two - one, 1.0), 1)}" height="{HEIGHT - 8}" fill="{COLOUR}"/>'
    return _svg(_zero(scale) + box)


def curve(across: Scale, up: Scale, x: Sequence[float], y: Sequence[float], *, points: bool = False) -> Markup:
    """A curve, or points; what is not known is left out."""
    height = 2 * HEIGHT
    known = [
        (across.at(one), round(height - up.at(two, height, 3), 1))
        for one, two in zip(x, y, strict=True)
        if isfinite(two)
    ]
    if points or len(known) < 2:
        return _svg("".join(f'<circle cx="{a}" cy="{b}" r="2.5" fill="{COLOUR}"/>' for a, b in known), height)
    path = " ".join(f"{a},{b}" for a, b in known)
    return _svg(f'<polyline points="{path}" fill="none" stroke="{COLOUR}" stroke-width="1.8"/>', height)


def _svg(parts: str, height: float = HEIGHT) -> Markup:
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    return Markup(f'<svg {size} aria-hidden="true">{parts}</svg>')


def _line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {look}/>'


def _zero(scale: Scale) -> str:
    if not scale.low <= 0 <= scale.high:
        return ""
    return _line(scale.at(0.0), 0, scale.at(0.0), HEIGHT, 'stroke="currentColor" stroke-opacity="0.45"')


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _inside(cell: Cell) -> str:
    if isinstance(cell, Markup):
        return cell.text
    if isinstance(cell, str):
        return _cut(cell)
    return f"{cell:,}" if isinstance(cell, int) else number(cell)


def _cut(text: str, most: int = MOST_LETTERS) -> str:
    """Text as HTML has it; of long text the beginning."""
    if len(text) <= most:
        return escape(text)
    return f'<span title="{escape(text[:_MOST_TITLE])}">{escape(text[: most - 1])}…</span>'
