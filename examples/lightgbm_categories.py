"""Is the column that boosting gains most from one that its predictions need?

Not always. A column with many labels offers many splits, which improve the fit on training rows even if they are
noise. On held-out rows, the importance of such a column can be zero.
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
# Simulated sales of shops. Sales depend on the kind of product, its price and the day. They do not depend on the shop,
# one of 80, except that some shops have higher prices.


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
# LightGBM supports categories natively, and so does subgrove. With these settings boosting may split on shops with ten
# training rows, as it does if hyperparameters are tuned on training rows.
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
# Importance on held-out rows. Price depends on shop and kind, so the default samplers resample each given the other
# columns.
options: dict[str, Any] = {"n_repeats": 5 if SMALL else 10, "loss": "squared_error", "random_state": 1}
conditional = sg.importance(model, X_test, y_test, train=X_train, **options)
marginal = sg.importance(model, X_test, y_test, sampler="marginal", **options)
print(conditional.overall[["feature", "estimate", "std_error", "p_holm"]].round(2).to_string(index=False))

# %%
# Gain and importance. The shop has the largest gain, but its importance on held-out rows is within noise: the model has
# overfitted the shops.
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
