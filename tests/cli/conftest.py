"""Small files that commands are run on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def rows(n: int = 240, seed: int = 1) -> pd.DataFrame:
    """`b` follows `a`; `kind` has levels and gaps; `price` depends on `a` and `kind`, `sold` on `a`."""
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def houses(folder: Path) -> Path:
    """A file with a number and a class to foretell."""
    path = folder / "houses.csv"
    rows().to_csv(path, index=False)
    return path
