"""Reports: results become a summary (frozen values), the summary becomes a page, Markdown or JSON."""
