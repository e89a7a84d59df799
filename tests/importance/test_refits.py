"""Importance over refits: arithmetic, splits, and what is rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression

import subgrove as sg
from subgrove.exceptions import FormatError, InputError, ModelError, ParameterError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(160, 3)), columns=["a", "b", "c"], index=[f"r{k}" for k in range(160)])
Y = pd.Series(X["a"] + 0.5 * X["b"] + RNG.normal(size=160), index=X.index)


def run(**options: Any) -> sg.RefitsResult:
    return sg.importance_over_refits(
        LinearRegression(),
        X,
        Y,
        **{"sampler": "marginal", "n_refits": 6, "test_share": 0.25, "n_repeats": 3, "random_state": 1, **options},
    )


RESULT = run()


def test_variance_is_that_of_nadeau_and_bengio() -> None:
    for k, name in enumerate(X.columns):
        values = RESULT.refits.set_index("feature").loc[name, "estimate"].to_numpy()
        assert len(values) == 6
        line = RESULT.overall.iloc[k]
        error = np.sqrt((1 / 6 + 40 / 120) * values.var(ddof=1))
        assert line["estimate"] == pytest.approx(values.mean())
        assert line["std_error"] == pytest.approx(error)
        assert line["p_value"] == pytest.approx(student.sf(values.mean() / error, 5))
        assert line["conf_high"] == pytest.approx(values.mean() + student.ppf(0.975, 5) * error)
        assert line["noise"] == "test rows + Monte Carlo + sampler + model"
        assert line["n"] == 40


def test_columns_are_those_of_importance() -> None:
    other = sg.importance(LinearRegression().fit(X, Y), X, Y, sampler="marginal", random_state=1)
    assert [name for name in RESULT.overall.columns if name in other.overall.columns] == list(RESULT.overall.columns)


def test_models_are_fitted_on_rows_that_they_are_not_judged_on() -> None:
    seen: list[tuple[set[Any], set[Any]]] = []

    class Spy(LinearRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            assert list(X.index) == list(y.index)
            self.rows_ = set(X["c"])
            return super().fit(X, y)

        def predict(self, X: Any) -> Any:
            seen.append((self.rows_, set(X["c"])))
            return super().predict(X)

    # c is not resampled, and identifies the rows.
    options: dict[str, Any] = {"sampler": "marginal", "features": ["a"], "n_repeats": 2, "random_state": 1}
    sg.importance_over_refits(Spy(), X, Y, n_refits=3, test_share=0.25, **options)
    assert len({frozenset(train) for train, _ in seen}) == 3
    assert all(len(train) == 120 and len(test) in (40, 10) and not train & test for train, test in seen)


def test_same_seed_same_numbers_and_more_refits_go_on() -> None:
    np.testing.assert_array_equal(run(n_refits=8).estimates[:, :, :6], RESULT.estimates)
    assert not np.array_equal(run(random_state=2).estimates, RESULT.estimates)


def test_containers_and_a_function_that_fits_give_the_same_numbers() -> None:
    frame = pl.from_pandas(X.reset_index(drop=True))
    other = sg.importance_over_refits(
        None, frame, Y.to_numpy(), refit=lambda X, y: LinearRegression().fit(X, y),
        sampler="marginal", n_refits=6, test_share=0.25, n_repeats=3, random_state=1,
    )  # fmt: skip
    np.testing.assert_allclose(other.estimates, RESULT.estimates, rtol=1e-9)
    assert isinstance(other.overall, pl.DataFrame)


def test_the_model_is_unchanged_and_losses_are_separate() -> None:
    model = LinearRegression()
    found = sg.importance_over_refits(
        model,
        X,
        Y,
        n_refits=2,
        n_repeats=2,
        sampler="marginal",
        loss=["squared_error", "absolute_error"],
        random_state=1,
    )
    assert not hasattr(model, "coef_")
    assert found.overall["loss"].tolist() == ["squared_error"] * 3 + ["absolute_error"] * 3
    assert "RefitsResult: 3 features, 2 refits" in repr(found)


def test_predicted_rows_are_those_of_all_refits() -> None:
    arguments = 0

    class Counted(LinearRegression):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:
            nonlocal arguments
            arguments += len(X)
            return super().predict(X)

    found = sg.importance_over_refits(Counted(), X, Y, sampler="marginal", n_refits=3, n_repeats=4, random_state=1)
    assert arguments == found.settings["n_rows_predicted"] == 3 * (40 * (1 + 3 * 4) + 10)


def test_saved_and_read(tmp_path: Path) -> None:
    path = tmp_path / "refits.json"
    RESULT.with_level(0.9).save(path)
    again = sg.RefitsResult.load(path)
    pd.testing.assert_frame_equal(again.overall, RESULT.with_level(0.9).overall, check_exact=True)
    path.write_text("{}")
    with pytest.raises(FormatError, match=r"result of importance over refits"):
        sg.RefitsResult.load(path)


def test_bad_input() -> None:
    for share in (0, 1, "half", True):
        with pytest.raises(ParameterError, match="test_share must be a number between 0 and 1"):
            run(test_share=share)
    with pytest.raises(ParameterError, match="leaves 2 test rows"):
        run(test_share=0.01)
    with pytest.raises(ParameterError, match="n_refits"):
        run(n_refits=1)
    with pytest.raises(ParameterError, match="level"):
        RESULT.with_level(2)
    with pytest.raises(ParameterError, match="Pass refit"):
        sg.importance_over_refits(lambda X: X["a"], X, Y, random_state=1)
    with pytest.raises(InputError, match="159 values"):
        sg.importance_over_refits(LinearRegression(), X, Y.iloc[:-1].to_numpy(), random_state=1)


def test_errors_of_a_refit_have_its_number() -> None:
    def fails(X: Any, y: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ModelError, match="Refit 0 raised ValueError: no"):
        run(refit=fails)
