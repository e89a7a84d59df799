"""Is it the warehouse or the carrier that makes parcels late?

The carrier. Warehouse, region and carrier are labels that predict each other, and permutation importance is
large for each of them. Given the other two, the carrier is important, the region a little, and the warehouse not.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# Parcels are simulated, so the truth is known. Each region has a warehouse that serves it, with few exceptions,
# and carriers that are common there. Whether a parcel is late depends on the carrier, on whether the region is
# remote, and on its weight. It never depends on the warehouse.

SERVED_BY = {"coast": "W1", "valley": "W1", "city": "W2", "plain": "W2", "hills": "W3", "islands": "W3"}
CARRIERS = ["Arrow", "Bolt", "Cart"]
SHARES = {
    "coast": [0.7, 0.2, 0.1],
    "valley": [0.6, 0.3, 0.1],
    "city": [0.1, 0.8, 0.1],
    "plain": [0.2, 0.7, 0.1],
    "hills": [0.1, 0.3, 0.6],
    "islands": [0.1, 0.2, 0.7],
}


def parcels(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    region = rng.choice(list(SHARES), n)
    carrier = np.array([rng.choice(CARRIERS, p=SHARES[name]) for name in region])
    usual = np.array([SERVED_BY[name] for name in region])
    warehouse = np.where(rng.random(n) < 0.9, usual, rng.choice(["W1", "W2", "W3"], n))
    weight = rng.gamma(2, 2, n).round(1)
    remote = np.isin(region, ["hills", "islands"])
    score = -2 + 1.8 * (carrier == "Cart") - 0.8 * (carrier == "Bolt") + 1.2 * remote + 0.1 * weight
    late = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "late", "in time")
    labels = {"region": region, "warehouse": warehouse, "carrier": carrier}
    X = pd.DataFrame({name: pd.Categorical(values) for name, values in labels.items()} | {"weight": weight})
    return X, pd.Series(late, name="delivery")


X_train, y_train = parcels(2000 if SMALL else 6000, seed=1)
X_test, y_test = parcels(1500 if SMALL else 4000, seed=2)

# %%
# The classifier is a forest on one-hot columns. subgrove explains the whole pipeline, so it resamples labels, not
# indicator columns.
encode = make_column_transformer((OneHotEncoder(), ["region", "warehouse", "carrier"]), remainder="passthrough")
forest = RandomForestClassifier(40 if SMALL else 100, min_samples_leaf=20, max_features=3, random_state=1)
model = make_pipeline(encode, forest).fit(X_train, y_train)
print(f"AUC on held-out parcels: {roc_auc_score(y_test == 'late', model.predict_proba(X_test)[:, 1]):.2f}")

# %%
# How well do the labels predict each other? For a nominal column, the share explained is one minus the ratio of the
# error rates with and without the other columns.
found = sg.dependence(X_train, n_trees=30 if SMALL else 100, random_state=1)
print(found.table[["feature", "explained", "predictors"]].round(2).to_string(index=False))

# %%
# Importance for the log loss: shuffled among all parcels, and within subgroups.
options: dict[str, Any] = {"n_repeats": 5 if SMALL else 20, "random_state": 1}
groups = sg.find_subgroups(X_train, max_depth=3)
within = sg.importance(model, X_test, y_test, sampler=groups, **options)
marginal = sg.importance(model, X_test, y_test, sampler="marginal", **options)
sg.plots.importance({"within subgroups": within, "marginal": marginal})

# %%
# The carrier remains important within subgroups, the warehouse has hardly any importance.
estimate = within.overall.set_index("feature")["estimate"]
print(
    pd.DataFrame({"within subgroups": estimate, "marginal": marginal.overall.set_index("feature")["estimate"]}).round(4)
)
shuffled = marginal.overall.set_index("feature")["estimate"]
assert shuffled["warehouse"] > 0.001
assert estimate["warehouse"] < shuffled["warehouse"] / 3
assert estimate["carrier"] > 10 * estimate["warehouse"]

# %%
# A rule for a nominal column lists levels. The tree of the carrier splits on the region, and finds regions that share
# carriers.
sg.plots.tree(groups["carrier"])

# %%
# The probability of being late by carrier, in each subgroup of regions. Boxes show the predictions of parcels; a
# carrier that does not occur in a subgroup has no box.
effect = sg.effect(model, X_test, "carrier", subgroups=groups, output="late")
sg.plots.effect(effect)
plt.show()
