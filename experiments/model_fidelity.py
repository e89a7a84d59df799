"""Section "Model Fidelity": how far curves of one feature are from the model, on six data sets and with three models.

Curves and trees are made on 70 % of the rows, and judged on the others: against the prediction, which is Equation (9),
and against the target, which is what the published numbers are. A repetition is another split and another forest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import subgrove as sg
from experiments import data
from experiments.model_fidelity_figures import draw
from experiments.model_fidelity_report import section
from experiments.model_fidelity_tables import FLAT, METHODS, best, by_feature, medians
from experiments.models import MODELS, fitted_model
from experiments.units import Size, Unit

SUMMARY = "how far PDP, ALE and cs-PDP are from three models on six data sets"
DATA_SETS = ("pollen", "quake", "satellite", "space", "wind", "wine")
_REPETITIONS = 5
_N_POINTS = 20
_TRAIN_SHARE = 0.7

Floats = npt.NDArray[np.float64]


def units(size: Size) -> list[Unit]:
    """A unit is a split of a data set with a model; the first repetition of all comes first."""
    sets: tuple[str, ...] = DATA_SETS
    small: dict[str, Any] = {}
    if size.quick:
        sets = ("quake", "wine") if data.folder() is not None else ("diabetes",)
        small = {"rows": 300, "features": 2, "n_trees": 10, "grid_resolution": 5}
    n = size.reps or (1 if size.quick else _REPETITIONS)
    return [
        Unit(f"{name}-{model}/r{r:02d}", f"{name}-{model}", {"data": name, "model": model, "repetition": r, **small})
        for r in range(n)
        for model in MODELS
        for name in sets
    ]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Losses of each feature and method, against the prediction and the target."""
    params = unit.params
    rng = np.random.default_rng(seed)
    X, y, names = _read(params["data"])
    rows = rng.permutation(len(y))[: params.get("rows")]
    n_train = round(_TRAIN_SHARE * len(rows))
    train, test = rows[:n_train], rows[n_train:]
    model = fitted_model(params["model"], X[train], y[train], seed, **_only(params, "n_trees"))
    effects = _effects(model, X[train], names[: params.get("features")], **_only(params, "grid_resolution"))
    found = sg.ModelFidelity.compute(model, X[test], effects, y=y[test])
    head = {name: params[name] for name in ("data", "model", "repetition")}
    losses = [
        {
            "feature": names[int(loss.feature[1:])],
            "method": loss.method,
            "against": loss.against,
            "n": int(loss.n),
            "loss": loss.estimate,
            "std_error": loss.std_error,
            "subgroups": loss.subgroups,
            "off_curve": int(loss.off_curve),
        }
        for loss in found.losses
    ]
    return [{**head, **row} for row in [*losses, *_flat(model, X[test], y[test])]]


def _read(name: str) -> tuple[Floats, Floats, list[str]]:
    """Features, target and names of the features."""
    if name == "diabetes":  # comes with scikit-learn, where there is no folder of data sets
        from sklearn.datasets import load_diabetes

        bunch = load_diabetes()
        return bunch.data, bunch.target, list(bunch.feature_names)
    frame = data.regression(name)
    # Pollen keeps its observation number, which the paper used as a feature, too.
    return frame.iloc[:, :-1].to_numpy(np.float64), frame.iloc[:, -1].to_numpy(np.float64), list(frame.columns[:-1])


def _only(params: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: params[name] for name in names if name in params}


def _effects(model: Any, X: Floats, names: list[str], grid_resolution: int = _N_POINTS) -> dict[str, list[sg.Effect]]:
    """For each method the curves of all features; columns of an array are called x0, x1, and so on."""
    effects: dict[str, list[sg.Effect]] = {method: [] for method in METHODS}
    features = [f"x{at}" for at in range(len(names))]
    partitions = {f"cs_{tree}_{depth}": each for tree, depth, each in _partitions(X, features)}
    for feature in features:
        effects["pdp"].append(sg.effect(model, X, feature, grid_resolution=grid_resolution, subgroups=None))
        effects["ale"].append(sg.effect(model, X, feature, kind="ale", grid_resolution=grid_resolution))
        for method, found in partitions.items():
            shallower = partitions[f"{method[:-1]}1"][feature]
            known = method.endswith("2") and shallower.rules == found[feature].rules
            again = effects[f"{method[:-1]}1"][-1] if known else None
            effects[method].append(
                again or sg.effect(model, X, feature, subgroups=found[feature], grid_resolution=grid_resolution)
            )
    return effects


def _partitions(X: Floats, features: list[str]) -> Iterator[tuple[str, int, dict[str, sg.Partition]]]:
    """Subgroups of depth 1 and 2 by both trees, with the settings of the paper's code: CART has rpart's defaults."""
    deep = sg.find_subgroups(X, features=features, max_depth=2)
    table = pd.DataFrame(X, columns=[f"x{at}" for at in range(X.shape[1])])
    cart = sg.trees.CartTree(max_depth=2, min_samples_leaf=7, min_samples_split=20, cp=0.01)
    grown = {name: sg.Partition((name,), cart.fit(table.drop(columns=name), table[name])) for name in features}
    for depth in (1, 2):
        yield "trtr", depth, {name: deep[name].at_depth(depth) for name in features}
        yield "cart", depth, {name: grown[name].at_depth(depth) for name in features}


def _flat(model: Any, X: Floats, y: Floats) -> list[dict[str, Any]]:
    """Losses of the mean prediction, which a curve should not exceed."""
    predicted = model.predict(X)
    rows = []
    for against, wanted in (("prediction", predicted), ("target", y)):
        squares = (wanted - predicted.mean()) ** 2
        error = float(squares.std(ddof=1) / len(y) ** 0.5)
        rows.append(
            {"method": FLAT, "against": against, "n": len(y), "loss": float(squares.mean()), "std_error": error}
        )
    return rows


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`medians` beside the published ones, `best`: whether cs-PDPs of depth 2 are, `features`: losses of each."""
    return {"medians": medians(results), "best": best(results), "features": by_feature(results)}


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """A figure against the target, as in the paper's appendix, and one against the prediction."""
    return [draw(results, against, folder / f"model_fidelity_{against}.png") for against in ("target", "prediction")]


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the reproduction page."""
    return section(tables)
