"""A report as Markdown, with the whole content of the page. Text from the data is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from subgrove._core.text import number, percent
from subgrove._report.charts.lines import outputs_of
from subgrove._report.numbers import with_interval
from subgrove._report.summary import Distribution, FeatureSummary, ReportCurve, Summary, TreeNode

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")
_START = re.compile(r"^(\d+(?=[.)](?:\s|$))|(?=[-+=]))")  # the start of a list, or the underline of a heading


def markdown(summary: Summary) -> str:
    """Return the whole report as Markdown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("subgrove", "_report/templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        md=escaped,
        known=lambda value: "" if value is None else number(value),
        share=lambda value: "" if value is None else percent(value),
        interval=lambda estimate: with_interval(estimate, summary.level),
    )
    helpers: dict[str, Any] = {"depths": _depths, "outputs_of": outputs_of, "points": _points}
    template = environment.get_template("report.md.jinja")
    text = template.render(summary=summary, model_line=_model_line(summary), distribution=_distribution, **helpers)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def escaped(value: object) -> str:
    """Return text that Markdown shows literally, on one line."""
    plain = re.sub(r"[\s\x00-\x1f\x7f]+", " ", str(value)).strip()
    return _START.sub(r"\1\\", _SPECIAL.sub(r"\\\1", plain))


def _model_line(summary: Summary) -> str:
    model = summary.model
    classes = f" Classes: {', '.join(model.classes)}." if model.classes else ""
    return f"{model.description}: {model.task}, target {model.target}.{classes} {model.origin}".strip()


def _depths(tree: Sequence[TreeNode]) -> list[int]:
    depths: list[int] = []
    for node in tree:
        depths.append(0 if node.parent is None else depths[node.parent] + 1)
    return depths


def _points(one: FeatureSummary, line: ReportCurve) -> str:
    """Return the points of a curve, with the labels of dates."""
    labels = dict(one.x_labels)
    texts = [x if isinstance(x, str) else labels.get(x, number(x)) for x in line.x]
    return "; ".join(f"{x}: {number(y)}" for x, y in zip(texts, line.y, strict=True))


def _distribution(spread: Distribution) -> str:
    names = list(spread.levels)
    if not names:
        names = [
            f"{number(low)} to {number(high)}" for low, high in zip(spread.edges[:-1], spread.edges[1:], strict=True)
        ]
    cells = "; ".join(f"{name}: {n}" for name, n in zip(names, spread.counts, strict=True))
    missing = f" Missing: {spread.n_missing}." if spread.n_missing else ""
    return f"Test rows by value: {cells}.{missing}" if cells or missing else ""
