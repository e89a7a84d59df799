"""For which loss is the default model trained? See decision 0036.

Cross-validated R², and D² of the absolute error, of the default model trained for three losses::

    python benchmarks/training_loss.py

`fair` and `randhie` are data sets of statsmodels; the others are generated.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from subgrove._cli.default_model import DefaultModel

Floats = npt.NDArray[np.float64]


def targets(n: int = 5000) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield names, columns and targets."""
    from statsmodels.datasets import fair, randhie

    for data, target in ((fair, "affairs"), (randhie, "mdvis")):
        frame = data.load_pandas().data
        frame = frame.sample(min(n, len(frame)), random_state=1)
        X, y = (np.asarray(one, dtype=np.float64) for one in (frame.drop(columns=target), frame[target]))
        yield f"`{target}` of {data.__name__.split('.')[-1]}", X, y
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    effect = X[:, 0] + 0.5 * X[:, 1] * X[:, 2]
    yield "normal", X, effect + rng.normal(size=n)
    yield "lognormal", X, np.exp(0.7 * effect + 1.2 * rng.normal(size=n))
    amounts = rng.gamma(2, 1, n) * np.exp(0.3 * X[:, 1])
    yield "amounts, 86 % zero", X, np.where(rng.random(n) < 1 / (1 + np.exp(2.2 - effect)), amounts, 0.0)
    yield "counts, 72 % zero", X, rng.poisson(0.3 * np.exp(0.5 * X[:, 0])).astype(np.float64)


def skill(own: Floats, constant: Floats) -> str:
    """Return one minus the ratio of mean losses, and its standard error."""
    ratio = own.mean() / constant.mean()
    error = (own - ratio * constant).std(ddof=1) / (np.sqrt(len(own)) * constant.mean())
    return f"{1 - ratio:.2f} ({error:.2f})"


def main() -> None:
    """Print the table."""
    for name, X, y in targets():
        cells = []
        for loss in ("squared_error", "absolute_error", "poisson"):
            if loss == "poisson" and y.min() < 0:
                cells += ["", ""]
                continue
            default = DefaultModel("regression")
            default.columns_, default.levels_ = list(range(X.shape[1])), {}
            model: HistGradientBoostingRegressor = default._unfitted(1).set_params(loss=loss)
            predicted, means, medians = (np.empty(len(y)) for _ in range(3))
            for train, test in KFold(5, shuffle=True, random_state=1).split(X):
                predicted[test] = clone(model).fit(X[train], y[train]).predict(X[test])
                means[test], medians[test] = y[train].mean(), np.median(y[train])
            cells.append(skill((y - predicted) ** 2, (y - means) ** 2))
            cells.append(skill(np.abs(y - predicted), np.abs(y - medians)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
