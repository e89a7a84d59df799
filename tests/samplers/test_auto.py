"""The sampler that chooses: the right one for known data, reported truly, and unusual tables one by one."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.execution import Streams
from subgrove.exceptions import ParameterError, UnseenValueWarning
from subgrove.samplers import Auto, CandidateScore, SamplerChoice
from subgrove.samplers.auto import FittedAuto


def mixed(n: int, seed: int) -> pd.DataFrame:
    """A feature for each way to depend: none, steps, a sum, and levels."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    frame = pd.DataFrame(Z, columns=[f"z{k}" for k in range(6)])
    side = np.where(Z[:, 0] > 0, 4.0, np.where(Z[:, 1] > 0, -4.0, 0.0))
    return frame.assign(
        none=rng.normal(size=n),
        steps=side + rng.normal(size=n),
        total=Z[:, 2:].sum(axis=1) + 0.5 * rng.normal(size=n),
        kind=np.array(["u", "v", "w"])[np.clip(np.round(Z[:, 5] + 0.3 * rng.normal(size=n)), -1, 1).astype(int) + 1],
    )


TRAIN, TEST = mixed(800, 2), mixed(150, 1)
NAMES = ["none", "steps", "total", "kind"]
FITTED: FittedAuto = Auto().fit(TRAIN, NAMES)


def drawn(fitted: Any, X: Any, feature: str, n_repeats: int = 3) -> list[Any]:
    return [list(column) for column in fitted.sample(X, feature, Streams(0, feature, n_repeats))]


# The choice.


def test_each_feature_has_the_sampler_that_suits_it() -> None:
    chosen = {name: choice.selected for name, choice in FITTED.choices.items()}
    assert chosen["none"] == "marginal"
    assert chosen["steps"] == "training_subgroups"
    assert chosen["total"] in {"shifted_subgroups", "gaussian"}
    assert chosen["kind"] in {"training_subgroups", "shifted_subgroups", "smooth_levels"}


def test_columns_that_new_values_depend_on_are_named() -> None:
    assert set(FITTED.choices["steps"].conditioning) >= {"z0", "z1"}
    assert set(FITTED.choices["total"].conditioning) >= {"z2", "z3", "z4", "z5"}
    assert FITTED.choices["none"].conditioning == ()


def test_a_choice_states_its_scores_truly() -> None:
    for name, choice in FITTED.choices.items():
        best = min(choice.scores, key=lambda one: one.score, default=None)
        lines = choice.lines()
        assert sum(line["selected"] for line in lines) == 1
        assert [line["score"] for line in lines] == sorted(line["score"] for line in lines) or len(lines) == 1
        assert choice.reason.startswith(f"{name} is resampled from ")
        assert choice.reason.endswith(".")
        if len(choice.scores) > 1:
            assert best is not None
            assert best.score_gap == 0
            picked = next(one for one in choice.scores if one.name == choice.selected)
            assert picked.is_as_good_as(best)
            assert all(one.complexity >= picked.complexity for one in choice.scores if one.is_as_good_as(best))
            assert not any(letter.isdigit() for letter in choice.reason.removeprefix(name))


def test_many_weak_predictors_are_not_replaced_by_few() -> None:
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(400, 60))
    X = pd.DataFrame(Z, columns=[f"z{k}" for k in range(60)])
    X["x"] = 0.3 * Z.sum(axis=1) + rng.normal(size=400)
    choice = Auto().fit(X, ["x"]).choices["x"]
    assert choice.selected in {"gaussian", "shifted_subgroups"}
    by_name = {one.name: one.score for one in choice.scores}
    assert by_name[choice.selected] < 0.75 * by_name["marginal"]


