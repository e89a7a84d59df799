"""Which features of weather and calendar does a forecast of bike rentals need?

The year, temperature and the season. Permutation importance of temperature is larger: part of it comes from winter days
with summer temperatures, which do not exist.
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
# The data come with the package: 731 days, nine columns, and the number of rented bikes. The model is a random forest
# on one-hot encoded columns; any fitted model works.
train, test = sg.datasets.bike(split=0.7, random_state=1)
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder="passthrough"
)
forest = RandomForestRegressor(30 if SMALL else 200, min_samples_leaf=2, max_features=1 / 3, random_state=1)
model = make_pipeline(encode, forest).fit(train.X, train.y)
error = (test.y - model.predict(test.X)).abs().mean()
print(f"On {len(test.X)} held-out days, the forest is off by {error:.0f} bikes a day.")

# %%
# Marginal and conditional importance of the same model on the same days. Both are the increase of the error when a
# column is resampled: from all days (marginal), or given the other columns of the day (conditional, the default).
options: dict[str, Any] = {
    "loss": "absolute_error",
    "n_repeats": 5 if SMALL else 20,
    "random_state": 1,
}
conditional = sg.importance(model, test.X, test.y, train=train.X, **options)
marginal = sg.importance(model, test.X, test.y, sampler="marginal", **options)
both = conditional.compare(marginal).rename(columns={"this": "conditional", "other": "marginal"})
print(both[["feature", "conditional", "marginal"]].round(0).to_string(index=False))

# %%
# Temperature is much less important given the season. The year does not depend on any other column, so both
# importances agree.
estimate = both.set_index("feature")
assert estimate["conditional"]["temp"] < 0.8 * estimate["marginal"]["temp"]
sg.plots.importance({"conditional": conditional, "marginal": marginal})

# %%
# An explanation of the number in sentences.
print(conditional.explain("temp", marginal=marginal))

# %%
# On which days does the forecast need temperature? Importance within subgroups of days, each defined by a rule, in
# which temperature hardly depends on the other columns. It is smallest on humid summer days.
groups = sg.find_subgroups(train.X, features=["temp"])
within = sg.importance(model, test.X, test.y, sampler=groups, **options)
print(within.by_subgroup[["rule", "n", "estimate", "conf_low", "conf_high"]].round(0).to_string(index=False))
sg.plots.subgroup_importance(within, "temp")
plt.show()
