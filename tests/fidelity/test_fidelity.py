"""`fidelity`: good samplers stand near the upper bound, bad ones near the lower, and every row says what it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import subgrove as sg
from subgrove._fidelity.mmd import squared_mmd
from subgrove.exceptions import SamplerError

SAMPLERS = ["subgroups", "knockoffs"]


def dependent(n: int, seed: int) -> pd.DataFrame:
    """Two columns that depend on each other, one on its own, one of labels."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n)
    labels = np.where(u + rng.normal(size=n) > 0, "high", "low")
    return pd.DataFrame({"u": u, "v": u + 0.3 * rng.normal(size=n), "w": rng.normal(size=n), "label": labels})


TRAIN, TEST = dependent(300, 0), dependent(200, 1)


@pytest.fixture(scope="module")
def found() -> sg.Fidelity:
    return sg.fidelity(TRAIN, TEST, samplers=SAMPLERS, random_state=1)


def row(result: sg.Fidelity, feature: str, sampler: str) -> pd.Series[Any]:
    table: pd.DataFrame = result.table
    line: pd.Series[Any] = table[(table["feature"] == feature) & (table["sampler"] == sampler)].iloc[0]
    return line


def test_there_is_a_row_for_each_feature_and_sampler_and_the_bounds(found: sg.Fidelity) -> None:
    names = ["unchanged", "subgroups", "knockoffs", "marginal"]
    assert found.table["sampler"].tolist() == names * 4
    assert found.table["feature"].tolist() == [name for name in TRAIN for _ in names]
    assert set(found.table["n"]) == {100}


def test_bounds_have_the_positions_one_and_zero(found: sg.Fidelity) -> None:
    for feature in ("u", "v", "label"):
        assert row(found, feature, "unchanged")["position"] == pytest.approx(1.0)
        assert row(found, feature, "marginal")["position"] == pytest.approx(0.0)


def test_conditional_samplers_beat_marginal_for_a_dependent_feature(found: sg.Fidelity) -> None:
    for sampler in SAMPLERS:
        line = row(found, "u", sampler)
        assert line["position"] > 0.5
        assert line["position"] - 3 * line["position_std_error"] > 0
        assert line["auc"] < row(found, "u", "marginal")["auc"]


def test_independent_feature_has_no_position(found: sg.Fidelity) -> None:
    assert found.table[found.table["feature"] == "w"]["position"].isna().all()
    assert not found.table[found.table["feature"] == "w"]["estimate"].isna().any()


@pytest.mark.compiled
def test_classifier_detects_a_permuted_column_but_not_unchanged_rows(found: sg.Fidelity) -> None:
    # The area of 50 against 50 rows of one distribution has the standard deviation sqrt(101 / (12 * 50 * 50)) = 0.058,
    # the mean of the two folds 0.041, that of repeats, which share rows, at most that; 3 of it are allowed.
    assert row(found, "u", "unchanged")["auc"] == pytest.approx(0.5, abs=0.123)
    assert row(found, "u", "marginal")["auc"] > 0.623


def test_feature_that_a_sampler_cannot_resample_has_a_note_and_nan(found: sg.Fidelity) -> None:
    line = row(found, "label", "knockoffs")
    assert line[["estimate", "std_error", "position", "auc"]].isna().all()
    assert "takes numeric columns, but 'label' is nominal" in line["note"]
    assert row(found, "label", "subgroups")["note"] == ""
    assert list(found.notes) == [("label", "knockoffs")]


def test_overall_averages_the_features_that_each_sampler_can_resample(found: sg.Fidelity) -> None:
    table = found.overall.set_index("sampler")
    assert table["n_features"].to_dict() == {"unchanged": 4, "subgroups": 4, "knockoffs": 3, "marginal": 4}
    assert table.loc["knockoffs", "failed"] == 1
    assert table.loc["marginal", "failed"] == 0
    whole = found.table.groupby("sampler")["estimate"].mean()
    for name in table.index:
        assert table.loc[name, "estimate"] == pytest.approx(whole[name])
    assert table["position"].is_monotonic_decreasing


def test_training_rows_beyond_the_bound_are_sampled() -> None:
    fitted_on = []

    class Recorder(sg.samplers.Marginal):
        name = "recorder"
        learns = True

        def fit(self, X: Any, features: Any = None) -> Any:
            fitted_on.append(len(X))
            return super().fit(X, features)

    options: dict[str, Any] = {"features": "u", "classifier": False, "n_repeats": 1, "random_state": 1}
    result = sg.fidelity(TRAIN, TEST, samplers=[Recorder(fixed_points=True)], max_rows=60, **options)
    assert fitted_on[-1] == 60
    assert (result.n, result.n_reference) == (30, 30)


