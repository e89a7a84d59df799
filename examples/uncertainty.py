"""How uncertain is an importance, and why?

An interval includes the selected components of variance. For a fitted model the largest one is mostly that of the test
rows, which more repeats do not reduce. The importance for a learning algorithm, over refits, has another interval.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# 442 patients of the diabetes data: a random forest is fitted on one half and explained on the other half. Four of the
# ten columns are sufficient here.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=1)
forest = RandomForestRegressor(30 if SMALL else 50, min_samples_leaf=5, max_features=1 / 3, random_state=1)
model = forest.fit(X_train, y_train)
features = ["bmi", "bp", "s5", "age"]

# %%
# The variance of an importance of a fitted model has three components: the test rows, the random draws, and the
# training rows that subgroups are found on. `with_sampler_variance` estimates the last one by finding subgroups on
# halves of the training rows.
options: dict[str, Any] = {"sampler": "subgroups", "features": features, "loss": "absolute_error", "random_state": 1}
imp = sg.importance(model, X_test, y_test, train=X_train, n_repeats=10, **options)
imp = imp.with_sampler_variance(5 if SMALL else 20)
print(imp.variance_components.round(3).to_string(index=False))
assert (imp.variance_components["largest"] != "Monte Carlo").all()

# %%
# The same estimates with intervals that include more and more components. `with_noise` recomputes nothing; the column
# `noise` of a table, and the footer of a figure, state what is included.
covered = {
    "Monte Carlo": imp.with_noise("Monte Carlo"),
    "test rows": imp.with_noise("test rows"),
    "all three": imp.with_noise("test rows", "Monte Carlo", "sampler"),
}
width = {name: result.overall.set_index("feature")["std_error"] for name, result in covered.items()}
print(pd.DataFrame(width).round(2).to_string())

# %%
# More repeats reduce only the smallest component, the Monte-Carlo error. `AdaptiveRepeats(share=0.1)` adds repeats
# until the Monte-Carlo error is a tenth of the error due to the test rows, feature by feature.
enough = sg.importance(model, X_test, y_test, train=X_train, n_repeats=sg.AdaptiveRepeats(share=0.1), **options)
print(enough.settings["repeats_used"])

# %%
# The variance of the model itself cannot be estimated from one fitted model. Refits on different training sets estimate
# the importance for the learning algorithm instead of one model. Each patient is in a test set, so the interval can be
# narrower although it includes the variance of fitting.
refits = sg.importance_over_refits(forest, X, y, n_refits=5 if SMALL else 12, n_repeats=5, **options)
print(refits.overall[["feature", "estimate", "std_error", "noise"]].round(2).to_string(index=False))

# %%
# Importance for this forest, and for forests of this kind.
tables = {"this forest, other test rows": covered["all three"].overall, "forests fitted like it": refits.overall}
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.set_prop_cycle(color=["#0072b2", "#d55e00"])
for shift, (name, table) in zip((-0.1, 0.1), tables.items(), strict=True):
    reach = [table["estimate"] - table["conf_low"], table["conf_high"] - table["estimate"]]
    places = [place + shift for place in range(len(features))]
    ax.errorbar(table["estimate"], places, xerr=reach, fmt="o", capsize=3, label=name)
ax.set_yticks(range(len(features)), features)
ax.invert_yaxis()
ax.axvline(0, color="black", linewidth=0.8)
ax.set_xlabel("importance within subgroups (increase of absolute error), 95 % intervals")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=2)
plt.show()
