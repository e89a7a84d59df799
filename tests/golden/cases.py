"""Small computations with the public functions, by name, whose numbers a redesign must reproduce.

Each case is a function without arguments that returns plain nested data: dictionaries, lists, text, numbers, None.
Keys that are written here are the fence's own and stay. Keys that come from tables or dictionaries of the package may
be renamed there; `renamed.py` then says what they were called when the numbers were recorded.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import sklearn
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score

import subgrove as sg
from subgrove._fidelity.mmd import squared_mmd

Floats = npt.NDArray[np.float64]
CASES: dict[str, Callable[[], Any]] = {}
SKIPPED: dict[str, str] = {}
"""Cases that cannot be computed here, and why."""

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a case under the name of its function."""
    CASES[function.__name__] = function
    return function


# Plain data


def plain(value: Any) -> Any:
    """Any value as dictionaries, lists, text, numbers, booleans and None."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, str | bool | int | float):  # numpy's float64 is a float
        return float(value) if isinstance(value, float) else str(value) if isinstance(value, str) else value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, pd.DataFrame | pl.DataFrame | pa.Table):
        return columns_of(value)
    if isinstance(value, np.ndarray | pd.Series):
        return plain(value.tolist())
    if isinstance(value, Sequence | set | frozenset):
        return [plain(each) for each in value]
    return str(value)  # dates


def columns_of(table: Any) -> dict[str, list[Any]]:
    """A table of any container as column -> values."""
    if isinstance(table, pl.DataFrame):
        columns = table.to_dict(as_series=False)
    elif isinstance(table, pa.Table):
        columns = table.to_pydict()
    else:
        columns = {name: table[name].tolist() for name in table.columns}
    return {str(name): plain(values) for name, values in columns.items()}


def prose(sentences: Sequence[str]) -> dict[str, Any]:
    """Sentences, and the numbers in them in increasing order; the words may change, the numbers may not."""
    found = [match.replace(",", "") for match in NUMBER.findall(" ".join(sentences))]
    return {"sentences": list(sentences), "numbers": sorted(map(float, found))}


# What is read from results


def importance_numbers(imp: Any, *, rows: bool = True, parts: bool = True, repeats: bool = True) -> dict[str, Any]:
    """All tables of an importance, with the number of rows that the model predicted."""
    numbers = {
        "features": imp.features,
        "losses": imp.losses,
        "baseline": imp.baseline,
        "model_rows": imp.settings["n_rows_predicted"] - imp.settings.get("n_rows_again", 0),
        "overall": imp.overall,
        "noise": imp.variance_components,
        "fidelity_checks": imp.fidelity_checks,
        "choices": imp.choices,
    }
    if repeats:
        numbers["repeats"] = imp.repeats
    if parts:
        numbers["by_subgroup"] = imp.by_subgroup
    if rows:
        numbers["per_row"] = imp.per_row
    found: dict[str, Any] = plain(numbers)
    return found


def gap_numbers(gap: Any) -> dict[str, Any]:
    """From marginal to conditional importance, with its sentences."""
    return {
        "marginal": gap.marginal,
        "conditional": gap.conditional,
        "gap": gap.gap,
        "std_error": gap.std_error,
        "columns": list(gap.columns),
        "steps": columns_of(gap.steps),
        **prose(gap.sentences),
    }


def effect_numbers(found: Any, *, ice: bool = False) -> dict[str, Any]:
    """Curves of an effect, its support and outliers."""
    numbers = {
        "outputs": plain(found.outputs),
        "model_rows": found.n_rows_predicted - found.settings["n_rows_again"],
        "curves": columns_of(found.curves),
        "support": columns_of(found.support),
        "outliers": columns_of(found.outliers),
    }
    return {**numbers, "ice": columns_of(found.ice)} if ice else numbers


def tree_numbers(tree: Any) -> dict[str, Any]:
    """A tree as rules, splits, and the numbers of its nodes."""
    nodes = []
    for node in tree.nodes:
        line = {"id": node.id, "parent": node.parent, "depth": node.depth, "n": node.n, "p": node.p_value}
        line |= {"theta": node.theta, "log_likelihood": node.log_likelihood, "risk": node.risk}
        if node.split is not None:
            split = node.split
            line["split"] = [split.column, split.threshold, split.below, split.levels, split.missing, split.strict]
        if node.tests is not None:
            tests = node.tests.values()
            line["tests"] = [(test.column, test.statistic, test.df, test.p_value) for test in tests]
        nodes.append(line)
    return {"rules": list(tree.rules.values()), "nodes": plain(nodes)}


def partition_numbers(groups: Any, X: Any) -> dict[str, Any]:
    """Rules, sizes and assignment of rows, for each feature."""
    return {
        name: {
            "rules": list(part.rules),
            "sizes": plain(part.sizes),
            "conditioning": list(part.conditioning),
            "assigned": plain(part.assign(X)),
        }
        for name, part in groups.items()
    }


# Data and models


@cache
def bike() -> tuple[sg.datasets.Dataset, sg.datasets.Dataset]:
    """512 training days and 219 test days."""
    return sg.datasets.bike(split=0.7, random_state=1)


def bike_model(X: Any) -> Any:
    """A formula for the number of bikes."""
    return 1900 + 140 * X["temp"].clip(upper=24) + 1900 * (X["yr"] == "2012") - 12 * X["hum"]


def bike_by_year(X: Any) -> Any:
    """A formula in which the slope of temperature depends on the year."""
    slope = 140 * (X["yr"] == "2012") + 60 * (X["yr"] == "2011")
    return 1900 + slope * X["temp"].clip(upper=24) - 12 * X["hum"]


@cache
def mixed(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    """A table of all kinds of columns: numbers, whole numbers, categories, text, ordered levels, booleans, gaps."""
    rng = np.random.default_rng(seed)
    sizes = ["S", "M", "L", "XL"]
    a = rng.normal(size=n)
    colour = np.where(a + rng.normal(size=n) > 0.3, "red", np.where(rng.random(n) < 0.5, "green", "blue"))
    size = np.clip(np.floor(1.5 + a + 0.7 * rng.normal(size=n)), 0, 3).astype(np.int64)
    b = np.where(rng.random(n) < 0.1, np.nan, (0.8 * a + 0.6 * rng.normal(size=n)).round(3))
    text = np.where(rng.random(n) < 0.5, "north", np.where(size > 1, "south", "west")).astype(object)
    text[rng.random(n) < 0.08] = None
    X = pd.DataFrame(
        {
            "a": a.round(3),
            "b": b,
            "count": rng.poisson(2 + size),
            "colour": pd.Categorical(colour, categories=["green", "red", "blue"]),
            "text": text,
            "size": pd.Categorical(np.array(sizes)[size], categories=sizes, ordered=True),
            "flag": rng.random(n) < 1 / (1 + np.exp(-a)),
        }
    )
    return X, (mixed_model(X) + rng.normal(size=n)).round(4)


def mixed_model(X: Any) -> Floats:
    """A formula over the table of all kinds, for any container."""
    frame = X if isinstance(X, pd.DataFrame) else X.to_pandas()
    size = frame["size"].astype(str).map({"S": -1.0, "M": 0.0, "L": 0.5, "XL": 2.0}).to_numpy(float)
    parts = [2 * frame["a"], frame["b"].fillna(0.5), 0.3 * frame["count"], 0.8 * frame["flag"].astype(float)]
    parts += [(frame["colour"].astype(str) == "red") * frame["a"], 0.7 * (frame["text"] == "north").astype(float)]
    return np.asarray(sum(np.asarray(part, dtype=float) for part in parts) + size)


@cache
def numeric(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    """Four numeric columns of which the first three depend on each other."""
    rng = np.random.default_rng(seed)
    one, two, three, four, noise = rng.normal(size=(5, n))
    X = pd.DataFrame({"x0": one, "x1": 0.8 * one + 0.6 * two, "x2": one * two + three, "x3": four}).round(3)
    return X, (X["x0"] - 0.5 * X["x1"] + X["x2"] * X["x3"] + noise).round(4).to_numpy()


def numeric_model(X: Any) -> Floats:
    """A formula over four numeric columns, also of an array."""
    x = np.asarray(X, dtype=float)
    return np.asarray(x[:, 0] - 0.4 * x[:, 1] + x[:, 2] * x[:, 3])


@cache
def linear_fit() -> Any:
    """A linear regression on the numeric columns."""
    X, y = numeric(300, 1)
    return LinearRegression().fit(X, y)


@cache
def forest_fit() -> Any:
    """A small forest on the numeric columns."""
    X, y = numeric(300, 1)
    return RandomForestRegressor(n_estimators=10, random_state=0).fit(X, y)


@cache
def classifier_fit(classes: int) -> tuple[Any, npt.NDArray[Any]]:
    """A logistic regression on the numeric columns, and the classes of the test rows."""
    edges = {2: [0.0], 3: [-0.7, 0.7]}[classes]
    names = np.array(["low", "middle", "top"])
    X, y = numeric(300, 1)
    fitted = LogisticRegression(max_iter=2000).fit(X, names[np.searchsorted(edges, y)])
    return fitted, names[np.searchsorted(edges, numeric(200, 2)[1])]


class Nearest:
    """A sampler of two methods: the value of a training row that is near in another column."""

    def __init__(self, by: str, among: int = 20) -> None:
        self.by, self.among = by, among

    def fit(self, X: Any, features: Any) -> FittedNearest:
        """Sort the training rows."""
        return FittedNearest(X.sort_values(self.by, kind="stable"), self.by, self.among)


class FittedNearest:
    """What `Nearest` learns."""

    def __init__(self, train: Any, by: str, among: int) -> None:
        self.train, self.by, self.among = train, by, among

    def sample(self, X: Any, feature: str, rngs: Any) -> Iterator[Any]:
        """One new column for each generator."""
        place = np.searchsorted(self.train[self.by].to_numpy(), X[self.by].to_numpy())
        values = self.train[feature].to_numpy()
        for rng in rngs:
            step = rng.integers(-self.among // 2, self.among // 2 + 1, size=len(X))
            yield values[np.clip(place + step, 0, len(values) - 1)]


# Importance: each sampler


def _mixed_by_sampler(sampler: str, trained: bool, features: Any = None) -> Any:
    (X, y), (train, _) = mixed(200, 2), mixed(300, 1)
    found = sg.importance(
        mixed_model,
        X,
        y,
        sampler=sampler,
        train=train if trained else None,
        features=features,
        n_repeats=4,
        random_state=3,
        loss="squared_error",
    )
    return importance_numbers(found)


WITHOUT_GAPS = ["a", "count", "colour", "size", "flag"]
for _name, _features in {
    "auto": None,
    "subgroups": None,
    "cart": None,
    "marginal": None,
    "imputation": ["a", "b", "colour", "size"],
    "intervals": ["a", "count"],
    "shifted_subgroups": WITHOUT_GAPS,
    "unchanged": ["a", "text"],
}.items():
    CASES[f"sampler_{_name}_trained"] = partial(_mixed_by_sampler, _name, True, _features)
    CASES[f"sampler_{_name}_cross_fitted"] = partial(_mixed_by_sampler, _name, False, _features)


def _numeric_by_sampler(sampler: Any, trained: bool, model: Any = None, **options: Any) -> Any:
    (X, y), (train, _) = numeric(200, 2), numeric(300, 1)
    options = {"n_repeats": 4, "random_state": 5, **options}
    found = sg.importance(
        model or numeric_model, X, y, sampler=sampler, train=train if trained else None, loss="squared_error", **options
    )
    return importance_numbers(found)


CASES["sampler_knockoffs_trained"] = partial(_numeric_by_sampler, "knockoffs", True)
CASES["sampler_knockoffs_cross_fitted"] = partial(_numeric_by_sampler, "knockoffs", False)
CASES["sampler_own"] = partial(_numeric_by_sampler, Nearest(by="x0"), True, features=["x1", "x2"])
CASES["sampler_own_cross_fitted"] = partial(_numeric_by_sampler, Nearest(by="x0"), False, features=["x1"])


@case
def sampler_forest_nodes() -> Any:
    """Cells of the trees of a forest that is the model itself."""
    return _numeric_by_sampler("forest_nodes", False, forest_fit())


@case
def sampler_objects() -> Any:
    """Samplers as objects, with settings of their own."""
    (X, y), (train, target) = numeric(200, 2), numeric(300, 1)
    groups = sg.find_subgroups(train, max_depth=2)
    samplers = {
        "found_subgroups": groups,
        "donors_train": sg.samplers.SubgroupSampler(groups=groups, donors="train"),
        "fixed_points": sg.samplers.SubgroupSampler(groups=groups, fixed_points=True),
        "forest_target": sg.samplers.ForestNodes(target=target),
    }
    options: dict[str, Any] = {"features": ["x0", "x1"], "n_repeats": 3, "random_state": 2}
    trained: dict[str, Any] = {"donors_train": {"train": train}, "forest_target": {"train": train}}
    return {
        name: importance_numbers(
            sg.importance(
                numeric_model, X, y, sampler=sampler, loss="squared_error", **options, **trained.get(name, {})
            )
        )
        for name, sampler in samplers.items()
    }


@case
def redraws() -> Any:
    """Values that samplers draw when they are used by themselves."""
    (X, _), (train, _) = numeric(60, 2), numeric(300, 1)
    found = {}
    for name in ("Auto", "SubgroupSampler", "ShiftedSubgroups", "Marginal", "Knockoffs", "Imputation", "Intervals"):
        fitted = getattr(sg.samplers, name)().fit(train, ["x1"])
        drawn = fitted.sample(X, "x1", [np.random.default_rng(seed) for seed in (1, 2)])
        found[name] = [plain(np.asarray(column)) for column in drawn]
    return found


# Importance: options


@case
def bike_auto() -> Any:
    """The bike data with the sampler chosen for each feature: all tables, explanations and a test."""
    train, test = bike()
    imp = sg.importance(bike_model, test.X, test.y, train=train.X, loss="absolute_error", n_repeats=5, random_state=1)
    marginal = sg.importance(
        bike_model, test.X, test.y, sampler="marginal", loss="absolute_error", n_repeats=5, random_state=1
    )
    return {
        **importance_numbers(imp),
        "explained": {name: prose(imp.explain(name).sentences) for name in imp.features},
        "explained_beside_marginal": prose(imp.explain("temp", marginal=marginal).sentences),
        "test": columns_of(imp.independence_test(test.X)),
        "test_by_subgroup": columns_of(imp.independence_test(test.X, by_subgroup=True)),
        "compare": columns_of(imp.compare(marginal)),
        "gap": gap_numbers(imp.explain_gap(marginal, "temp")),
        "over_repeats": columns_of(imp.over_repeats(quantiles=(0.1, 0.9))),
        "over_repeats_by_subgroup": columns_of(imp.over_repeats(by_subgroup=True)),
        "at_level": columns_of(imp.with_level(0.8).overall),
        "test_rows_only": columns_of(imp.with_noise("test rows").overall),
        "row_weights": columns_of(imp.row_weights),
    }


@case
def bike_subgroups() -> Any:
    """Importance in subgroups that were found before, and in those of smaller depth; a gap by trees."""
    train, test = bike()
    groups = sg.find_subgroups(train.X, max_depth=3)
    options: dict[str, Any] = {"features": ["temp", "season", "hum"], "n_repeats": 4, "random_state": 1}
    deep = sg.importance(bike_model, test.X, test.y, sampler=groups, loss="squared_error", **options)
    flat = sg.importance(bike_model, test.X, test.y, sampler=groups.at_depth(1), loss="squared_error", **options)
    marginal = sg.importance(bike_model, test.X, test.y, sampler="marginal", loss="squared_error", **options)
    return {
        "deep": importance_numbers(deep),
        "flat": importance_numbers(flat),
        "compare": columns_of(deep.compare(flat)),
        "gap": gap_numbers(deep.explain_gap(marginal, "temp")),
        "gap_average": gap_numbers(deep.explain_gap(marginal, "temp", average=True)),
        "subgroups": {name: list(part.rules) for name, part in deep.subgroups.items()},
    }


@case
def bike_calibrated() -> Any:
    """Rows of the test weighted so that they look like training rows."""
    train, test = bike()
    imp = sg.importance(
        bike_model,
        test.X,
        test.y,
        train=train.X,
        features=["temp", "hum"],
        n_repeats=5,
        random_state=1,
        loss="squared_error",
    ).calibrated(train.X)
    return {
        **importance_numbers(imp),
        "calibration": columns_of(imp.calibration),
        "row_weights": columns_of(imp.row_weights),
    }


@case
def calibrated_linear_scenario() -> Any:
    """Calibration in a scenario where it is sure to act."""
    linear = sg.simulate.scenario("linear")
    train, test = linear.sample(1000, random_state=1), linear.sample(250, random_state=2)
    options: dict[str, Any] = {"train": train.X, "features": ["x1"], "n_repeats": 5, "random_state": 1}
    imp = sg.importance(linear.model, test.X, test.y, loss="squared_error", **options).calibrated(train.X)
    tables = {"overall": imp.overall, "calibration": imp.calibration, "row_weights": imp.row_weights}
    return {"on_request": {name: columns_of(table) for name, table in tables.items()}}


@case
def given_columns() -> Any:
    """Conditioning on some columns, and on none."""
    train, test = bike()
    found = {}
    for name, given in {"two": ["season", "yr"], "none": []}.items():
        for sampler in ("auto", "subgroups"):
            imp = sg.importance(
                bike_model,
                test.X,
                test.y,
                sampler=sampler,
                train=train.X,
                features=["temp", "hum"],
                given=given,
                n_repeats=3,
                random_state=1,
                loss="squared_error",
            )
            found[f"{name}_{sampler}"] = importance_numbers(imp, repeats=False)
    return found


@case
def groups_of_features() -> Any:
    """Features that are redrawn together."""
    train, test = bike()
    found = {}
    for sampler in ("auto", "subgroups", "marginal"):
        imp = sg.importance(
            bike_model,
            test.X,
            test.y,
            sampler=sampler,
            train=train.X,
            features=[("temp", "hum"), "wind", ("season", "weather")],
            n_repeats=3,
            random_state=1,
            loss="squared_error",
        )
        found[sampler] = importance_numbers(imp)
    return found


def _in_container(convert: Callable[[pd.DataFrame], Any], sampler: str) -> Any:
    (X, y), (train, _) = mixed(150, 2), mixed(250, 1)
    found = sg.importance(
        mixed_model,
        convert(X),
        y,
        sampler=sampler,
        train=convert(train),
        n_repeats=2,
        random_state=4,
        loss="squared_error",
    )
    return importance_numbers(found)


CASES["container_polars"] = partial(_in_container, pl.from_pandas, "auto")
CASES["container_pyarrow"] = partial(_in_container, pa.Table.from_pandas, "subgroups")


@case
def container_numpy() -> Any:
    """Plain arrays, with and without training rows, and labelled rows of pandas."""
    (X, y), (train, _) = numeric(200, 2), numeric(300, 1)
    options: dict[str, Any] = {"n_repeats": 3, "random_state": 4}
    labelled = X.set_axis([f"row {at}" for at in range(len(X))])
    return {
        "trained": importance_numbers(
            sg.importance(numeric_model, X.to_numpy(), y, train=train.to_numpy(), loss="squared_error", **options)
        ),
        "alone": importance_numbers(sg.importance(numeric_model, X.to_numpy(), y, loss="squared_error", **options)),
        "labels": plain(sg.importance(numeric_model, labelled, y, loss="squared_error", **options).per_row.index[:5]),
    }


@case
def missing_values_in_numbers() -> Any:
    """Gaps in numeric columns, in training and in test rows."""
    (X, y), (train, _) = numeric(200, 2), numeric(300, 1)
    rng = np.random.default_rng(9)
    X, train = (frame.mask(rng.random(frame.shape) < 0.1) for frame in (X, train))
    found = {}
    for sampler in ("auto", "subgroups", "cart", "marginal", "imputation"):
        imp = sg.importance(
            lambda rows: numeric_model(rows.fillna(0.0)),
            X,
            y,
            sampler=sampler,
            train=train,
            n_repeats=2,
            random_state=4,
            loss="squared_error",
        )
        found[sampler] = importance_numbers(imp, repeats=False)
    return found


def too_low(y: Floats, prediction: Floats) -> Floats:
    """A loss of one's own: how far a prediction is too low."""
    return np.maximum(y - prediction, 0.0)


