"""What a table of dependence shows of itself in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subgrove._notebook import MOST_ROWS, Cell, Scale, card, counted, dot, table

if TYPE_CHECKING:
    from subgrove._dependence.result import Dependence


def dependence_html(found: Dependence) -> str:
    """How well each feature is foretold and by which columns, the most dependent first."""
    most_first = sorted(found.found, key=lambda each: -np.nan_to_num(each.explained, nan=-np.inf))
    unit, noted = Scale(0.0, 1.0), any(each.note for each in most_first[:MOST_ROWS])
    rows: list[list[Cell]] = []
    for each in most_first[:MOST_ROWS]:
        low, high = each.explained - each.std_error, each.explained + each.std_error
        picture = dot(unit, each.explained, low, high)
        note: list[Cell] = [each.note] if noted else []
        rows.append([each.feature, each.explained, picture, each.named(), found._sampler(each), *note])
    heads = ["feature", "share foretold", "0 to 1, +- std. error", "by (its part)", "advised sampler"]
    heads += ["note"] if noted else []
    count = len(found.dependent)
    about = f"{counted(count, 'feature') if count else 'No feature'} foretold by at least {found.threshold:.0%}"
    about += ": there ordinary importance and effects mislead most." if count else "."
    shown = table(heads, rows, total=len(most_first), rest=".table")
    return card(f"How well {counted(len(most_first), 'feature')} can be foretold from the other columns", about, shown)
