"""Pictures of a report as SVG text: a part of the summary in, markup out. No script and no styles are in them."""
