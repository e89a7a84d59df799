"""Which gene matters when ten genes move together?

The data cannot decide, and conditional importance shows it: each gene of a relevant module is redundant given the
other genes of the module. The module as a group is important, so analyse groups.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# Expression levels are simulated: four modules of genes. Genes of a module share a common signal and have correlations
# of about 0.99; genes of different modules are independent. The outcome depends on one gene of module a and one of
# module b, and not on modules c and d.
SIZE = 5 if SMALL else 10
MODULES = {letter: [f"{letter}{number}" for number in range(1, SIZE + 1)] for letter in "abcd"}


def samples(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series[float]]:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for genes in MODULES.values():
        signal = rng.normal(size=n)
        columns |= {gene: signal + 0.1 * rng.normal(size=n) for gene in genes}
    X = pd.DataFrame(columns)
    return X, 2 * X["a1"] + X["b1"] + rng.normal(size=n)


X_train, y_train = samples(400, seed=1)
X_test, y_test = samples(300, seed=2)
model = RandomForestRegressor(60 if SMALL else 200, min_samples_leaf=3, max_features=1 / 3, random_state=1)
model.fit(X_train, y_train)
print(f"R squared on held-out samples: {model.score(X_test, y_test):.2f}")

# %%
# Marginal importance of single genes: the forest uses all genes of module a, and permutation importance shows that. It
# does not show that each of these genes is redundant.
options: dict[str, Any] = {"n_repeats": 5 if SMALL else 10, "loss": "squared_error", "random_state": 1}
shown = [*MODULES["a"][:5], *MODULES["b"][:3], "c1"]
marginal = sg.importance(model, X_test, y_test, sampler="marginal", features=shown, **options)

# %%
# Conditional importance of single genes is nearly zero. That means that a gene is redundant given the other genes, not
# that the model ignores it.
conditional = sg.importance(model, X_test, y_test, train=X_train, features=shown, **options)
sg.plots.importance({"given all other genes": conditional, "shuffled alone": marginal})

# %%
# Importance of modules: a list of names is a group that is resampled jointly. No other genes are predictive of a
# module, so marginal and conditional importance agree, and the two relevant modules are clearly different from 0.
groups = list(MODULES.values())
modules = sg.importance(model, X_test, y_test, sampler="marginal", features=groups, **options)
table = modules.overall.assign(module=list(MODULES))
print(table[["module", "estimate", "std_error", "p_holm"]].round(3).to_string(index=False))

# %%
# One figure with the importance of module a, and the marginal and conditional importance of its genes. The importance
# of a group is not the sum of the importances of its members.
alone = marginal.overall.set_index("feature")["estimate"][MODULES["a"][:5]].sum()
given = conditional.overall.set_index("feature")["estimate"][MODULES["a"][:5]].sum()
worth = pd.Series(
    {"module a, resampled together": table["estimate"][0], "five of its genes, shuffled one by one, sum": alone}
)
worth["five of its genes, each given all others, sum"] = given
print(worth.round(2).to_string())
figure, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.barh(worth.index, worth, color=["#0072b2", "#d55e00", "#d55e00"])
ax.invert_yaxis()
ax.set_xlabel("increase of squared error")
ax.spines[["top", "right"]].set_visible(False)
assert given < alone / 2
assert alone < table["estimate"][0] / 2
assert table["p_holm"][2:].min() > 0.001 or table["estimate"][2:].abs().max() < 0.05
plt.show()
