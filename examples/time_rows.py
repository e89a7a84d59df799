"""Rows are a time series: what must not be split or shuffled at random?

The rows. With a random split, performance is overestimated and the date seems important; on later days its
importance is zero. A sampler that is fitted on past days is unrealistic for later days. And consecutive days are
not independent: intervals that assume independence are too narrow.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# The bike data are a daily time series of two years. A forecast may use the date, the weather of the day, and the
# number of bikes rented the day before and a week before.
bike = sg.datasets.bike()
X = bike.X[["temp", "hum", "wind"]].assign(
    date=np.arange(len(bike.X)),
    workday=(bike.X["work"] == "WORKING DAY").astype(int),
    yesterday=bike.y.shift(1),
    week_ago=bike.y.shift(7),
)[7:]
y = bike.y[7:]

# %%
# Two ways to hold out a third of the days: at random, or the last ones. The random days have neighbours among the
# training days, so the date is predictive of them in a way that it cannot be for later days.
random = np.random.default_rng(1).random(len(X)) < 1 / 3
last = np.arange(len(X)) >= len(X) * 2 // 3


def fitted(test: np.ndarray[Any, np.dtype[np.bool_]]) -> RandomForestRegressor:
    forest = RandomForestRegressor(40 if SMALL else 200, min_samples_leaf=3, max_features=1 / 2, random_state=1)
    return forest.fit(X[~test], y[~test])


results = {}
for name, test in {"random days": random, "the last days": last}.items():
    model = fitted(test)
    results[name] = sg.importance(
        model, X[test], y[test], sampler="marginal", loss="absolute_error", n_repeats=5 if SMALL else 20, random_state=1
    )
    print(f"{name}: off by {results[name].baseline[0]:.0f} bikes a day")
assert results["the last days"].baseline[0] > 1.2 * results["random days"].baseline[0]
sg.plots.importance(results)

# %%
# The date is most important on the random days, where it leaks information. To explain a forecast, hold out days that
# are later than the training days.
date = {name: result.overall.set_index("feature")["estimate"]["date"] for name, result in results.items()}
print({name: round(float(value)) for name, value in date.items()})
assert date["the last days"] < date["random days"] / 2

# %%
# A sampler should not be fitted on past days either. Later days have a different joint distribution of dates,
# temperatures and counts (covariate shift), so a sampler fitted on past days draws unrealistic values. The fidelity
# check detects this: `auc` is how well a classifier separates resampled days from real ones, where 0.5 is not at all.
# Without `train=` the sampler is cross-fitted on the later days themselves.
model = fitted(last)
features = ["temp", "yesterday", "week_ago"]
options: dict[str, Any] = {
    "features": features,
    "loss": "absolute_error",
    "n_repeats": 5 if SMALL else 20,
    "random_state": 1,
}
of_the_past = sg.importance(model, X[last], y[last], train=X[~last], **options)
conditional = sg.importance(model, X[last], y[last], **options)
columns = {"shuffled": results["the last days"], "taught by the past": of_the_past, "cross-fitted": conditional}
for what in ("auc", "estimate"):
    found = {name: result.overall.set_index("feature")[what][features] for name, result in columns.items()}
    print(f"{what}\n{pd.DataFrame(found).round(2 if what == 'auc' else 0).to_string()}\n")
auc = of_the_past.overall["auc"] - conditional.overall["auc"]
assert (auc > 0.05).all()

# %%
# Standard errors of the table assume independent days, but errors of a forecast are autocorrelated. Means over blocks
# of two weeks are nearly independent, and their spread gives a standard error that accounts for autocorrelation. The
# losses of single days are in `per_row`.
rows = conditional.per_row[features]
blocks = rows.groupby(np.arange(len(rows)) // 14).mean()
by_block = blocks.std(ddof=1) / np.sqrt(len(blocks))
by_day = conditional.with_noise("test rows").overall.set_index("feature")["std_error"]
compared = pd.DataFrame({"days independent": by_day, "blocks of 14 days": by_block})
print(compared.round(0).to_string())
assert (by_block > by_day).any()

# %%
# Importance of yesterday's count on each day, and its mean over two weeks. It is autocorrelated, and shows the season
# in which the forecast relies on the day before.
figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.plot(X["date"][last], rows["yesterday"], color="#999999", linewidth=0.8, label="each day")
ax.plot(X["date"][last], rows["yesterday"].rolling(14, center=True).mean(), color="#0072b2", label="mean of 14 days")
ax.axhline(0, color="black", linewidth=0.8)
ax.set(xlabel="days since 1 January 2011", ylabel="increase of absolute error")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
