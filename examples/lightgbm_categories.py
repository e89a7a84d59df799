"""Is the column that boosting gains most from one that its predictions need?

Not always. A column with many labels offers many splits, and boosting gains from them on training rows whether or
not they mean anything. On held-out rows, resampling the column costs nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import subgrove as sg

try:
    from lightgbm import LGBMRegressor
except ImportError:
    print("This example needs LightGBM: pip install lightgbm")
    sys.exit(0)

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# Sales of shops, simulated. Sales depend on the kind of product, its price and the day. The shop, one of 80, has
# nothing to do with them, except that some shops lie in towns where prices are higher.


def sales(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series[float]]:
    rng = np.random.default_rng(seed)
    shop = rng.integers(80, size=n)
    kind = rng.choice(["bread", "cake", "tea"], n)
    day = rng.choice(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat"], n)
    price = rng.normal(3 + (kind == "cake") + 0.5 * (shop % 4), 0.4).round(1)
    X = pd.DataFrame(
        {
            "shop": pd.Categorical([f"shop {number}" for number in shop], [f"shop {number}" for number in range(80)]),
            "kind": pd.Categorical(kind),
            "day": pd.Categorical(day, ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]),
            "price": price,
        }
    )
    return X, 40 - 3 * price + 6 * (kind == "bread") + 5 * (day == "Sat") + rng.normal(0, 10, n)


X_train, y_train = sales(1500 if SMALL else 3000, seed=1)
X_test, y_test = sales(1000 if SMALL else 3000, seed=2)

# %%
# LightGBM takes categories as they are, and so does subgrove. With these settings boosting may split off shops that
# have ten training rows, as it does after a search for the settings that fit best on training rows.
model = LGBMRegressor(
    n_estimators=60 if SMALL else 100,
    min_data_per_group=10,
    cat_smooth=1,
    importance_type="gain",
    random_state=1,
    n_jobs=1,
    verbose=-1,
).fit(X_train, y_train)
gain = pd.Series(model.feature_importances_, X_train.columns)
print((gain / gain.sum()).round(2).to_string())

# %%
# Importance on new rows. The price depends on shop and kind, and the shop on the price: the default redraws each so
# that it goes with the others.
options: dict[str, Any] = {"n_repeats": 5 if SMALL else 10, "random_state": 1}
conditional = sg.importance(model, X_test, y_test, train=X_train, **options)
marginal = sg.importance(model, X_test, y_test, sampler="marginal", **options)
print(conditional.overall[["feature", "estimate", "std_error", "p_holm"]].round(2).to_string(index=False))

# %%
# Gain beside importance. The shop has the largest gain; redrawing it makes predictions of new rows no worse than
# noise would: what the model has learned of shops was noise.
estimate = conditional.overall.set_index("feature")["estimate"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.barh(gain.index, gain / gain.max(), color="#999999")
left.set_xlabel("gain on training rows (largest is 1)")
left.invert_yaxis()
left.spines[["top", "right"]].set_visible(False)
sg.plots.importance({"conditional": conditional, "marginal": marginal}, ax=right)
assert gain.idxmax() == "shop"
assert estimate["shop"] < estimate.max() / 5, estimate
plt.show()
