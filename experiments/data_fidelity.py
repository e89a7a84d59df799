"""Section "Data Fidelity": how close redrawn rows stay to the data, on the data sets of OpenML-CC18.

A unit is a data set and a repetition: rows are drawn and split anew, and up to ten features are redrawn in each of the
ways of `redraws.py`. Data sets, features and splits are chosen as in the paper: numeric columns only, without constant
ones and rows with missing values; 10,000 rows at most, 40 % to train, the others halved into those that are redrawn and
a reference that stays; all scaled by mean and standard deviation of the train rows (a column that is constant there is
only centred).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import data
from experiments.fidelity_figures import coefficient_plot, pages_of_boxes
from experiments.fidelity_ranks import mean_ranks
from experiments.fidelity_report import report
from experiments.random_intercepts import coefficients
from experiments.redraws import METHODS, OURS, TREES, Copies, Redraws
from experiments.units import Size, Unit
from subgrove._fidelity.mmd import SamplePairs

SUMMARY = "how close rows redrawn in 19 ways stay to the data, on data sets of OpenML-CC18"
__all__ = ["SUMMARY", "figures", "report", "run", "tables", "units"]
_PUBLISHED = Path(__file__).parent / "published"
_REPETITIONS = 30
_MOST_ROWS = 10_000
_MOST_FEATURES = 10
_TRAIN_SHARE = 0.4


def units(size: Size) -> list[Unit]:
    """A unit is a repetition of a data set; the first repetition of all comes first."""
    sets, small = data_sets(), {}
    if size.quick:
        small = {"rows": 300, "features": 2, "n_trees": 20}
        sets = {31: "credit-g", 37: "diabetes"} if data.folder() is not None else {-1: "wine", -2: "breast-cancer"}
    n = size.reps or (1 if size.quick else _REPETITIONS)
    return [
        Unit(f"{name}/r{r:02d}", name, {"id": number, "name": name, "repetition": r, **small})
        for r in range(n)
        for number, name in sets.items()
    ]


def data_sets() -> dict[int, str]:
    """The data sets of the paper by number, without one that is not to be had (numerai28.6)."""
    listed = pd.read_csv(_PUBLISHED / "cc18.csv")
    numbers = zip(listed["openml_id"], listed["name"], strict=True)
    return {int(number): str(name) for number, name in numbers if number != 23517}


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Squared MMD and fidelity of each feature and variant."""
    rows = drawn_rows(unit.params, seed)
    redraws = Redraws(rows.train, rows.test, rows.target, rows.features, unit.params.get("n_trees", 500))
    return [
        row for feature in rows.features for row in fidelities(unit.params, rows, feature, redraws.of(feature, seed))
    ]


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a repetition, scaled: to train on, to redraw and to compare with; labels of the train rows."""

    train: pd.DataFrame
    test: pd.DataFrame
    reference: pd.DataFrame
    target: pd.Series[Any]
    features: Sequence[str]


def drawn_rows(params: Mapping[str, Any], seed: int) -> Rows:
    """The rows that the unit of this seed has, and the features that are redrawn."""
    X, y = numeric_part(params["id"])
    features = list(X.columns[: params.get("features", _MOST_FEATURES)])
    parts = _split(len(X), min(len(X), params.get("rows", _MOST_ROWS)), np.random.default_rng(seed))
    centre, spread = X.iloc[parts[0]].mean(), X.iloc[parts[0]].std()
    scaled = (X - centre) / spread.where(spread > 0, 1.0)
    train, test, reference = (scaled.iloc[part].reset_index(drop=True) for part in parts)
    return Rows(train, test, reference, y.iloc[parts[0]].reset_index(drop=True), features)


def fidelities(
    params: Mapping[str, Any], rows: Rows, feature: str, redrawn: Mapping[str, Copies]
) -> list[dict[str, Any]]:
    """A line for each way in which a feature was redrawn."""
    head = {name: params[name] for name in ("id", "name", "repetition")}
    return [
        {**head, "feature": feature, "variant": variant, "n": len(rows.test), "mmd2": mmd2, "fidelity": _fidelity(mmd2)}
        for variant, mmd2 in squared_mmds(rows.reference, rows.test, feature, redrawn).items()
    ]


def squared_mmds(
    reference: pd.DataFrame, test: pd.DataFrame, feature: str, redrawn: Mapping[str, Copies]
) -> dict[str, float]:
    """Squared MMD between the reference rows and the test rows, by variant."""
    others = [name for name in reference.columns if name != feature]
    pairs = SamplePairs.of(reference[others].to_numpy(), test[others].to_numpy())
    own = reference[[feature]].to_numpy()
    return {
        variant: pairs.squared_mmd(own, [column[:, None] for column in copies]) for variant, copies in redrawn.items()
    }


def _fidelity(mmd2: float) -> float:
    return float(-np.log(mmd2)) if mmd2 > 0 else float("inf")


def _split(n: int, used: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Rows to train on, rows to redraw and rows that stay, at random."""
    rows = rng.permutation(n)[:used]
    n_train = round(_TRAIN_SHARE * used)
    half = (used - n_train) // 2
    return rows[:n_train], rows[n_train : n_train + half], rows[n_train + half :]


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean ranks, coefficients of both models, and means of each data set."""
    by_set = results.groupby(["name", "variant"])["fidelity"].mean().unstack("variant")
    counts = results.groupby("name").agg(features=("feature", "nunique"), repetitions=("repetition", "nunique"))
    return {
        "ranks": mean_ranks(results),
        "methods": coefficients(results, [*METHODS, *OURS]),
        "depths": coefficients(results, ["perm", *TREES]),
        "data_sets": counts.join(by_set).reset_index(),
    }


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """Boxes for each data set, and the coefficients."""
    methods, depths = coefficients(results, METHODS), coefficients(results, ["perm", *TREES])
    return [*pages_of_boxes(results, folder), coefficient_plot(methods, depths, folder)]


@cache
def numeric_part(number: int) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Numeric columns in an order that depends on the data set alone, and labels of the target."""
    frame = _bundled(number) if number < 0 else data.cc18(number)
    X, y = frame.iloc[:, :-1].select_dtypes("number").astype(np.float64), frame.iloc[:, -1]
    whole = X.loc[:, X.nunique() > 1].notna().all(axis=1) & y.notna()
    X = X.loc[whole, X.nunique() > 1]
    X = X.loc[:, X.nunique() > 1]  # again: some vary only in rows that were left out
    order = np.random.default_rng(abs(number)).permutation(X.shape[1])
    return X.iloc[:, order].reset_index(drop=True), y[whole].astype(str).reset_index(drop=True)


def _bundled(number: int) -> pd.DataFrame:
    """Data sets that come with scikit-learn, for a quick look where there is no folder of data."""
    from sklearn.datasets import load_breast_cancer, load_wine

    frame: pd.DataFrame = {-1: load_wine, -2: load_breast_cancer}[number](as_frame=True).frame
    return frame
