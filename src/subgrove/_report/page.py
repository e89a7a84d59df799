"""The page of a report: one self-contained HTML file.

Requirements: made from a `Summary` alone; readable without its script and on paper; no URL in it; a content security
policy that allows only the style and the script it was written with, by their hashes; all text from the data is
escaped, by the templates and by `charts.svg`, and nothing else makes markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from subgrove._core.text import count_of
from subgrove._report import numbers, wording
from subgrove._report.charts import effect, intervals, levels, lines, tree
from subgrove._report.charts.effect import ChartPanel, panels
from subgrove._report.charts.lines import outputs_of
from subgrove._report.numbers import decimals_of_estimates, half_width, rough
from subgrove._report.summary import DependenceSummary, Estimate, FeatureSummary, Summary
from subgrove.plots._palette import LIGHT, N_COLORS

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_OPEN = 12
"""With more features than this, each is initially closed."""
_FILTERS = (
    *(numbers.cell, numbers.estimate_parts, numbers.explained),
    *(numbers.number, numbers.percent, numbers.prose),
)
_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(count_of, wording.fidelity_mark, lines.letter, lines.subgroup_class),
    *(numbers.decimals_of, numbers.decimals_of_estimates, numbers.estimate_cell, numbers.half_interval),
    *(numbers.half_width, numbers.number_cell, numbers.rough, numbers.with_noise),
    *(intervals.axis, intervals.bar, intervals.dots, intervals.estimate_scale, intervals.share_bar),
    *(intervals.step_scale, effect.small_picture, tree.tree_picture),
)
_FEW, _MANY = 12, 25  # rows of the dependence table: all are shown, and at most shown
_LITTLE = 0.01


@dataclass(frozen=True)
class FeatureView:
    """A feature for the templates: its id on the page, its dependence, and the charts of each output."""

    feature: FeatureSummary
    id: str
    dependence: DependenceSummary | None
    effects: tuple[tuple[str | None, tuple[ChartPanel, ...]], ...]

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

    @property
    def misleads(self) -> bool:
        """Whether shuffling it creates unrealistic rows."""
        return self.dependence.misleads if self.dependence else False


def _split_dependence(summary: Summary) -> tuple[list[DependenceSummary], list[DependenceSummary]]:
    """Return the features by explained share: those to show, and those to fold away."""
    by_share = sorted(summary.dependence, key=lambda one: -(one.explained or 0.0))
    if len(by_share) <= _FEW:
        return by_share, []
    shown = [one for one in by_share if one.misleads or (one.explained or 0.0) >= _LITTLE][:_MANY]
    return shown, [one for one in by_share if one not in shown]


def _feature_views(summary: Summary) -> list[FeatureView]:
    """Return all features in their order."""
    known = {one.feature: one for one in summary.dependence}
    return [_view(one, f"feature-{at}", known.get(one.feature)) for at, one in enumerate(summary.features, 1)]


def _view(feature: FeatureSummary, place: str, dependence: DependenceSummary | None) -> FeatureView:
    effects = tuple(
        (output, tuple(panels(feature, output, f"{place}-{at}"))) for at, output in enumerate(outputs_of(feature))
    )
    return FeatureView(feature, place, dependence, effects)


def page(summary: Summary) -> str:
    """Return the whole page as HTML."""
    views = _feature_views(summary)
    shown, folded = _split_dependence(summary)
    style, script = _style(), _script()
    return (
        _environment()
        .get_template("page.html")
        .render(
            summary=summary,
            views=views,
            places={view.feature.feature: view.id for view in views},
            dependence=shown,
            folded=folded,
            scale=intervals.importance_scale(summary.features),
            most=decimals_of_estimates(one for each in summary.features for one in (each.conditional, each.marginal)),
            small=effect.small_scale(summary.features),
            open=len(summary.features) <= MOST_OPEN,
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            points=_points(views),
        )
    )


def _policy(style: str, script: str) -> str:
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _points(views: list[FeatureView]) -> Markup:
    """Return the points of curves for the script, as JSON that cannot close its element."""
    points = {
        panel.key: panel.points for view in views for _, panels in view.effects for panel in panels if panel.points
    }
    text = json.dumps(points, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("subgrove", "_report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({one.__name__: one for one in _FILTERS}, exact=_exact, name=_name)
    environment.globals.update({one.__name__: one for one in _FUNCTIONS})
    environment.globals.update(important=wording.IMPORTANT, most_levels=levels.MOST_LEVELS)
    return environment


def _name(words: str) -> Markup:
    """Return a name that may be broken at underscores, dots, slashes and hyphens."""
    return Markup(re.sub(r"([_./-]+)(?=\w)", r"\1<wbr>", str(escape(words))))


def _exact(estimate: Estimate) -> str:
    """Return all digits of an estimate and its interval."""
    if estimate.conf_low is None or estimate.conf_high is None:
        return f"{estimate.estimate}"
    return f"{estimate.estimate}, interval {estimate.conf_low} to {estimate.conf_high}"


@cache
def _style() -> str:
    """Return the style with the colours of both themes; no part of it comes from data."""
    light, dark = (lines.declarations(colors) for colors in (LIGHT, lines.DARK))
    numbered = "".join(f".s{at}{{--own:var(--s{at})}}" for at in range(1, N_COLORS + 1))
    return _part("style.css").replace("/*light*/", light).replace("/*dark*/", dark).replace("/*numbered*/", numbered)


@cache
def _script() -> str:
    return _part("script.js")


def _part(name: str) -> str:
    from importlib.resources import files

    return files("subgrove").joinpath("_report", "templates", name).read_text(encoding="utf-8")
