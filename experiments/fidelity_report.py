"""What the tables of data fidelity say, in words; every number in a sentence is computed from them."""

from __future__ import annotations

import pandas as pd

from experiments.fidelity_figures import word

_FAR = 3.0  # standard errors


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of docs/reproduction.md."""
    ranks, methods, depths, sets = (tables[name] for name in ("ranks", "methods", "depths", "data_sets"))
    parts = [
        "## Data fidelity",
        _size(sets),
        "Mean ranks by squared MMD, the smallest best, published ones beside. SD is that over features, as it would be "
        "with 30 repetitions:",
        _rank_table(ranks),
        _about_ranks(ranks),
        "Random-intercept model, difference in data fidelity from marginal permutation:",
        _coefficient_table(methods, depths=False),
        _about_methods(methods),
        "The same for trees of each depth:",
        _coefficient_table(depths, depths=True),
        _about_depths(depths),
    ]
    return "\n\n".join(parts) + "\n"


def _size(sets: pd.DataFrame) -> str:
    low, high = int(sets["repetitions"].min()), int(sets["repetitions"].max())
    repeated = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"{len(sets)} of the paper's 42 data sets (numerai28.6 is not to be had), {int(sets['features'].sum())} "
        f"features in all, {repeated} repetitions of each (30 in the paper). The features are ten at random of each "
        f"data set, as in the paper, but not the same ten."
    )


def _rank_table(ranks: pd.DataFrame) -> str:
    titles = ["method", "mean rank", "std. error", "published", "SD at 30", "published", "beside two perm"]
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    columns = ("mean_rank", "std_error", "published_mean_rank", "sd_at_30", "published_sd", "beside_two_perm")
    for row in ranks.to_dict("records"):
        numbers = [f"{row[name]:.2f}" if row[name] == row[name] else "" for name in columns]
        lines.append(f"| {word(str(row['variant']))} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def _about_ranks(ranks: pd.DataFrame) -> str:
    known = ranks.dropna(subset=["published_mean_rank"])
    by_name = known.set_index("variant")
    gaps = by_name["mean_rank"] - by_name["published_mean_rank"]
    far = known.loc[known["distance"].abs() > _FAR, "variant"]
    sentences = [
        f"{len(known) - len(far)} of {len(known)} mean ranks are within {_FAR:g} standard errors (of a difference) of "
        f"the published ones; the largest gap is {gaps.abs().max():.2f}.",
        _about_order(known),
    ]
    if len(far):
        listed = ", ".join(f"{word(str(each))} by {gaps[each]:+.2f}" for each in far)
        sentences.append(f"Beyond that: {listed}.")
    if "cvirf" in set(far):
        sentences.append(_about_cvirf(known))
    if "imp_oob" in set(ranks["variant"]):
        rank = ranks.set_index("variant")["mean_rank"]
        sentences.append(
            f"imp (oob) is ours: imputation with out-of-bag residuals, ranked in the place of imp, has "
            f"{rank['imp_oob']:.2f} instead of {rank['imp']:.2f}."
        )
    return " ".join(sentences)


def _about_order(known: pd.DataFrame) -> str:
    ours = [word(str(each)) for each in known.sort_values("mean_rank")["variant"]]
    theirs = [word(str(each)) for each in known.sort_values("published_mean_rank")["variant"]]
    if ours == theirs:
        return "The order is the published one."
    return f"The order is {', '.join(ours)}; published: {', '.join(theirs)}."


def _about_cvirf(known: pd.DataFrame) -> str:
    gaps = (known["beside_two_perm"] - known["published_mean_rank"]).abs()
    return (
        f"The published CVIRF ranks as marginal permutation does. Permuting in the leaves of one conditional inference "
        f"tree on the target, as described, ranks better here, and pushes the other ranks. If CVIRF is taken to be "
        f"another marginal permutation (the last column), the largest gap is {gaps.max():.2f}."
    )


def _coefficient_table(table: pd.DataFrame, *, depths: bool) -> str:
    lines = ["| variant | estimate | 95 % interval | std. error over data sets |", "| --- | --- | --- | --- |"]
    for row in table.to_dict("records"):
        interval = f"{row['conf_low']:.3f} to {row['conf_high']:.3f}"
        name = word(str(row["variant"]), depths=depths)
        lines.append(f"| {name} | {row['estimate']:.3f} | {interval} | {row['std_error_over_data_sets']:.3f} |")
    return "\n".join(lines)


def _about_methods(methods: pd.DataFrame) -> str:
    order = methods[methods["variant"] != "none"].sort_values("estimate", ascending=False)
    names = [word(str(each)) for each in order["variant"]]
    return (
        f"From best to worst: {', '.join(names)}. The paper reports subgroups first, then knockoffs and imputation, "
        f"then ALE and CVIRF, CVIRF hardly better than permutation (as a figure, without numbers). The intervals of "
        f"the model take the difference between two methods to be the same in every data set; the last column does "
        f"not, and is the one to judge by."
    )


def _about_depths(depths: pd.DataFrame) -> str:
    found = depths.set_index("variant")["estimate"]
    full = {tree: float(found[f"cs_{tree}_30"]) for tree in ("cart", "trtr")}
    shares = {
        tree: ", ".join(f"{found[f'cs_{tree}_{depth}'] / full[tree]:.0%}" for depth in (1, 2, 3, 4, 5)) for tree in full
    }
    ahead = [str(depth) for depth in (1, 2, 3, 4, 5) if found[f"cs_cart_{depth}"] > found[f"cs_trtr_{depth}"]]
    better = "better" if full["trtr"] > full["cart"] else "not better"
    return (
        f"Of what a fully grown tree gains over permutation, trees of depth 1 to 5 have {shares['cart']} (CART) and "
        f"{shares['trtr']} (transformation trees). CART is ahead at the depths {', '.join(ahead) or '(none)'} of 1 to "
        f"5 (the paper: when trees are shallow); fully grown, transformation trees are {better} than CART (the paper: "
        f"slightly better)."
    )
