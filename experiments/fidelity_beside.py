"""Samplers of the package among the paper's methods: ranks by data fidelity, wins and losses, and what was chosen.

A sampler is added to the paper's eight methods, and nine are ranked as the paper ranks eight (`fidelity_ranks`). Of
several samplers each is added alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.fidelity_ranks import ranked, standard_errors, wide_mmds
from experiments.redraws import METHODS, OURS, TREES

_FEATURE = ["name", "feature"]


def samplers(results: pd.DataFrame) -> list[str]:
    """The variants that are neither the paper's nor trees of other depths."""
    known = {*METHODS, *OURS, *TREES}
    return [str(name) for name in dict.fromkeys(results["variant"]) if name not in known]


def ranks(results: pd.DataFrame) -> pd.DataFrame:
    """Mean ranks of nine methods, best first, for each sampler.

    `without` is the mean rank among the eight of the paper, as in `data_fidelity_ranks.csv`. `behind` is how far a
    method is behind the sampler, and `behind_se` the standard error of that difference on the same rows and features.
    """
    parts = []
    for sampler in samplers(results):
        table = ranked(results, [*METHODS, sampler])
        eight = ranked(_of_same(results, sampler), METHODS).set_index("variant")["mean_rank"]
        mine = wide_mmds(results, [*METHODS, sampler]).rank(axis=1)
        apart = mine.sub(mine[sampler], axis=0)
        by_feature = apart.groupby(level=_FEATURE).mean()
        table["without"] = table["variant"].map(eight)
        table["behind"] = table["variant"].map(by_feature.mean())
        table["behind_se"] = table["variant"].map(standard_errors(apart, by_feature))
        table.insert(0, "sampler", sampler)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _of_same(results: pd.DataFrame, sampler: str) -> pd.DataFrame:
    """The results of data sets, features and repetitions that a sampler was evaluated on."""
    keys = [*_FEATURE, "repetition"]
    return results.merge(results.loc[results["variant"] == sampler, keys], on=keys)


def pairs(results: pd.DataFrame) -> pd.DataFrame:
    """Each sampler against each method alone.

    `better` is the share of data sets, features and repetitions in which the sampler's squared MMD is smaller (of equal
    ones half); `sets_won` and `sets_lost` count data sets by it; `gain` is the mean difference in fidelity.
    """
    lines: list[dict[str, Any]] = []
    for sampler in samplers(results):
        for method in (*METHODS, *OURS):
            wide = wide_mmds(results, [sampler, method])
            smaller = (wide[sampler] < wide[method]) + 0.5 * (wide[sampler] == wide[method])
            by_set = smaller.groupby(level="name").mean()
            gained = pd.Series(np.log(wide[method] / wide[sampler]), index=wide.index)
            lines.append(
                {
                    "sampler": sampler,
                    "variant": method,
                    "better": float(smaller.groupby(level=_FEATURE).mean().mean()),
                    "sets_won": int((by_set > 0.5).sum()),
                    "sets_lost": int((by_set < 0.5).sum()),
                    "gain": float(gained.groupby(level=_FEATURE).mean().mean()),
                }
            )
    return pd.DataFrame(lines)


def data_sets(results: pd.DataFrame) -> pd.DataFrame:
    """Mean ranks of nine methods in each data set (`rank` is that of the sampler), and what was chosen there."""
    parts = []
    for sampler in samplers(results):
        own = results[results["variant"] == sampler]
        place = wide_mmds(results, [*METHODS, sampler]).rank(axis=1).groupby(level="name")
        counts = own.groupby("name").agg(features=("feature", "nunique"), repetitions=("repetition", "nunique"))
        table = counts.join(place.mean().rename(columns={sampler: "rank"})[["rank", *METHODS]]).reset_index()
        labels = own[own["chosen"].notna() & (own["chosen"] != "")].groupby("name")["chosen"]
        chosen = {name: "; ".join(f"{one} {n}" for one, n in part.value_counts().items()) for name, part in labels}
        table["chosen"] = [chosen.get(name, "") for name in table["name"]]
        table.insert(0, "sampler", sampler)
        parts.append(table.sort_values("rank", kind="stable", ignore_index=True))
    return pd.concat(parts, ignore_index=True)


def choices(results: pd.DataFrame) -> pd.DataFrame:
    """Of samplers that choose: how often each candidate was chosen, and the mean ranks of all where it was.

    `kept` is the mean share of its own residual that a redrawn row keeps.
    """
    lines: list[dict[str, Any]] = []
    keys = [*_FEATURE, "repetition"]
    for sampler in samplers(results):
        own = results[(results["variant"] == sampler) & results["chosen"].notna() & (results["chosen"] != "")]
        place = wide_mmds(results, [*METHODS, sampler]).rank(axis=1).rename(columns={sampler: "rank"})
        place = place.join(own.set_index(keys)[["chosen", "kept"]], how="inner")
        for candidate, part in place.groupby("chosen"):
            means = {name: float(part[name].mean()) for name in ("kept", "rank", *METHODS)}
            share = len(part) / len(place)
            lines.append({"sampler": sampler, "candidate": candidate, "times": len(part), "share": share} | means)
    table = pd.DataFrame(lines, columns=["sampler", "candidate", "times", "share", "kept", "rank", *METHODS])
    return table.sort_values(["sampler", "times"], ascending=[True, False], kind="stable", ignore_index=True)