def test_waves_are_predicted_by_a_smooth_function() -> None:
    rng = np.random.default_rng(3)
    Z = rng.uniform(-2, 2, size=(1500, 4))
    x = 3 * np.sin(3 * Z[:, 0]) + 3 * np.cos(3 * Z[:, 1] + 1) + 0.2 * rng.normal(size=1500)
    X = pd.DataFrame(Z, columns=list("abcd")).assign(x=x)
    choice = Auto().fit(X, ["x"]).choices["x"]
    assert choice.selected == "smooth_subgroups"
    assert choice.conditioning == ("a", "b") or choice.conditioning == ("b", "a")
    by_name = {one.name: one.score for one in choice.scores}
    assert by_name["smooth_subgroups"] < 1.1 * 0.2 / np.sqrt(np.pi)  # the CRPS of the true distribution
    assert len(drawn(Auto().fit(X, ["x"]), X[:20], "x")[0]) == 20


def test_what_goes_up_and_down_within_subgroups_is_found() -> None:
    """The tests of a tree see nothing more in most of its leaves here, and a sum sees less."""
    rng = np.random.default_rng(3)
    distance, hour = rng.gamma(2, 3, 6000), rng.integers(24, size=6000)
    slow = np.isin(hour, [7, 8, 9, 16, 17, 18])
    minutes = distance * np.where(slow, 4.5, 2.5) + rng.gamma(2, 2, 6000)
    X = pd.DataFrame({"distance": distance, "hour": hour, "minutes": minutes})
    choice = Auto().fit(X, ["minutes"]).choices["minutes"]
    scores = {one.name: one.score for one in choice.scores}
    assert scores[choice.selected] < 0.6 * min(scores["training_subgroups"], scores["shifted_subgroups"])


def test_independent_columns_are_mostly_left_alone() -> None:
    """Over 40 tables of four independent columns: other than marginal in at most 15 % and 3 standard errors."""
    others = sum(
        choice.selected != "marginal"
        for seed in range(40)
        for choice in Auto().fit(np.random.default_rng(seed).normal(size=(200, 4))).choices.values()
    )
    assert others <= 160 * (0.15 + 3 * np.sqrt(0.15 * 0.85 / 160))


def test_scores_of_a_choice_are_those_of_rows_not_seen() -> None:
    """CRPS of a normal variable by its true distribution is s / sqrt(pi)."""
    by_name = {one.name: one.score for one in FITTED.choices["steps"].scores}
    assert by_name["training_subgroups"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.1)
    total = {one.name: one.score for one in FITTED.choices["total"].scores}
    assert total[FITTED.choices["total"].selected] == pytest.approx(0.5 / np.sqrt(np.pi), rel=0.1)


# What is drawn.


def test_donors_of_subgroups_are_training_values_of_the_same_subgroup() -> None:
    values = np.array(drawn(FITTED, TEST, "steps", 10))
    assert set(np.unique(values)) <= set(TRAIN["steps"])
    high = np.asarray(TEST["z0"] > 0.2)
    assert values[:, high].mean() == pytest.approx(4, abs=0.3)


def test_shown_depth_changes_what_results_are_reported_by_and_nothing_else() -> None:
    deep = Auto(report_depth=0).fit(TRAIN, ["steps"])
    one, two = (fitted.resample(fitted.read(TEST), ("steps",), Streams(0, "steps", 2)) for fitted in (FITTED, deep))
    assert len(one.groups) > 1
    assert two.groups.rules == ("all rows",)
    assert drawn(deep, TEST, "steps") == drawn(FITTED, TEST, "steps")


def test_given_columns_are_the_only_ones_used() -> None:
    fitted = Auto(given=["z0"]).fit(TRAIN, NAMES)
    assert all(set(choice.conditioning) <= {"z0"} for choice in fitted.choices.values())
    none = Auto(given=[]).fit(TRAIN, NAMES)
    assert {choice.selected for choice in none.choices.values()} == {"marginal"}


