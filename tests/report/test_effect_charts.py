"""Charts of effects: curves are drawn where they belong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._report.effect_charts import panels


def skewed(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.lognormal(0, 1.5, n),
            "count": rng.geometric(0.4, n),
            "level": rng.choice(["a", "b", "c"], n, p=[0.8, 0.15, 0.05]),
        }
    )
    return X, pd.Series(additive(X) + 0.1 * rng.normal(size=n), name="y")


def additive(X: Any) -> Any:
    steps = pd.Series({"a": 0.0, "b": 1.0, "c": 3.0})
    return 2 * np.sqrt(X["income"]) + 0.5 * X["count"] + np.asarray(steps[X["level"]])


@pytest.mark.parametrize("feature", ["income", "count", "level"])
def test_ale_of_an_additive_model_is_drawn_on_the_pdp(feature: str) -> None:
    """Both curves have the same mean over rows; means over grid points had put ALE far above the PDP."""
    report = sg.report(additive, skewed(300, 1), skewed(300, 2), n_repeats=2, random_state=1, features=[feature])
    (summary,) = report.summary.features
    drawn = {one.name: one.line for one in panels(summary, None, "x")[-1].lines}
    pdp, ale = drawn["PDP"], drawn["ALE"]
    if isinstance(pdp.x[0], str):
        expected = [pdp.y[pdp.x.index(level)] for level in ale.x]
    else:
        expected = np.interp(np.array(ale.x, dtype=float), np.array(pdp.x, dtype=float), pdp.y).tolist()
    middle = slice(0, max(len(ale.y) - 1, 1))  # the last interval of a skewed feature is wide
    np.testing.assert_allclose(ale.y[middle], expected[middle], atol=0.02 * (max(pdp.y) - min(pdp.y)))
