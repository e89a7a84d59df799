"""Charts of a report as SVG: a part of the summary in, markup out, without scripts and styles."""