def test_groups_are_resampled_together() -> None:
    fitted = Auto().fit(TRAIN, [["steps", "none"], "kind"])
    assert fitted.choices["steps + none"].selected == "training_subgroups"
    assert "a group of features" in fitted.choices["steps + none"].reason
    pairs = set(zip(TRAIN["steps"], TRAIN["none"], strict=True))
    for steps, none in fitted.sample(TEST, ["steps", "none"], Streams(0, "steps + none", 2)):
        assert set(zip(steps, none, strict=True)) <= pairs
    alone = Auto().fit(TRAIN[["none", "z0"]], [["none", "z0"]])
    assert alone.choices["none + z0"].selected == "marginal"


def test_number_of_jobs_changes_nothing() -> None:
    two = Auto(n_jobs=2).fit(TRAIN, NAMES)
    assert _reported(two) == _reported(FITTED)
    for name in NAMES:
        assert drawn(two, TEST, name) == drawn(FITTED, TEST, name)


def _reported(fitted: FittedAuto) -> list[str]:
    return [f"{choice.reason} {choice.lines()}" for choice in fitted.choices.values()]


def test_only_some_rows_are_used_of_many() -> None:
    fitted = Auto(max_rows=200, random_state=3, candidates=["training_subgroups"]).fit(TRAIN, ["steps"])
    assert fitted.choices["steps"].n_rows == 200
    assert set(np.ravel(drawn(fitted, TEST, "steps"))) <= set(TRAIN["steps"])


def test_parameters_are_checked() -> None:
    for wrong in ({"max_rows": 5}, {"report_depth": -1}, {"alpha": 2}, {"min_samples_leaf": 0}, {"given": ["wind"]}):
        with pytest.raises(ParameterError):
            Auto(**wrong).fit(TRAIN)


# Unusual tables.


def small(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    kind = np.array(["u", "v", "w"])[rng.integers(0, 3, n)]
    return pd.DataFrame({"a": a, "b": a + rng.normal(size=n), "count": rng.integers(0, 40, n), "kind": kind})


def check(X: pd.DataFrame, test: pd.DataFrame, **settings: Any) -> FittedAuto:
    fitted = Auto(**settings).fit(X)
    for name in X.columns:
        for column in drawn(fitted, test, name, 2):
            assert len(column) == len(test)
    assert all(choice.reason for choice in fitted.choices.values())
    return fitted


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 10, 11, 13, 20])
def test_few_rows(n: int) -> None:
    check(small(n), small(7, 1))


def test_constant_columns_and_a_single_column() -> None:
    fitted = check(small(200).assign(same=1.0, word="x"), small(5, 1).assign(same=1.0, word="x"))
    assert fitted.choices["same"].selected == fitted.choices["word"].selected == "marginal"
    assert check(small(100)[["a"]], small(3)[["a"]]).choices["a"].selected == "marginal"


def test_a_duplicate_column_gives_the_old_values_back() -> None:
    X, test = (small(n, seed).assign(twin=lambda X: X["a"]) for n, seed in ((300, 0), (50, 1)))
    values = np.array(drawn(check(X, test), test, "a"))
    np.testing.assert_allclose(values, np.tile(test["a"], (3, 1)), atol=0.1)


def test_a_table_of_levels_only() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: np.array(list("uvwx"))[rng.integers(0, 4, 300)] for name in "abc"})
    X["d"] = X["a"]
    fitted = check(X, X[:50])
    assert fitted.choices["a"].selected != "marginal"
    assert drawn(fitted, X[:50], "a")[0] == X["a"][:50].tolist()
    assert fitted.choices["b"].selected == "marginal"


def test_very_many_levels() -> None:
    X = small(1100).assign(id=[f"l{k}" for k in np.random.default_rng(0).integers(0, 15_000, 1100)])
    assert X["id"].nunique() > 1000
    fitted = check(X, X[:30])
    assert fitted.choices["id"].selected == "marginal"
    different = small(1010).assign(id=[f"l{k}" for k in range(1010)])
    check(different, small(5, 1).assign(id="new"))


