"""dependence: how well a forest of the other columns predicts each feature in held-out rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import subgrove as sg

RNG = np.random.default_rng(0)
N = 300
Z = RNG.normal(size=N)
X = pd.DataFrame(
    {
        "z": Z,
        "copy": 3 * Z + 0.1 * RNG.normal(size=N),
        "noise": RNG.normal(size=N),
        "level": np.where(Z > 0.5, "high", np.where(Z < -0.5, "low", "middle")),
    }
)


def explained(found: sg.Dependence) -> dict[str, float]:
    return dict(zip(found.features, (each.explained for each in found.found), strict=True))


FOUND = sg.dependence(X, n_trees=100, random_state=1)


def test_a_copy_is_predicted_and_noise_is_not() -> None:
    found = explained(FOUND)
    assert found["z"] > 0.9
    assert found["copy"] > 0.9
    # R squared of a forest on independent columns: below 0 by what it adds of its own noise.
    assert -0.5 < found["noise"] < 0.1


def test_levels_that_another_column_decides_are_predicted() -> None:
    assert explained(FOUND)["level"] > 0.9


def test_closed_form_of_r_squared_in_a_normal_pair() -> None:
    # x = rho z + sqrt(1 - rho^2) e has R squared rho^2 = 0.64 given z. 1500 rows a half: standard error of R squared is
    # about 2 sqrt(0.64) (1 - 0.64) / sqrt(3000) = 0.01; a forest on one column overfits by about 1/8 of the noise.
    z = RNG.normal(size=3000)
    pair = pd.DataFrame({"x": 0.8 * z + 0.6 * RNG.normal(size=3000), "z": z})
    found = explained(sg.dependence(pair, features="x", n_trees=50, random_state=1))["x"]
    assert 0.64 - 0.36 / 4 - 0.03 < found < 0.64 + 0.03


def test_share_of_a_class_is_errors_over_those_of_the_mode() -> None:
    # b is a with one in five flipped, so that the best guess errs in 20 % and the mode (of a fair coin) in 50 %.
    a = RNG.integers(0, 2, 4000)
    b = np.where(RNG.random(4000) < 0.2, 1 - a, a)
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    found = explained(sg.dependence(table, n_trees=20, random_state=1))["b"]
    # Errors in 20 % of 4000 rows have a standard error of 0.006, those of the mode 0.008: 3 of them, over 0.5.
    assert found == pytest.approx(1 - 0.2 / 0.5, abs=3 * 0.016)


def test_the_column_that_states_is_named() -> None:
    table = FOUND.table.set_index("feature")
    assert table.loc["copy", "predictors"].startswith("z (")
    assert table.loc["noise", "predictors"] == ""
    assert FOUND.found[3].predictors[0] in ("z", "copy")


def test_shares_sum_to_explained() -> None:
    matrix = FOUND.matrix.set_index("feature")
    for name, whole in explained(FOUND).items():
        assert matrix.loc[name].sum() == pytest.approx(max(whole, 0), abs=1e-9)
        assert np.isnan(matrix.loc[name, name])


def test_folds_are_two_a_repeat_and_their_mean_is_explained() -> None:
    found = sg.dependence(X, features="copy", n_trees=20, n_repeats=3, random_state=1)
    folds = found.folds
    assert folds[["repeat", "half"]].to_numpy().tolist() == [[r, h] for r in range(3) for h in range(2)]
    assert folds["explained"].mean() == pytest.approx(found.found[0].explained)
    (error,) = found.table["std_error"]
    assert error == pytest.approx(folds["explained"].std(ddof=1) / np.sqrt(6))


def test_more_repeats_go_on_where_fewer_ended() -> None:
    one = sg.dependence(X, features="copy", n_trees=10, random_state=1).folds
    three = sg.dependence(X, features="copy", n_trees=10, n_repeats=3, random_state=1).folds
    assert one["explained"].tolist() == three["explained"][:2].tolist()


def test_advice_names_the_default_sampler_and_that_of_the_paper() -> None:
    parts = RNG.normal(size=(600, 8))
    table = pd.DataFrame(parts, columns=[f"part{k}" for k in range(8)])
    table["sum"] = parts.sum(axis=1) + 0.5 * RNG.normal(size=600)
    table["like"] = parts[:, 0] + 0.3 * RNG.normal(size=600)
    found = sg.dependence(table, features=["sum", "like", "part7"], n_trees=100, random_state=1, threshold=0.3)
    samplers = dict(zip(found.features, found.table["sampler"], strict=True))
    assert samplers == {"sum": "auto", "like": "auto", "part7": "marginal"}
    assert [sentence.split(":")[0] for sentence in found.advice] == list(found.dependent)
    sentences = dict(zip(found.dependent, found.advice, strict=True))
    assert sentences["like"].endswith("Use the default sampler, 'auto', or 'subgroups'.")
    assert sentences["sum"].endswith("It depends on many columns: use the default sampler, 'auto', or 'imputation'.")


def test_rows_beyond_the_bound_are_sampled() -> None:
    table = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["a", "b"])
    found = sg.dependence(table, n_trees=2, max_rows=40, random_state=1)
    assert found.table["n"].tolist() == [40, 40]
    assert found.settings["n_rows"] == 40


def test_a_feature_that_is_determined_is_reported_as_such() -> None:
    table = pd.DataFrame({"a": np.repeat(["u", "v"], 50), "b": np.repeat(["x", "y"], 50), "c": RNG.normal(size=100)})
    found = sg.dependence(table, features="a", n_trees=50, random_state=1)
    assert explained(found)["a"] == 1
    assert "near 0" in found.advice[0]


def test_the_threshold_decides_who_is_dependent() -> None:
    low, high = (sg.dependence(X, n_trees=20, random_state=1, threshold=threshold) for threshold in (0.2, 1.0))
    assert set(low.dependent) == {"z", "copy", "level"}
    assert explained(low) == explained(high)
    assert len(high.dependent) < 3


def test_numbers_are_the_same_for_any_order_and_subset_of_features_and_any_number_of_jobs() -> None:
    whole = explained(sg.dependence(X, n_trees=40, random_state=0))
    assert explained(sg.dependence(X, features=["noise", "z"], n_trees=40, random_state=0)) == {
        name: whole[name] for name in ("noise", "z")
    }
    assert explained(sg.dependence(X, n_trees=40, random_state=0, n_jobs=2)) == whole
    assert explained(sg.dependence(X, n_trees=40, random_state=1)) != whole


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_every_container_gives_the_same_numbers_in_tables_of_its_own(make: Any) -> None:
    table = X.assign(level=X["level"].astype(pd.CategoricalDtype(["middle", "low", "high"])))
    given = make(X)
    found = sg.dependence(given, n_trees=20, random_state=1)
    for each in (found.table, found.matrix, found.folds):
        assert type(each) is type(given)
    # Levels stand in another order in the frame.
    assert explained(found) == explained(sg.dependence(table, n_trees=20, random_state=1))


def test_an_array_has_columns_by_number() -> None:
    assert sg.dependence(X[["z", "copy"]].to_numpy(), n_trees=5, random_state=1).features == ("x0", "x1")


def test_the_users_table_is_not_changed() -> None:
    before = X.copy()
    sg.dependence(X, n_trees=5)
    pd.testing.assert_frame_equal(X, before)


def test_a_result_is_frozen_can_be_pickled_and_states_its_seed() -> None:
    found = pickle.loads(pickle.dumps(FOUND))
    pd.testing.assert_frame_equal(found.table, FOUND.table)
    assert found.settings == {"n_trees": 100, "n_rows": len(X), "n_repeats": 1, "random_state": 1}
    with pytest.raises(AttributeError):
        found.threshold = 0.5


def test_the_text_of_a_result_has_its_advice() -> None:
    assert repr(FOUND).splitlines()[0] == "<Dependence of 4 features: 3 with R2 of at least 20 %>"
    assert len(repr(FOUND).splitlines()) == 4


def among(n_unrelated: int) -> pd.DataFrame:
    """Return a sum of two columns, the levels of one, and columns that carry nothing."""
    rng = np.random.default_rng(4)
    related = rng.normal(size=(400, 3))
    columns = {"a": related[:, 0], "b": related[:, 1], "c": related[:, 2]}
    columns["sum"] = related[:, 0] + related[:, 1] + 0.3 * rng.normal(size=400)
    columns["level"] = np.where(related[:, 2] > 0, "high", "low")
    return pd.DataFrame(columns | {f"x{at}": rng.normal(size=400) for at in range(n_unrelated)})


def test_columns_that_carry_nothing_hide_no_dependence() -> None:
    """A forest of all 205 columns explains 0.28 of the sum, one of 30 columns 0.58."""
    few, many = (sg.dependence(among(n), features=["sum", "level"], random_state=1) for n in (25, 200))
    for name, share in explained(few).items():
        assert explained(many)[name] > share - 0.08, name
    assert many.found[0].predictors[:2] == few.found[0].predictors[:2]


def test_at_most_thirty_columns_share_what_is_explained() -> None:
    found = sg.dependence(among(60), features=["sum", "x3"], n_trees=20, random_state=1)
    for each in found.found:
        used = (each.folds[:, 1:] != 0).sum(axis=1)
        assert (used <= 30).all()
        assert (used > 5).all()
        assert len(each.drops) == 64


def test_columns_are_selected_in_the_training_half_alone() -> None:
    """Nothing depends on anything: the mean is -0.15; columns selected in all rows would raise it to -0.01."""
    rng = np.random.default_rng(6)
    noise = pd.DataFrame(rng.normal(size=(60, 150)), columns=[f"x{at}" for at in range(150)])
    found = [
        each.explained for each in sg.dependence(noise, features=list(noise)[:60], n_trees=30, random_state=1).found
    ]
    # The standard deviation of a feature is about 0.165, the standard error of the mean of 60 about 0.02.
    assert np.mean(found) < -0.08
