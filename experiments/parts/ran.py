"""What was run: a table of one line that stands beside the results, so that the summary can say it."""

from __future__ import annotations

import platform
from importlib.metadata import version

import pandas as pd

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def ran(results: pd.DataFrame) -> pd.DataFrame:
    """Units, cells and repetitions that results are of, and the versions that tables were made with."""
    from subgrove import __version__

    units = results.groupby("cell")["key"].nunique()
    versions = {"subgrove": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _PACKAGES}
    counts = {"units": int(units.sum()), "cells": len(units)}
    counts |= {"fewest_in_a_cell": int(units.min()), "most_in_a_cell": int(units.max())}
    return pd.DataFrame([counts | versions])
