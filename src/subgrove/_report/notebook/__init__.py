"""HTML views of results in notebooks; importing this package registers them."""

from subgrove._report.notebook import effects, importance, subgroups, summaries

__all__ = ["effects", "importance", "subgroups", "summaries"]
