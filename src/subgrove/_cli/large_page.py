"""What is told of data in many parts: in the terminal, as a page, as JSON and as Markdown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from subgrove._cli.explain import MARKS
from subgrove._cli.output import Output, number
from subgrove._report.notebook.importance import importance_html
from subgrove._version import __version__

NOT_HERE = (
    "Numbers of single rows are not kept where parts are added up. So this page has no gaps, no tests between features "
    "and no box plots of rows. Explain a sample, with `subgrove explain` on one file of some thousand rows, for these."
)
_COLUMNS = ("feature", "subgroup", "rule", "n", "estimate", "std_error", "conf_low", "conf_high", "fidelity")
_NOT_REAL = "what they cost may be that of rows which cannot exist"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # the tables have styles of their own, and nothing is fetched
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1b1b1b;"
    "background:#fff}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}}"
)


@dataclass(frozen=True, eq=False)
class Findings:
    """Importance over all rows, curves of drawn ones, and how they came about."""

    title: str
    target: str
    about: tuple[str, ...]
    importance: Any
    curves: tuple[Any, ...]

    def lines(self, by_subgroup: bool) -> list[dict[str, Any]]:
        """Rows of a table of the result, the largest importance first."""
        table = self.importance.by_subgroup if by_subgroup else self.importance.overall
        order = self.importance.overall.sort_values("estimate", ascending=False, kind="stable")["feature"].tolist()
        rank = table["feature"].map({name: at for at, name in enumerate(order)})
        kept = table.iloc[rank.argsort(kind="stable").to_numpy()][[name for name in _COLUMNS if name in table]]
        return [{name: _plain(value) for name, value in line.items()} for line in kept.to_dict("records")]

    def to_json(self) -> str:
        """All numbers, as plain values."""
        values = {
            "schema": "subgrove.explain_parts",
            "version": 1,
            "subgrove": __version__,
            "title": self.title,
            "target": self.target,
            "about": list(self.about),
            "loss": self.importance.losses[0],
            "baseline": _plain(self.importance.baseline[0]),
            "features": self.lines(by_subgroup=False),
            "subgroups": self.lines(by_subgroup=True),
            "curves": [_records(curve.curves) for curve in self.curves],
        }
        return json.dumps(values, ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def to_markdown(self) -> str:
        """The tables, as text."""
        parts = [f"# {_line(self.title)}", *map(_line, self.about)]
        parts += ["## Importance", _table(self.lines(by_subgroup=False))]
        parts += ["## By subgroup", _table(self.lines(by_subgroup=True)), NOT_HERE]
        return "\n\n".join(parts) + "\n"


def page(found: Findings) -> str:
    """One HTML file that needs nothing else."""
    about = "".join(f"<p>{escape(text)}</p>" for text in found.about)
    bars = importance_html(found.importance, _NOT_REAL)
    curves = "".join(curve._repr_html_() for curve in found.curves)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(found.title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><main>'
        f"<h1>{escape(found.title)}</h1>{about}<h2>Importance, over all rows</h2>{bars}"
        f"<h2>Curves, of drawn rows</h2>{curves}<h2>What is not here</h2><p>{escape(NOT_HERE)}</p>"
        f"</main></body></html>\n"
    )


def tell(found: Findings, output: Output) -> None:
    """The importances, most important first."""
    for text in found.about[-1:]:
        output.note(text)
    rows = [
        (
            line["feature"],
            number(line["estimate"]),
            f"{number(line['conf_low'])} to {number(line['conf_high'])}",
            MARKS.get(line.get("fidelity", "passed"), ""),
        )
        for line in found.lines(by_subgroup=False)
    ]
    loss, now = found.importance.losses[0], number(found.importance.baseline[0])
    title = f"Importance: increase of {loss} (now {now}) when a feature is redrawn"
    output.table(title, ("feature", "conditional", "95% interval", "mark"), rows, right=(1, 2))


def _records(table: Any) -> list[dict[str, Any]]:
    return [{name: _plain(value) for name, value in line.items()} for line in table.to_dict("records")]


def _plain(value: Any) -> Any:
    """What JSON can hold; None where a number is not known."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return str(value)


def _table(lines: list[dict[str, Any]]) -> str:
    heads = list(lines[0])
    cells = [[number(one) if isinstance(one, float) else _line(str(one)) for one in line.values()] for line in lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *cells))


def _line(text: str) -> str:
    """Text that stays in its line and its cell."""
    return " ".join(text.split()).replace("|", "\\|")
