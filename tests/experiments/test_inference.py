"""Coverage, size and power: units, arithmetic of the tables, and sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from experiments import inference
from experiments.inference_models import encoded_predict, fitted_model, labels_of
from experiments.inference_report import section
from experiments.units import Size


def test_units_are_a_thousand_simulations_of_coverage_and_two_hundred_of_tests() -> None:
    units = inference.units(Size())
    cells = pd.Series([unit.cell for unit in units]).value_counts()
    assert {name: count for name, count in cells.items() if str(name).startswith("coverage")} == {
        f"coverage-{scenario}-{n}": 100 for scenario in ("linear", "nonlinear") for n in (200, 1000)
    }
    assert all(unit.params["n"] == 10 for unit in units if unit.params["part"] == "coverage")
    tests = {name: count for name, count in cells.items() if str(name).startswith("test")}
    assert len(tests) == 9
    assert set(tests.values()) == {200}
    assert [unit.key[-4:] for unit in units[:3]] == ["0000"] * 3
    assert len({unit.key for unit in units}) == len(units)


def test_samplers_are_added_by_name() -> None:
    assert inference.units(Size(samplers=("cart",)))[0].params["samplers"] == ("subgroups", "auto", "cart")


def test_rows_of_a_quick_run_have_all_methods() -> None:
    rows: list[dict[str, Any]] = []
    for unit in inference.units(Size(quick=True)):
        rows += inference.run(unit, seed=1)
    tables = inference.tables(pd.DataFrame(rows))
    assert set(tables["coverage"]["method"]) == {"true", "subgroups", "auto"}
    assert tables["coverage"]["runs"].eq(2 * 1).all()
    assert {"rows", "doubting"} <= set(tables["tests"]["test"])
    assert set(tables["tests"]["strength"]) == {0.0, 0.3}
    assert section(tables).startswith("## Inference")


def coverage_rows(covered: list[bool]) -> pd.DataFrame:
    lines = [
        {"part": "coverage", "scenario": "linear", "n_test": 200, "method": method, "estimate": 4.0 + at,
         "std_error": 1.0, "truth": 4.0, "covered": own}
        for method in ("true", "subgroups") for at, own in enumerate(covered)
    ]  # fmt: skip
    return pd.DataFrame(lines)


def test_coverage_is_the_share_of_runs_and_is_reported_as_it_is() -> None:
    tables = inference.tables(coverage_rows([True] * 95 + [False] * 5))
    line = tables["coverage"].iloc[0]
    assert line["coverage"] == 0.95
    assert line["coverage_se"] == pytest.approx(np.sqrt(0.95 * 0.05 / 100))
    assert line["bias"] == pytest.approx(49.5)
    assert "in 1 of 1 cells" in section(tables)
    assert "in 0 of 1 cells" in section(inference.tables(coverage_rows([True] * 90 + [False] * 10)))


def test_rejections_are_p_values_below_five_percent_and_a_missed_level_is_reported(tmp_path: Path) -> None:
    lines = [
        {"part": "test", "scenario": "linear", "model": "forest", "strength": strength, "sampler": sampler,
         "test": test, "m": 50, "estimate": 0.0, "p": p}
        for strength in (0.0, 0.3)
        for sampler, test in (("true", "rows"), ("subgroups", "rows"), ("hidimstat", "its own"))
        for p in ([0.01, 0.5, 0.049, 0.05] if sampler != "true" else [0.5] * 4)
    ]  # fmt: skip
    results = pd.DataFrame(lines)
    tables = inference.tables(results)
    assert tables["tests"]["rejected"].tolist() == [0, 0.5, 0.5, 0, 0.5, 0.5]
    text = section(tables)
    assert "in 0 of 1 cells, at worst 50 % (subgroups, linear, forest)" in text
    assert "hidimstat was not installed" not in text
    assert inference.figures(results, tmp_path) == [tmp_path / "inference_tests.png"]


def test_model_in_numbers_says_what_the_model_says() -> None:
    data = sg.simulate.null_scenario("mixed").sample(80, random_state=1)
    assert labels_of(data.X)
    for name in ("linear", "forest"):
        model = fitted_model(name, data.X, data.y, 1)
        plain, numbers = encoded_predict(model, data.X)
        array = numbers(data.X)
        np.testing.assert_array_equal(array[:, 0], data.X["x1"])
        np.testing.assert_allclose(plain.predict(array), model.predict(data.X))


def test_hidimstat_that_is_not_installed_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "find_spec", lambda name: None)
    assert inference.hidimstat_rows(None, None, None, 1) == []