def test_estimates_are_minus_the_log_of_squared_mmd(found: sg.Fidelity) -> None:
    repeats = found.repeats
    np.testing.assert_allclose(repeats["estimate"], -np.log(repeats["squared_mmd"]))
    means = repeats.groupby(["feature", "sampler"])["estimate"].mean()
    assert row(found, "v", "subgroups")["estimate"] == pytest.approx(means["v", "subgroups"])


def test_squared_mmd_of_unchanged_rows_is_that_of_the_scaled_halves() -> None:
    train, test, reference = (frame[["u", "v", "w"]] for frame in (TRAIN, TEST, dependent(80, 2)))
    result = sg.fidelity(
        train, test, samplers=["marginal"], reference=reference, n_repeats=1, classifier=False, random_state=1
    )
    one, other = ((frame - train.mean()) / train.std() for frame in (reference, test))
    assert result.squared_mmd[0, 0, 0] == pytest.approx(squared_mmd(one.to_numpy(), other.to_numpy()), abs=1e-13)
    assert (result.n, result.n_reference) == (200, 80)


def test_bounds_can_be_compared_alone() -> None:
    result = sg.fidelity(TRAIN, TEST, samplers=[], features="u", classifier=False, n_repeats=2, random_state=1)
    assert result.samplers == ("unchanged", "marginal")


def test_all_types_of_samplers_are_accepted() -> None:
    groups = sg.find_subgroups(TRAIN)
    samplers = {
        "found": groups,
        "fitted": sg.samplers.Knockoffs().fit(TRAIN, ["u"]),
        "object": sg.samplers.SubgroupSampler(donors="train"),
        "own": Shift(),
        "forest": sg.samplers.ForestNodes(target=TRAIN["w"].to_numpy()),
    }
    result = sg.fidelity(TRAIN, TEST, samplers=samplers, features=["u"], classifier=False, n_repeats=2, random_state=1)
    assert result.samplers == ("unchanged", *samplers, "marginal")
    assert not result.notes


class Shift:
    """A sampler of a user: the value of the row before."""

    def fit(self, X: Any, features: Any) -> Shift:
        return self

    def sample(self, X: Any, feature: str, rngs: Sequence[Any]) -> Iterable[Any]:
        for _ in rngs:
            yield np.roll(X[feature].to_numpy(), 1)


class Broken(Shift):
    """Raises for one feature."""

    def sample(self, X: Any, feature: str, rngs: Sequence[Any]) -> Iterable[Any]:
        if feature == "v":
            raise RuntimeError("no idea")
        return super().sample(X, feature, rngs)


def test_user_sampler_receives_the_rows_of_the_half() -> None:
    result = sg.fidelity(TRAIN, TEST, samplers=[Shift()], features=["u"], classifier=False, n_repeats=3, random_state=1)
    ours = row(result, "u", "Shift")
    # Neighbours in the half have nothing to do with each other: as good as a permutation.
    assert abs(ours["position"]) < 0.3


def test_failing_user_sampler_has_a_note() -> None:
    result = sg.fidelity(TRAIN, TEST, samplers=[Broken()], features=["u", "v"], classifier=False, random_state=1)
    assert "no idea" in result.notes["v", "Broken"]
    assert np.isnan(row(result, "v", "Broken")["estimate"])
    assert not np.isnan(row(result, "u", "Broken")["estimate"])


def test_error_if_no_feature_can_be_resampled() -> None:
    with pytest.raises(SamplerError, match=r"No sampler.*Error of 'knockoffs' for 'label'"):
        sg.fidelity(TRAIN, TEST, samplers=["knockoffs"], features="label", random_state=1)


def test_sampler_that_fails_everywhere_does_not_restrict_others() -> None:
    result = sg.fidelity(
        TRAIN, TEST, samplers=SAMPLERS, features="label", classifier=False, n_repeats=2, random_state=1
    )
    table = result.overall.set_index("sampler")
    assert table.loc["subgroups", "n_features"] == 1
    assert not np.isnan(table.loc["subgroups", "estimate"])
    assert np.isnan(table.loc["knockoffs", "estimate"])
    assert table.loc["knockoffs", "failed"] == 1


def test_samplers_with_the_same_name_are_numbered() -> None:
    samplers = [
        sg.samplers.SubgroupSampler(max_depth=1),
        sg.samplers.SubgroupSampler(max_depth=3),
        "marginal",
        "unchanged",
    ]
    result = sg.fidelity(TRAIN, TEST, samplers=samplers, features="u", classifier=False, n_repeats=2, random_state=1)
    assert result.samplers == ("unchanged", "subgroups", "subgroups (2)", "marginal")


def test_groups_of_features_are_resampled_jointly() -> None:
    result = sg.fidelity(
        TRAIN, TEST, samplers=["subgroups"], features=[["u", "v"], "u"], classifier=False, n_repeats=4, random_state=1
    )
    assert result.features == ("u + v", "u")
    # Together, u and v keep what they have to do with each other.
    assert row(result, "u + v", "marginal")["estimate"] > row(result, "u", "marginal")["estimate"]


