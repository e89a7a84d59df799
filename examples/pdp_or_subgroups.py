"""What does one more room do to the rent, and which curve says so?

It lowers the rent of small flats and raises that of large ones. The partial dependence curve averages the two away,
the ALE curve strings them together into one curve that falls and rises; curves by subgroup keep them apart.
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
# Flats are simulated, so that the truth is known. Rooms go with area: about one for 25 square metres. A room more
# than usual costs a small flat 60 a month, and is worth 60 in a large one. In between it makes no difference.


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
# Rooms predict area and area predicts rooms. The tree of rooms finds flats of about one size, so that rooms may be
# varied within them and the flats could still exist.
groups = sg.find_subgroups(X_train, features=["rooms"])
print(groups["rooms"].text())

# %%
# Left, one curve for all flats. The partial dependence curve (PDP) gives seven rooms to flats of 25 square metres,
# and its ups and downs cancel. The ALE curve looks at small flats where rooms are few and at large ones where they
# are many: no flat follows it all the way. Right, a curve in each subgroup, drawn only where the subgroup has flats,
# bold for the middle half of them.
counts = range(1, 8)
pdp, ale = (sg.effect(model, X_test, "rooms", kind=kind, grid=counts) for kind in ("pdp", "ale"))
within = sg.effect(model, X_test, "rooms", subgroups=groups, grid=counts)
sg.plots.effects({"PDP": pdp, "ALE": ale}, within)

# %%
# The slope of a curve is the effect of a room; heights differ because area does. Between the quartiles of each
# subgroup, the slopes come back to what the flats were made from.
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
# One mean slope of the PDP, for comparison. It describes flats that nobody could build.
flat = np.polyfit(pdp.curves["x"], pdp.curves["estimate"], 1)[0]
print(f"PDP: {flat:.0f} a room")
assert abs(flat) < slopes["slope"].abs().max() / 2
plt.show()
