"""The page of a report: one HTML file that needs nothing else.

Requirements that shaped it: made from a `Summary` alone; readable without its script and on paper; no address in it; a
content security policy that lets run the one style and the one script it was written with, by their hashes; all that
comes from data is escaped, by the templates and by `charts.svg`, and nothing else makes markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from subgrove._report import decimals as number_columns
from subgrove._report import numbers, wording
from subgrove._report import typography as typeset
from subgrove._report.charts import effect, intervals, levels, lines, palette, tree
from subgrove._report.decimals import decimals_of_estimates
from subgrove._report.layout import FeatureView, feature_views, split_dependence
from subgrove._report.summary import Estimate, Summary

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_OPEN = 12
"""With more features than this, each is closed at first."""


def page(summary: Summary) -> str:
    """The whole page, as text of an HTML file."""
    views = feature_views(summary)
    shown, rest = split_dependence(summary)
    style, script = _style(), _script()
    return (
        _environment()
        .get_template("page.html")
        .render(
            summary=summary,
            views=views,
            places={view.feature.feature: view.id for view in views},
            dependence=shown,
            rest=rest,
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
    """What the script reads the values of curves from; JSON that cannot end the element it stands in."""
    found = {
        panel.key: panel.points for view in views for _, panels in view.effects for panel in panels if panel.points
    }
    text = json.dumps(found, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("subgrove", "_report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(_filters())
    found.globals.update(_pictures())
    return found


def _filters() -> dict[str, Any]:
    return {
        "number": typeset.number,
        "exact": _exact,
        "parts": typeset.estimate_parts,
        "percent": typeset.percent,
        "foretold": typeset.foretold,
        "name": _name,
        "prose": typeset.prose,
        "cell": typeset.cell,
    }


def _name(words: str) -> Markup:
    """A name that may be broken where its parts end."""
    return Markup(re.sub(r"([_./-]+)(?=\w)", r"\1<wbr>", str(escape(words))))


def _exact(estimate: Estimate) -> str:
    """All digits of an estimate and its interval."""
    if estimate.conf_low is None or estimate.conf_high is None:
        return f"{estimate.estimate}"
    return f"{estimate.estimate}, interval {estimate.conf_low} to {estimate.conf_high}"


def _pictures() -> dict[str, Any]:
    return {
        "axis": intervals.axis,
        "bar": intervals.bar,
        "certificate_mark": wording.certificate_mark,
        "count": numbers.counted,
        "decimals_of": number_columns.decimals_of,
        "decimals_of_estimates": number_columns.decimals_of_estimates,
        "dots": intervals.dots,
        "estimate_cell": number_columns.estimate_cell,
        "estimate_scale": intervals.estimate_scale,
        "half_width": typeset.half_width,
        "letter": palette.letter,
        "margin": typeset.margin,
        "noisy": typeset.with_noise,
        "most_levels": levels.MOST_LEVELS,
        "number_cell": number_columns.number_cell,
        "outputs_of": lines.outputs_of,
        "rough": number_columns.rough,
        "share_bar": intervals.share_bar,
        "small_picture": effect.small_picture,
        "step_scale": intervals.step_scale,
        "subgroup_class": palette.subgroup_class,
        "tree_picture": tree.tree_picture,
    }


@cache
def _style() -> str:
    """The style with the colours of both themes. It is not escaped: no part of it comes from data."""
    light, dark = (palette.declarations(colors) for colors in (palette.LIGHT, palette.DARK))
    numbered = "".join(f".s{at}{{--own:var(--s{at})}}" for at in range(1, palette.N_COLORS + 1))
    return _part("style.css").replace("/*light*/", light).replace("/*dark*/", dark).replace("/*numbered*/", numbered)


@cache
def _script() -> str:
    return _part("script.js")


def _part(name: str) -> str:
    from importlib.resources import files

    return files("subgrove").joinpath("_report", "templates", name).read_text(encoding="utf-8")
