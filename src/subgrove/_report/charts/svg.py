"""Elements of SVG as markup. Every value is escaped here, and numbers are short; styles are classes of the page."""

from __future__ import annotations

from markupsafe import Markup, escape

Value = str | float | int | None


def tag(name: str, *inside: str, **attributes: Value) -> Markup:
    """An element; text inside is escaped, markup is not. `class_` is class, `data_x` is data-x; None is left out."""
    given = "".join(
        f' {_name(key)}="{escape(_short(value))}"' for key, value in attributes.items() if value is not None
    )
    return Markup(f"<{name}{given}>{''.join(escape(part) for part in inside)}</{name}>")


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _short(value: Value) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def group(*inside: str, **attributes: Value) -> Markup:
    """A group of elements."""
    return tag("g", *inside, **attributes)


def line(x1: Value, y1: Value, x2: Value, y2: Value, **attributes: Value) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def rectangle(x: Value, y: Value, width: Value, height: Value, **attributes: Value) -> Markup:
    """A rectangle."""
    return tag("rect", x=x, y=y, width=width, height=height, **attributes)


def circle(cx: Value, cy: Value, r: Value, **attributes: Value) -> Markup:
    """A circle."""
    return tag("circle", cx=cx, cy=cy, r=r, **attributes)


def text(x: Value, y: Value, words: str, **attributes: Value) -> Markup:
    """Text at its baseline."""
    return tag("text", words, x=x, y=y, **attributes)


def path(points: list[tuple[float, float]], *, closed: bool = False, **attributes: Value) -> Markup:
    """A line through points."""
    steps = "L".join(f"{_short(float(x))} {_short(float(y))}" for x, y in points)
    return tag("path", d=f"M{steps}{'Z' if closed else ''}", **attributes)


def picture(width: float, height: float, label: str, *inside: str, **attributes: Value) -> Markup:
    """A picture of that many units, that shrinks with the page; `label` says what it shows."""
    box = f"0 0 {_short(float(width))} {_short(float(height))}"
    return tag("svg", *inside, viewBox=box, width=width, height=height, role="img", aria_label=label, **attributes)
