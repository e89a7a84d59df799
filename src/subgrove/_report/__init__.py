"""Reports on a model as a page, Markdown or JSON, and notebook views of all results."""

from subgrove._report import notebook, notebook_importance
from subgrove._report.report import Report, report

__all__ = ["Report", "notebook", "notebook_importance", "report"]
