"""Mean ranks of the methods by data fidelity, as in the paper's table of them, with published ones beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.redraws import METHODS

_FOLDER = Path(__file__).parent / "published"
_THEIR_NAMES = {"cs_trtr": "cs_trtr_30", "cs_cart": "cs_cart_30", "marginal": "perm"}


def mean_ranks(results: pd.DataFrame) -> pd.DataFrame:
    """Mean rank and its standard deviation over features, for the eight methods; best first.

    Methods are ranked by squared MMD within data set, feature and repetition, the smallest first; ranks are averaged
    over repetitions, then over all features of all data sets. `std_error` is the noise that another choice of ten
    features in each data set, and other splits, would bring; two such means differ by root 2 times as much.
    `sd_at_30` is what the standard deviation would be with the 30 repetitions of the paper, since a mean over fewer is
    noisier; it needs two repetitions at least.

    The last row is the rank that imputation with out-of-bag residuals, which is ours, has in place of the other.

    `beside_two_perm` is the mean rank if CVIRF were another marginal permutation: the rank among the other seven, plus
    the share in which permutation does better.
    """
    usual = ranked(results, METHODS)
    usual["beside_two_perm"] = usual["variant"].map(_beside_two_permutations(results))
    honest = ranked(results, [*(name for name in METHODS if name != "imp"), "imp_oob"])
    both = pd.concat([usual, honest[honest["variant"] == "imp_oob"]], ignore_index=True)
    theirs = published()
    table = both.merge(theirs, on="variant", how="left")
    noise = np.sqrt(2) * table["std_error"]
    table["distance"] = (table["mean_rank"] - table["published_mean_rank"]) / noise.where(noise > 0)
    return table


def published() -> pd.DataFrame:
    """The published table, with variants named as here."""
    table = pd.read_csv(_FOLDER / "data_fidelity_ranks.csv")
    table["variant"] = table["method"].replace(_THEIR_NAMES)
    return table.rename(columns={"mean_rank": "published_mean_rank", "sd": "published_sd"}).drop(columns="method")


def wide_mmds(results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """A row for each data set, feature and repetition, a column for each method."""
    used = results[results["variant"].isin(methods)]
    wide = used.pivot_table(index=["name", "feature", "repetition"], columns="variant", values="mmd2")
    return wide.dropna()


def _beside_two_permutations(results: pd.DataFrame) -> pd.Series[float]:
    wide = wide_mmds(results, [name for name in METHODS if name != "cvirf"])
    beaten = wide.gt(wide["perm"], axis=0) + 0.5 * wide.eq(wide["perm"], axis=0)  # the two are as good as each other
    means = (wide.rank(axis=1) + beaten).groupby(level=["name", "feature"]).mean().mean()
    means["cvirf"] = means["perm"]
    return means


def ranked(results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Mean rank of each method among these, over repetitions and then over features; best first."""
    ranks = wide_mmds(results, methods).rank(axis=1)
    by_feature = ranks.groupby(level=["name", "feature"]).mean()
    table = pd.DataFrame(
        {
            "n": len(by_feature),
            "mean_rank": by_feature.mean(),
            "sd": by_feature.std(),
            "sd_at_30": _spread_at(30, ranks, by_feature),
            "std_error": standard_errors(ranks, by_feature),
        }
    )
    return table.rename_axis("variant").reset_index().sort_values("mean_rank", ignore_index=True)


def _spread_at(n: int, ranks: pd.DataFrame, by_feature: pd.DataFrame) -> pd.Series[float]:
    """Standard deviation over features of means over n repetitions, by what they are over those at hand."""
    groups = ranks.groupby(level=["name", "feature"])
    per_mean = (groups.var() / groups.count()).mean()  # what repetitions add to the variance of a mean over them
    per_mean_of_n = groups.var().mean() / n
    return (by_feature.var() - per_mean + per_mean_of_n).clip(lower=0.0) ** 0.5


def standard_errors(ranks: pd.DataFrame, by_feature: pd.DataFrame) -> pd.Series[float]:
    """Noise of the choice of features and of the splits, data sets taken as they are.

    In a data set k of p columns were drawn without replacement, so their mean has the variance s^2 / k * (1 - k / p),
    where s^2 is the variance over features; splits add the variance over repetitions of the mean over features.
    """
    sizes = pd.read_csv(_FOLDER / "cc18.csv").set_index("name")["numeric_columns"] - 1  # the target is among them
    total = pd.Series(0.0, index=by_feature.columns)
    for name, part in by_feature.groupby(level="name"):
        k = len(part)
        p = max(int(sizes.get(str(name), k)), k)
        of_features = part.var().fillna(0.0) / k * (1 - k / p)
        repetitions = ranks[ranks.index.get_level_values("name") == name].groupby(level="repetition").mean()
        of_splits = repetitions.var().fillna(0.0) / len(repetitions)
        total += (k / len(by_feature)) ** 2 * (of_features + of_splits)
    return total**0.5
