"""A report on a model: everything this package tells of it, as one page, Markdown or JSON."""

from subgrove._report import notebook
from subgrove._report.report import Report, report

__all__ = ["Report", "notebook", "report"]
