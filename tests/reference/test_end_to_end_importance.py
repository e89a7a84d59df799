"""cs-PFI beside the authors' own functions, run in R on the bike data with a closed-form model.

R drew 200 repeats; `mean` and `sd` in its tables are over these. Ours are drawn independently, so estimates may differ
by three standard errors of the difference: sqrt(R's sd^2 / 200 + our Monte-Carlo error^2). The seeds are fixed: of 164
comparisons by subgroup the largest is 2.4 standard errors. R shuffles factors with fixed points, which takes the share
1 / n_k off in a subgroup.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg

from .cases import ABSENT, frame
from .cases import FOLDER as TREES

FOLDER = TREES.parent / "end_to_end"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=ABSENT)
NUMERIC = {"temp", "hum", "wind"}
DEPTHS = [1, 2, 3, 4, 5]


def closed_form(X: pd.DataFrame) -> npt.NDArray[np.float64]:
    """The formula of iml/bike_effects.json."""
    temp, hum, wind = (X[name].to_numpy() for name in ("temp", "hum", "wind"))
    season = np.where(X["season"] == "WINTER", -400, np.where(X["season"] == "SUMMER", 250, 0))
    year = np.where(X["yr"].astype(str) == "2012", 1800, 0)
    result = 1500 + 90 * temp - 1.2 * temp**2 + 0.4 * temp * (100 - hum) - 12 * wind + 0.02 * hum * wind
    return np.asarray(result + season + year * (1 + 0.01 * temp))


@cache
def data() -> tuple[pd.DataFrame, pd.DataFrame, pd.Series[float]]:
    """Training rows, test rows, and the target of these."""
    split = pd.read_csv(FOLDER / "rf_predictions.csv")
    full = frame("bike_full")
    features = sg.datasets.bike().X.columns
    train = (split["set"] == "train").to_numpy()
    return full.loc[train, features], full.loc[~train, features], split.loc[~train, "cnt"].astype(float)


@cache
def ours(depth: int) -> sg.ImportanceResult:
    train, test, y = data()
    groups = sg.find_subgroups(train, max_depth=depth)
    # Repeats enough for a small error of ours, yet fewer than the rows of most subgroups, so that draws are tested too.
    return sg.importance(closed_form, test, y, sampler=groups, loss="absolute_error", n_repeats=50, random_state=depth)


def r_table(name: str, depth: int) -> pd.DataFrame:
    table = pd.read_csv(FOLDER / name, keep_default_na=False)
    return table[(table["model"] == "closed_form") & (table["tree"] == "trtf") & (table["maxdepth"] == depth)]


def in_standard_errors(difference: float, r_sd: float, r_repeats: int, ours_error: float) -> float:
    error = np.sqrt(r_sd**2 / r_repeats + ours_error**2)
    return abs(difference) / error if error > 0 else (0.0 if abs(difference) < 1e-9 else np.inf)


@pytest.mark.parametrize("depth", DEPTHS)
def test_importance_by_subgroup_is_that_of_r(depth: int) -> None:
    mine = ours(depth).by_subgroup.set_index(["feature", "subgroup"])
    rules = pd.read_csv(FOLDER / "tree_rules.csv", keep_default_na=False)
    rules = rules[rules["maxdepth"] == depth]
    off = []
    for line in r_table("cs_pfi_by_subgroup.csv", depth).to_dict("records"):
        feature, n = str(line["fname"]), int(line["n"])
        leaves = rules[rules["feature"] == feature].sort_values("node")["rule"].tolist()
        found = mine.loc[(feature, leaves.index(line["group"]))]
        assert found["n"] == n
        factor = 1.0 if feature in NUMERIC else n / (n - 1)
        difference = float(found["estimate"]) - float(line["mean"]) * factor
        off.append(in_standard_errors(difference, float(line["sd"]) * factor, int(line["reps"]), found["mc_error"]))
    assert max(off) < 3


@pytest.mark.parametrize("depth", DEPTHS)
def test_importance_by_feature_is_that_of_r(depth: int) -> None:
    mine = ours(depth)
    conditioning = {score.title: set(score.conditioning) for score in mine.scores}
    groups = r_table("cs_pfi_by_subgroup.csv", depth)
    lines = mine.overall.set_index("feature")
    off = []
    for r in r_table("cs_pfi_by_feature.csv", depth).to_dict("records"):
        feature = str(r["fname"])
        block = groups[groups["fname"] == feature]
        n = block["n"].to_numpy()
        factor = 1.0 if feature in NUMERIC else n / (n - 1)
        mean = float((block["mean"].to_numpy() * n * factor).sum() / n.sum())
        own = lines.loc[feature]
        off.append(in_standard_errors(own["estimate"] - mean, float(r["sd"]), int(r["reps"]), own["mc_error"]))
        assert conditioning[feature] == set(filter(None, str(r["condition"]).replace(" ", "").split(",")))
    assert max(off) < 3


def test_marginal_importance_is_that_of_r() -> None:
    _, test, y = data()
    imp = sg.importance(closed_form, test, y, sampler="marginal", loss="absolute_error", n_repeats=200, random_state=1)
    theirs = pd.read_csv(FOLDER / "pfi_marginal.csv")
    theirs = theirs[theirs["model"] == "closed_form"].set_index("feature")
    for line in imp.over_repeats().to_dict("records"):
        r = theirs.loc[line["feature"]]
        # iml reports the median and the 5 % and 95 % quantiles over its repeats, of which it made at least ten.
        spread = (r["importance.95"] - r["importance.05"]) / 3.29
        assert abs(line["mean"] - r["importance"]) <= 3 * spread / np.sqrt(10) + 1e-9
    assert imp.baseline[0] == pytest.approx(theirs["permutation.error"]["work"], rel=1e-9)
