"""Effects against iml 0.11.1 (R), for models that give the same predictions in any language."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._effects import effect

from .cases import frame
from .effects_cases import ABSENT, IML, MODELS, effects, iml

pytestmark = pytest.mark.skipif(not IML.exists(), reason=ABSENT)


def assert_close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8)


def ours_and_theirs(name: str, at: int, kind: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    model, data = MODELS[name]
    theirs = iml(name)["effects"][at]
    X = frame(data)
    grid = None if kind == "ale" else "uniform"
    found = effect(
        model, X, theirs["feature"], kind=kind, grid=grid, grid_resolution=theirs["grid_size"], subgroups=None
    )
    return found.curves, theirs


@pytest.mark.parametrize("name", list(MODELS))
def test_models_are_those_of_the_reference(name: str) -> None:
    model, data = MODELS[name]
    np.testing.assert_allclose(model(frame(data))[:10], iml(name)["f_first10"], rtol=1e-12)
    assert model(frame(data)).mean() == pytest.approx(iml(name)["mean_f"], rel=1e-12)


@pytest.mark.parametrize(("name", "at"), effects("pdp"))
def test_partial_dependence_is_that_of_iml(name: str, at: int) -> None:
    ours, theirs = ours_and_theirs(name, at, "pdp")
    if isinstance(theirs["grid"][0], str):
        by_level = dict(zip(theirs["grid"], theirs["value"], strict=True))
        assert set(ours["x"]) == set(by_level)
        assert_close(ours["estimate"], [by_level[level] for level in ours["x"]])
    else:
        np.testing.assert_allclose(ours["x"], [float(x) for x in theirs["grid_str"]], rtol=1e-14, atol=1e-14)
        assert_close(ours["estimate"], theirs["value"])


@pytest.mark.parametrize(("name", "at"), effects("ale"))
def test_accumulated_local_effects_are_those_of_iml(name: str, at: int) -> None:
    ours, theirs = ours_and_theirs(name, at, "ale")
    if isinstance(theirs["grid"][0], str):
        # A line has two directions: iml's order of the levels is ours from the other end.
        assert ours["x"].tolist() in (theirs["grid"], theirs["grid"][::-1])
        by_level = dict(zip(theirs["grid"], theirs["value"], strict=True))
        assert_close(ours["estimate"], [by_level[level] for level in ours["x"]])
    else:
        assert ours["x"].tolist() == [float(x) for x in theirs["grid_str"]]
        assert_close(ours["estimate"], theirs["value"])


def test_ice_curves_are_those_of_iml() -> None:
    model, data = MODELS["bike"]
    theirs = pd.DataFrame(iml("bike")["ice_temp_grid5_first3"])
    ours = effect(model, frame(data), "temp", kind="ice", grid="uniform", grid_resolution=5, subgroups=None).ice
    ours = ours[ours["row"] < 3]
    assert (ours["row"] + 1).tolist() == theirs[".id"].tolist()
    np.testing.assert_allclose(ours["x"], theirs["temp"], rtol=1e-14)
    assert_close(ours["estimate"], theirs[".value"])
