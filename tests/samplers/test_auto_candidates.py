"""`Auto(candidates=...)` compares some candidates only, and refits for a gap compare what was selected before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.uniform(-2, 2, size=600)
    level = np.where(z + rng.normal(size=600) > 0, "high", "low")
    return pd.DataFrame({"x": np.sin(3 * z) + 0.3 * rng.normal(size=600), "level": level, "z": z})


def scores(rows: pd.DataFrame, feature: str, **options: Any) -> dict[str, float]:
    """Return the score of each candidate that was compared."""
    choice = sg.samplers.Auto(**options).fit(rows, [feature]).choices[feature]
    return {one.name: one.score for one in choice.scores}


@pytest.mark.parametrize("feature", ["x", "level"])
def test_a_candidate_has_the_same_score_whatever_it_is_compared_with(rows: pd.DataFrame, feature: str) -> None:
    everything = scores(rows, feature)
    assert len(everything) >= 4
    for name in {"smooth_subgroups", "smooth_levels", "shifted_subgroups"} & set(everything):
        some = scores(rows, feature, candidates=[name])
        assert set(some) == {"marginal", name}
        assert some[name] == pytest.approx(everything[name], rel=0.05)  # trees may be scored by halves, or not


def test_without_candidates_that_apply_the_marginal_sampler_is_selected(rows: pd.DataFrame) -> None:
    sampler = sg.samplers.Auto(candidates=["forest_levels"]).fit(rows, ["x"])
    assert sampler.choices["x"].selected == "marginal"


@pytest.mark.parametrize(
    "name",
    [
        "gaussian",
        "scaled_subgroups",
        "separate_modes",
        "reweighted_residuals",
        "forest_donors",
        "transformed_subgroups",
    ],
)
def test_what_a_candidate_is_built_on_is_not_compared_itself(rows: pd.DataFrame, name: str) -> None:
    assert set(scores(rows, "x", candidates=[name])) <= {"marginal", name}


@pytest.mark.parametrize("candidates", [["forests"], [["marginal"]], "marginal", 3])
def test_unknown_candidates_are_an_error_that_lists_the_known_ones(rows: pd.DataFrame, candidates: Any) -> None:
    with pytest.raises(ParameterError, match=r"candidates must be a list of names out of .*smooth_subgroups"):
        sg.samplers.Auto(candidates=candidates).fit(rows, ["x"])


def test_steps_of_a_gap_fit_the_sampler_that_was_selected(rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    fit = sg.samplers.Auto.fit

    def recorded(self: Any, X: Any, features: Any = None) -> Any:
        compared.append(self.candidates)
        return fit(self, X, features)

    monkeypatch.setattr(sg.samplers.Auto, "fit", recorded)
    wide = rows.assign(**{f"w{at}": np.random.default_rng(at).normal(size=600) for at in range(3)})
    y = wide["x"] + wide["z"]
    options: dict[str, Any] = {"features": ["x"], "n_repeats": 2, "random_state": 0, "loss": "absolute_error"}
    imp = sg.importance(lambda X: X["x"] + X["z"], wide[:300], y[:300], train=wide[300:], **options)
    marginal = sg.importance(lambda X: X["x"] + X["z"], wide[:300], y[:300], sampler="marginal", **options)
    selected = imp.choices.loc[imp.choices["selected"], "sampler"].iloc[0]
    compared.clear()
    imp.explain_gap(marginal)
    assert compared == [[selected]] * 3  # given one, two and three columns; given all, it is known