NUMBERS = {"samplers": ["subgroups", sg.samplers.Imputation(n_trees=20)], "n_repeats": 2}


def numbers(train: Any, test: Any, **more: Any) -> np.ndarray[Any, Any]:
    result = sg.fidelity(train, test, **{**NUMBERS, "random_state": 7, **more})
    assert result.auc is not None
    return np.stack([result.squared_mmd, result.auc])


def test_same_seed_same_numbers_for_any_jobs_and_any_subset_and_order_of_features() -> None:
    whole = numbers(TRAIN, TEST, features=["u", "label"], n_repeats=1)
    np.testing.assert_array_equal(numbers(TRAIN, TEST, features=["u", "label"], n_repeats=1, n_jobs=2), whole)
    np.testing.assert_array_equal(numbers(TRAIN, TEST, features=["label"], n_repeats=1), whole[:, [1]])
    np.testing.assert_array_equal(numbers(TRAIN, TEST, features=["label", "u"], n_repeats=1), whole[:, [1, 0]])
    assert not np.array_equal(numbers(TRAIN, TEST, features=["u", "label"], n_repeats=1, random_state=8), whole)


@pytest.fixture(scope="module")
def whole() -> np.ndarray[Any, Any]:
    return numbers(TRAIN, TEST, features=["u", "label"])


@pytest.mark.parametrize("container", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_same_numbers_in_every_container_and_tables_of_its_kind(container: Any, whole: np.ndarray[Any, Any]) -> None:
    train, test = container(TRAIN), container(TEST)
    np.testing.assert_allclose(numbers(train, test, features=["u", "label"])[0], whole[0], rtol=1e-9)
    result = sg.fidelity(train, test, samplers=[], features="u", n_repeats=1, classifier=False, random_state=1)
    assert type(result.table) is type(result.overall) is type(result.repeats) is type(train)


def test_arrays_are_tables_without_names() -> None:
    columns = ["u", "v", "w"]
    plain = numbers(TRAIN[columns].to_numpy(), TEST[columns].to_numpy(), features=["x0"])
    frames = [frame[columns].set_axis(["x0", "x1", "x2"], axis=1) for frame in (TRAIN, TEST)]
    np.testing.assert_allclose(plain, numbers(*frames, features=["x0"]))


def test_datasets_with_a_target_are_accepted() -> None:
    train, test = sg.datasets.bike(split=0.7, random_state=1)
    options: dict[str, Any] = {
        "samplers": [],
        "features": "temp",
        "n_repeats": 1,
        "classifier": False,
        "random_state": 1,
    }
    one, other = sg.fidelity(train, test, **options), sg.fidelity(train.X, test.X, **options)
    np.testing.assert_array_equal(one.squared_mmd, other.squared_mmd)


def test_rows_beyond_the_limit_are_subsampled_in_each_repeat() -> None:
    result = sg.fidelity(
        TRAIN, TEST, samplers=[], features="u", max_rows=60, n_repeats=3, classifier=False, random_state=1
    )
    assert (result.n, result.n_reference) == (30, 30)
    assert len(set(result.squared_mmd[0, 0])) == 3


def test_missing_values_are_encoded() -> None:
    rng = np.random.default_rng(0)
    frames = [frame.mask(rng.random(frame.shape) < 0.1) for frame in (TRAIN, TEST)]
    result = sg.fidelity(*frames, samplers=["subgroups", "knockoffs"], n_repeats=2, classifier=False, random_state=1)
    assert np.isfinite(result.estimates[:, [0, 1, 3]]).all()
    assert "missing" in result.notes["u", "knockoffs"]


def test_user_tables_are_not_modified() -> None:
    train, test = TRAIN.copy(), TEST.copy()
    sg.fidelity(train, test, samplers=SAMPLERS, n_repeats=1, classifier=False, random_state=1)
    pd.testing.assert_frame_equal(train, TRAIN)
    pd.testing.assert_frame_equal(test, TEST)


def test_a_constant_feature_has_equal_bounds() -> None:
    frames = [frame.assign(w=1.0) for frame in (TRAIN, TEST)]
    result = sg.fidelity(*frames, samplers=["subgroups"], features="w", n_repeats=2, classifier=False, random_state=1)
    assert len(set(result.squared_mmd[0].round(12).ravel())) == 2  # one for each repeat
    assert result.table["position"].isna().all()


def test_single_column_can_be_compared() -> None:
    frames = [frame[["u"]] for frame in (TRAIN, TEST)]
    result = sg.fidelity(*frames, samplers=["subgroups"], n_repeats=2, classifier=False, random_state=1)
    assert np.isfinite(result.estimates).all()


def test_one_repeat_has_no_standard_error() -> None:
    result = sg.fidelity(
        TRAIN, TEST, samplers=["subgroups"], features="u", n_repeats=1, classifier=False, random_state=1
    )
    assert result.table["std_error"].isna().all()
    assert row(result, "u", "unchanged")["position"] == 1.0
