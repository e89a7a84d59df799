"""HTML views of results, registered for their classes from outside: results do not import what draws them."""

from __future__ import annotations

from functools import singledispatch


@singledispatch
def html_of(result: object) -> str:
    """Return the HTML that a notebook shows for a result; `subgrove._report.notebook` registers the views."""
    raise NotImplementedError(f"No HTML view is registered for {type(result).__name__}.")


class HtmlView:
    """A result with an HTML view in notebooks."""

    def _repr_html_(self) -> str:
        return html_of(self)
