"""Squared MMD against R: biased, with the median of all pairwise distances of both samples together.

The files were made with R 4.2.2; distances by `dist`, factors as model.matrix(~ . - 1) makes them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._core.kinds import Floats
from subgrove._fidelity.mmd import PairBlock, SamplePairs, median_distance, squared_mmd
from subgrove._native import loader
from subgrove._scoring.two_sample import Points

from .effects_cases import ABSENT, IML

pytestmark = pytest.mark.skipif(not IML.exists(), reason=ABSENT)


@cache
def reference() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((IML / "mmd2.json").read_text())
    return loaded


def sample(name: str) -> pd.DataFrame:
    return pd.read_csv(IML / f"mmd_{name}.csv.gz", dtype={"yr": str})


def numbers(name: str) -> Floats:
    return sample(name).to_numpy(dtype=np.float64)


def bike(name: str) -> Floats:
    """Indicators as the reference names them: all levels of the first factor, all but the first of the others."""
    table = sample(f"bike_{name}")
    columns = []
    for column in reference()["bike"]["model_matrix_columns"]:
        factor = next((each for each in table if column.startswith(each) and column != each), None)
        columns.append(table[column] if factor is None else (table[factor] == column.removeprefix(factor)))
    return np.column_stack(columns).astype(float)


@pytest.fixture(params=["compiled", "numpy"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(loader, "mmd_pairs", None)
    elif loader.mmd_pairs is None:
        pytest.skip("the package was installed without a compiler")


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("other", ["dat", "perm"])
def test_squared_mmd_of_numbers_is_that_of_r(other: str) -> None:
    ours = squared_mmd(numbers("wine_ref"), numbers(f"wine_{other}"))
    assert ours == pytest.approx(reference()["wine"][f"ref_vs_{other}"], abs=1e-10)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("other", ["dat", "perm"])
def test_squared_mmd_of_indicators_is_that_of_r(other: str) -> None:
    assert squared_mmd(bike("ref"), bike(other)) == pytest.approx(reference()["bike"][f"ref_vs_{other}"], abs=1e-10)


@pytest.mark.usefixtures("loops")
def test_squared_mmd_with_a_given_gamma_is_that_of_r() -> None:
    ours = squared_mmd(numbers("wine_ref"), numbers("wine_dat"), gamma=0.05)
    assert ours == pytest.approx(reference()["wine"]["ref_vs_dat_gamma_0.05"], abs=1e-10)


def test_squared_mmd_of_a_sample_with_itself_is_that_of_r() -> None:
    assert squared_mmd(numbers("wine_ref"), numbers("wine_ref")) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("other", ["dat", "perm"])
def test_the_median_is_over_all_pairs_of_rows_of_both_samples(other: str) -> None:
    both = np.vstack([sample("wine_ref"), sample(f"wine_{other}")])
    ours = median_distance([PairBlock.of(Points.of(both), Points.of(both), triangle=True)])
    assert ours == pytest.approx(reference()["wine"][f"median_dist_ref_{other}"], abs=1e-12)


@pytest.mark.usefixtures("loops")
def test_rows_that_count_twice_with_two_borders_are_those_of_r() -> None:
    ref, dat = sample("wine_ref"), sample("wine_dat")
    grid = np.array(reference()["wine"]["ale_grid"])
    left = np.clip(np.searchsorted(grid, dat["density"], side="right") - 1, 0, len(grid) - 2)
    stay = [name for name in ref if name != "density"]
    found = SamplePairs.of(ref[stay].to_numpy(), dat[stay].to_numpy())
    ours = found.squared_mmd(ref[["density"]].to_numpy(), [grid[left][:, None], grid[left + 1][:, None]])
    assert ours == pytest.approx(reference()["wine"]["ref_vs_ale"], abs=1e-10)
