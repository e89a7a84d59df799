"""The experiment on dependence structures: units, tables and sentences."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments import structures
from experiments.__main__ import main
from experiments.units import Size


def test_a_quick_run_by_the_name_of_the_scenarios_gives_a_section(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--out", str(tmp_path / "out"), "--results", str(tmp_path / "results")]
    assert main(["ground_truth", "--scenarios", "zoo", "--quick", *places]) == 0
    assert "## Dependence structures of many kinds" in capsys.readouterr().out


def test_ratios_and_shares_are_those_of_the_rows() -> None:
    place = {
        "n_train": 300,
        "n_test": 150,
        "model": "linear",
        "truth": 1.0,
        "covered": True,
        "difference": False,
        "sampler_change": 0.0,
    }
    rows = [
        place | {"structure": name, "rep": rep, "method": method, "estimate": 1.0 + size, "selected": "marginal"}
        for name, sizes in {"near": (1.0, 1.0), "far": (1.0, 2.0)}.items()
        for method, size in zip(("true", "auto"), sizes, strict=True)
        for rep in (0, 1)
    ]
    found = structures.tables(pd.DataFrame(rows))
    assert found["lines"].set_index("structure")["ratio"].to_dict() == {"far": 4.0, "near": 1.0}
    line = found["all"].iloc[0]
    assert (line["above_2"], line["above_10"], line["largest"]) == (0.5, 0, 4.0)
    assert "50 % are above twice the error" in structures.report(found)


def test_all_structures_and_both_sizes_are_run() -> None:
    units = structures.units(Size(1, (), False, None))
    assert len(units) == 2 * 37
    assert len({unit.key for unit in units}) == len(units)
