"""HTML views of results: each view is registered for its class from outside, so that results do not import views."""

from __future__ import annotations

from functools import singledispatch


@singledispatch
def html_of(result: object) -> str:
    """Return the HTML that a notebook shows for a result; `subgrove._report.notebook` registers the views."""
    raise NotImplementedError(f"No HTML view is registered for {type(result).__name__}.")
