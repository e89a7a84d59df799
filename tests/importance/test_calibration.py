"""Calibrated test rows: the same importance with less noise, and tables that add up."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import subgrove as sg
from subgrove._data.table import read_like, read_table
from subgrove._importance.inference.covariate_shift import look_alike
from subgrove._importance.inference.row_features import RowTerms
from subgrove._scoring.feature_result import FeatureScores
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning

LINEAR = sg.simulate.scenario("linear")
TRAIN, TEST = LINEAR.sample(600, random_state=1), LINEAR.sample(200, random_state=2)
ASKED: dict[str, Any] = {"features": ["x1"], "n_repeats": 5, "random_state": 3, "check_fidelity": False}


def computed(**options: Any) -> sg.ImportanceResult:
    return sg.importance(LINEAR.model, TEST.X, TEST.y, **{"train": TRAIN.X, "calibrate": True, **ASKED, **options})


@cache
def auto() -> sg.ImportanceResult:
    return computed(features=["x1", "x3"], loss=["squared_error", "absolute_error"])


def weights(imp: sg.ImportanceResult, at: int = 0) -> npt.NDArray[np.float64]:
    score = imp.scores[at]
    assert isinstance(score, FeatureScores)
    assert score.calibration is not None
    return score.calibration.weights


def test_tables_add_up_as_weighted_means() -> None:
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


def test_rows_are_weighted_by_the_column_that_tells_what_they_add() -> None:
    line = auto().calibration.iloc[0]
    # The model has x1 x2 + x1, so that a row adds (1 + x2)^2 times the square of what x1 moves by.
    assert line["columns"].split(", ")[0] == "x2"
    assert line["std_error"] < 0.9 * line["std_error_before"]
    assert auto().overall["noise"].iloc[0] == "test rows (calibrated) + redraw"
    assert auto().settings["calibrated"] == {"further_rows": 600}


def test_the_story_of_a_feature_tells_of_weights() -> None:
    story = str(computed().explain("x1"))
    before = computed(calibrate=False)
    assert "Test rows are weighted by x2" in story
    assert "as they and 600 further rows are together" in story
    assert f"the estimate would be {before.overall['estimate'].iloc[0]:.3g}." in story
    assert "weighted" not in str(before.explain("x1"))


def test_weights_of_rows_that_are_not_weighted_are_how_often_they_count() -> None:
    counts = np.arange(200) % 3
    assert computed(calibrate=False, sample_weight=counts).row_weights["x1"].tolist() == counts.tolist()
    assert computed(calibrate=False).row_weights["x1"].tolist() == [1.0] * 200


def test_before_is_the_result_without_calibration() -> None:
    plain = computed(calibrate=False)
    after = computed()
    line = after.calibration.iloc[0]
    assert line["estimate_before"] == plain.overall["estimate"].iloc[0]
    assert line["std_error_before"] == pytest.approx(plain.noise["test rows"].iloc[0], rel=1e-12)
    assert plain.calibration.empty
    assert list(plain.calibration) == list(after.calibration)
    assert plain.settings["n_rows_predicted"] == after.settings["n_rows_predicted"]
    pd.testing.assert_frame_equal(plain.per_row, after.per_row)


def test_numbers_stay_where_nothing_tells_what_rows_add() -> None:
    rng = np.random.default_rng(0)
    X, more = (pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")) for n in (100, 300))
    asked: dict[str, Any] = {"train": more, "features": ["a"], "random_state": 1, "check_fidelity": False}
    plain, after = (
        sg.importance(lambda X: X["a"].to_numpy(), X, X["a"], calibrate=calibrate, **asked)
        for calibrate in (False, True)
    )
    assert after.calibration["columns"].tolist() == [""]
    pd.testing.assert_frame_equal(plain.overall, after.overall)
    pd.testing.assert_frame_equal(plain.by_subgroup, after.by_subgroup)


def test_features_redrawn_from_training_rows_are_not_weighted_by_themselves() -> None:
    def square(X: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.asarray(X["x1"])

    scenario = sg.simulate.scenario("independent")
    train, test = scenario.sample(600, random_state=1), scenario.sample(200, random_state=2)
    asked = {**ASKED, "y": test.X["x1"]}
    assert sg.importance(square, test.X, train=train.X, calibrate=True, **asked).calibration["columns"].item() == ""
    among = sg.importance(square, test.X, sampler="marginal", calibrate=train.X, **asked)
    assert among.calibration["columns"].item() == "x1"  # donors are test rows: the rows are weighted in both roles


@cache
def simulated() -> npt.NDArray[np.float64]:
    """Of 120 samples: estimate and standard error of the test rows with calibration and without."""
    scenario = sg.simulate.scenario("independent")
    lines = []
    for at in range(120):
        train, test = scenario.sample(600, random_state=2 * at), scenario.sample(150, random_state=2 * at + 1)
        imp = sg.importance(
            scenario.model, test.X, test.y, sampler=scenario.sampler, train=train.X, calibrate=True, **ASKED
        )
        lines.append(imp.calibration.iloc[0, 1:5].to_numpy(np.float64))
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


def test_levels_and_missing_values_tell_what_rows_add() -> None:
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
        imp = sg.importance(
            model, X, model(X), train=more, calibrate=True, features=["a"], random_state=1, check_fidelity=False
        )
        assert column in imp.calibration["columns"].item().split(", ")


def test_weights_are_never_below_a_tenth() -> None:
    far = TRAIN.X.assign(x2=TRAIN.X["x2"] + 6)
    with pytest.warns(SubgroveWarning, match="not like the test rows .* of 'x1'"):
        imp = computed(calibrate=far)
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
    told = auto().calibration.query("loss == 'absolute_error'").drop(columns="loss").reset_index(drop=True)
    pd.testing.assert_frame_equal(one.calibration, told)


def test_results_are_compared_with_all_rows_counted_alike() -> None:
    def other(X: pd.DataFrame) -> npt.NDArray[np.float64]:
        return np.asarray(LINEAR.model(X.assign(x1=0.9 * X["x1"])))

    def asked(**options: Any) -> Any:
        results = (
            sg.importance(model, TEST.X, TEST.y, **{"train": TRAIN.X, **ASKED, **options})
            for model in (LINEAR.model, other)
        )
        return next(results).compare(next(results))

    pd.testing.assert_frame_equal(asked(), asked(calibrate=False))
    assert computed().compare(computed(calibrate=False))[["estimate", "std_error"]].iloc[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": None}, "calibrate=True uses the training rows, and train is missing"),
        ({"sample_weight": np.ones(200)}, "cannot be used with weights"),
        ({"calibrate": "yes"}, "must be 'auto', True, False, or a table of further rows; got 'yes'"),
        ({"calibrate": None}, "must be 'auto', True, False, or a table of further rows; got None"),
        ({"calibrate": 1}, "must be 'auto', True, False, or a table of further rows; got 1"),
        (
            {"loss": "root_mean_squared_error"},
            "calibrate weights rows, and root_mean_squared_error is a score of all rows together",
        ),
    ],
)
def test_what_calibration_has_no_meaning_for_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        computed(**options)


def test_rows_with_other_columns_are_refused() -> None:
    with pytest.raises(InputError, match="calibrate has none of the columns of X"):
        computed(calibrate=pd.DataFrame({"z": [1.0, 2.0]}))


def test_what_weights_change_is_a_step_of_the_gap() -> None:
    marginal = sg.importance(LINEAR.model, TEST.X, TEST.y, sampler="marginal", **ASKED)
    weighted, plain = computed(), computed(calibrate=False)
    gap, before = weighted.gap(marginal, "x1"), plain.gap(marginal, "x1")
    start, end = (imp.overall["estimate"].item() for imp in (marginal, weighted))
    assert gap.steps["step"].sum() == pytest.approx(start - end, abs=1e-12)
    assert (gap.marginal, gap.conditional) == (start, end)
    assert gap.columns == (*before.columns, "weights of rows")
    assert gap.steps["step"].tolist()[:-1] == pytest.approx(before.steps["step"].tolist(), abs=1e-12)
    assert gap.conditional_noise[0] == pytest.approx(weighted.noise["test rows"].item())
    assert "weights of rows" not in " ".join(gap.sentences)
    assert "That rows are weighted (calibrate) makes the difference" in gap.sentences[-1]


def test_scores_counted_alike_are_those_without_calibration() -> None:
    after, before = (imp.scores[0] for imp in (auto(), computed(loss=auto().losses, calibrate=False)))
    assert isinstance(after, FeatureScores)
    assert isinstance(before, FeatureScores)
    alike = after.counted_alike()
    assert alike.calibration is None
    for name in ("sizes", "repeats", "overall", "influence"):
        np.testing.assert_allclose(getattr(alike, name), getattr(before, name), rtol=1e-12)


def default(X: pd.DataFrame = TEST.X, y: Any = TEST.y, **options: Any) -> sg.ImportanceResult:
    return sg.importance(LINEAR.model, X, y, **{"train": TRAIN.X, **ASKED, **options})


def test_rows_are_weighted_by_default_where_that_pays() -> None:
    imp = default(features=["x1", "x3"])
    line, whole = imp.calibration.iloc[0], computed().calibration.iloc[0]
    moves = [one["estimate"] - one["estimate_before"] for one in (line, whole)]
    variances = [one["std_error"] ** 2 / one["std_error_before"] ** 2 for one in (line, whole)]
    # The whole way saves more than a third of the variance, so that rows go less than half of it: until 1/4 is saved.
    assert variances[1] < 2 / 3
    assert variances[0] == pytest.approx(3 / 4, abs=0.01)
    part = moves[0] / moves[1]
    assert part == pytest.approx(1 - np.sqrt(1 - 0.25 / (1 - variances[1])), abs=1e-6)
    # x3 has no product in the model, so that no column tells what rows add.
    assert [line.split(", ")[0] for line in imp.calibration["columns"]] == ["x2", ""]
    assert imp.settings["calibrated"] == {"further_rows": 600}
    assert f"{100 * part:.0f} % of the way to being as they and 600 further rows are together" in str(imp.explain("x1"))


@pytest.mark.parametrize(
    "options",
    [
        {"features": ["x3"]},  # nothing is gained
        {"sampler": "subgroups"},
        {"sampler": "marginal"},
        {"train": None},
        {"train": TRAIN.X.head(20)},  # too few to save much
        {"X": TEST.X.head(49), "y": TEST.y[:49]},
        {"sample_weight": np.arange(200) % 2 + 1},
        {"loss": "root_mean_squared_error"},
    ],
)
def test_rows_count_alike_where_weights_save_little_or_are_not_expected(options: dict[str, Any]) -> None:
    imp = default(**options)
    assert "calibrated" not in imp.settings
    assert imp.calibration.empty
    pd.testing.assert_frame_equal(imp.overall, default(**options, calibrate=False).overall)


def test_no_row_of_the_bike_data_is_weighted_by_default() -> None:
    """As docs/inference.md says: there is little to gain."""
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    names = ["temp", "hum", "wind"]
    model = LinearRegression().fit(train.X[names], train.y)
    assert sg.importance(model, test.X[names], test.y, train=train.X[names], random_state=1).calibration.empty


@pytest.mark.parametrize("column", ["x2", "x9"])
def test_rows_count_alike_if_a_column_shows_that_the_split_was_not_random(column: str) -> None:
    # Six standard errors; x9 tells nothing of what rows add, but of how they were split.
    moved = TRAIN.X.assign(**{column: TRAIN.X[column] + 6 * np.sqrt(1 / 200 + 1 / 600)})
    assert default(train=moved).calibration.empty


@pytest.mark.slow
def test_the_default_has_a_smaller_error_and_says_how_large_it_is() -> None:
    scenario = sg.simulate.scenario("independent")
    lines = []
    for at in range(300):
        train, test = scenario.sample(600, random_state=2 * at), scenario.sample(200, random_state=2 * at + 1)
        imp = sg.importance(scenario.model, test.X, test.y, train=train.X, **{**ASKED, "n_repeats": 20})
        before = imp.calibration["estimate_before"].iloc[0] if len(imp.calibration) else imp.overall["estimate"].iloc[0]
        lines.append([*imp.overall[["estimate", "conf_low", "conf_high"]].iloc[0], before])
    after, low, high, alike = np.array(lines, dtype=np.float64).T
    moved = after - alike
    assert abs(moved.mean()) < 3.5 * moved.std() / np.sqrt(300)  # 1 in 2000 by chance
    # Half of the way to 600 further rows: about 0.78, known to 0.03 of 300 samples.
    assert ((after - scenario_truth()) ** 2).mean() / ((alike - scenario_truth()) ** 2).mean() < 0.9
    # 95 %, less what the sampler's own noise takes away (a point or two); of 300 samples it is known to 1.3 points.
    assert ((low <= scenario_truth()) & (scenario_truth() <= high)).mean() > 0.89


def rows_with(rng: np.random.Generator, kind: str, n: int) -> pd.DataFrame:
    """Ten columns of which little is known in each: gaps, rare levels, or mostly zeros."""
    if kind == "gaps":
        return pd.DataFrame(np.where(rng.random((n, 10)) < 0.01, np.nan, rng.normal(size=(n, 10)))).add_prefix("x")
    if kind == "levels":
        return pd.DataFrame({"x": rng.choice([f"level {at}" for at in range(30)], n, p=RARE)})
    return pd.DataFrame((rng.random((n, 10)) < 0.01).astype(np.float64)).add_prefix("x")


RARE = np.geomspace(1, 0.01, 30) / np.geomspace(1, 0.01, 30).sum()


def alike(X: pd.DataFrame, train: pd.DataFrame) -> bool:
    test, theirs = read_table(X, lenient=True), read_table(train, lenient=True)
    return look_alike(RowTerms(test, read_like(train, test.columns)), theirs)


@pytest.mark.parametrize("kind", ["gaps", "levels", "zeros"])
def test_random_splits_are_seldom_taken_for_others(kind: str) -> None:
    rng = np.random.default_rng(3)
    found = [alike(rows_with(rng, kind, 200), rows_with(rng, kind, 1000)) for _ in range(200)]
    # 5 % are meant to be; skewed shares make it more. The margin is four standard errors of 200 splits.
    assert np.mean(found) > 0.9 - 4 * np.sqrt(0.09 / 200)


@pytest.mark.parametrize(
    ("here", "there"),
    [("A", "B"), (True, False), (1.0, 2.0), (np.nan, 1.0)],
)
def test_a_column_that_is_another_in_each_table_is_seen(here: Any, there: Any) -> None:
    rng = np.random.default_rng(1)
    X, train = (
        pd.DataFrame({"x": rng.normal(size=n), "where": pd.Series([value] * n)})
        for n, value in ((100, here), (300, there))
    )
    assert not alike(X, train)


@pytest.mark.parametrize("rows", [TEST.X.iloc[::-1], pd.concat([TRAIN.X.head(200), TEST.X])])
def test_training_rows_that_hold_the_test_rows_weight_nothing(rows: pd.DataFrame) -> None:
    assert default(train=rows).calibration.empty


def test_training_rows_that_are_the_test_rows_weight_nothing() -> None:
    with pytest.warns(SubgroveWarning, match="same rows"):
        assert default(train=TEST.X).calibration.empty


def test_terms_pull_far_values_in_and_leave_constants_out() -> None:
    X = pd.DataFrame(
        {"far": [0.0, 1.0, 2.0, 3.0, 1e300], "flag": [0.0, 1.0, 1.0, 0.0, 1.0], "same": 2.0, "none": [np.nan] * 5}
    )
    table = read_table(X, lenient=True)
    terms = RowTerms(table, read_like(X, table.columns))
    assert [(term.column, term.power) for term in terms.terms] == [("far", 1), ("far", 2), ("flag", 1)]
    assert np.abs(terms.matrix(np.arange(5))).max() == 16  # the square of four spreads
