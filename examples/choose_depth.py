"""How deep should the trees be that find subgroups?

As deep as splits improve the score on held-out rows. `max_depth="auto"` selects that depth for each feature, and a
tolerance trades a part of the improvement for shorter rules.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# The bike data and a random forest of the three weather columns. Subgroups may use all nine columns, so the model is a
# function that selects its three.
train, test = sg.datasets.bike(split=0.7, random_state=1)
numbers = ["temp", "hum", "wind"]
forest = RandomForestRegressor(30 if SMALL else 100, min_samples_leaf=3, random_state=1)
forest.fit(train.X[numbers], train.y)


def model(X: pd.DataFrame) -> Any:
    return forest.predict(X[numbers])


# %%
# All depths at once. `score` is the CRPS of the subgroups' distributions on held-out training rows, in units of the
# feature (smaller is better). It does not depend on the model.
profile = sg.DepthProfile.compute(
    train.X,
    features=numbers,
    model=model,
    test=test,
    loss="absolute_error",
    n_repeats=5 if SMALL else 20,
    random_state=1,
)
columns = ["feature", "depth", "n_subgroups", "score", "score_error", "selected", "estimate", "std_error"]
print(profile.table[columns].round(2).to_string(index=False))

# %%
# Left: the score relative to that of one subgroup. It decreases as long as splits generalize, then stays constant or
# increases. A circle marks the selected depth, the smallest within one standard error of the best. Right: the
# importance at each depth, starting with marginal importance at depth 0. Changes beyond the selected depth are noise.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.set_prop_cycle(color=["#0072b2", "#d55e00", "#009e73"])
for feature, line in profile.table.groupby("feature", sort=False):
    share = line["score"] / line["score"].iloc[0]
    left.plot(line["depth"], share, marker=".", label=feature)
    left.plot(
        line["depth"][line["selected"]], share[line["selected"]], "o", fillstyle="none", markersize=12, color="black"
    )
left.set(xlabel="depth", ylabel="score (one subgroup is 1)", ylim=(0, 1.05))
left.xaxis.get_major_locator().set_params(integer=True)
left.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False, loc="lower left")
sg.plots.importance_by_depth(profile.importance, ax=right)

# %%
# The reason for each selected depth.
for reason in profile.reasons:
    print(reason)

# %%
# For shorter rules, a tolerance allows a smaller depth that gives up a share of the improvement, here a fifth. Nothing
# is recomputed.
short = profile.with_tolerance(0.2)
for name in numbers:
    print(f"{name}: {len(short.subgroups[name].rules)} subgroups instead of {len(profile.subgroups[name].rules)}")
assert all(len(short.subgroups[name].rules) <= len(profile.subgroups[name].rules) for name in numbers)
assert len(short.subgroups["temp"].rules) < len(profile.subgroups["temp"].rules)
print(*short.subgroups["temp"].rules, sep="\n")

# %%
# The same choice for every feature, without a model: `max_depth="auto"`.
print(sg.find_subgroups(train.X, max_depth="auto"))
plt.show()
