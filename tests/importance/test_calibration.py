"""Calibrated test rows: the same estimand with less noise, and tables that are weighted means."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove._data.encode import Design
from subgrove._data.table import read_like, read_table
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning

LINEAR = sg.simulate.scenario("linear")
TRAIN, TEST = LINEAR.sample(600, random_state=1), LINEAR.sample(200, random_state=2)
OPTIONS: dict[str, Any] = {
    "features": ["x1"],
    "loss": "squared_error",
    "n_repeats": 5,
    "random_state": 3,
    "check_fidelity": False,
}


def plain(**options: Any) -> sg.ImportanceResult:
    return sg.importance(LINEAR.model, TEST.X, TEST.y, **{"train": TRAIN.X, **OPTIONS, **options})


def computed(**options: Any) -> sg.ImportanceResult:
    return plain(**options).calibrated(TRAIN.X)


@cache
def auto() -> sg.ImportanceResult:
    return computed(features=["x1", "x3"], loss=["squared_error", "absolute_error"])


def weights(imp: sg.ImportanceResult, at: int = 0) -> npt.NDArray[np.float64]:
    score = imp.scores[at]
    assert isinstance(score, FeatureResult)
    assert score.calibration is not None
    return score.calibration.weights


def test_tables_are_weighted_means() -> None:
    imp = auto()
    assert weights(imp).sum() == pytest.approx(200, abs=1e-9)
    assert weights(imp).min() > 0
    for loss in imp.losses:
        overall = imp.overall.query("feature == 'x1' and loss == @loss")["estimate"].item()
        groups = imp.by_subgroup.query("feature == 'x1' and loss == @loss")
        assert len(groups) > 1
        assert (groups["n"] * groups["estimate"]).sum() / groups["n"].sum() == pytest.approx(overall, rel=1e-12)
        assert (weights(imp) * imp.per_row[f"x1: {loss}"]).mean() == pytest.approx(overall, rel=1e-12)
        assert np.array_equal(imp.row_weights["x1"], weights(imp))
        assert imp.repeats.query("feature == 'x1' and loss == @loss")["estimate"].mean() == pytest.approx(overall)


def test_rows_are_weighted_by_the_column_that_predicts_their_contribution() -> None:
    line = auto().calibration.iloc[0]
    # The model has x1 x2 + x1, so that a row adds (1 + x2)^2 times the square of what x1 moves by.
    assert line["columns"].split(", ")[0] == "x2"
    assert line["std_error"] < 0.9 * line["uncalibrated_std_error"]
    assert auto().overall["noise"].iloc[0] == "test rows (calibrated) + Monte Carlo + donors"
    assert auto().settings["calibrated"] == {"further_rows": 600}


def test_the_explanation_states_the_calibration() -> None:
    story = str(computed().explain("x1"))
    before = plain()
    assert "The estimate is calibrated on 600 additional rows by x2" in story
    assert f"uncalibrated it is {before.overall['estimate'].iloc[0]:.3g}." in story
    assert "calibrated" not in str(before.explain("x1"))


def test_row_weights_of_a_plain_result_are_the_sample_weights() -> None:
    counts = np.arange(200) % 3
    assert plain(sample_weight=sg.FrequencyWeights(counts)).row_weights["x1"].tolist() == counts.tolist()
    assert plain().row_weights["x1"].tolist() == [1.0] * 200


def test_uncalibrated_columns_are_those_of_the_plain_result() -> None:
    before, after = plain(), computed()
    line = after.calibration.iloc[0]
    assert line["uncalibrated_estimate"] == before.overall["estimate"].iloc[0]
    assert line["uncalibrated_std_error"] == pytest.approx(before.variance_components["test rows"].iloc[0], rel=1e-12)
    assert before.calibration.empty
    assert list(before.calibration) == list(after.calibration)
    assert before.settings["n_rows_predicted"] == after.settings["n_rows_predicted"]
    pd.testing.assert_frame_equal(before.per_row, after.per_row)


def test_estimates_are_unchanged_where_no_column_is_predictive() -> None:
    rng = np.random.default_rng(0)
    X, more = (pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")) for n in (100, 300))
    arguments: dict[str, Any] = {"train": more, "features": ["a"], "random_state": 1, "check_fidelity": False}
    before = sg.importance(lambda X: X["a"].to_numpy(), X, X["a"], **arguments)
    after = before.calibrated(more)
    assert after.calibration["columns"].tolist() == [""]
    pd.testing.assert_frame_equal(before.overall, after.overall)
    pd.testing.assert_frame_equal(before.by_subgroup, after.by_subgroup)


def test_features_redrawn_from_training_rows_are_not_weighted_by_themselves() -> None:
    def square(X: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.asarray(X["x1"])

    scenario = sg.simulate.scenario("independent")
    train, test = scenario.sample(600, random_state=1), scenario.sample(200, random_state=2)
    arguments = {**OPTIONS, "y": test.X["x1"]}
    from_train = sg.importance(square, test.X, train=train.X, **arguments).calibrated(train.X)
    assert from_train.calibration["columns"].item() == ""
    among = sg.importance(square, test.X, sampler="marginal", **arguments).calibrated(train.X)
    assert among.calibration["columns"].item() == "x1"  # donors are test rows: the rows are weighted in both roles


@cache
def simulated() -> npt.NDArray[np.float64]:
    """Of 120 samples: estimate and standard error of the test rows with calibration and without."""
    scenario = sg.simulate.scenario("independent")
    lines = []
    for at in range(120):
        train, test = scenario.sample(600, random_state=2 * at), scenario.sample(150, random_state=2 * at + 1)
        imp = sg.importance(scenario.model, test.X, test.y, sampler=scenario.sampler, train=train.X, **OPTIONS)
        lines.append(imp.calibrated(train.X).calibration.iloc[0, 1:5].to_numpy(np.float64))
    return np.array(lines)


def test_calibration_moves_no_estimate_on_average() -> None:
    after, _, before, _ = simulated().T
    moved = after - before
    assert abs(moved.mean()) < 3.5 * moved.std() / np.sqrt(len(moved))  # 1 in 2000 by chance
    assert abs(after.mean() - scenario_truth()) < 3.5 * after.std() / np.sqrt(len(after))


def scenario_truth() -> float:
    return sg.simulate.scenario("independent").importance


def test_calibration_makes_the_error_smaller() -> None:
    after, _, before, _ = simulated().T
    # With 150 test and 600 further rows x1 and x2 make up 32 of 52 parts of the variance, of which a fifth is left, and
    # draws add to both: about 0.6 of the error before. Of 120 samples it is known to about 0.08.
    ratio = ((after - scenario_truth()) ** 2).mean() / ((before - scenario_truth()) ** 2).mean()
    assert ratio < 0.8


def test_standard_errors_are_those_of_the_calibrated_estimate() -> None:
    after, error, _, before_error = simulated().T
    drawn = 0.9  # of the spread; the rest is of the five draws, which this error leaves out
    # A spread of 120 samples whose kurtosis is about 5 is known to sqrt((5 - 1) / 4 / 120) = 9 %.
    assert np.sqrt((error**2).mean()) == pytest.approx(drawn * after.std(), rel=0.25)
    assert (error < before_error).mean() > 0.9


def test_levels_and_missing_values_predict_contributions() -> None:
    rng = np.random.default_rng(1)

    def rows(n: int) -> pd.DataFrame:
        kind = rng.choice(["ash", "elm", "oak"], n)
        hole = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
        return pd.DataFrame({"a": rng.normal(size=n), "kind": kind, "hole": hole, "same": 1.0})

    def by_kind(X: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.asarray(X["a"] * (1 + 3 * (X["kind"] == "elm")))

    def by_hole(X: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.asarray(X["a"] * (1 + 3 * X["hole"].isna()))

    X, more = rows(300), rows(900)
    for model, column in ((by_kind, "kind"), (by_hole, "hole")):
        imp = sg.importance(model, X, model(X), train=more, features=["a"], random_state=1, check_fidelity=False)
        assert column in imp.calibrated(more).calibration["columns"].item().split(", ")


def test_weights_are_never_below_a_tenth() -> None:
    far = TRAIN.X.assign(x2=TRAIN.X["x2"] + 6)
    with pytest.warns(SubgroveWarning, match="Covariate shift: .* of 'x1'"):
        imp = plain().calibrated(far)
    assert weights(imp).min() == pytest.approx(0.1)


def test_numbers_depend_on_the_seed_alone() -> None:
    alone, together = computed(random_state=5), computed(random_state=5, features=["x3", "x1"])
    assert together.overall.iloc[1].to_dict() | {"p_holm": 0, "p_bh": 0} == alone.overall.iloc[0].to_dict() | {
        "p_holm": 0,
        "p_bh": 0,
    }


def test_a_saved_result_has_its_calibration(tmp_path: Path) -> None:
    auto().save(tmp_path / "importance.json")
    again = sg.ImportanceResult.load(tmp_path / "importance.json")
    for name in ("overall", "by_subgroup", "calibration"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(auto(), name))
    assert np.array_equal(weights(again), weights(auto()))


def test_one_loss_of_several_keeps_its_calibration() -> None:
    one = auto().for_loss("absolute_error")
    reported = auto().calibration.query("loss == 'absolute_error'").drop(columns="loss").reset_index(drop=True)
    pd.testing.assert_frame_equal(one.calibration, reported)


def test_results_are_compared_without_calibration() -> None:
    def other(X: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.asarray(LINEAR.model(X.assign(x1=0.9 * X["x1"])))

    one, two = plain(), sg.importance(other, TEST.X, TEST.y, train=TRAIN.X, **OPTIONS)
    pd.testing.assert_frame_equal(
        one.calibrated(TRAIN.X).compare(two.calibrated(TRAIN.X)), one.compare(two), check_exact=True
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": np.arange(200) % 2 + 1}, "cannot be used with sample_weight"),
        (
            {"loss": "root_mean_squared_error"},
            "Calibration weights rows, and root_mean_squared_error is a score of all rows together",
        ),
    ],
)
def test_weights_and_scores_of_all_rows_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        computed(**options)


@pytest.mark.parametrize("rows", ["yes", None, 1, True])
def test_rows_must_be_a_table(rows: Any) -> None:
    with pytest.raises(ParameterError, match="calibrated needs a table of rows"):
        plain().calibrated(rows)


def test_rows_with_other_columns_are_rejected() -> None:
    with pytest.raises(InputError, match="none of the columns of the test rows"):
        plain().calibrated(pd.DataFrame({"z": [1.0, 2.0]}))


def test_a_loaded_result_has_no_rows_to_calibrate(tmp_path: Path) -> None:
    plain().save(tmp_path / "importance.json")
    with pytest.raises(ParameterError, match="calibrated needs the model and the rows"):
        sg.ImportanceResult.load(tmp_path / "importance.json").calibrated(TRAIN.X)


def test_calibrating_twice_is_calibrating_once() -> None:
    pd.testing.assert_frame_equal(computed().calibrated(TRAIN.X).overall, computed().overall)


def test_the_default_estimate_is_the_mean_of_the_rows() -> None:
    imp = plain(features=["x1", "x3"])
    assert imp.calibration.empty
    assert imp.overall["estimate"].tolist() == pytest.approx(imp.per_row.mean().tolist(), rel=1e-12)


def test_the_gap_of_a_calibrated_result_is_that_of_the_plain_one() -> None:
    marginal = sg.importance(LINEAR.model, TEST.X, TEST.y, sampler="marginal", **OPTIONS)
    pd.testing.assert_frame_equal(
        computed().explain_gap(marginal, "x1").steps, plain().explain_gap(marginal, "x1").steps
    )


def test_uncalibrated_scores_are_the_plain_ones() -> None:
    after, before = auto().scores[0], plain(features=["x1", "x3"], loss=auto().losses).scores[0]
    assert isinstance(after, FeatureResult)
    assert isinstance(before, FeatureResult)
    for name in ("sizes", "repeats", "overall", "influence"):
        np.testing.assert_array_equal(getattr(after.uncalibrated(), name), getattr(before, name))


def test_row_features_clip_extreme_values_and_omit_constants() -> None:
    X = pd.DataFrame(
        {"far": [0.0, 1.0, 2.0, 3.0, 1e300], "flag": [0.0, 1.0, 1.0, 0.0, 1.0], "same": 2.0, "none": [np.nan] * 5}
    )
    table = read_table(X, lenient=True)
    design = Design.robust(table, read_like(X, table.columns))
    assert [(one.column, one.power) for one in design.parts] == [("far", 1), ("far", 2), ("flag", 1)]
    assert np.abs(design.matrix(table)).max() == 16  # the square of four spreads
