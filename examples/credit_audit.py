"""Does a credit model use gender beyond the information in the other columns?

This one does, for part-time workers, like the decisions that it was trained on. Conditional importance, a doubly
robust test and effects by subgroup detect it; a model of fair decisions is the control. A model without gender has
zero importance for gender, but penalizes everybody who works part-time.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# Applicants are simulated, so the truth is known. More women than men work part-time and in care, so hours and sector
# are predictive of gender. Income depends on hours and sector. Clerks decided by income, debt and years in the job;
# unfair clerks also rejected part-time working women more often than comparable men.


def applicants(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 0.5
    part_time = rng.random(n) < np.where(woman, 0.5, 0.15)
    sector = np.where(rng.random(n) < np.where(woman, 0.5, 0.15), "care", rng.choice(["tech", "trade"], n))
    income = 20 + 14 * ~part_time + 9 * (sector == "tech") - 4 * (sector == "care") + rng.normal(0, 4, n)
    return pd.DataFrame(
        {
            "gender": pd.Categorical(np.where(woman, "woman", "man")),
            "hours": pd.Categorical(np.where(part_time, "part-time", "full-time")),
            "sector": pd.Categorical(sector),
            "income": income.round(1),
            "debt": rng.gamma(2, 4, n).round(1),
            "years": rng.gamma(2, 3, n).round(),
        }
    )


def decisions(X: pd.DataFrame, seed: int, *, fair: bool) -> Any:
    score = 0.2 * (X["income"] - 30) - 0.15 * (X["debt"] - 8) + 0.1 * X["years"]
    if not fair:
        score = score - 2.5 * ((X["gender"] == "woman") & (X["hours"] == "part-time"))
    chance = 1 / (1 + np.exp(-score))
    return pd.Series(np.where(np.random.default_rng(seed).random(len(X)) < chance, "yes", "no"), name="credit")


X_train, X_test = applicants(1500 if SMALL else 4000, seed=1), applicants(1000 if SMALL else 2000, seed=2)
y_test = {kind: decisions(X_test, seed=4, fair=kind == "fair") for kind in ("unfair", "fair")}


def fitted(columns: list[str], *, fair: bool) -> Pipeline:
    encode = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder="passthrough"
    )
    forest = RandomForestClassifier(60 if SMALL else 150, min_samples_leaf=10, max_features=4, random_state=1)
    return make_pipeline(encode, forest).fit(X_train[columns], decisions(X_train, seed=3, fair=fair))


every = list(X_train.columns)
models = {kind: fitted(every, fair=kind == "fair") for kind in ("unfair", "fair")}
for kind, model in models.items():
    auc = roc_auc_score(y_test[kind] == "yes", model.predict_proba(X_test)[:, 1])
    print(f"learned from {kind} decisions: AUC {auc:.2f}")

# %%
# How well do other columns predict gender? Hours and sector do, and income, which follows them. An auditor compares
# women and men of the same hours and sector, so these two define the subgroups (`given`). Without it the tree
# would select from all columns, and split on income first.
groups = sg.find_subgroups(X_train, features=["gender"], given=["hours", "sector"])
print(groups["gender"].text())

# %%
# The audit of both models: how much worse are predictions if gender is resampled among comparable applicants? The
# doubly robust test does not rely on the sampler alone; report its p-value.
options: dict[str, Any] = {"sampler": groups, "loss": "brier", "n_repeats": 10, "random_state": 1}
audit, p_value = {}, {}
for kind, model in models.items():
    audit[kind] = sg.importance(model, X_test, y_test[kind], **options)
    tested = audit[kind].independence_test(X_test)
    p_value[kind] = float(tested["p_value"][0])
    print(f"{kind}: importance of gender {audit[kind].overall['estimate'][0]:.4f}, p-value {p_value[kind]:.4f}")
assert p_value["unfair"] < 0.01
assert p_value["fair"] > 0.01

# %%
# For which applicants does the unfair model use gender? For part-time workers, as importance by subgroup shows.
sg.plots.subgroup_importance(audit["unfair"], "gender")
parts = audit["unfair"].by_subgroup
part_time = parts["rule"].str.contains("part-time")
print(parts[["rule", "n", "estimate", "conf_low", "conf_high"]].round(4).to_string(index=False))
assert parts["estimate"][part_time].min() > parts["estimate"][~part_time].max()

# %%
# In which direction? The predicted probability of a credit for the same applicants as women and as men.
effect = sg.effect(models["unfair"], X_test, "gender", subgroups=groups, output="yes")
sg.plots.effect(effect)
table = effect.curves.pivot(index="rule", columns="x", values="estimate")
print((table["woman"] - table["man"]).rename("woman minus man").round(3).to_string())

# %%
# Dropping the column does not help. This model was trained without gender, so the importance of gender is zero by
# construction. But it was trained on the same decisions, and uses hours as a proxy. Given income, debt, years and
# sector, hours should carry no information, and for the model of fair decisions they carry little.
blind = [name for name in every if name != "gender"]
given = ["income", "debt", "years", "sector"]
proxy = {
    kind: sg.importance(
        fitted(blind, fair=kind == "fair"), X_test[blind], y_test[kind], train=X_train[blind], features=["hours"],
        given=given, loss="brier", n_repeats=10, random_state=1,
    )
    for kind in ("unfair", "fair")
}  # fmt: skip
for kind, result in proxy.items():
    line = result.overall.iloc[0]
    print(f"{kind}, without gender: importance of hours {line['estimate']:.4f} +- {line['std_error']:.4f}")
assert proxy["unfair"].overall["estimate"][0] > 3 * abs(proxy["fair"].overall["estimate"][0])

# %%
# Limits of the conclusion: an importance of zero does not prove fairness, because a proxy can replace the feature. A
# large importance does not prove that people were unfair; it describes how this model uses the column for these
# applicants. Whether income and hours are fair criteria cannot be decided from data.
plt.show()
