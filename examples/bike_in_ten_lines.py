"""Which of weather and calendar does a forecast of rented bikes need?

The year, temperature and the season. Permutation importance says more of temperature than the forecast needs: part
of it is about winter days that are as warm as summer days, which do not exist.
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
# on one-hot columns. Any fitted model would do.
train, test = sg.datasets.bike(split=0.7, random_state=1)
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder="passthrough"
)
forest = RandomForestRegressor(30 if SMALL else 200, min_samples_leaf=2, max_features=1 / 3, random_state=1)
model = make_pipeline(encode, forest).fit(train.X, train.y)
error = (test.y - model.predict(test.X)).abs().mean()
print(f"On {len(test.X)} held-out days, the forest is off by {error:.0f} bikes a day.")

# %%
# Two importances, of the same model and days. Both say by how much the error grows when a column is redrawn: among
# all days (marginal), or so that it goes with the other columns of the day (conditional, the default).
options: dict[str, Any] = {
    "loss": "absolute_error",
    "n_repeats": 5 if SMALL else 20,
    "random_state": 1,
    "progress": False,
}
conditional = sg.importance(model, test.X, test.y, train=train.X, **options)
marginal = sg.importance(model, test.X, test.y, sampler="marginal", **options)
both = conditional.compare(marginal).rename(columns={"this": "conditional", "other": "marginal"})
print(both[["feature", "conditional", "marginal"]].round(0).to_string(index=False))

# %%
# Temperature costs much less if it keeps to what the season says. The year depends on no other column, and both
# importances agree.
estimate = both.set_index("feature")
assert estimate["conditional"]["temp"] < 0.8 * estimate["marginal"]["temp"]
sg.plots.importance({"conditional": conditional, "marginal": marginal})

# %%
# What stands behind the number, in sentences that are written from it.
print(conditional.explain("temp", marginal=marginal))

# %%
# And where does the forecast need temperature? Within subgroups of days in which it hardly depends on the rest, a
# rule for each. On humid summer days it hardly does.
groups = sg.find_subgroups(train.X, features=["temp"])
within = sg.importance(model, test.X, test.y, sampler=groups, **options)
print(within.by_subgroup[["rule", "n", "estimate", "conf_low", "conf_high"]].round(0).to_string(index=False))
sg.plots.subgroup_importance(within, "temp")
plt.show()
