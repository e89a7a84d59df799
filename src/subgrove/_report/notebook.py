"""A report in a notebook: its findings and the importances, in a small table; the page has the rest."""

from __future__ import annotations

from html import escape

from subgrove._report.numbers import with_range
from subgrove._report.summary import Summary

_MOST = 15


def compact(summary: Summary) -> str:
    """The report as a small piece of HTML."""
    found = "".join(f"<li>{escape(sentence)}</li>" for sentence in summary.highlights)
    rows = "".join(
        f"<tr><td>{escape(one.feature)}</td><td>{escape(with_range(one.conditional))}</td>"
        f"<td>{escape(with_range(one.marginal))}</td></tr>"
        for one in summary.features[:_MOST]
    )
    left = len(summary.features) - _MOST
    more = f"<p>and {left} more</p>" if left > 0 else ""
    head = "<tr><th>feature</th><th>conditional</th><th>marginal</th></tr>"
    return (
        f"<div><h4>{escape(summary.title)}</h4><ul>{found}</ul><table>{head}{rows}</table>{more}"
        '<p>The whole report: <code>.save("report.html")</code></p></div>'
    )
