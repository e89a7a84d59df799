"""How do I write my own sampler?

Write a class with two methods. Here donors are the rows with the nearest values in one other column. The page on
adding a sampler explains this file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import subgrove as sg

SMALL = "--small" in sys.argv  # the size that CI runs


# %%
# A sampler has two methods. `fit` is called with training rows and returns a fitted sampler; `sample` yields new values
# for other rows, one array for each random generator.
class Nearest:
    """Resample from training rows that are near in the column `by`."""

    def __init__(self, by: str, among: int = 20) -> None:
        self.by = by
        self.among = among

    def fit(self, X: Any, features: list[str]) -> FittedNearest:
        return FittedNearest(X.sort_values(self.by, kind="stable"), self.by, self.among)


class FittedNearest:
    def __init__(self, train: Any, by: str, among: int) -> None:
        self.train = train
        self.by = by
        self.among = among

    def sample(self, X: Any, feature: str, rngs: list[np.random.Generator]) -> Iterator[Any]:
        place = np.searchsorted(self.train[self.by].to_numpy(), X[self.by].to_numpy())
        values = self.train[feature].to_numpy()
        for rng in rngs:
            step = rng.integers(-self.among // 2, self.among // 2 + 1, size=len(X))
            yield values[np.clip(place + step, 0, len(values) - 1)]


# %%
# It can be passed wherever `sampler=` is a parameter. The model here is a formula of temperature and humidity;
# temperature is resampled from days with similar humidity.
train, test = sg.datasets.bike(split=0.7, random_state=1)


def model(X: Any) -> Any:
    return 2000 + 100 * X["temp"] - 10 * X["hum"]


options: dict[str, Any] = {
    "features": ["temp"],
    "n_repeats": 5 if SMALL else 50,
    "loss": "squared_error",
    "random_state": 1,
}
nearest = sg.importance(model, test.X, test.y, sampler=Nearest(by="hum"), train=train.X, **options)
print(nearest)

# %%
# How realistic is it? Humidity hardly predicts temperature, so this sampler is hardly better than shuffling. The season
# predicts it well. The fidelity check agrees: resampled days are about as easy to separate from real ones (`auc`) as
# shuffled ones.
results = {
    "days as humid": nearest,
    "subgroups": sg.importance(model, test.X, test.y, sampler="subgroups", train=train.X, **options),
    "marginal": sg.importance(model, test.X, test.y, sampler="marginal", **options),
}
for name, result in results.items():
    print(f"{name:14} auc {result.overall['auc'][0]:.2f}, fidelity {result.overall['fidelity'][0]}")
sg.plots.importance(results)
assert results["subgroups"].overall["auc"][0] < nearest.overall["auc"][0]
plt.show()
