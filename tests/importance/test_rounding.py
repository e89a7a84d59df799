"""Importances that are rounding errors of the model are 0."""

from __future__ import annotations

import numpy as np
import pandas as pd

import subgrove as sg


def test_a_column_that_a_model_adds_in_another_order_only_has_no_importance() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    y = X["a"] + rng.normal(size=200)

    def predict(rows: pd.DataFrame) -> object:
        a, c = rows["a"].to_numpy(), rows["c"].to_numpy()
        return (a + c) - c  # the last digit changes with c

    imp = sg.importance(predict, X, y, features=["a", "c"], random_state=1, loss="squared_error")
    estimates = imp.overall.set_index("feature")["estimate"]
    assert estimates["a"] > 0.5
    assert estimates["c"] == 0
    assert (imp.by_subgroup.loc[imp.by_subgroup["feature"] == "c", "estimate"] == 0).all()
