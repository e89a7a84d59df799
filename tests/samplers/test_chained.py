"""Groups of features by the chain rule: combinations of new values have the joint distribution given other columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove.samplers import Auto
from subgrove.samplers.chained import ChainedMembers, ignoring_own_values, with_values

REPETITIONS = 4


def linear(n: int, seed: int) -> pd.DataFrame:
    """x1 and x2 depend on z1, z2 and on each other; given those, their variances are 0.49 and 0.4264."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 3))
    x1 = z[:, 0] + 0.5 * z[:, 1] + 0.7 * rng.standard_normal(n)
    x2 = 0.6 * x1 + 0.5 * z[:, 1] + 0.5 * rng.standard_normal(n)
    return pd.DataFrame({"x1": x1, "x2": x2, "z1": z[:, 0], "z2": z[:, 1], "z3": z[:, 2]})


def mixed(n: int, seed: int) -> pd.DataFrame:
    """x1 is a level by z1; x2 depends on z2 and on that level."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 3))
    x1 = rng.random(n) < 1 / (1 + np.exp(-2 * z[:, 0]))
    x2 = np.where(x1, 1.0, -1.0) + z[:, 1] + 0.5 * rng.standard_normal(n)
    levels = pd.Categorical(np.where(x1, "yes", "no"))
    return pd.DataFrame({"x1": levels, "x2": x2, "z1": z[:, 0], "z2": z[:, 1], "z3": z[:, 2]})


def total(X: Any) -> Any:
    x1 = (X["x1"] == "yes") * 2.0 if X["x1"].dtype == "category" else X["x1"]
    return (x1 + X["x2"]).to_numpy()


def estimates(make: Any) -> list[float]:
    found = []
    for seed in range(REPETITIONS):
        train, test = make(1000, seed), make(500, 100 + seed)
        imp = sg.importance(
            total, test, total(test), train=train, features=[["x1", "x2"]], loss="squared_error", random_state=seed
        )
        assert len(imp.by_subgroup) > 1
        found.append(float(imp.overall["estimate"].iloc[0]))
    return found


def test_a_group_that_depends_linearly_has_its_true_importance() -> None:
    # 2 Var(x1 + x2 | z) = 2 (1.6^2 0.49 + 0.25); four estimates of 500 rows are within 10 %.
    assert np.mean(estimates(linear)) == pytest.approx(2 * (1.6**2 * 0.49 + 0.25), rel=0.1)


def test_a_group_of_a_level_and_a_number_has_its_true_importance() -> None:
    # Given z, x1 + x2 is 4 times a Bernoulli variable plus noise: 2 (16 E[p (1 - p)] + 0.25).
    p = 1 / (1 + np.exp(-2 * np.random.default_rng(0).standard_normal(1_000_000)))
    assert np.mean(estimates(mixed)) == pytest.approx(2 * (16 * (p * (1 - p)).mean() + 0.25), rel=0.1)


def test_members_that_other_columns_shift_are_chained() -> None:
    fitted = Auto().fit(linear(500, 1), [["x1", "x2"]])
    choice = fitted.choices["x1 + x2"]
    assert choice.selected == "chained_members"
    assert set(choice.conditioning) <= {"z1", "z2", "z3"}
    sampler = fitted.learned["x1 + x2"]
    assert isinstance(sampler, ChainedMembers)
    assert sampler.reporting_subgroups(("x1", "x2")) is sampler.shown


def test_the_dependence_between_members_is_kept() -> None:
    fitted, test = Auto().fit(linear(1000, 1), [["x1", "x2"]]), linear(1000, 2)
    for x1, x2 in fitted.sample(test, ["x1", "x2"], Streams(0, "x1 + x2", 2)):
        residuals = [x1 - test["z1"] - 0.5 * test["z2"], x2 - 0.6 * test["z1"] - 0.8 * test["z2"]]
        # Given z the correlation is 0.42 / sqrt(0.49 * 0.4264) = 0.64; its standard error is below 0.02.
        assert np.corrcoef(residuals)[0, 1] == pytest.approx(0.64, abs=0.08)


def test_conditioning_columns_of_a_group_are_the_given_ones() -> None:
    fitted = Auto(given=["z1"]).fit(linear(500, 1), [["x1", "x2"]])
    assert set(fitted.choices["x1 + x2"].conditioning) <= {"z1"}


def test_later_members_ignore_their_own_values() -> None:
    sampler = Auto().fit(linear(500, 1), ["x2"]).learned["x2"]
    assert ignoring_own_values(sampler).retention == 0


def test_other_values_of_a_column_leave_the_table_unchanged() -> None:
    fitted = Auto().fit(mixed(100, 1), ["x2"])
    table = fitted.read(mixed(5, 2))
    before = table.values("x1").copy()
    assert with_values(table, "x1", np.zeros(5)).values("x1").tolist() == [0] * 5
    assert with_values(table, "x2", np.arange(5.0)).values("x2").tolist() == [0, 1, 2, 3, 4]
    assert table.values("x1").tolist() == before.tolist()
