"""The models that are tested, fitted on tables that may have labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from subgrove._core.kinds import Floats

_TREES = 50


def fitted_model(name: str, X: pd.DataFrame, y: Any, seed: int) -> Any:
    """A pipeline that takes labels as indicators, fitted."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    models = {
        "linear": LinearRegression(),
        "forest": RandomForestRegressor(_TREES, min_samples_leaf=5, max_features=1 / 3, random_state=seed),
        "boosting": HistGradientBoostingRegressor(max_iter=60, random_state=seed),
    }
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    columns = ColumnTransformer([("labels", encoder, labels_of(X))], remainder="passthrough")
    return make_pipeline(columns, models[name]).fit(X, y)


def labels_of(X: pd.DataFrame) -> list[str]:
    """Columns that are no numbers."""
    return [str(name) for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]


class _InNumbers(BaseEstimator):  # type: ignore[misc]
    """A fitted model that takes an array with x1 first and an indicator for each label."""

    def __init__(self, model: Any, back: Callable[[Floats], pd.DataFrame], n_columns: int) -> None:
        self.model = model
        self.back = back
        self.n_columns = n_columns
        self.n_features_in_ = n_columns
        self.is_fitted_ = True

    def fit(self, X: Any, y: Any) -> _InNumbers:
        return self

    def predict(self, X: Floats) -> Floats:
        return np.asarray(self.model.predict(self.back(X)))


def encoded_predict(model: Any, X: pd.DataFrame) -> tuple[Any, Callable[[pd.DataFrame], Floats]]:
    """The model for packages that take numbers alone, and how a table becomes such an array."""
    labels = labels_of(X)
    plain = [str(name) for name in X.columns if name not in labels]
    levels = {name: sorted(X[name].astype(str).unique()) for name in labels}

    def numbers(table: pd.DataFrame) -> Floats:
        parts = [table[plain].to_numpy(float)]
        parts += [(table[[name]].astype(str).to_numpy() == np.array(levels[name])).astype(float) for name in labels]
        return np.column_stack(parts)

    def back(array: Floats) -> pd.DataFrame:
        table = pd.DataFrame(array[:, : len(plain)], columns=plain)
        start = len(plain)
        for name in labels:
            stop = start + len(levels[name])
            codes = array[:, start:stop].argmax(axis=1)
            table[name] = pd.Series(np.array(levels[name])[codes]).astype(X[name].dtype)
            start = stop
        return table[[str(name) for name in X.columns]]

    return _InNumbers(model, back, numbers(X.head(1)).shape[1]), numbers
