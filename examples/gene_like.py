"""Which gene matters when ten genes move together?

The data cannot decide, and conditional importance shows it: each gene of the module that drives the
outcome adds next to nothing, given its neighbours. The module as a group does. Use groups.
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
# Expression levels are simulated: four modules of genes. Genes of a module follow a common signal and are correlated
# by about 0.99 with each other, not at all with other modules. The outcome depends on one gene of module a and on one
# of module b. Modules c and d have no part in it.
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
# Gene by gene, shuffled: the forest has spread its trust over the whole of module a, and permutation importance shows
# that. It does not show that any one of these genes could be left out.
options: dict[str, Any] = {"n_repeats": 5 if SMALL else 10, "random_state": 1}
shown = [*MODULES["a"][:5], *MODULES["b"][:3], "c1"]
marginal = sg.importance(model, X_test, y_test, sampler="marginal", features=shown, **options)

# %%
# Gene by gene, given all other genes: nearly nothing. A small conditional importance means that others can stand in
# for the gene, not that the model ignores it.
conditional = sg.importance(model, X_test, y_test, train=X_train, features=shown, **options)
sg.plots.importance({"given all other genes": conditional, "shuffled alone": marginal})

# %%
# Module by module: a list of names is a group that is redrawn together. Nothing outside a module stands in for it, so
# that both ways to redraw agree, and the two modules that drive the outcome are clear of the two that do not.
groups = list(MODULES.values())
modules = sg.importance(model, X_test, y_test, sampler="marginal", features=groups, **options)
table = modules.overall.assign(module=list(MODULES))
print(table[["module", "estimate", "std_error", "p_holm"]].round(3).to_string(index=False))

# %%
# The same in one picture: what module a is worth, what its genes are worth if each is shuffled alone, and what they
# are worth given the others. Sums of single importances say nothing about the group.
alone = marginal.overall.set_index("feature")["estimate"][MODULES["a"][:5]].sum()
given = conditional.overall.set_index("feature")["estimate"][MODULES["a"][:5]].sum()
worth = pd.Series(
    {"module a, redrawn together": table["estimate"][0], "five of its genes, shuffled one by one, sum": alone}
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
