"""The numbers of the bike application, for one split of the days and one forest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import subgrove as sg
from experiments.parts.rows import Row

PUBLISHED = Path(__file__).parents[1] / "published"
SUBGROUPS = ("winter", "spring and fall", "dry summer", "humid summer")
"""Subgroups of temperature in the paper."""
AT = tuple(float(x) for x in range(-4, 32))
"""Temperatures at which PDP and ALE are stored."""
_POINTS = 30  # of a cs-PDP, as in the authors' functions
_PATTERNS = (
    ("humid summer", r"season in \{SUMMER\} and hum > (?P<cut>[\d.]+)"),
    ("dry summer", r"season in \{SUMMER\} and hum <= (?P<cut>[\d.]+)"),
    ("winter", r"season in \{WINTER\}"),
    ("spring and fall", r"season in \{SPRING, FALL\}"),
)


def random_split(seed: int) -> tuple[sg.datasets.Dataset, sg.datasets.Dataset]:
    """70 % of the days, and the others."""
    return sg.datasets.bike(split=0.7, random_state=seed)


def authors_split() -> tuple[sg.datasets.Dataset, sg.datasets.Dataset]:
    """The 511 training days and 220 test days that the authors' functions were run on."""
    data, rows = sg.datasets.bike(), pd.read_csv(PUBLISHED / "bike_authors_test_rows.csv")["row"]
    test = np.zeros(len(data.X), dtype=np.bool_)
    test[rows] = True
    train, other = (
        sg.datasets.Dataset(data.X[part], data.y[part], data.description, data.source) for part in (~test, test)
    )
    return train, other


def forest(train: sg.datasets.Dataset, seed: int, trees: int) -> Pipeline:
    """A forest with the settings of ranger: three columns a split, nodes of five rows stay, levels by their order."""
    names = [name for name in train.X.columns if train.X[name].dtype == "category"]
    codes = OrdinalEncoder(categories=[list(train.X[name].cat.categories) for name in names])
    encoder = make_column_transformer((codes, names), remainder="passthrough")
    grown = RandomForestRegressor(trees, max_features=1 / 3, min_samples_split=6, random_state=seed % 2**32)
    return make_pipeline(encoder, grown).fit(train.X, train.y)


def application(
    train: sg.datasets.Dataset, test: sg.datasets.Dataset, seed: int, *, trees: int, repeats: int, max_depth: int
) -> list[Row]:
    """Everything that the application shows, but the dependence table."""
    model = forest(train, seed, trees)
    groups = sg.find_subgroups(train.X, max_depth=max_depth)
    predicted = np.asarray(model.predict(test.X))
    rows: list[Row] = [{"part": "error", "value": float(np.abs(predicted - test.y).mean())}]
    for depth in range(max_depth + 1):
        rows += importance_rows(model, test, groups.at_depth(depth), depth, repeats, seed)
    at_two = groups.at_depth(2)
    rows += split_rows(at_two)
    rows += temperature_rows(model, test.X, at_two, float(predicted.mean()))
    return rows + season_rows(model, test.X, at_two)


def dependence_rows(X: pd.DataFrame, seed: int, trees: int) -> list[Row]:
    """The share of each feature that is predicted by the others."""
    table = sg.dependence(X, n_trees=trees, random_state=seed % 2**32).table
    pairs = zip(table["feature"], table["explained"], strict=True)
    return [{"part": "dependence", "feature": name, "value": float(share)} for name, share in pairs]


