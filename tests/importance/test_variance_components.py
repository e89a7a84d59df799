"""Noise by source: what tables cover, what is rejected, and that it is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove.exceptions import FormatError, ParameterError

RNG = np.random.default_rng(0)


def rows_of(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": a + rng.normal(size=n), "c": rng.normal(size=n)})


def model(X: Any) -> Floats:
    return np.asarray(X["a"] + 2 * X["b"])


X, TRAIN = rows_of(150, 1), rows_of(400, 2)
Y = model(X) + RNG.normal(size=150)


def run(**options: Any) -> sg.ImportanceResult:
    return sg.importance(model, X, Y, **{"train": TRAIN, "n_repeats": 4, "random_state": 1, **options})


PLAIN = run()
WITH_PARTITION = PLAIN.with_sampler_variance(6)


def test_default_covers_test_rows_monte_carlo_draws_and_donors() -> None:
    assert PLAIN.covered == ("test rows", "Monte Carlo", "donors")
    assert set(PLAIN.overall["noise"]) == {"test rows + Monte Carlo + donors"}
    assert set(PLAIN.by_subgroup["noise"]) == {"test rows + Monte Carlo + donors"}


@pytest.mark.parametrize("table", ["overall", "by_subgroup"])
def test_variances_of_sources_are_added(table: str) -> None:
    rows, draws, donors = (
        getattr(PLAIN.with_noise(source), table) for source in ("test rows", "Monte Carlo", "donors")
    )
    both = getattr(PLAIN, table)
    squares = rows["std_error"] ** 2 + draws["std_error"] ** 2 + donors["std_error"] ** 2
    np.testing.assert_allclose(both["std_error"] ** 2, squares, rtol=1e-12)
    np.testing.assert_allclose(draws["std_error"], both["mc_error"], rtol=1e-12)
    assert set(draws["noise"]) == {"Monte Carlo"}
    assert set(rows["noise"]) == {"test rows"}
    pd.testing.assert_series_equal(rows["estimate"], both["estimate"])


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite() -> None:
    line = PLAIN.with_noise("test rows", "Monte Carlo").overall.iloc[0]
    rows, draws = PLAIN.with_noise("test rows").overall["std_error"][0] ** 2, line["mc_error"] ** 2
    df = (rows + draws) ** 2 / (rows**2 / 149 + draws**2 / 3)
    assert df < 149
    half = student.ppf(0.975, df) * line["std_error"]
    assert line["estimate"] - line["conf_low"] == pytest.approx(half, rel=1e-9)  # the side that rows do not lean to
    assert line["p_value"] == pytest.approx(student.sf(line["statistic"], df), rel=1e-6)


def test_single_repeat_has_its_draws_in_the_noise_of_the_rows() -> None:
    one = run(n_repeats=1)
    less = one.with_noise("test rows", "donors")
    np.testing.assert_array_equal(one.overall["std_error"], less.overall["std_error"])
    assert one.overall["mc_error"].isna().all()
    assert one.with_noise("Monte Carlo").overall["std_error"].isna().all()


def test_noise_names_the_largest_source() -> None:
    table = WITH_PARTITION.variance_components
    assert list(table.columns) == ["feature", "test rows", "Monte Carlo", "sampler", "largest"]
    errors = table[["test rows", "Monte Carlo", "sampler"]]
    assert (errors.idxmax(axis=1)[:2] == table["largest"][:2]).all()
    assert table["largest"][2] == "none"  # the model does not look at it
    np.testing.assert_allclose(table["Monte Carlo"], WITH_PARTITION.overall["mc_error"])
    assert list(PLAIN.variance_components.columns) == ["feature", "test rows", "Monte Carlo", "donors", "largest"]


def test_sampler_variance_is_covered_on_request_only() -> None:
    every = WITH_PARTITION.with_noise("sampler", "Monte Carlo", "test rows")
    assert set(every.overall["noise"]) == {"test rows + Monte Carlo + sampler"}
    squares = (WITH_PARTITION.variance_components[["test rows", "Monte Carlo", "sampler"]] ** 2).sum(axis=1)
    np.testing.assert_allclose(every.overall["std_error"] ** 2, squares, rtol=1e-12)
    pd.testing.assert_frame_equal(WITH_PARTITION.overall, PLAIN.overall, check_exact=True)
    with pytest.raises(ParameterError, match="by_subgroup cannot cover the noise of 'sampler'"):
        _ = every.by_subgroup


def test_unknown_sources_are_rejected_with_the_remedy() -> None:
    with pytest.raises(ParameterError, match="with_sampler_variance"):
        PLAIN.with_noise("sampler")
    with pytest.raises(ParameterError, match="importance_over_refits"):
        PLAIN.with_noise("model")
    with pytest.raises(ParameterError, match="noise must be among 'test rows'"):
        PLAIN.with_noise("rows")
    with pytest.raises(ParameterError, match="at least one source"):
        PLAIN.with_noise()


def test_loco_has_test_rows_alone() -> None:
    from sklearn.linear_model import LinearRegression

    fitted = LinearRegression().fit(TRAIN, model(TRAIN))
    result = sg.loco(fitted, X, Y, train=(TRAIN, model(TRAIN)))
    assert set(result.overall["noise"]) == {"test rows"}
    with pytest.raises(ParameterError, match="no Monte Carlo draws"):
        result.with_noise("Monte Carlo")


def test_score_of_all_rows_together_knows_the_draws() -> None:
    result = run(loss="root_mean_squared_error")
    assert set(result.overall["noise"]) == {"none"}
    assert result.overall["std_error"].isna().all()
    draws = result.with_noise("Monte Carlo").overall
    np.testing.assert_array_equal(draws["std_error"], draws["mc_error"])
    assert set(draws["noise"]) == {"Monte Carlo"}


def test_comparison_covers_what_the_result_covers() -> None:
    other = run(sampler="marginal", train=None)
    both, rows = PLAIN.compare(other), PLAIN.with_noise("test rows").compare(other)
    draws = PLAIN.overall["mc_error"] ** 2 + other.overall["mc_error"] ** 2
    np.testing.assert_allclose(both["std_error"] ** 2, rows["std_error"] ** 2 + draws, rtol=1e-9)
    assert set(both["noise"]) == {"test rows + Monte Carlo"}
    assert set(rows["noise"]) == {"test rows"}


class Counting:
    """Counts the rows that it predicts."""

    def __init__(self) -> None:
        self.rows = 0

    def predict(self, X: Any) -> Floats:
        self.rows += len(X)
        return model(X)


def test_resamples_predict_the_documented_number_of_rows() -> None:
    counting = Counting()
    result = sg.importance(
        counting, X, Y, train=TRAIN, n_repeats=4, features=["a"], random_state=1
    ).with_sampler_variance(3)
    assert counting.rows == 150 * (1 + 4 + 3 * 4) + 10
    assert result.settings["n_rows_predicted"] == counting.rows
    many = Counting()
    sg.importance(many, X, Y, train=TRAIN, n_repeats=15, features=["a"], random_state=1).with_sampler_variance(3)
    assert many.rows == 150 * (1 + 15 + 3 * 10) + 10


def test_sampler_that_learns_nothing_has_no_sampler_variance_and_no_cost() -> None:
    counting = Counting()
    result = sg.importance(counting, X, Y, sampler="marginal", n_repeats=4, features=["a"], random_state=1)
    result = result.with_sampler_variance(3)
    assert counting.rows == 150 * (1 + 4) + 10
    assert result.variance_components["sampler"].tolist() == [0.0]


def test_resamples_are_rejected_where_nothing_can_be_fitted_again() -> None:
    with pytest.raises(ParameterError, match="cross-fitted"):
        run(train=None, sampler=sg.samplers.SubgroupSampler(min_samples_leaf=20)).with_sampler_variance(3)
    with pytest.raises(ParameterError, match="was passed fitted"):
        run(train=None, sampler=sg.find_subgroups(TRAIN)).with_sampler_variance(3)
    with pytest.raises(ParameterError, match="n_resamples must be"):
        PLAIN.with_sampler_variance(1)


def test_resamples_do_not_depend_on_jobs_or_other_features() -> None:
    alone = run(features=["b"]).with_sampler_variance(3).variance_components["sampler"][0]
    assert PLAIN.with_sampler_variance(3, n_jobs=2).variance_components["sampler"][1] == pytest.approx(alone, rel=1e-12)


def test_several_losses_keep_their_own_sampler_variance() -> None:
    both = run(loss=["squared_error", "absolute_error"]).with_sampler_variance(3)
    for loss in both.losses:
        one = run(loss=loss).with_sampler_variance(3)
        np.testing.assert_allclose(
            both.for_loss(loss).variance_components["sampler"], one.variance_components["sampler"], rtol=1e-9
        )


def test_the_result_of_one_of_several_losses_has_the_sampler_variance_of_that_loss() -> None:
    both = run(loss=["squared_error", "absolute_error"])
    before = both.for_loss("absolute_error").with_sampler_variance(3).variance_components["sampler"]
    after = both.with_sampler_variance(3).for_loss("absolute_error").variance_components["sampler"]
    assert before.tolist() == after.tolist()
    assert before.max() > 0


def test_choice_of_noise_and_its_sources_are_saved(tmp_path: Path) -> None:
    chosen = WITH_PARTITION.with_noise("test rows", "sampler")
    chosen.save(tmp_path / "result.json")
    again = sg.ImportanceResult.load(tmp_path / "result.json")
    pd.testing.assert_frame_equal(again.overall, chosen.overall, check_exact=True)
    pd.testing.assert_frame_equal(again.variance_components, chosen.variance_components, check_exact=True)
    pd.testing.assert_frame_equal(again.independence_test(X), chosen.independence_test(X), check_exact=True)


def test_files_of_another_format_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "importance.json"
    PLAIN.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(FormatError, match="reads format 1"):
        sg.ImportanceResult.load(path)
