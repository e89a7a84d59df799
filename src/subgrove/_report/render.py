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
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, get_args

from markupsafe import Markup, escape

from subgrove._core import text
from subgrove._core.text import common_decimals, count_of, fixed, letter
from subgrove._importance.evidence import IMPORTANT, Finding
from subgrove._report import svg
from subgrove._report.comparison import Comparison
from subgrove._report.effect_charts import MOST_LEVELS, ChartPanel, panels, small_picture, small_scale
from subgrove._report.summary import DependenceSummary, Distribution, Estimate, FeatureSummary, ReportCurve, Summary
from subgrove._report.tree_chart import tree_picture
from subgrove._report.wording import short, tidy, with_interval, with_range
from subgrove.plots._palette import LIGHT, N_COLORS

if TYPE_CHECKING:
    from jinja2 import Environment

OPEN = 3
"""Number of features that are initially open, the most important ones."""
FEW_CAUTIONS = 3
"""Cautions beside the findings; the others are folded."""
ON_PAPER = 12
"""Features in the printed summary; the others are in the appendix."""
NEARLY_ZERO = f"\u2248{svg.SPACE}0"
_FEW, _MANY = 12, 25  # rows of the dependence table: all are shown, and at most shown
_LITTLE = 0.01
_FINDINGS = {"none": "not used", "unknown": "no interval", "negative": "better without it"}
_DIGITS = 5  # of the largest number of a column
_SMALL, _LARGE = 1e-6, 1e12  # where the largest is beyond these, each number of a column has its own decimals


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
        noise = max(half_width(one) or 0.0 for one in (self.feature.conditional, self.feature.marginal))
        return rough(self.gap, noise, most)

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
    estimates = [one for each in summary.features for one in (each.conditional, each.marginal)]
    style, script = _style(), svg.template_text("script.js")
    template = _environment(autoescape=True).get_template("page.html")
    return template.render(
        summary=summary,
        comparison=comparison,
        views=views,
        places={view.feature.feature: view.id for view in views},
        dependence=shown,
        folded=folded,
        scale=estimate_scale(estimates),
        most=decimals_of_estimates(estimates),
        small=small_scale(summary.features),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        points=_points(views),
    )


def _view(feature: FeatureSummary, place: str, dependence: DependenceSummary | None) -> FeatureView:
    effects = tuple(
        EffectView(output, panels(feature, output, f"{place}-{at}"), _sentences_of(feature, output))
        for at, output in enumerate(feature.outputs)
    )
    return FeatureView(feature, place, dependence, effects)


def _sentences_of(feature: FeatureSummary, output: str | None) -> list[str]:
    """Return the sentences on one output: those that name its class, and those that follow and name none."""
    found: dict[str | None, list[str]] = {each: [] for each in feature.outputs}
    longest_first = sorted((each for each in feature.outputs if each is not None), key=len, reverse=True)
    current = next(iter(feature.outputs))
    for sentence in feature.effect_sentences:
        current = next((each for each in longest_first if tidy(f"class {each}") in sentence), current)
        found[current].append(sentence)
    return found[output]


def _split_dependence(summary: Summary) -> tuple[list[DependenceSummary], list[DependenceSummary]]:
    """Return the features by explained share: those to show, and those to fold away."""
    by_share = sorted(summary.dependence, key=lambda one: -(one.explained or 0.0))
    if len(by_share) <= _FEW:
        return by_share, []
    shown = [one for one in by_share if one.misleads or (one.explained or 0.0) >= _LITTLE][:_MANY]
    return shown, [one for one in by_share if one not in shown]


def _policy(style: str, script: str) -> str:
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "img-src": "data:",  # a chart on its way to a PNG file
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


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
    return (
        svg.template_text("style.css")
        .replace("/*light*/", light)
        .replace("/*dark*/", dark)
        .replace("/*numbered*/", numbered)
    )


@cache
def _environment(*, autoescape: bool) -> Environment:
    """Return the environment of the HTML templates, or that of plain text and Markdown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("subgrove", "_report/templates"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_PAGE_FILTERS if autoescape else _TEXT_FILTERS)
    environment.globals.update(_PAGE_FUNCTIONS if autoescape else {})
    return environment


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
    if estimate.conf_low is None or estimate.conf_high is None:
        return None
    return (estimate.conf_high - estimate.conf_low) / 2


def exact(estimate: Estimate) -> str:
    """Return all digits of an estimate and its interval."""
    if estimate.conf_low is None or estimate.conf_high is None:
        return f"{estimate.estimate}"
    return f"{estimate.estimate}, interval {estimate.conf_low} to {estimate.conf_high}"


def estimate_text(estimate: Estimate | None) -> str:
    """Return an estimate with its interval, such as "303 (262 to 350)"; a dash for an unknown one."""
    return svg.UNKNOWN if estimate is None else svg.typeset(with_range(estimate))


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
    return value, " to ".join(ends) if len(ends) == 2 else ""


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


_IN_TEMPLATES: tuple[Callable[..., Any], ...] = (
    *(cell, estimate_text, exact, explained, name, svg.number, percent, svg.prose),
    *(cell_scale, decimals_of, decimals_of_estimates, estimate_cell, estimate_scale, half_interval, half_width),
    *(number_cell, rough, with_noise, count_of, letter, short, svg.subgroup_class, small_picture, tree_picture),
)
_PAGE_FILTERS = {one.__name__: one for one in _IN_TEMPLATES}
_PAGE_FUNCTIONS = {
    **_PAGE_FILTERS,
    "important": IMPORTANT,
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
    cells = "; ".join(f"{name}: {n}" for name, n in zip(names, spread.counts, strict=True))
    missing = f" Missing: {spread.n_missing}." if spread.n_missing else ""
    return f"Test rows by value: {cells}.{missing}" if cells or missing else ""


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
