"""Do two models that predict about equally well rely on the same features?

Not necessarily, if features are redundant. On the diabetes data a linear model seems to rely on a blood value that a
random forest hardly uses. Given the other blood values it is not important for either model, and the two models agree.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# 442 patients, ten measurements, and disease progression after one year. Six columns are blood values; `s1`
# (total cholesterol) and `s2` (LDL) nearly determine each other.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=1)
linear = LinearRegression().fit(X_train, y_train)
forest = RandomForestRegressor(60 if SMALL else 300, min_samples_leaf=5, max_features=1 / 3, random_state=1)
forest.fit(X_train, y_train)
for name, model in {"linear": linear, "forest": forest}.items():
    error = (y_test - model.predict(X_test)).abs().mean()
    print(f"{name}: mean absolute error {error:.1f}, R squared {model.score(X_test, y_test):.2f}")
print(f"correlation of s1 and s2: {X['s1'].corr(X['s2']):.2f}")

# %%
# Marginal importance: features are shuffled among all patients. The linear model has a large coefficient of `s1` and
# one of opposite sign of `s2`. Their contributions nearly cancel, unless one of them alone is shuffled.
options: dict[str, Any] = {"loss": "absolute_error", "n_repeats": 10 if SMALL else 50, "random_state": 1}
shuffled = {
    name: sg.importance(model, X_test, y_test, sampler="marginal", **options)
    for name, model in {"linear": linear, "forest": forest}.items()
}
print("coefficients:", dict(zip(X.columns, linear.coef_.round(2).tolist(), strict=True)))
sg.plots.importance(shuffled)

# %%
# Conditional importance: `s1` is resampled given the other blood values. Sampler and random state are the same for both
# models, so both are evaluated on the same resampled patients.
given = {
    name: sg.importance(model, X_test, y_test, train=X_train, **options)
    for name, model in {"linear": linear, "forest": forest}.items()
}
sg.plots.importance(given)

# %%
# The difference of the two models, feature by feature. Both were evaluated on the same rows, so the standard error is
# that of paired differences, which is smaller than the two intervals suggest.
for name, results in {"shuffled": shuffled, "given the others": given}.items():
    difference = results["linear"].compare(results["forest"])
    difference = difference.rename(columns={"this": "linear", "other": "forest", "estimate": "difference"})
    shown = difference[["feature", "linear", "forest", "difference", "std_error", "p_value"]].round(3)
    print(f"{name}\n{shown[shown['feature'].isin(['bmi', 's1', 's2', 's5'])].to_string(index=False)}\n")
    if name == "shuffled":
        before = difference.set_index("feature")["difference"]["s1"]
    else:
        after = difference.set_index("feature")["difference"]["s1"]

# %%
# So the two models hardly differ in how they use cholesterol, although marginal importance suggests it.
assert before > 5
assert abs(after) < before / 2
print(f"s1, linear minus forest: {before:.1f} if shuffled, {after:.1f} given the other columns")
plt.show()
