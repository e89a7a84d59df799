"""Permutation importance of the season is large. How much of that is shared with temperature?

About half. The gap between marginal and conditional importance can be explained column by column, also in
an order of your own.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# A random forest on the bike data, as in [the first example](bike_in_ten_lines.md).
train, test = sg.datasets.bike(split=0.7, random_state=1)
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder="passthrough"
)
forest = RandomForestRegressor(30 if SMALL else 100, min_samples_leaf=2, max_features=1 / 3, random_state=1)
model = make_pipeline(encode, forest).fit(train.X, train.y)

# %%
# Marginal and conditional importance of season and weather, with the same rows and random state, so differences are
# not due to random draws.
options: dict[str, Any] = {"loss": "absolute_error", "n_repeats": 5 if SMALL else 20, "random_state": 1}
conditional = sg.importance(model, test.X, test.y, train=train.X, features=["season", "weather"], **options)
marginal = sg.importance(model, test.X, test.y, sampler="marginal", features=["season", "weather"], **options)
sg.plots.importance({"conditional": conditional, "marginal": marginal})

# %%
# The gap of each feature, in sentences that are generated from the numbers.
for feature in ("season", "weather"):
    print(conditional.explain_gap(marginal, feature), end="\n\n")

# %%
# The same as a figure: the first bar is the marginal importance, each column removes the share that it explains, and
# the last bar is the conditional importance.
gap = conditional.explain_gap(marginal, "season")
sg.plots.gap(gap)
assert gap.columns[0] == "temp"
assert 0.2 < gap.gap / gap.marginal < 0.8

# %%
# The share of a column depends on the order in which columns are added. Here we set the order: humidity and wind first,
# then temperature. The first two explain hardly any of the season's importance, temperature explains most of the gap.
order = conditional.relative("season", order=["hum", "wind", "temp"])
print(order.table[["added", "estimate", "std_error", "change"]].round(0).to_string(index=False))
change = order.table.set_index("added")["change"]
assert change["temp"] < change["hum"] + change["wind"]
sg.plots.relative_importance(order)
plt.show()