def test_dates() -> None:
    def dated(n: int, seed: int) -> pd.DataFrame:
        X = small(n, seed)
        days = [datetime(2020, 1, 1) + timedelta(days=float(round(10 * a))) for a in X["a"]]
        return X.assign(day=pd.Series(days).astype("datetime64[us]"))

    fitted = check(dated(300, 0), dated(20, 1))
    assert fitted.choices["day"].selected != "marginal"
    column = next(fitted.sample(dated(20, 1), "day", 1))
    assert pd.Series(column).dtype == dated(20, 1)["day"].dtype


def test_many_columns() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 320)), columns=[f"z{k}" for k in range(320)])
    X["z0"] += 2 * X["z1"]
    fitted = Auto().fit(X, ["z0", "z2"])
    assert fitted.choices["z0"].conditioning[0] == "z1"
    assert len(drawn(fitted, X[:10], "z0")[0]) == 10


def test_missing_values_are_as_frequent_as_in_training() -> None:
    X = small(400)
    X["a"] = X["a"].where(X["b"] < 0.8)  # missing where b is large
    X["kind"] = X["kind"].where(X.index % 5 > 0, None)
    fitted = check(X, X[:60])
    missing = np.array(drawn(fitted, X, "a", 10), dtype=float)
    assert np.isnan(missing).mean() == pytest.approx(X["a"].isna().mean(), abs=0.05)
    where_b_is_large = np.isnan(missing)[:, np.asarray(X["b"] > 1.5)].mean()
    assert where_b_is_large > 0.8
    assert fitted.choices["b"].selected != "marginal"


def test_columns_without_a_value() -> None:
    fitted = check(small(200).assign(empty=np.nan, nothing=None), small(9, 1).assign(empty=np.nan, nothing=None))
    assert fitted.choices["empty"].selected == "marginal"


def test_missing_values_that_training_did_not_have_are_given_a_value() -> None:
    fitted = check(small(400), small(9, 1))
    test = small(30, 2)
    test.loc[::3, "b"] = np.nan
    assert not np.isnan(np.array(drawn(fitted, test, "b"))).any()


def test_levels_that_training_did_not_have() -> None:
    X = small(400)
    X["a"] += 5 * (X["kind"] == "v")
    test = small(10, 1).assign(kind="new")
    fitted = Auto().fit(X)
    assert set(drawn(fitted, test, "kind")[0]) <= {"u", "v", "w"}
    reported = fitted.reporting_subgroups(("a",))
    if reported is not None and "kind" in reported.conditioning:
        with pytest.warns(UnseenValueWarning, match="'new'"):
            drawn(fitted, test, "a")
    else:
        assert np.isfinite(np.array(drawn(fitted, test, "a"))).all()


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_numbers_that_cannot_be_squared(factor: float) -> None:
    fitted = check(small(300).assign(extreme=lambda X: factor * X["a"]), small(9).assign(extreme=factor))
    choice = fitted.choices["extreme"]
    assert choice.selected == "training_subgroups"
    assert "too large, or too close" in choice.reason


def test_rows_far_from_training() -> None:
    far = small(9, 1).assign(a=1e6, b=-1e6)
    check(small(300), far)


def test_tables_are_left_as_they_were() -> None:
    X, test = small(300), small(20, 1)
    before = X.copy(deep=True), test.copy(deep=True)
    check(X, test)
    pd.testing.assert_frame_equal(X, before[0])
    pd.testing.assert_frame_equal(test, before[1])


# Choices by themselves.

SCORES = (
    CandidateScore("marginal", 2.0, 1.0, 0.1, 0),
    CandidateScore("training_subgroups", 1.05, 0.05, 0.1, 3),
    CandidateScore("shifted_subgroups", 1.0, 0.0, 0.0, 8),
)


