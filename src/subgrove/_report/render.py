"""A report as one self-contained HTML page, and as Markdown with the same content; both from a `Summary` alone.

Requirements of the page: readable without its script and on paper; no URL in it; a content security policy that allows
only the style and the script it was written with, by their hashes; all text from the data is escaped, by the templates
and by `svg`, and nothing else makes markup.

A sentence shows a number as finely as its standard error allows. In a column the eye compares, so none of its numbers
has more decimals than the largest one deserves; the exact value is in the title of the cell.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from markupsafe import Markup

from subgrove._core import text
from subgrove._core.text import count_of, letter
from subgrove._importance.explanation import Finding
from subgrove._report import cells, svg
from subgrove._report.comparison import Comparison
from subgrove._report.effect_charts import MOST_LEVELS, ChartPanel, panels, small_picture, small_scale
from subgrove._report.summary import DependenceSummary, Distribution, FeatureSummary, ReportCurve, Summary
from subgrove._report.tree_chart import tree_picture
from subgrove._report.wording import short, tidy, with_interval
from subgrove.plots._palette import LIGHT, N_COLORS

if TYPE_CHECKING:
    from jinja2 import Environment

OPEN = 3
"""Number of features that are initially open, the most important ones."""
FEW_CAUTIONS = 3
"""Cautions beside the findings; the others are folded."""
ON_PAPER = 12
"""Features in the printed summary; the others are in the appendix."""
_FEW, _MANY = 12, 25  # rows of the dependence table: all are shown, and at most shown
_LITTLE = 0.01
_FINDINGS = {"none": "not used", "unknown": "no interval", "negative": "better without it"}


@dataclass(frozen=True)
class EffectView:
    """The charts of one output of a feature, and the sentences on them."""

    output: str | None
    panels: list[ChartPanel]
    sentences: list[str]


@dataclass(frozen=True)
class FeatureView:
    """A feature for the templates: its id on the page, its dependence, and the charts of each output."""

    feature: FeatureSummary
    id: str
    dependence: DependenceSummary | None
    effects: tuple[EffectView, ...]

    @property
    def checked(self) -> bool:
        """Whether it is known if resampled rows are realistic."""
        return self.feature.fidelity is not None and self.feature.fidelity.verdict != "unknown"

    @property
    def gap(self) -> float:
        """Marginal minus conditional importance."""
        return self.feature.marginal.estimate - self.feature.conditional.estimate

    def gap_text(self, most: int | None) -> str:
        """Return the gap with the digits that the noisier of both importances allows."""
        noise = max(cells.half_width(one) or 0.0 for one in (self.feature.conditional, self.feature.marginal))
        return cells.rough(self.gap, noise, most)

    @property
    def explained(self) -> float | None:
        """The share of the feature that the others explain."""
        return self.dependence.explained if self.dependence else None

    @property
    def rules(self) -> dict[int, str]:
        """The rule of each subgroup, by its number."""
        return {one.subgroup: one.rule for one in self.feature.subgroups}


def page(summary: Summary, comparison: Comparison | None = None) -> str:
    """Return the whole page as HTML."""
    known = {one.feature: one for one in summary.dependence}
    views = [_view(one, f"feature-{at}", known.get(one.feature)) for at, one in enumerate(summary.features, 1)]
    shown, folded = _split_dependence(summary)
    every: list[Any] = [*summary.groups, *summary.features]
    estimates = [one for each in every for one in (each.conditional, each.marginal)]
    style, script = _style(), svg.template_text("script.js")
    template = _environment(autoescape=True).get_template("page.html")
    return template.render(
        summary=summary,
        comparison=comparison,
        views=views,
        places={view.feature.feature: view.id for view in views},
        dependence=shown,
        folded=folded,
        scale=cells.estimate_scale(estimates),
        most=cells.decimals_of_estimates(estimates),
        small=small_scale(summary.features),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        points=_points(views),
    )


def _view(feature: FeatureSummary, place: str, dependence: DependenceSummary | None) -> FeatureView:
    said = _sentences_by_output(feature)
    found = [(output, panels(feature, output, f"{place}-{at}")) for at, output in enumerate(feature.outputs)]
    effects = tuple(EffectView(output, charts, said[output]) for output, charts in found)
    return FeatureView(feature, place, dependence, effects)


def _sentences_by_output(feature: FeatureSummary) -> dict[str | None, list[str]]:
    """Return the sentences on each output: those that name its class, and those that follow and name none."""
    found: dict[str | None, list[str]] = {each: [] for each in feature.outputs}
    longest_first = sorted((each for each in feature.outputs if each is not None), key=len, reverse=True)
    current = next(iter(feature.outputs), None)
    for sentence in feature.effect_sentences if found else ():
        current = next((each for each in longest_first if tidy(f"class {each}") in sentence), current)
        found[current].append(sentence)
    return found


def _split_dependence(summary: Summary) -> tuple[list[DependenceSummary], list[DependenceSummary]]:
    """Return the features by explained share: those to show, and those to fold away."""
    by_share = sorted(summary.dependence, key=lambda one: -(one.explained or 0.0))
    few = len(by_share) <= _FEW
    shown = [one for one in by_share if few or one.misleads or (one.explained or 0.0) >= _LITTLE][:_MANY]
    return shown, [one for one in by_share if one not in shown]


def _policy(style: str, script: str) -> str:
    own = f"style-src {_hash(style)}; script-src {_hash(script)}"
    # "data:" is for a chart on its way to a PNG file
    return f"default-src 'none'; {own}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(part: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"


def _points(views: list[FeatureView]) -> Markup:
    """Return the points of curves for the script, as JSON that cannot close its element."""
    charts = [panel for view in views for effect in view.effects for panel in effect.panels]
    points = json.dumps({one.key: one.points for one in charts}, separators=(",", ":"), allow_nan=False)
    return Markup(points.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@cache
def _style() -> str:
    """Return the style with the colours of both themes; no part of it comes from data."""
    light, dark = "".join(f"--{name}:{value};" for name, value in LIGHT.items()), svg.template_text("dark.css").strip()
    numbered = "".join(f".s{at}{{--own:var(--s{at})}}" for at in range(1, N_COLORS + 1))
    style = svg.template_text("style.css").replace("/*light*/", light).replace("/*dark*/", dark)
    return style.replace("/*numbered*/", numbered)


@cache
def _environment(*, autoescape: bool) -> Environment:
    """Return the environment of the HTML templates, or that of plain text and Markdown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("subgrove", "_report/templates")
    # Folding constants would take longer than it saves when a page is written once.
    options: dict[str, Any] = {
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
        "optimized": False,
    }
    environment = Environment(loader=loader, autoescape=autoescape, **options)
    environment.filters.update(_PAGE_FILTERS if autoescape else _TEXT_FILTERS)
    environment.globals.update(_PAGE_FUNCTIONS if autoescape else {})
    return environment


