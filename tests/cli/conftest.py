"""Small files for the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._cli.options import DataOptions


def rows(n: int = 240, seed: int = 1) -> pd.DataFrame:
    """Return rows: `b` depends on `a`, `kind` is nominal with missing values, `price` depends on `a` and `kind`."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n).round(3)
    kind = rng.choice(["flat", "house", "hut"], size=n)
    price = 3 * a + 2 * (kind == "house") + 0.3 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a,
            "b": (a + 0.3 * rng.normal(size=n)).round(3),
            "kind": pd.Series(kind, dtype=object).where(rng.random(n) > 0.05, None),
            "price": price.round(3),
            "sold": np.where(a + 0.5 * rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def options(path: Path, **values: Any) -> DataOptions:
    """Return options to read a file."""
    return DataOptions(data=path, **values)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def houses(folder: Path) -> Path:
    """A file with a numeric target and a class."""
    path = folder / "houses.csv"
    rows().to_csv(path, index=False)
    return path