def importance_rows(
    model: Any, test: sg.datasets.Dataset, groups: sg.Subgroups, depth: int, repeats: int, seed: int
) -> list[Row]:
    """Median, quantiles and mean over repeats, by feature; at depth 2 also by subgroup of temperature."""
    sampler: Any = groups if depth else "marginal"
    options: dict[str, Any] = {
        "loss": "absolute_error",
        "n_repeats": repeats,
        "random_state": seed % 2**32,
    }
    found = sg.importance(model, test.X, test.y, sampler=sampler, **options)
    given = {score.title: ", ".join(score.conditioning) for score in found.scores}
    error = dict(zip(found.overall["feature"], found.overall["mc_error"], strict=True))
    rows: list[Row] = [
        _summary(line) | {"part": "importance", "depth": depth, "text": given[name], "mc_error": error[name]}
        for line in found.over_repeats().to_dict("records")
        if (name := line["feature"])
    ]
    if depth != 2:
        return rows
    lines = found.over_repeats(by_subgroup=True).to_dict("records")
    sizes = found.by_subgroup.set_index(["feature", "subgroup"])["n"]
    return rows + [
        _summary(line)
        | {"part": "subgroup", "group": name_of(line["rule"]), "text": line["rule"]}
        | {"n": int(sizes["temp", line["subgroup"]])}
        for line in lines
        if line["feature"] == "temp"
    ]


def _summary(line: dict[Any, Any]) -> Row:
    return {
        "feature": line["feature"],
        "value": line["median"],
        "low": line["q5"],
        "high": line["q95"],
        "mean": line["mean"],
    }


def name_of(rule: str) -> str:
    """The paper's name of a subgroup of temperature; "other" for one that it does not have."""
    return next((name for name, pattern in _PATTERNS if re.fullmatch(pattern, rule)), "other")


def split_rows(groups: sg.Subgroups) -> list[Row]:
    """Each split of the trees of temperature and season: the column, and the threshold or the levels."""
    rows = []
    for feature in ("temp", "season"):
        for node in groups[feature].tree.nodes:
            if (split := node.split) is not None:
                fewer = min(split.levels, key=lambda side: (len(side), sorted(side)))
                levels = "" if split.threshold is not None else ", ".join(sorted(fewer))
                where: Row = {"part": "split", "feature": feature, "depth": node.depth}
                rows.append(where | {"text": split.column, "value": split.threshold, "level": levels, "n": node.n})
    return rows


def temperature_rows(model: Any, X: pd.DataFrame, groups: sg.Subgroups, mean: float) -> list[Row]:
    """PDP and ALE of temperature at fixed points, and the curve of each subgroup at its own."""
    rows: list[Row] = []
    for kind, height in (("PDP", 0.0), ("ALE", mean)):
        options: dict[str, Any] = {"kind": "pdp", "grid": "uniform"} if kind == "PDP" else {"kind": "ale"}
        found = sg.effect(model, X, "temp", **options, grid_resolution=_POINTS, subgroups=None)
        values = found.predict(list(AT)) + height
        rows += [{"part": kind, "feature": "temp", "x": x, "value": y} for x, y in zip(AT, values, strict=True)]
    parts = sg.effect(model, X, "temp", subgroups=groups, grid="uniform", grid_resolution=_POINTS)
    for line in parts.curves.to_dict("records"):
        place = {"part": "cs-PDP", "feature": "temp", "group": name_of(line["rule"]), "text": line["rule"]}
        marks = {"in_box": int(line["in_box"]), "in_whiskers": int(line["in_whiskers"])}
        rows.append(place | {"x": line["x"], "value": line["estimate"], "n": line["n"]} | marks)
    return rows


def season_rows(model: Any, X: pd.DataFrame, groups: sg.Subgroups) -> list[Row]:
    """PDP of season, and the curve of each of its subgroups, which are numbered from cold to warm."""
    curves = sg.effect(model, X, "season", subgroups=None).curves.to_dict("records")
    rows: list[Row] = [
        {"part": "PDP", "feature": "season", "level": line["x"], "value": line["estimate"]} for line in curves
    ]
    code = groups["season"].assign(X)
    warmth = X["temp"].groupby(code).mean().rank().astype(int)
    for line in sg.effect(model, X, "season", subgroups=groups).curves.to_dict("records"):
        place = {"part": "cs-PDP", "feature": "season", "group": f"{warmth[line['subgroup']]} of {len(warmth)}"}
        rows.append(place | {"text": line["rule"], "level": line["x"], "value": line["estimate"], "n": line["n"]})
    return rows