@case
def losses_of_numbers() -> Any:
    """Losses of a regression, per row and of all rows at once."""
    (X, y), (train, _) = numeric(200, 2), numeric(300, 1)
    options: dict[str, Any] = {
        "train": train,
        "features": ["x0", "x2"],
        "n_repeats": 3,
        "random_state": 6,
    }
    by_row = ["squared_error", "absolute_error", sg.losses.quantile(0.8), sg.losses.custom(too_low)]
    rows = sg.importance(linear_fit(), X, y, loss=by_row, **options)
    scores = sg.importance(
        linear_fit(), X, y, loss=["root_mean_squared_error", sg.losses.from_metric(r2_score)], **options
    )
    counts = sg.importance(
        lambda rows: np.exp(0.3 * numeric_model(rows).clip(-3, 3)),
        X,
        np.exp(y.clip(-2, 2)),
        loss=["poisson", "gamma", sg.losses.tweedie(1.5)],
        **options,
    )
    return {
        "rows": importance_numbers(rows),
        "one_of_several": importance_numbers(rows.for_loss("absolute_error")),
        "scores": importance_numbers(scores, rows=False, parts=False),
        "counts": importance_numbers(counts),
    }


def _classes(classes: int) -> Any:
    (X, _), (train, _) = numeric(200, 2), numeric(300, 1)
    model, labels = classifier_fit(classes)
    options: dict[str, Any] = {"train": train, "n_repeats": 3, "random_state": 7}
    rows = sg.importance(model, X, labels, loss=["log_loss", "brier", "zero_one"], **options)
    found = {
        "rows": importance_numbers(rows),
        "test": columns_of(rows.independence_test(X)),
        "default_loss": importance_numbers(sg.importance(model, X, labels, sampler="subgroups", **options)),
    }
    if classes == 2:
        score = sg.importance(model, X, labels, loss="auc", **options)
        found["auc"] = importance_numbers(score, rows=False, parts=False)
    return found


