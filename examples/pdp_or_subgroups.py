"""What is the effect of one more room on the rent, and which curve shows it?

It decreases the rent of small flats and increases that of large ones. In the partial dependence curve the two effects
cancel, the ALE curve combines them into one curve that falls and rises; curves by subgroup separate them.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# Flats are simulated, so the truth is known. Rooms depend on area: about one for 25 square metres. One more room
# decreases the rent of a small flat by 60 a month and increases that of a large one by 60; in between it has no effect.


def worth_of_a_room(area: pd.Series[float]) -> pd.Series[float]:
    return 60.0 * (area > 95) - 60.0 * (area < 60)


def flats(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series[float]]:
    rng = np.random.default_rng(seed)
    area = pd.Series(rng.uniform(25, 150, n).round(), name="area")
    rooms = (area / 25 + rng.normal(0, 0.8, n)).round().clip(1, 7)
    X = pd.DataFrame({"rooms": rooms, "area": area, "age": rng.uniform(0, 80, n).round()})
    rent = 300 + 10 * area - 2 * X["age"] + worth_of_a_room(area) * (rooms - area / 25) + rng.normal(0, 40, n)
    return X, rent


X_train, y_train = flats(2000 if SMALL else 4000, seed=1)
X_test, y_test = flats(1000 if SMALL else 2000, seed=2)
model = GradientBoostingRegressor(n_estimators=60 if SMALL else 200, max_depth=5, random_state=1).fit(X_train, y_train)
print(f"R squared on held-out flats: {model.score(X_test, y_test):.2f}")

# %%
# Rooms and area depend on each other. The tree of rooms finds flats of similar size, within which rooms can vary
# without unrealistic flats.
groups = sg.find_subgroups(X_train, features=["rooms"])
print(groups["rooms"].text())

# %%
# Left: one curve for all flats. The partial dependence curve (PDP) averages over flats of 25 square metres with seven
# rooms, and opposite effects cancel. The ALE curve accumulates local effects of small flats where rooms are few and of
# large flats where they are many, so it does not describe any single flat. Right: a curve for each subgroup, within the
# range of its flats, bold between the quartiles.
counts = range(1, 8)
pdp, ale = (sg.effect(model, X_test, "rooms", kind=kind, grid=counts, subgroups=None) for kind in ("pdp", "ale"))
within = sg.effect(model, X_test, "rooms", subgroups=groups, grid=counts)
sg.plots.effects({"PDP": pdp, "ALE": ale}, within)

# %%
# The slope of a curve is the effect of a room; levels differ because areas differ. Between the quartiles of each
# subgroup, the slopes recover the true effects.
rows = []
for rule, curve in within.curves[within.curves["in_box"]].groupby("rule", sort=False):
    inside = groups["rooms"].assign(X_test) == groups["rooms"].rules.index(str(rule))
    slope = np.polyfit(curve["x"], curve["estimate"], 1)[0]
    rows.append({"rule": rule, "slope": slope, "truth": worth_of_a_room(X_test["area"][inside]).mean()})
slopes = pd.DataFrame(rows)
print(slopes.round(0).to_string(index=False))
assert slopes["slope"].iloc[0] < -25
assert slopes["slope"].iloc[-1] > 25

# %%
# The mean slope of the PDP, for comparison. It is an average over unrealistic flats.
flat = np.polyfit(pdp.curves["x"], pdp.curves["estimate"], 1)[0]
print(f"PDP: {flat:.0f} a room")
assert abs(flat) < slopes["slope"].abs().max() / 2
plt.show()
