"""Other packages on the dependence structures: units, encoding, tables and sentences."""

from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import structures, structures_peers
from experiments.units import Size


def test_units_are_the_first_of_structures_without_missing_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures_peers, "find_spec", lambda name: True)
    units = structures_peers.units(Size(1))
    assert {unit.key for unit in units} <= {unit.key for unit in structures.units(Size())}
    assert not any("missing" in unit.key for unit in units)


@pytest.mark.skipif(importlib.util.find_spec("fippy") is not None, reason="the packages are installed")
def test_missing_packages_are_reported_with_the_line_that_installs_them() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"fippy, hidimstat.*--group peers"):
        structures_peers.units(Size(1))


@pytest.mark.parametrize("name", ["hour", "ordinal", "ten levels"])
def test_encoded_rows_have_the_predictions_of_the_model(name: str) -> None:
    structure = sg.simulate.structure(name)
    train, test = structure.sample(60, random_state=1), structure.sample(40, random_state=2)
    encoded = structures_peers._Encoded(structure, train, test)
    expected = structure.model(test.X)
    assert np.allclose(encoded.predict(encoded.test_rows), expected)
    assert np.allclose(encoded.predict(np.vstack([encoded.test_rows] * 3)), np.tile(expected, 3))


def test_the_best_package_is_compared_with_the_default_on_the_same_repetitions() -> None:
    place = {
        "n_train": 300,
        "n_test": 150,
        "model": "linear",
        "truth": 1.0,
        "covered": True,
        "difference": False,
        "sampler_change": 0.0,
    }
    sizes = {
        "near": {"true": 1.0, "auto": 1.0, "hidimstat_forest": 3.0, "hidimstat_boosting": 2.0, "fippy_gaussian": 9.0},
        "far": {"true": 1.0, "auto": 4.0, "hidimstat_forest": 2.0, "hidimstat_boosting": 8.0, "fippy_gaussian": 9.0},
    }
    rows = [
        place | {"structure": name, "rep": rep, "method": method, "estimate": 1.0 + size, "selected": ""}
        for name, own in sizes.items()
        for method, size in own.items()
        for rep in (0, 1)
    ]
    found = structures_peers.tables(pd.DataFrame(rows))
    lines = found["lines"].set_index("structure")
    assert lines["ratio"].round(9).to_dict() == {"far": 4.0, "near": 0.25}
    assert lines["best"].to_dict() == {"far": "hidimstat_forest", "near": "hidimstat_boosting"}
    text = structures_peers.report(found)
    assert "smaller error than the best of the packages in 50 %" in text
    assert "| 300 | far | linear | hidimstat_forest | 4 | 16 | 1 | 4.00 |" in text
