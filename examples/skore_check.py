"""A report of skore calls a feature useless: is it useless, or does another feature carry the same information?

skore judges features by shuffling them. A check of our own adds the conditional importance: features that matter when
shuffled, but not given the others, are redundant rather than useless or needed.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg

try:
    from skore import Check, EstimatorReport
except ImportError:
    sys.exit("This example needs skore: pip install skore")

SMALL = "--small" in sys.argv  # the size that CI runs


# %%
# A check is a class with a code, a title and a function of the report; it returns a sentence if there is something to
# say. This one compares the marginal with the conditional importance on the test rows of the report.
class RedundantFeatures(Check):  # type: ignore[misc,unused-ignore]
    """Features that matter when shuffled, but not given the others."""

    code = "SGV001"
    title = "Redundant features"
    report_types = ["estimator"]  # noqa: RUF012  # skore takes a list
    docs_url = None
    severity = "tip"
    slow = False

    def check_function(self, report: Any) -> str | None:
        options: dict[str, Any] = {"n_repeats": 5 if SMALL else 20, "random_state": 1, "loss": "squared_error"}
        rows = (report.estimator_, report.X_test, report.y_test)
        conditional = sg.importance(*rows, train=report.X_train, **options).overall.set_index("feature")
        marginal = sg.importance(*rows, sampler="marginal", **options).overall.set_index("feature")
        redundant = [name for name in marginal.index if marginal["p_bh"][name] < 0.05 < conditional["p_bh"][name]]
        return f"Redundant given the other features: {', '.join(redundant)}." if redundant else None


# %%
# x1 follows x2 and adds nothing to it, but a forest splits on either.
null = sg.simulate.null_scenario("linear")
train, test = null.sample(300, random_state=1), null.sample(400, random_state=2)
forest = RandomForestRegressor(50, max_features=3, random_state=1)
report = EstimatorReport(forest, X_train=train.X, y_train=train.y, X_test=test.X, y_test=test.y)
sentence = RedundantFeatures().check_function(report)
print(sentence)
assert sentence is not None
assert "x1" in sentence

# %%
# Added to the report, the check stands among those of skore.
report.checks.add([RedundantFeatures()])
found = report.checks.summarize().frame()
print(found[found["code"] == "SGV001"][["code", "title"]].to_string(index=False))
imp = sg.importance(report.estimator_, test.X, test.y, train=train.X, n_repeats=5 if SMALL else 20, random_state=1)
sg.plots.importance(imp, top=5)
plt.show()
