"""Split points of few digits: the same training rows on both sides, and a rule that is easy to read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.table import read_table
from subgrove._subgroups.partition import TreeSettings
from subgrove.trees.split_points import refine_split_points, shorten_split_points
from subgrove.trees.training import Training, training_rows
from subgrove.trees.tree import Tree


def grown(X: pd.DataFrame, x: Any, tree: str = "transformation") -> tuple[Tree, Training]:
    settings = TreeSettings.checked(tree, 2, 20, 0.05)
    training = training_rows(read_table(X), (read_table(pd.DataFrame({"x": x})).series("x"),), None)
    return settings.grower(training)._grow(training), training


def digits(rule: str) -> list[int]:
    """Numbers of significant digits in a rule."""
    return [len(text.replace(".", "").strip("0")) for text in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", rule)]


def columns(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "uniform": rng.uniform(-1, 1, n),
            "tiny": rng.exponential(1e-7, n),
            "large": rng.lognormal(12, 1, n),
            "single": rng.normal(50, 20, n).astype(np.float32),
        }
    )
    X.loc[::17, "single"] = np.nan
    ranks = X.rank().fillna(n / 2) / n
    return X, 3.0 * (ranks > 0.4).sum(axis=1) + rng.normal(size=n)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("tree", ["transformation", "cart"])
def test_training_rows_stay_in_their_leaves(tree: str, seed: int) -> None:
    grew, training = grown(*columns(300, seed), tree)
    for before in (grew, refine_split_points(grew, training, 5)):
        after = shorten_split_points(before, training)
        assert len(after.leaves) > 1
        np.testing.assert_array_equal(after._leaf_numbers(training.table), before._leaf_numbers(training.table))
        assert [node.n for node in after.nodes] == [node.n for node in before.nodes]


def test_a_midpoint_has_no_rounding_error_in_its_text() -> None:
    """A report had the rule wind <= 3.1500000000000004."""
    rng = np.random.default_rng(1)
    wind = rng.integers(10, 60, 400) / 10
    X = pd.DataFrame({"wind": wind, "x": 5.0 * (wind > 3.1) + rng.normal(size=400)})
    tree, training = grown(X[["wind"]], X["x"])
    refined = refine_split_points(tree, training, 5)
    assert max(digits(" ".join(refined.rules.values()))) > 5, "the data no longer give such a midpoint"
    train, test = X[:300], X[300:]
    found = sg.importance(lambda X: X["x"], test, test["x"], features=["x"], train=train, n_repeats=2, random_state=1)
    rules = found.subgroups["x"].rules
    assert len(rules) > 1
    assert max(digits(" ".join(rules))) <= 3, rules


def test_numbers_of_single_precision_are_short() -> None:
    """A report had the rule mealpct <= 55.2854995727539."""
    rng = np.random.default_rng(2)
    meal = rng.uniform(0, 100, 400).astype(np.float32)
    X = pd.DataFrame({"mealpct": meal, "x": 5.0 * (meal > 55) + rng.normal(size=400)})
    (partition,) = sg.find_subgroups(X, features=["x"]).values()
    assert len(partition) > 1
    assert max(digits(" ".join(partition.rules))) <= 5, partition.rules


def test_a_number_of_few_digits_stays() -> None:
    rng = np.random.default_rng(3)
    year = rng.choice([1987, 1992, 2002], 300)
    X = pd.DataFrame({"year": year, "x": 5.0 * (year > 1990) + rng.normal(size=300)})
    assert sg.find_subgroups(X, features=["x"], max_depth=1)["x"].rules == ("year <= 1987", "year > 1987")


def test_a_date_is_a_whole_day() -> None:
    rng = np.random.default_rng(4)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100 * 86_400, 300), unit="s")
    X = pd.DataFrame({"when": days, "x": 5.0 * (days > pd.Timestamp("2024-02-10")) + rng.normal(size=300)})
    rules = sg.find_subgroups(X, features=["x"], max_depth=1)["x"].rules
    assert re.fullmatch(r"when <= 2024-02-\d\d", rules[0]), rules


def test_the_printed_rule_is_applied_to_rows_between_training_values() -> None:
    X, x = columns(300, 1)
    X["x"] = x
    (partition,) = sg.find_subgroups(X, features=["x"]).values()
    column = next(node.split for node in partition.tree.nodes if node.split is not None).column
    threshold = float(re.findall(rf"{column} <= ([\d.e-]+)", partition.rules[0])[0])
    new = X.head(2).copy()
    new[column] = [threshold, np.nextafter(threshold, np.inf)]
    below, above = partition.assign(new)
    assert below != above
