"""A sampler of your own: donors are the rows with the nearest values in one other column.

`docs/add_a_sampler.md` walks through this file, and a test runs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import subgrove as sg


# %%
# Two methods make a sampler. `fit` sees training rows and returns a fitted sampler; `redraw` gives new values for other
# rows, one column of them for each random generator.
class Nearest:
    """Gives each row the value of a training row that is near to it in the column `by`."""

    def __init__(self, by: str, among: int = 20) -> None:
        self.by = by
        self.among = among

    def fit(self, X: Any, features: list[str]) -> FittedNearest:
        return FittedNearest(X.sort_values(self.by), self.by, self.among)


class FittedNearest:
    def __init__(self, train: Any, by: str, among: int) -> None:
        self.train = train
        self.by = by
        self.among = among

    def redraw(self, X: Any, feature: str, rngs: list[np.random.Generator]) -> Iterator[Any]:
        place = np.searchsorted(self.train[self.by].to_numpy(), X[self.by].to_numpy())
        values = self.train[feature].to_numpy()
        for rng in rngs:
            step = rng.integers(-self.among // 2, self.among // 2 + 1, size=len(X))
            yield values[np.clip(place + step, 0, len(values) - 1)]


# %%
# It works wherever `sampler=` is an argument.
def main() -> None:
    train, test = sg.datasets.bike(split=0.7, seed=1)

    def model(X: Any) -> Any:
        return 2000 + 100 * X["temp"] - 10 * X["hum"]

    imp = sg.importance(model, test.X, test.y, sampler=Nearest(by="hum"), train=train.X, features=["temp"], seed=1)
    print(imp)


if __name__ == "__main__":
    main()