CASES["two_classes"] = partial(_classes, 2)
CASES["three_classes"] = partial(_classes, 3)


@case
def weighted_rows() -> Any:
    """Weights of the rows, some of them zero."""
    train, test = bike()
    weights = np.random.default_rng(3).integers(0, 4, len(test.X)).astype(float)
    found = {}
    for sampler in ("auto", "subgroups", "marginal"):
        imp = sg.importance(
            bike_model,
            test.X,
            test.y,
            sampler=sampler,
            train=train.X,
            features=["temp", "season"],
            sample_weight=sg.FrequencyWeights(weights),
            n_repeats=3,
            random_state=1,
            loss="squared_error",
        )
        found[sampler] = {**importance_numbers(imp), "test": columns_of(imp.independence_test(test.X))}
    return found


@case
def budget_of_repeats() -> Any:
    """As many repeats as the noise of the draws needs."""
    repeats = sg.AdaptiveRepeats(share=0.3, start=4, max_repeats=40)
    return _numeric_by_sampler("subgroups", True, linear_fit(), n_repeats=repeats, features=["x0", "x1"])


@case
def noise_of_the_partition() -> Any:
    """Trees grown again on halves of the training rows."""
    (X, y), (train, _) = numeric(200, 2), numeric(300, 1)
    options: dict[str, Any] = {
        "train": train,
        "features": ["x0", "x1"],
        "n_repeats": 3,
        "random_state": 5,
    }
    found = {}
    for sampler in ("subgroups", "auto"):
        imp = sg.importance(
            numeric_model, X, y, sampler=sampler, loss="squared_error", **options
        ).with_sampler_variance(8)
        every = imp.with_noise("test rows", "Monte Carlo", "sampler")
        found[sampler] = {
            "noise": columns_of(imp.variance_components),
            "overall": columns_of(imp.overall),
            "every_source": columns_of(every.overall),
        }
    return found