_IN_TEMPLATES: tuple[Callable[..., Any], ...] = (
    *(cells.cell, cells.estimate_text, cells.exact, cells.explained, cells.name, svg.number, cells.percent, svg.prose),
    *(cells.cell_scale, cells.decimals_of, cells.decimals_of_estimates, cells.estimate_cell, cells.estimate_scale),
    *(cells.half_interval, cells.half_width, cells.number_cell, cells.rough, cells.with_noise, cells.recall_picture),
    *(count_of, letter, short, svg.subgroup_class, small_picture, tree_picture),
)
_PAGE_FILTERS = {one.__name__: one for one in _IN_TEMPLATES}
_PAGE_FUNCTIONS = {
    **_PAGE_FILTERS,
    "most_matrix": 10,
    "most_levels": MOST_LEVELS,
    "few_cautions": FEW_CAUTIONS,
    "findings": {one: _FINDINGS.get(one, one) for one in get_args(Finding)},
    "on_paper": ON_PAPER,
    "n_open": OPEN,
}


# Markdown

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")
_START = re.compile(r"^(\d+(?=[.)](?:\s|$))|(?=[-+=]))")  # the start of a list, or the underline of a heading


def markdown(summary: Summary, comparison: Comparison | None = None) -> str:
    """Return the whole report as Markdown; text from the data is escaped."""
    return re.sub(r"\n{3,}", "\n\n", text_of("report.md.jinja", summary=summary, comparison=comparison)).strip() + "\n"


def text_of(template: str, **values: Any) -> str:
    """Return the plain text of a template."""
    return _environment(autoescape=False).get_template(template).render(**values)


def escaped(value: object) -> str:
    """Return text that Markdown shows literally, on one line."""
    plain = re.sub(r"[\s\x00-\x1f\x7f]+", " ", str(value)).strip()
    return _START.sub(r"\1\\", _SPECIAL.sub(r"\\\1", plain))


def _curve_points(curve: ReportCurve, feature: FeatureSummary) -> str:
    """Return the points of a curve, with the labels of dates."""
    labels = dict(feature.x_labels)
    texts = [x if isinstance(x, str) else labels.get(x, text.number(x)) for x in curve.x]
    return "; ".join(f"{x}: {text.number(y)}" for x, y in zip(texts, curve.y, strict=True))


def _distribution(spread: Distribution) -> str:
    edges = [text.number(edge) for edge in spread.edges]
    names = spread.levels or [f"{low} to {high}" for low, high in pairwise(edges)]
    counts = "; ".join(f"{name}: {n}" for name, n in zip(names, spread.counts, strict=True))
    missing = f" Missing: {spread.n_missing}." if spread.n_missing else ""
    return f"Test rows by value: {counts}.{missing}" if counts or missing else ""


_TEXT_FILTERS: dict[str, Callable[..., str]] = {
    "count_of": count_of,
    "letter": letter,
    "percent": text.percent,
    "md": escaped,
    "known": lambda value: "" if value is None else text.number(value),
    "share": lambda value: "" if value is None else text.percent(value),
    "interval": with_interval,
    "points": _curve_points,
    "distribution": _distribution,
}
