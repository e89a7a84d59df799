"""Tables of the bike application: ours with standard errors, beside the published and the authors' own numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

import subgrove as sg
from experiments.parts.bike_claims import CURVES, IMPORTANCE, TREES, claim_rows
from experiments.parts.bike_unit import PUBLISHED, SUBGROUPS
from experiments.parts.rows import claim, judged

_MEDIAN = np.sqrt(np.pi / 2)  # the standard error of a median is so much larger than that of a mean


def claims(results: pd.DataFrame) -> pd.DataFrame:
    """Sentences of the text, checked on random splits."""
    splits = results[results["cell"] == "splits"]
    X = sg.datasets.bike().X
    together = float(np.corrcoef(X["temp"], X["hum"])[0, 1])
    said = claim("correlation of temperature and humidity", together, "near", 0.13, published=0.13, tolerance=0.005)
    topics = {"trees": TREES, "importance": IMPORTANCE, "effects": CURVES}
    rows = [said | {"topic": "trees"}]
    rows += [row | {"topic": topic} for topic, each in topics.items() for row in claim_rows(splits, each)]
    return judged(pd.DataFrame(rows), ["topic"])


def dependence(results: pd.DataFrame) -> pd.DataFrame:
    """The dependence table: share of each feature that is predicted by the others."""
    published = pd.read_csv(PUBLISHED / "bike_dependence.csv").rename(columns={"loss_explained": "published"})
    found = _over_units(results[results["part"] == "dependence"], ["feature"])
    table = published.merge(found, on="feature", how="left")
    table["difference"] = table["ours"] - table["published"]
    return table


def importance(results: pd.DataFrame) -> pd.DataFrame:
    """Importance by depth: on random splits, and on the authors' split beside the authors' own functions."""
    rows = results[(results["part"] == "importance") & (results["cell"] != "closed_form")]
    found = _over_units(rows, ["cell", "depth", "feature"])
    given = rows.groupby(["cell", "depth", "feature"])["text"].agg(_most_often).rename("given").reset_index()
    theirs = pd.read_csv(PUBLISHED / "bike_authors_importance.csv").assign(cell="authors")
    theirs = theirs[theirs["model"] == "rf"].rename(
        columns={"median": "authors", "q05": "authors_q05", "q95": "authors_q95"}
    )
    table = found.merge(given).merge(
        theirs[["cell", "depth", "feature", "authors", "authors_q05", "authors_q95"]], how="left"
    )
    table["z"] = _in_errors(table)
    features = list(sg.datasets.bike().X.columns)
    order = table.assign(at=table["feature"].map(features.index)).sort_values(["cell", "depth", "at"])
    return order.drop(columns="at").astype({"depth": int}).reset_index(drop=True)


def subgroups(results: pd.DataFrame) -> pd.DataFrame:
    """Importance of temperature by subgroup, likewise."""
    rows = results[(results["part"] == "subgroup") & results["group"].isin(SUBGROUPS)]
    found = _over_units(rows, ["cell", "group"])
    days = rows.groupby(["cell", "group"])["n"].mean().rename("days").reset_index()
    theirs = pd.read_csv(PUBLISHED / "bike_authors_subgroups.csv").assign(cell="authors")
    theirs = theirs.rename(
        columns={"subgroup": "group", "median": "authors", "q05": "authors_q05", "q95": "authors_q95"}
    )
    table = found.merge(days).merge(theirs[["cell", "group", "authors", "authors_q05", "authors_q95"]], how="left")
    table["z"] = _in_errors(table)
    order = table.assign(at=table["group"].map(SUBGROUPS.index)).sort_values(["cell", "at"]).drop(columns="at")
    return order.rename(columns={"group": "subgroup"}).reset_index(drop=True)


def curves(results: pd.DataFrame) -> pd.DataFrame:
    """cs-PDPs on the authors' split: ours, mean over forests, beside the authors' at the same points."""
    mine = results[(results["cell"] == "authors") & (results["part"] == "cs-PDP")].copy()
    season = mine["feature"] == "season"
    mine["subgroup"] = mine["group"].where(~season, mine["text"])
    mine["x"], mine["level"] = mine["x"].round(4), mine["level"].fillna("").astype(str)
    keys = ["feature", "subgroup", "level", "x"]
    found = _over_units(mine.assign(x=mine["x"].fillna(-999.0)), keys)
    theirs = pd.read_csv(PUBLISHED / "bike_authors_curves.csv").rename(columns={"value": "authors"})
    theirs["x"], theirs["level"] = theirs["x"].round(4).fillna(-999.0), theirs["level"].fillna("")
    table = theirs[[*keys, "authors"]].merge(found, on=keys, how="left")
    return table.assign(x=table["x"].replace(-999.0, np.nan))


def closed_form(results: pd.DataFrame) -> pd.DataFrame:
    """A closed-form model in place of the forest, so that only the method is left to differ."""
    rows = results[(results["cell"] == "closed_form") & (results["part"] == "importance")]
    mine = rows[["depth", "feature", "mean", "mc_error"]].rename(columns={"mean": "ours"})
    theirs = pd.read_csv(PUBLISHED / "bike_authors_importance.csv")
    theirs = theirs[(theirs["model"] == "closed_form") & (theirs["depth"] > 0)]
    theirs = theirs[["depth", "feature", "mean", "sd", "repeats"]].rename(columns={"mean": "authors"})
    table = theirs.merge(mine, on=["depth", "feature"], how="inner")
    error = (table["sd"] ** 2 / table["repeats"] + table["mc_error"] ** 2) ** 0.5
    difference = table["ours"] - table["authors"]
    table["z"] = (difference / error.where(error > 0)).where((error > 0) | (difference.abs() > 1e-9), 0.0)
    return table


def errors(results: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute error of the forests on the test days."""
    return _over_units(results[results["part"] == "error"], ["cell"])


def _over_units(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean, standard error, standard deviation and number over units."""
    found = rows.groupby(keys, sort=False)["value"].agg(["mean", "sem", "std", "count"]).reset_index()
    return found.set_axis([*keys, "ours", "std_error", "sd", "n"], axis=1)


def _most_often(values: pd.Series[str]) -> str:
    return str(values.fillna("").value_counts().index[0])


def _in_errors(table: pd.DataFrame) -> pd.Series[float]:
    """How far the authors' number is from ours, in standard errors.

    Theirs is of one forest and a median over 50 shuffles, whose 5 % and 95 % quantiles show their spread; ours is a
    mean over forests whose standard deviation is known.
    """
    shuffles = _MEDIAN * (table["authors_q95"] - table["authors_q05"]) / (2 * 1.645) / np.sqrt(50)
    error: pd.Series[float] = (table["sd"] ** 2 + table["std_error"] ** 2 + shuffles**2) ** 0.5
    return (table["authors"] - table["ours"]) / error.where(error > 0)
