"""The compiled inner loops, or None where the package was installed without a C compiler."""

from __future__ import annotations

from subgrove._native.loader import load_compiled

MOST_COMPILED = 32  # coefficients of a model beyond the first, or scores of a row, that the compiled loops take
inner = load_compiled("subgrove._native._inner")
sums = load_compiled("subgrove._native._sums")
