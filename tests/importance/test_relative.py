"""Relative importance: from no conditioning column to all, each step what `importance(given=...)` gives."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError

TRAIN, TEST = sg.datasets.bike(split=0.7, random_state=1)
ORDER = ["hum", ["season", "wind"]]


def model(X: Any) -> Any:
    return 100 * np.asarray(X["temp"], dtype=float) - 10 * np.asarray(X["hum"], dtype=float)


def run(feature: Any = "temp", counting: Any = model, order: Any = None, **options: Any) -> sg.RelativeImportance:
    defaults = {"sampler": "subgroups", "train": TRAIN.X, "loss": "absolute_error", "n_repeats": 4, "random_state": 2}
    imp = sg.importance(counting, TEST.X, TEST.y, features=[feature], **{**defaults, **options})
    return imp.relative(feature, order=order)


def alone(**options: Any) -> Any:
    options = {"loss": "absolute_error", "n_repeats": 4, "random_state": 2, "features": ["temp"], **options}
    return sg.importance(model, TEST.X, TEST.y, **options).overall


def test_the_ends_are_marginal_and_conditional_importance() -> None:
    table = run().table
    assert table["estimate"].iloc[0] == alone(sampler="marginal")["estimate"][0]
    assert table["estimate"].iloc[-1] == alone(sampler="subgroups", train=TRAIN.X)["estimate"][0]


def test_each_step_is_importance_given_its_columns() -> None:
    found = run(order=ORDER)
    assert found.given[:3] == ((), ("hum",), ("hum", "season", "wind"))
    assert found.added == ("", "hum", "season, wind", "the other 5 columns")
    for step, given in enumerate(found.given):
        expected = alone(sampler="subgroups", train=TRAIN.X, given=list(given))
        for name in ("estimate", "std_error", "conf_low", "conf_high", "mc_error", "p_value"):
            assert found.table[name][step] == expected[name][0]
    assert found.table["given"].tolist()[2] == "hum, season, wind"


def test_changes_are_paired_differences() -> None:
    found = run(order=ORDER)
    table = found.table
    assert table["change"][0] == 0
    np.testing.assert_allclose(table["change"][1:], np.diff(table["estimate"]), atol=1e-12 * table["estimate"][0])
    for step in range(1, len(table)):
        before, after = found.results[step - 1 : step + 1]
        assert isinstance(before, sg.ImportanceResult)
        assert isinstance(after, sg.ImportanceResult)
        paired = after.compare(before)
        assert table["change_std_error"][step] == paired["std_error"][0]


def test_the_strongest_dependence_comes_first() -> None:
    assert run().added[1] == "season"
    rng = np.random.default_rng(0)
    strong, weak, none = rng.normal(size=(3, 500))
    X = pd.DataFrame(
        {"none": none, "weak": weak, "strong": strong, "x": 2 * strong + 0.6 * weak + rng.normal(size=500)}
    )
    y = X["x"] + rng.normal(size=500)
    options: dict[str, Any] = {"train": X[250:], "features": ["x"], "n_repeats": 2, "random_state": 1}
    found = sg.importance(lambda X: X["x"], X[:250], y[:250], **options).relative()
    assert found.added == ("", "strong", "weak", "none")


def test_without_training_rows_samplers_are_cross_fitted() -> None:
    found = run(train=None, order=["season"])
    assert found.table["estimate"][0] == alone(sampler="marginal")["estimate"][0]
    assert found.table["estimate"].iloc[-1] == alone(sampler="subgroups")["estimate"][0]


def test_a_sampler_without_given_has_two_steps() -> None:
    found = run(sampler="knockoffs")
    assert found.added == ("", "the other 8 columns")
    with pytest.raises(ParameterError, match="has no parameter given"):
        run(sampler="knockoffs", order=["season"])


def test_groups_several_losses_and_other_containers() -> None:
    found = run(["temp", "hum"], order=["season"], loss=["absolute_error", "squared_error"])
    assert found.feature == "temp + hum"
    assert found.table["loss"].tolist() == ["absolute_error"] * 3 + ["squared_error"] * 3
    assert found.table["step"].tolist() == [0, 1, 2] * 2
    options: dict[str, Any] = {"train": pl.from_pandas(TRAIN.X), "features": ["temp"], "random_state": 2}
    imp = sg.importance(model, pl.from_pandas(TEST.X), TEST.y.to_numpy(), **options)
    table = imp.relative("temp", order=["season"]).table
    assert isinstance(table, pl.DataFrame)
    assert "loss" not in table.columns


def test_the_result_of_one_of_several_losses_has_steps_of_that_loss() -> None:
    losses = ["squared_error", "absolute_error"]
    imp = sg.importance(model, TEST.X, TEST.y, train=TRAIN.X, features=["temp"], loss=losses, random_state=2)
    all_losses = imp.relative("temp", order=["hum"]).table
    expected = all_losses[all_losses["loss"] == "absolute_error"]["estimate"].tolist()
    assert imp.for_loss("absolute_error").relative("temp", order=["hum"]).table["estimate"].tolist() == expected


def test_each_step_predicts_the_repeats_of_all_rows() -> None:
    counted = [0]

    def counting(X: Any) -> Any:
        counted[0] += len(X)
        return model(X)

    found = run(counting=counting, order=["season"])
    # The importance itself, ten rows again, 100 rows to verify the model, and three steps.
    expected = len(TEST.X) * (1 + 4) + 10 + 100 + 3 * len(TEST.X) * 4
    assert counted[0] == expected
    found.table, repr(found)  # reading predicts nothing
    assert counted[0] == expected


def test_a_seed_gives_the_same_numbers_and_none_fixes_one_for_all_steps() -> None:
    pd.testing.assert_frame_equal(run().table, run().table, check_exact=True)
    seeds = {result.settings["random_state"] for result in run(random_state=None, order=["season"]).results}
    assert len(seeds) == 1


def test_columns_may_be_called_by_numbers() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)))
    options: dict[str, Any] = {"features": [0], "train": X[:150], "random_state": 1}
    found = sg.importance(lambda X: X[0], X[150:], X[0][150:], **options).relative(0, order=[2, [1]])
    assert found.added == ("", "2", "1")


def test_levels_texts_and_pickles() -> None:
    found = run(order=["season"])
    wide, narrow = found.with_level(0.99).table, found.with_level(0.5).table
    assert (wide["conf_high"] > narrow["conf_high"]).all()
    assert repr(found).splitlines()[1].split()[:2] == ["given", "nothing"]
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(found)).table, found.table, check_exact=True)


@pytest.mark.parametrize(
    ("feature", "order", "message"),
    [
        ("temp", ["temp"], "order names 'temp', which is resampled itself"),
        ("temp", ["nope"], "order names 'nope', but the other columns are"),
        ("temp", ["hum", ["season", "hum"]], "order names 'hum' more than once"),
    ],
)
def test_orders_that_cannot_be_are_rejected(feature: Any, order: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        run(feature, order=order)


def test_other_features_and_results_without_inputs_are_rejected() -> None:
    imp = sg.importance(model, TEST.X, TEST.y, features=["temp", "hum"], train=TRAIN.X, n_repeats=2, random_state=1)
    for feature in ("nope", None):
        with pytest.raises(ParameterError, match="is not among the features of this result: temp, hum"):
            imp.relative(feature)
    with pytest.raises(ParameterError, match="relative needs the model and the rows"):
        pickle.loads(pickle.dumps(imp)).relative("temp")