def test_the_simplest_within_one_standard_error_wins() -> None:
    choice = SamplerChoice.between("temp", "CRPS", SCORES, 100)
    assert choice.selected == "training_subgroups"
    assert choice.reason == (
        "temp is resampled from training rows of the same subgroup: its linear prediction plus a resampled residual "
        "would not predict held-out values noticeably better, and is more complex."
    )
    clear = (*SCORES[:1], replace(SCORES[1], score_gap=0.2), SCORES[2])
    assert SamplerChoice.between("temp", "CRPS", clear, 100).selected == "shifted_subgroups"
    close = (replace(SCORES[0], score_gap=0.05), *SCORES[1:])
    assert SamplerChoice.between("temp", "CRPS", close, 100).selected == "marginal"


def test_a_choice_is_written_and_read() -> None:
    for choice in FITTED.choices.values():
        again = SamplerChoice.from_dict(choice.to_dict())
        assert repr(again) == repr(choice)
        assert pickle.loads(pickle.dumps(choice)).reason == choice.reason
        assert list(choice.table.columns)[:2] == ["sampler", "score"]


def test_details_describe_prediction_subgroups_and_retention() -> None:
    choice = SamplerChoice(
        "temp", "shifted_subgroups", "CRPS", SCORES, "because.", 100, "temp ~ 1 + 2 * hum", 0.2, 3, ("hum",)
    )
    shift, groups, kept = choice.details()
    assert shift == "Prediction: temp ~ 1 + 2 * hum."
    assert groups == "The residual is resampled within 3 subgroups."
    assert kept.startswith("A row retains 20 % of its own residual")
    tree = replace(choice, shift=None, residual_retention=0.0, conditioning=("a", "b", "c", "d", "e"))
    assert tree.details() == ["It is resampled within 3 subgroups by a, b, c, d and 1 more."]
    assert replace(tree, n_subgroups=1).details() == []


def test_the_default_of_importance_is_this_sampler() -> None:
    imp = sg.importance(lambda X: X["total"], TEST, TEST["total"], train=TRAIN, features=["total"], random_state=1)
    assert imp.settings["sampler"] == "auto"
    assert imp.choices["sampler"][imp.choices["selected"]].tolist() == [FITTED.choices["total"].selected]
    # 2 Var(total | others) = 2 * 0.25; the error of a mean over 150 rows is 12 %.
    assert imp.overall["estimate"][0] == pytest.approx(0.5, rel=0.4)


def test_a_feature_that_is_resampled_by_a_shift_is_reported_by_its_own_subgroups() -> None:
    scenario = sg.simulate.scenario("linear")
    train, test = scenario.sample(1500, random_state=1), scenario.sample(400, random_state=2)
    fitted = Auto().fit(train.X, ["x1", "x10"])
    assert fitted.choices["x1"].selected == "shifted_subgroups"
    reported = fitted.reporting_subgroups(("x1",))
    own = sg.find_subgroups(train.X, features=["x1"], max_depth=2)["x1"]
    assert reported is not None
    assert reported.rules == own.rules
    requested = {"train": train.X, "features": ["x1"], "random_state": 1}
    imp = sg.importance(scenario.model, test.X, test.y, sampler="auto", **requested)  # type: ignore[arg-type]
    plain = sg.importance(scenario.model, test.X, test.y, sampler=Auto(report_depth=0), **requested)  # type: ignore[arg-type]
    lines = imp.by_subgroup
    assert tuple(lines["rule"]) == own.rules
    np.testing.assert_array_equal(lines["n"], np.bincount(own.assign(test.X), minlength=len(own)))
    assert np.average(lines["estimate"], weights=lines["n"]) == pytest.approx(imp.overall["estimate"][0], rel=1e-12)
    assert imp.overall["estimate"][0] == pytest.approx(plain.overall["estimate"][0], rel=1e-12)
    assert list(plain.by_subgroup["rule"]) == ["all rows"]
    independent = fitted.reporting_subgroups(("x10",))
    assert independent is None or len(independent) == 1
