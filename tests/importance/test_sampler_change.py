"""Changes of the importance if the sampler is fitted on quarters of its training rows, from losses that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import subgrove as sg
from subgrove._scoring import fidelity_check, sampler_change, tree_steps
from subgrove._scoring.sampler_change import relative_change
from subgrove._scoring.two_sample import Points

RNG = np.random.default_rng(4)
ROWS = np.repeat(np.arange(3), 4)


def numbers(*values: float) -> Points:
    return Points(np.array(values)[:, None], np.empty((len(values), 0)))


def labels(*codes: float) -> Points:
    return Points(np.empty((len(codes), 0)), np.array(codes)[:, None])


def with_missing(*values: float) -> Points:
    array = np.array(values)
    return Points(np.column_stack([np.nan_to_num(array), np.isnan(array)]), np.empty((len(values), 0)))


def interpolated(values: Points, increases: list[float], wanted: Points, n: int = 1) -> list[float]:
    rows = np.repeat(np.arange(n), len(increases) // n)
    found: list[float] = sampler_change._interpolated(rows, values, np.array(increases), n, wanted).tolist()
    return found


@pytest.mark.parametrize(("wanted", "expected"), [(1.0, 10.0), (1.5, 15.0), (3.0, 20.0), (-2.0, 0.0), (0.0, 0.0)])
def test_increases_are_interpolated_between_numbers_and_constant_beyond(wanted: float, expected: float) -> None:
    assert interpolated(numbers(2.0, 0.0, 1.0), [20.0, 0.0, 10.0], numbers(wanted)) == pytest.approx([expected])


def test_each_row_has_its_own_curve() -> None:
    values = RNG.normal(size=12)
    increases, wanted = RNG.normal(size=12), RNG.normal(size=3)
    curves = [_sorted(*part) for part in zip(np.split(values, 3), np.split(increases, 3), strict=True)]
    by_row = [np.interp(at, *curve) for at, curve in zip(wanted, curves, strict=True)]
    order = RNG.permutation(12)
    found = sampler_change._interpolated(ROWS[order], numbers(*values[order]), increases[order], 3, numbers(*wanted))
    np.testing.assert_allclose(found, by_row, atol=1e-12)


def _sorted(values: Any, increases: Any) -> tuple[Any, Any]:
    order = np.argsort(values)
    return values[order], increases[order]


def test_equal_numbers_have_their_mean_increase() -> None:
    assert interpolated(numbers(1.0, 1.0, 2.0), [0.0, 4.0, 6.0], numbers(1.0)) == [2.0]
    assert interpolated(numbers(1.0, 1.0), [0.0, 4.0], numbers(7.0)) == [2.0]


def test_a_label_has_its_mean_increase_and_an_unknown_one_that_of_the_row() -> None:
    known = labels(0.0, 1.0, 1.0, 2.0)
    assert [interpolated(known, [0.0, 2.0, 4.0, 6.0], labels(code))[0] for code in (0, 1, 5)] == [0.0, 3.0, 3.0]


def test_a_missing_number_is_a_label() -> None:
    known, increases = with_missing(0.0, np.nan, 1.0), [0.0, 9.0, 2.0]
    assert interpolated(known, increases, with_missing(np.nan)) == [9.0]
    assert interpolated(known, increases, with_missing(0.5)) == [1.0]
    assert interpolated(with_missing(0.0, 1.0), [0.0, 2.0], with_missing(np.nan)) == [1.0]


def test_the_change_is_that_of_the_mean_in_standard_errors() -> None:
    n, size = 400, 10
    x = RNG.normal(size=n)
    rows = np.repeat(np.arange(n), 3)
    values = np.column_stack([x, np.full(n, -9.0), np.full(n, 9.0)]).ravel()
    increases = 2.0 * (values - x[rows])  # a straight line of slope 2
    own = [numbers(*x) for _ in range(size)]
    shifted = [numbers(*(x + 0.3)) for _ in range(size)]
    drawn = [numbers(*(x + RNG.normal(size=n))) for _ in range(size)]
    known = (rows, numbers(*values), increases)
    assert relative_change(known, own, [shifted], n) == 0.0  # no row differs from another: no standard error
    moved = [numbers(*(draw.numbers[:, 0] + 0.3)) for draw in drawn]
    error = 2 * np.mean([draw.numbers[:, 0] - x for draw in drawn], axis=0).std(ddof=1) / np.sqrt(n)
    noise = 2 * np.var([(2 * (draw.numbers[:, 0] - x)).mean() for draw in drawn], ddof=1) / size
    expected = np.sqrt(max(0.0, 0.6**2 - noise)) / error
    assert relative_change(known, drawn, [moved, moved], n) == pytest.approx(expected, rel=1e-9)
    assert relative_change(known, drawn, [drawn, drawn], n) == 0.0


def test_the_variance_due_to_donors_counts_as_standard_error_and_not_as_change() -> None:
    n, size = 400, 10
    x = RNG.normal(size=n)
    rows = np.repeat(np.arange(n), 2)
    values = np.column_stack([np.full(n, -9.0), np.full(n, 9.0)]).ravel()
    known = (rows, numbers(*values), values)  # the increase is the value
    drawn = [numbers(*(x + 0.1 * RNG.normal(size=n))) for _ in range(size)]
    moved = [numbers(*(draw.numbers[:, 0] + 0.3)) for draw in drawn]
    variance = np.mean([draw.numbers[:, 0] for draw in drawn], axis=0).var(ddof=1) / n
    noise = 2 * np.var([draw.numbers[:, 0].mean() for draw in drawn], ddof=1) / size
    for donors in (0.0, 0.002, 0.01):
        expected = np.sqrt((0.3**2 - noise - 2 * 3 * donors) / (variance + donors))
        assert relative_change(known, drawn, [moved] * 4, n, donors) == pytest.approx(expected, rel=1e-9)
    assert relative_change(known, drawn, [moved] * 4, n, 0.04) == 0.0


@pytest.fixture(scope="module")
def learned() -> tuple[Any, pd.DataFrame, Any, pd.DataFrame]:
    """A boosting model and test rows whose first column is a product of others."""
    structure = sg.simulate.structure("three-way product")
    train, test = structure.sample(300, random_state=1), structure.sample(150, random_state=2)
    model = HistGradientBoostingRegressor(max_iter=40, random_state=0).fit(train.X, train.y)
    return model, test.X, test.y, train.X


def test_trees_that_are_read_and_predictions_give_the_same_change(
    learned: tuple[Any, pd.DataFrame, Any, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X, y, train = learned
    monkeypatch.setattr(fidelity_check, "LEVEL", 0.0)  # so that test rows pass
    monkeypatch.setattr(tree_steps, "_pays", lambda *of: True)
    found = []
    for one in (model, lambda rows: model.predict(rows)):
        imp = sg.importance(one, X, y, train=train, features=["x1"], loss="squared_error", random_state=1)
        found.append(imp.fidelity_checks["sampler_change"].iloc[0])
    assert found[0] > 0
    # The variance due to donors, which is subtracted, is exact for trees, and estimated from draws otherwise.
    assert found[0] == pytest.approx(found[1], rel=0.15)


def test_a_feature_that_the_model_does_not_use_does_not_change(
    learned: tuple[Any, pd.DataFrame, Any, pd.DataFrame],
) -> None:
    _, X, y, train = learned
    imp = sg.importance(lambda rows: rows["x5"], X, y, train=train, features=["x1"], random_state=1)
    assert imp.fidelity_checks["sampler_change"].tolist() == [0.0]


def test_levels_and_exact_expectations_have_a_change() -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame({"z": rng.normal(size=450)})
    table["kind"] = np.where(rng.random(450) < 1 / (1 + np.exp(-2 * table["z"])), "a", "b")
    y = (table["kind"] == "a") * 1.0 + rng.normal(size=450)
    options: dict[str, Any] = {"train": table[150:], "features": ["kind"], "random_state": 1}
    imp = sg.importance(lambda X: 1.0 * (X["kind"] == "a"), table[:150], y[:150], **options)
    check = imp.fidelity_checks.iloc[0]
    assert check["fidelity"] in ("passed", "uncertain sampler")
    assert 0 <= check["sampler_change"] < 3


def test_a_sampler_that_cannot_be_fitted_on_quarters_does_not_interrupt(
    learned: tuple[Any, pd.DataFrame, Any, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, X, y, train = learned
    monkeypatch.setattr(fidelity_check, "LEVEL", 0.0)  # so that test rows pass
    fit = sg.samplers.Auto.fit

    def fails(self: Any, rows: Any, features: Any) -> Any:
        if len(rows) < len(train):
            raise np.linalg.LinAlgError("singular")
        return fit(self, rows, features)

    monkeypatch.setattr(sg.samplers.Auto, "fit", fails)
    check = sg.importance(model, X, y, train=train, features=["x1"], random_state=1).fidelity_checks.iloc[0]
    assert check["fidelity"] == "passed"
    assert np.isnan(check["sampler_change"])
