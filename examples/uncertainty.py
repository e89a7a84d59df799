"""How sure is an importance, and of what?

An interval covers the sources of noise that were selected. For a model at hand that is mostly the noise of the test
rows; more redraws do not help against it. What models fitted like this one rely on is another question, with another
interval.
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
# 442 patients of the diabetes data, half of them to fit a forest, half to explain it. Four of the ten columns are
# enough to see what there is to see.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=1)
forest = RandomForestRegressor(30 if SMALL else 50, min_samples_leaf=5, max_features=1 / 3, random_state=1)
model = forest.fit(X_train, y_train)
features = ["bmi", "bp", "s5", "age"]

# %%
# Three sources of noise for the model at hand: other test rows, other redraws, and subgroups found on other training
# rows. The last one is known if subgroups are found again on halves of the training rows, which
# `with_sampler_variance` does.
options: dict[str, Any] = {"sampler": "subgroups", "features": features, "loss": "absolute_error", "random_state": 1}
imp = sg.importance(model, X_test, y_test, train=X_train, n_repeats=10, **options)
imp = imp.with_sampler_variance(5 if SMALL else 20)
print(imp.variance_components.round(3).to_string(index=False))
assert (imp.variance_components["largest"] != "Monte Carlo").all()

# %%
# The same estimates with intervals that cover more and more. `with_noise` computes nothing again; the column `noise`
# of a table, and the foot of a picture, say what is covered.
covered = {
    "Monte Carlo": imp.with_noise("Monte Carlo"),
    "test rows": imp.with_noise("test rows"),
    "all three": imp.with_noise("test rows", "Monte Carlo", "sampler"),
}
width = {name: result.overall.set_index("feature")["std_error"] for name, result in covered.items()}
print(pd.DataFrame(width).round(2).to_string())

# %%
# More redraws make the smallest of these smaller, and nothing else. `AdaptiveRepeats(share=0.1)` adds repeats until
# the Monte-Carlo error is a tenth of the error due to the test rows, feature by feature.
enough = sg.importance(model, X_test, y_test, train=X_train, n_repeats=sg.AdaptiveRepeats(share=0.1), **options)
print(enough.settings["repeats_used"])

# %%
# The model itself would be another one had other patients been there. That cannot be seen from one model. Fitting it
# again on other parts of the data shows something else: what do forests of this kind rely on? All patients take
# their turn as test rows, so that the interval may well be narrower, though it covers the noise of fitting too.
refits = sg.importance_over_refits(forest, X, y, n_refits=5 if SMALL else 12, n_repeats=5, progress=False, **options)
print(refits.overall[["feature", "estimate", "std_error", "noise"]].round(2).to_string(index=False))

# %%
# Both questions side by side: what this forest relies on, and what forests like it rely on.
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
