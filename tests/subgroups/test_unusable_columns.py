"""Columns that no tree can use: identifiers with thousands of levels, and columns without a value."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ColumnError, SubgroveWarning


def table(n: int = 1200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    first = rng.normal(size=n)
    columns = {"first": first, "second": first + rng.normal(size=n), "id": [f"u{row}" for row in range(n)]}
    return pd.DataFrame({**columns, "empty": np.full(n, np.nan)})


def model(X: pd.DataFrame) -> npt.NDArray[np.float64]:
    """It needs the identifier, as real models sometimes do."""
    return X["first"].to_numpy() + X["id"].str.contains("7").to_numpy()


def test_subgroups_are_found_without_them_and_a_warning_names_them() -> None:
    X = table()
    with pytest.warns(SubgroveWarning, match=r"'id' \(1200 levels.*'empty' \(all values missing"):
        groups = sg.find_subgroups(X)
    assert groups["second"].conditioning == ("first",)
    alone = sg.find_subgroups(X[["first", "second"]])
    assert groups["second"].rules == alone["second"].rules


@pytest.mark.filterwarnings("ignore:Rules do not use the columns")
@pytest.mark.parametrize(("feature", "why"), [("id", "many levels"), ("empty", "few rows")])
def test_as_a_feature_they_have_one_subgroup_that_says_why(feature: str, why: str) -> None:
    partition = sg.find_subgroups(table(), features=[feature])[feature]
    assert partition.rules == ("all rows",)
    assert partition.tree.leaves[0].stop == why


def test_given_may_not_name_them() -> None:
    with pytest.raises(ColumnError, match=r"given has columns.*'id'"):
        sg.find_subgroups(table(), given=["first", "id"])


@pytest.mark.filterwarnings("ignore:Rules do not use the columns")
@pytest.mark.parametrize("sampler", ["marginal", "intervals", "unchanged"])
def test_importance_of_other_features_does_not_mind_them(sampler: str) -> None:
    X = table()
    y = model(X)
    with_id = sg.importance(model, X, y, sampler=sampler, features=["first"], n_repeats=2, random_state=1)
    plain = X[["first", "second"]].assign(seven=X["id"].str.contains("7").astype(float))
    without = sg.importance(
        lambda Z: Z["first"] + Z["seven"], plain, y, sampler=sampler, features=["first"], n_repeats=2, random_state=1
    )
    assert with_id.overall["estimate"][0] == pytest.approx(without.overall["estimate"][0])


def test_marginal_redraws_them() -> None:
    X = table()
    imp = sg.importance(model, X, model(X), sampler="marginal", features=["id", "empty"], n_repeats=3, random_state=1)
    share = X["id"].str.contains("7").mean()
    estimate = imp.overall.set_index("feature")["estimate"]
    # The loss is 1 where the one redrawn has a 7 and its donor has none, or the other way round; 4 standard errors.
    assert estimate["id"] == pytest.approx(2 * share * (1 - share), abs=4 * np.sqrt(0.25 / 1200))
    assert estimate["empty"] == 0


def test_a_sampler_that_has_to_encode_them_rejects_them_by_name() -> None:
    X = table().drop(columns="empty")
    with pytest.raises(ColumnError, match=r"'id'.*1200 levels"):
        sg.importance(model, X, X["first"], sampler="imputation", train=X, features=["first"])
