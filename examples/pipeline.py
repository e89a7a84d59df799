"""A model is a pipeline: do I explain it before or after its columns are encoded?

Before. Explain the whole pipeline with the original table: then each column is one feature, with its labels and
missing values. After encoding, resampled days can have two seasons or none.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# The bike data, with humidity missing on a tenth of the days.
train, test = sg.datasets.bike(split=0.7, random_state=1)
rng = np.random.default_rng(1)
X_train, X_test = (part.X.assign(hum=part.X["hum"].mask(rng.random(len(part.X)) < 0.1)) for part in (train, test))
print(f"missing humidity: {X_train['hum'].isna().sum()} of {len(X_train)} training days")

# %%
# A common pipeline: one-hot encoding, imputation by the median, then a random forest.
encode = make_column_transformer(
    (OneHotEncoder(sparse_output=False), make_column_selector(dtype_include="category")),
    (SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")),
    verbose_feature_names_out=False,
).set_output(transform="pandas")
forest = RandomForestRegressor(30 if SMALL else 100, min_samples_leaf=2, max_features=1 / 3, random_state=1)
model = make_pipeline(encode, forest).fit(X_train, train.y)

# %%
# Before encoding: the pipeline is the model. There are nine features with their original names; a missing value is
# resampled like any other value and imputed by the pipeline.
options: dict[str, Any] = {"loss": "absolute_error", "n_repeats": 5 if SMALL else 20, "random_state": 1}
groups = sg.find_subgroups(X_train)
raw = sg.importance(model, X_test, test.y, sampler=groups, **options)
marginal = sg.importance(model, X_test, test.y, sampler="marginal", **options)
sg.plots.importance({"within subgroups": raw, "marginal": marginal})

# %%
# After encoding: the forest is the model and each level is a column. Shuffling `season_SUMMER` alone gives days with
# two seasons, and days without a season.
steps, after = model[:-1], model[-1]
X_encoded = steps.transform(X_test)
seasons = [name for name in X_encoded if name.startswith("season_")]
shuffled = X_encoded.assign(season_SUMMER=rng.permutation(X_encoded["season_SUMMER"]))
count = shuffled[seasons].sum(axis=1).astype(int).value_counts().sort_index()
print("days by number of seasons, after season_SUMMER was shuffled:", count.to_dict())
assert count.drop(1).sum() > 0.2 * len(X_test)

# %%
# Importance of single levels is small and does not sum to that of the season.
levels = sg.importance(after, X_encoded, test.y, sampler="marginal", features=seasons, **options)
whole = marginal.overall.set_index("feature")["estimate"]["season"]
print(f"levels one by one: {levels.overall['estimate'].sum():.0f} together; the season as a column: {whole:.0f}")

# %%
# If only an encoded table is available, pass the columns of a feature as a group. They are resampled jointly, so each
# day has one season. A season has few values, so the expectation over them is computed exactly instead of by random
# draws: the importance is equal to that of the season before encoding, to the last digit.
group = sg.importance(after, X_encoded, test.y, sampler="marginal", features=[seasons], **options)
together = float(group.overall["estimate"][0])
print(f"as a group: {together:.0f}; before encoding: {whole:.0f}")
assert np.isclose(together, whole)
values = pd.Series({"season, before encoding": whole, "its four columns as a group": together})
for name, estimate in zip(seasons, levels.overall["estimate"], strict=True):
    values[f"{name} alone"] = estimate
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.barh(values.index, values, color=["#0072b2"] * 2 + ["#d55e00"] * 4)
ax.invert_yaxis()
ax.set_xlabel("increase of absolute error (marginal importance)")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
