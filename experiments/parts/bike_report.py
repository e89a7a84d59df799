"""The section of docs/reproduction.md on the bike application, made from its tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.parts.sections import claims_section, fixed, holding, markdown, number, with_error

Tables = dict[str, pd.DataFrame]
_TOPICS = {"trees": "dependence and trees", "importance": "importance", "effects": "effects"}


def section(tables: Tables) -> str:
    """Everything that tables say."""
    parts = ["## Application: rented bikes", _introduction(tables)]
    makers = {"dependence": _dependence, "claims": _claims, "importance": _importance, "curves": _curves}
    makers |= {"closed_form": _closed_form}
    return "\n\n".join(parts + [make(tables) for name, make in makers.items() if name in tables])


def _introduction(tables: Tables) -> str:
    text = (
        "A forest (200 trees, three columns a split, as in ranger) predicts the rented bikes of a day. The "
        "published text has few numbers of this section, so there are three comparisons: its sentences, checked on "
        "random splits; the authors' own R functions on one fixed split, beside our forests on it; and these functions "
        "with a formula as the model, where no forest can differ. Standard errors are over repetitions: splits share "
        "days, so they show how much a number depends on the split, not how it would be in other years."
    )
    if "errors" in tables:
        errors = tables["errors"].set_index("cell")
        said = [f"{with_error(line['ours'], line['std_error'])} ({cell})" for cell, line in errors.iterrows()]
        text += f" The forests are off by {' and '.join(said)} bikes a day; the authors' forest by 521."
    return text


def _dependence(tables: Tables) -> str:
    table = tables["dependence"]
    lines = [
        (
            str(line["feature"]),
            f"{100 * line['published']:.0f}",
            with_error(100 * line["ours"], 100 * line["std_error"], 2),
            f"{100 * line['sd']:.1f}",
            f"{100 * line['difference']:+.1f}",
        )
        for line in table.to_dict("records")
    ]
    near = int((table["difference"].abs() <= 0.08).sum())
    worst = table.iloc[table["difference"].abs().argmax()]
    off = (table["difference"] / (table["sd"] * (1 + 1 / table["n"]) ** 0.5)).abs()
    header = ("feature", "published", "ours ± standard error", "spread over splits", "difference")
    return "\n\n".join(
        [
            "### Dependence table",
            "Per cent of the loss that a forest explains when it predicts a feature from the others.",
            markdown(header, lines),
            f"{near} of {len(table)} features are within 8 points of the published number, which is of one split. The "
            f"largest difference is that of {worst['feature']}: {100 * worst['difference']:+.1f} points. In "
            f"standard deviations over splits, no number is further off than {off.max():.1f}.",
            _picture("dependence", "Share of each feature that the others explain, ours and published"),
        ]
    )


def _claims(tables: Tables) -> str:
    table = tables["claims"]
    text = [
        "### What the text says",
        f"Checked on {table['n'].max()} random splits. A published number is of one split, so it is held against the "
        f"spread over splits; bounds for words such as 'neglectable' are ours. {holding(table)}",
    ]
    for topic, title in _TOPICS.items():
        text += [f"On {title}:", claims_section(table[table["topic"] == topic])]
    return "\n\n".join(text)


def _importance(tables: Tables) -> str:
    table = tables["importance"]
    compared = table[table["authors"].notna()]
    near = int((compared["z"].abs() <= 3).sum())
    at_two = table[(table["cell"] == "splits") & (table["depth"] == 2) & (table["given"].fillna("") != "")]
    marginal = table[(table["cell"] == "splits") & (table["depth"] == 0)].set_index("feature")
    lines = [
        (
            str(line["feature"]),
            str(line["given"]),
            with_error(marginal.loc[line["feature"], "ours"], marginal.loc[line["feature"], "std_error"]),
            with_error(line["ours"], line["std_error"]),
        )
        for line in at_two.to_dict("records")
    ]
    text = [
        "### Importance",
        "Increase of the mean absolute error in bikes, medians over 50 redraws, means over random splits; features "
        "whose trees split.",
        markdown(("feature", "given", "PFI", "cs-PFI"), lines),
        _picture(
            "importance", "Importance of features, marginal and within subgroups; that of temperature by subgroup"
        ),
        _picture("depth", "Importance of features against the depth of the trees"),
    ]
    if len(compared):
        text.append(
            f"Beside the authors' functions on their split, depths 0 to {int(compared['depth'].max())}: {near} of "
            f"{len(compared)} numbers are within three standard errors (of two forests and of 50 shuffles)."
            + _far(compared, ["feature", "depth"])
        )
        text.append(_depth_two(compared, tables))
    return "\n\n".join(text)


def _far(compared: pd.DataFrame, keys: list[str]) -> str:
    far = compared[compared["z"].abs() > 3]
    said = [
        f"{' at '.join(str(line[key]) for key in keys)} ({number(line['ours'])} beside {number(line['authors'])})"
        for line in far.to_dict("records")
    ]
    return f" Not so: {', '.join(said)}." if said else ""


def _depth_two(compared: pd.DataFrame, tables: Tables) -> str:
    """Features, and subgroups of temperature, on the authors' split."""
    lines = [
        (str(line["feature"]), *_beside(line)) for line in compared[compared["depth"].isin([2])].to_dict("records")
    ]
    groups = tables.get("subgroups", pd.DataFrame({"authors": []}))
    lines += [
        (f"temp on days of {line['subgroup']} ({line['days']:.0f})", *_beside(line))
        for line in groups[groups["authors"].notna()].to_dict("records")
    ]
    header = ("cs-PFI at depth 2", "authors' median", "their 5 % to 95 %", "ours ± standard error", "z")
    return markdown(header, lines)


def _beside(line: dict[Any, Any]) -> tuple[str, ...]:
    spread = f"{fixed(line['authors_q05'], 1)} to {fixed(line['authors_q95'], 1)}"
    return fixed(line["authors"], 1), spread, with_error(line["ours"], line["std_error"]), f"{line['z']:+.1f}"


def _curves(tables: Tables) -> str:
    table = tables["curves"]
    text = ["### Effects"]
    for feature, what in (("temp", "temperature"), ("season", "season")):
        mine = table[table["feature"] == feature]
        off = (mine["ours"] - mine["authors"]).abs() / mine["authors"]
        found = int(mine["ours"].notna().sum())
        text.append(
            f"{what.capitalize()}: {found} of {len(mine)} points of the authors' cs-PDPs are points of ours; these "
            f"differ by {100 * off.mean():.1f} % on average and by {100 * off.max():.1f} % at most."
        )
        text.append(_picture("temperature" if feature == "temp" else "season", f"Effect of {what}"))
    return "\n\n".join(text)


def _closed_form(tables: Tables) -> str:
    table = tables["closed_form"]
    near = int((table["z"].abs() <= 3).sum())
    used = table[table["authors"].abs() > 0]
    worst = used.iloc[used["z"].abs().argmax()]
    return (
        "### A formula in place of the forest\n\n"
        f"With a formula as the model, {near} of {len(table)} importances (nine features, depths 1 to "
        f"{int(table['depth'].max())}) are within three standard errors of the authors' functions with "
        f"{int(table['repeats'].max())} shuffles; the largest distance is that of {worst['feature']} at depth "
        f"{int(worst['depth'])}, {number(worst['ours'])} beside {number(worst['authors'])} ({worst['z']:+.1f}). Their "
        "functions shuffle factors with fixed points, which takes 1 / n off in a subgroup of n days."
    )


def _picture(name: str, title: str) -> str:
    return f"![{title}](images/reproduction/bike_{name}.png)"