@case
def two_jobs() -> Any:
    """Two processes; the numbers are those of one."""
    return _numeric_by_sampler("subgroups", True, linear_fit(), n_jobs=2)


@case
def one_job_small_batches() -> Any:
    """One process with little memory; the numbers are those of two processes."""
    with sklearn.config_context(working_memory=0.01):
        return _numeric_by_sampler("subgroups", True, linear_fit())


@case
def saved_and_loaded() -> Any:
    """A result that went through a file."""
    (X, y), (train, _) = numeric(150, 2), numeric(300, 1)
    imp = sg.importance(
        numeric_model, X, y, train=train, features=["x1"], n_repeats=3, random_state=5, loss="squared_error"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "importance.json"
        imp.save(path)
        return importance_numbers(sg.ImportanceResult.load(path))


# Refits and conditioning step by step


@case
def left_out_columns() -> Any:
    """Importance by refitting without a feature."""
    (X, y), (train, target) = numeric(200, 2), numeric(300, 1)
    plainly = sg.loco(
        linear_fit(), X, y, train=(train, target), features=["x0", "x1", ("x2", "x3")], loss="squared_error"
    )
    own = sg.loco(
        linear_fit(),
        X,
        y,
        train=(train, target),
        loss="absolute_error",
        refit=lambda X, y: LinearRegression().fit(X, y),
    )
    return {
        "plain": importance_numbers(plainly),
        "own_refit": importance_numbers(own),
        **prose(plainly.explain("x0").sentences),
    }


@case
def over_refits() -> Any:
    """Importance of models that are fitted again and again."""
    X, y = numeric(300, 1)
    found = {}
    for sampler in ("subgroups", "auto"):
        result = sg.importance_over_refits(
            LinearRegression(),
            X,
            y,
            sampler=sampler,
            n_refits=4,
            features=["x0", "x1"],
            n_repeats=2,
            random_state=1,
            loss="squared_error",
        )
        found[sampler] = {
            "overall": columns_of(result.overall),
            "refits": columns_of(result.refits),
            "at_level": columns_of(result.with_level(0.9).overall),
            "baseline": plain(result.baseline),
        }
    return found


@case
def relative() -> Any:
    """Importance as conditioning columns are added."""
    train, test = bike()
    found = {}
    for sampler in ("auto", "subgroups"):
        options: dict[str, Any] = {"sampler": sampler, "train": train.X, "loss": "absolute_error", "random_state": 1}
        imp = sg.importance(bike_model, test.X, test.y, features=["temp"], n_repeats=3, **options)
        result = imp.relative("temp", order=["hum", "season", "yr"])
        found[sampler] = {"added": list(result.added), "table": columns_of(result.table)}
    options = {"sampler": "subgroups", "train": numeric(300, 1)[0], "n_repeats": 2, "random_state": 1}
    free = sg.importance(numeric_model, *numeric(200, 2), features=["x1"], loss="squared_error", **options).relative()
    return {**found, "order_found": {"added": list(free.added), "table": columns_of(free.table)}}


@case
def by_depth() -> Any:
    """How well subgroups of each depth predict a feature, and its importance by depth."""
    train, test = bike()
    profile = sg.DepthProfile.compute(
        train.X,
        features=["temp", "season"],
        max_depth=3,
        model=bike_model,
        test=(test.X, test.y),
        loss="squared_error",
        n_repeats=2,
        random_state=1,
    )
    return {
        "table": columns_of(profile.table),
        "rules": {name: list(part.rules) for name, part in profile.subgroups.items()},
        "tolerant": {name: list(part.rules) for name, part in profile.with_tolerance(0.3).subgroups.items()},
        "choices": [(choice.feature, choice.depth, choice.best, choice.measure) for choice in profile.choices],
        "importance": {
            str(depth): importance_numbers(imp, rows=False, repeats=False) for depth, imp in profile.importance.items()
        },
        "model_rows": profile.n_rows_predicted,
        **prose(profile.reasons),
    }


# Effects


def _bike_effect(feature: Any, ice: bool = False, **options: Any) -> Any:
    train, test = bike()
    if options.pop("by", False):
        options["subgroups"] = sg.find_subgroups(train.X, features=[feature], max_depth=2)
    found = sg.effect(bike_model, test.X, feature, **{"grid_resolution": 6, "subgroups": None, **options})
    return effect_numbers(found, ice=ice)


for _kind in ("pdp", "ale", "mplot"):
    CASES[f"effect_{_kind}"] = partial(_bike_effect, "temp", kind=_kind)
    CASES[f"effect_{_kind}_of_levels"] = partial(_bike_effect, "season", kind=_kind)
    CASES[f"effect_{_kind}_in_subgroups"] = partial(_bike_effect, "temp", kind=_kind, by=True)
CASES["effect_ice"] = partial(_bike_effect, "temp", True, kind="ice", grid_resolution=4)
CASES["effect_ice_in_subgroups"] = partial(_bike_effect, "temp", True, kind="ice", grid_resolution=4, by=True)
CASES["effect_surface"] = partial(_bike_effect, ("temp", "hum"), grid_resolution=4)
CASES["effect_surface_in_subgroups"] = partial(_bike_effect, ("temp", "hum"), grid_resolution=3, by=True)
CASES["effect_surface_with_levels"] = partial(_bike_effect, ("temp", "season"), grid_resolution=3)
CASES["effect_levels_in_subgroups"] = partial(_bike_effect, "season", by=True)
CASES["effect_at_quantiles"] = partial(_bike_effect, "hum", grid="quantiles")
CASES["effect_on_own_grid"] = partial(_bike_effect, "hum", grid=[40.0, 60.0, 80.0])


@case
def effect_of_all_kinds_of_columns() -> Any:
    """Curves of whole numbers, text, ordered levels, booleans and numbers with gaps, with weights."""
    X, _ = mixed(200, 2)
    weights = np.random.default_rng(3).integers(0, 3, len(X)).astype(float)
    found = {}
    for feature in X.columns:
        for kind in ("pdp", "ale"):
            curve = sg.effect(
                mixed_model,
                X,
                feature,
                kind=kind,
                grid_resolution=4,
                sample_weight=sg.FrequencyWeights(weights),
                subgroups=None,
            )
            found[f"{kind}_{feature}"] = effect_numbers(curve)
    return found


@case
def effect_centred_and_read() -> Any:
    """Centred single curves, curves at other values, intervals of another level."""
    train, test = bike()
    groups = sg.find_subgroups(train.X, features=["temp"])
    parts = sg.effect(bike_model, test.X, "temp", subgroups=groups, grid_resolution=5)
    ice = sg.effect(bike_by_year, test.X, "temp", kind="ice", grid_resolution=3, subgroups=None)
    return {
        "in_subgroups": plain(parts.predict(test.X.head(30))),
        "at_level": columns_of(parts.table(0.8)),
        "at_values": plain(
            sg.effect(bike_model, test.X, "temp", grid_resolution=5, subgroups=None).predict([0.0, 20.0, 50.0])
        ),
        "centred": effect_numbers(ice.centred(), ice=True),
    }


@case
def effect_with_interactions() -> Any:
    """Subgroups that are split further where single curves disagree."""
    train, test = bike()
    groups = sg.find_subgroups(train.X, features=["temp"], max_depth=1)
    ways: dict[str, tuple[Any, Any]] = {"all_rows": (True, None), "in_subgroups": (True, groups), "one_more": (1, None)}
    found = {}
    for name, (more, parts) in ways.items():
        effect = sg.effect(bike_by_year, test.X, "temp", interactions=more, grid_resolution=5, subgroups=parts)
        shares: Any = effect.heterogeneity
        found[name] = {
            **effect_numbers(effect),
            "splits": columns_of(effect.splits),
            "left": shares.left,
            "by_interaction": shares.explained("interaction"),
            **prose([shares.sentence]),
        }
    return found


@case
def effect_of_classes() -> Any:
    """Probabilities of several classes, one of them, and decision values."""
    X, _ = numeric(200, 2)
    model, _ = classifier_fit(3)
    return {
        "all": effect_numbers(sg.effect(model, X, "x0", grid_resolution=4, subgroups=None)),
        "one": effect_numbers(sg.effect(model, X, "x0", grid_resolution=4, output="top", subgroups=None)),
        "decision": effect_numbers(
            sg.effect(model, X, "x0", kind="ale", grid_resolution=4, response_method="decision_function")
        ),
    }


@case
def effect_in_containers() -> Any:
    """Curves of tables of polars and pyarrow, and of arrays."""
    X, _ = mixed(150, 2)
    return {
        "polars": effect_numbers(sg.effect(mixed_model, pl.from_pandas(X), "b", grid_resolution=4, subgroups=None)),
        "pyarrow": effect_numbers(sg.effect(mixed_model, pa.Table.from_pandas(X), "colour", kind="ale")),
        "numpy": effect_numbers(
            sg.effect(numeric_model, numeric(150, 2)[0].to_numpy(), "x2", grid_resolution=4, subgroups=None)
        ),
    }


# Subgroups and trees


def _found(table: str, **options: Any) -> Any:
    train, rows = (bike()[0].X, bike()[1].X) if table == "bike" else (mixed(300, 1)[0], mixed(200, 2)[0])
    groups = sg.find_subgroups(train, **options)
    choices = {name: part.choice for name, part in groups.items() if part.choice is not None}
    return {
        "parts": partition_numbers(groups, rows),
        "table": columns_of(groups.table),
        "trees": {name: tree_numbers(part.tree) for name, part in groups.items()},
        "choices": {
            name: {"depth": choice.depth, "best": choice.best, "table": columns_of(choice.table)}
            for name, choice in choices.items()
        },
    }


CASES["subgroups_bike"] = partial(_found, "bike", max_depth=3)
CASES["subgroups_bike_cart"] = partial(_found, "bike", tree="cart", max_depth=3)
CASES["subgroups_bike_auto_depth"] = partial(_found, "bike", features=["temp", "hum", "season"], max_depth="auto")
CASES["subgroups_bike_group"] = partial(_found, "bike", features=[("temp", "hum"), ("season", "wind")])
CASES["subgroups_bike_given"] = partial(
    _found, "bike", features=["temp", "weather"], given=["season", "yr", "hum"], min_samples_leaf=60, alpha=0.01
)
CASES["subgroups_mixed"] = partial(_found, "mixed", max_depth=2, min_samples_leaf=20)
CASES["subgroups_mixed_cart"] = partial(_found, "mixed", max_depth=2, tree="cart", min_samples_leaf=20)
CASES["subgroups_mixed_kinds"] = partial(_found, "mixed", features=["a", "count"], kinds={"count": "ordered"})


@case
def subgroups_weighted() -> Any:
    """Training rows that count more than once."""
    X, _ = numeric(300, 1)
    weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    found = {}
    for tree in ("transformation", "cart"):
        groups = sg.find_subgroups(X, tree=tree, sample_weight=sg.FrequencyWeights(weights))
        found[tree] = partition_numbers(groups, X)
    return found


@case
def stability_of_subgroups() -> Any:
    """How often splits come back on halves of the rows."""
    train, _ = bike()
    groups = sg.find_subgroups(train.X, features=["temp", "season"], max_depth=2)
    found = groups.stability(train.X, n_resamples=6, random_state=1)
    return {
        "splits": columns_of(found.splits),
        "columns": columns_of(found.columns),
        "levels": columns_of(found.levels),
        "overall": columns_of(found.overall),
        **prose(found.sentences),
    }


@case
def trees_of_each_class() -> Any:
    """Tree classes on small tables: rules, nodes, leaves of other rows, and trees that are pruned."""
    (X, _), (rows, _) = mixed(300, 1), mixed(100, 2)
    others = {name: X.drop(columns=name) for name in ("a", "b", "size", "colour")}
    grown = {
        "transformation": sg.trees.TransformationTree(max_depth=3, min_samples_leaf=20).fit(others["a"], X["a"]),
        "transformation_gaps": sg.trees.TransformationTree(max_depth=3, min_samples_leaf=20, order=3).fit(
            others["b"], X["b"]
        ),
        "transformation_interval": sg.trees.TransformationTree(max_depth=2, likelihood="interval").fit(
            others["a"], (10 * X["a"]).round()
        ),
        "cart_number": sg.trees.CartTree(max_depth=3, min_samples_leaf=20).fit(others["a"], X["a"]),
        "cart_levels": sg.trees.CartTree(max_depth=3, min_samples_leaf=20, cp=0.001).fit(others["colour"], X["colour"]),
        "inference_levels": sg.trees.ConditionalInferenceTree(max_depth=3, min_samples_leaf=20).fit(
            others["colour"], X["colour"]
        ),
        "inference_ordered": sg.trees.ConditionalInferenceTree(max_depth=3, min_samples_leaf=20).fit(
            others["size"], X["size"]
        ),
        "joint": sg.trees.JointTree(max_depth=3, min_samples_leaf=20).fit(
            X.drop(columns=["a", "size"]), X[["a", "size"]]
        ),
    }
    return {
        name: {
            **tree_numbers(tree),
            "leaves": plain(tree.apply(rows)),
            "pruned": list(tree.prune(1).rules.values()),
        }
        for name, tree in grown.items()
    }


@case
def transformation_models() -> Any:
    """Distributions fitted to one column."""
    rng = np.random.default_rng(0)
    columns = {"gamma": rng.gamma(2.0, size=300).round(4), "counts": rng.poisson(4, size=300).astype(float)}
    found = {}
    for name, x in columns.items():
        for order in (3, 5):
            fitted = sg.trees.TransformationModel(order=order).fit(x)
            at = fitted.quantile(np.array([0.1, 0.5, 0.9]))
            found[f"{name}_{order}"] = plain(
                {"theta": fitted.theta, "log_likelihood": fitted.log_likelihood, "quantile": at, "cdf": fitted.cdf(at)}
            )
    return found


# How close to the data, how dependent


@case
def fidelity_of_samplers() -> Any:
    """How close redrawn rows stay to the data."""
    (X, _), (train, _) = numeric(120, 2), numeric(200, 1)
    samplers = ("auto", "marginal", "subgroups", "knockoffs", "imputation", "intervals", "unchanged")
    found = sg.fidelity(train, X, samplers=samplers, features=["x0", "x1"], n_repeats=2, random_state=1)
    own, near, far = (rows.to_numpy() for rows in (X, numeric(80, 3)[0], X + 0.5))
    return {
        "table": columns_of(found.table),
        "overall": columns_of(found.overall),
        "repeats": columns_of(found.repeats),
        "mmd": [squared_mmd(own, near), squared_mmd(own, far), squared_mmd(own, far, gamma=0.5)],
    }


@case
def fidelity_of_curves() -> Any:
    """How far curves are from the model."""
    train, test = bike()
    groups = sg.find_subgroups(train.X, features=["temp", "season"])
    effects = {
        "pdp": [sg.effect(bike_model, test.X, name, grid_resolution=5, subgroups=None) for name in ("temp", "season")],
        "ale": [sg.effect(bike_model, test.X, name, kind="ale", grid_resolution=5) for name in ("temp", "season")],
        "in_subgroups": [sg.effect(bike_model, test.X, name, subgroups=groups, grid_resolution=5) for name in groups],
    }
    found = sg.ModelFidelity.compute(bike_model, test.X, effects, y=test.y)
    return {
        "table": columns_of(found.table),
        "overall": columns_of(found.overall),
        "model_rows": found.n_rows_predicted,
    }


@case
def dependence_of_columns() -> Any:
    """How well each column is predicted from the others."""
    train, _ = bike()
    on_bike = sg.dependence(train.X, features=["temp", "season", "work"], n_trees=30, random_state=1)
    on_mixed = sg.dependence(mixed(200, 2)[0], n_trees=20, n_repeats=2, random_state=1)
    return {
        name: {
            "table": columns_of(found.table),
            "matrix": columns_of(found.matrix),
            "folds": columns_of(found.folds),
            "dependent": list(found.dependent),
            **prose(found.advice),
        }
        for name, found in {"bike": on_bike, "mixed": on_mixed}.items()
    }


# Reports


def _report(model: Any, y_train: Any, y_test: Any, **options: Any) -> Any:
    train, test = options.pop("tables")
    labels = {"created": "2024-01-01", "target": options.pop("target")}
    made = sg.report(model, (train, y_train), (test, y_test), random_state=1, labels=labels, n_repeats=2, **options)
    values = json.loads(made.to_json())
    values["methods"].pop("versions")
    return values


@case
def report_of_a_regression() -> Any:
    """A whole report, as its JSON, without versions."""
    train, test = bike()
    return _report(bike_model, train.y, test.y, tables=(train.X, test.X), features=["temp", "season"], target="cnt")


@case
def report_of_classes() -> Any:
    """A report of a classifier with three classes."""
    model, labels = classifier_fit(3)
    (X, _), (train, y) = numeric(200, 2), numeric(300, 1)
    known = np.array(["low", "middle", "top"])[np.searchsorted([-0.7, 0.7], y)]
    return _report(model, known, labels, tables=(train, X), features=["x0"], target="level")


# Data in chunks


@case
def parquet_in_chunks() -> Any:
    """A folder of three Parquet files, with small row groups and small chunks."""
    X, y = mixed(900, 5)
    weights = np.random.default_rng(2).integers(1, 4, len(X))
    whole = X.assign(y=y, weight=weights, key=np.arange(len(X)))
    columns = list(X.columns)

    def model(rows: Any) -> Floats:
        return mixed_model(rows[columns])

    with tempfile.TemporaryDirectory() as folder:
        for number, start in enumerate(range(0, 900, 300)):
            part = whole.iloc[start : start + 300]
            part.to_parquet(Path(folder) / f"{number}.parquet", row_group_size=120, index=False)
        rows = sg.LargeData(folder, sample_size=300, row_key="key", chunk_rows=100)
        options: dict[str, Any] = {"sample_weight": sg.FrequencyWeights("weight")}
        choice: dict[str, Any] = {"features": ["a", "colour", "size"], "n_repeats": 2, "random_state": 1, **options}
        found = {
            sampler: importance_numbers(
                sg.importance(model, rows, "y", sampler=sampler, loss="squared_error", **choice), rows=False
            )
            for sampler in ("auto", "subgroups")
        }
        for kind in ("pdp", "ale", "mplot"):
            for feature in ("a", "colour"):
                effect = sg.effect(model, rows, feature, kind=kind, subgroups=None, grid_resolution=4, **options)
                found[f"{kind}_{feature}"] = {**effect_numbers(effect), "sampled": plain(effect.sampled)}
        groups = sg.find_subgroups(mixed(300, 1)[0], features=["a"])
        found["in_subgroups"] = effect_numbers(
            sg.effect(model, rows, "a", subgroups=groups, grid_resolution=3, **options)
        )
        return found


# Simulated data


@case
def simulated_scenarios() -> Any:
    """Rows, true importance and importance by the true conditional distribution, for each scenario."""
    found = {}
    for name in sg.simulate.scenarios():
        scenario = sg.simulate.scenario(name)
        data = scenario.sample(120, random_state=1)
        imp = sg.importance(
            scenario.model,
            data.X,
            data.y,
            sampler=scenario.sampler,
            features=["x1"],
            n_repeats=3,
            random_state=1,
            loss="squared_error",
        )
        found[name] = {
            "known": scenario.importance,
            "measured": scenario.true_importance(n=200, random_state=3),
            "x1": plain(data.X["x1"]),
            "x2": plain(data.X["x2"]),
            "y": plain(data.y),
            "overall": columns_of(imp.overall),
        }
    return found


@case
def simulated_null_scenarios() -> Any:
    """Scenarios in which a feature has nothing to say, or little."""
    found = {}
    for name in sg.simulate.null_scenarios():
        for strength in (0.0, 0.5):
            scenario = sg.simulate.null_scenario(name, strength=strength)
            data = scenario.sample(60, random_state=1)
            found[f"{name}_{strength}"] = {
                "known": scenario.importance,
                "measured": scenario.true_importance(n=200, random_state=3),
                "x1": plain(data.X["x1"]),
                "y": plain(data.y),
            }
    return found


@case
def bike_data() -> Any:
    """The bike data and how they are split."""
    train, test = bike()
    return {"train": columns_of(train.X), "train_y": plain(train.y), "test": columns_of(test.X), "y": plain(test.y)}


# Models on a device


def model_on_device() -> Any:
    """A linear module of PyTorch on the processor, summed there and row by row."""
    import torch

    (X, y), (train, _) = numeric(200, 2), numeric(300, 1)
    net = torch.nn.Linear(4, 1, dtype=torch.float64)
    with torch.no_grad():
        net.weight[:] = torch.tensor([[1.0, -0.5, 0.25, 0.1]], dtype=torch.float64)
        net.bias[:] = 0.5
    groups = sg.find_subgroups(train)
    options: dict[str, Any] = {"sampler": groups, "n_repeats": 3, "random_state": 1}
    return {
        "on_device": importance_numbers(sg.importance(net, X, y, loss="squared_error", **options), rows=False),
        "by_row": importance_numbers(sg.importance(sg.DeviceModel(net).predict, X, y, loss="squared_error", **options)),
        "effect": effect_numbers(sg.effect(sg.DeviceModel(net), X, "x0", grid_resolution=4, subgroups=None)),
    }


if find_spec("torch"):
    CASES["model_on_device"] = model_on_device
else:
    SKIPPED["model_on_device"] = "PyTorch is not installed"
