"""`subgrove subgroups`, `dependence`, `fidelity`, `demo`, `report` print and write the results of the library."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import subgrove as sg
from subgrove._core.text import percent

from .commands import error_message, invoke
from .conftest import rows


def table(target: str) -> pd.DataFrame:
    frame = rows().drop(columns=target)
    return frame.assign(
        kind=frame["kind"].astype("category"),
        **({"sold": frame["sold"].astype("category")} if target == "price" else {}),
    )


def test_subgroups_prints_the_rules_of_the_library(houses: Path) -> None:
    result = invoke("subgroups", houses, "--feature", "a", "--target", "price", "--max-depth", 1)
    expected = sg.find_subgroups(table("price"), features="a", max_depth=1)["a"]
    assert result.exit_code == 0, result.output
    assert expected.text() in result.stdout
    for rule, size in zip(expected.rules, expected.sizes, strict=True):
        assert any(rule in line and str(size) in line.split() for line in result.stdout.splitlines())


def test_subgroups_as_json(houses: Path) -> None:
    result = invoke("subgroups", houses, "--feature", "a,b", "--target", "price", "--json", "-")
    expected = sg.find_subgroups(table("price"), features=["a", "b"])
    assert [row["rule"] for row in json.loads(result.stdout)["table"]] == expected.table["rule"].tolist()


def test_dependence_prints_and_writes_results_of_the_library(houses: Path, folder: Path) -> None:
    result = invoke("dependence", houses, "--target", "price", "--feature", "a", "--json", "out.json")
    expected = sg.dependence(table("price"), features=["a"], random_state=1)
    saved = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert saved["table"][0]["explained"] == expected.table["explained"].iloc[0]
    assert percent(expected.table["explained"].iloc[0]) in result.stdout
    assert expected.advice[0] in result.stdout


def test_fidelity_ranks_samplers(houses: Path) -> None:
    options = ("--target", "price", "--feature", "a", "-s", "subgroups", "-s", "imputation")
    result = invoke("fidelity", houses, *options, "--json", "-")
    overall = json.loads(result.stdout)["overall"]
    assert {row["sampler"] for row in overall} == {"unchanged", "subgroups", "imputation", "marginal"}
    assert overall[-1]["sampler"] == "marginal"


def test_a_sampler_that_is_none_is_error_message(houses: Path) -> None:
    error_message(invoke("fidelity", houses, "-s", "magic"), "magic")


def test_page_is_rebuilt_from_saved_report(houses: Path, folder: Path) -> None:
    invoke("explain", houses, "-t", "price", "-f", "a", "--n-repeats", 3, "-q", "--json", "out.json")
    assert invoke("report", "out.json", "--out", "again.html").exit_code == 0
    assert (folder / "again.html").read_bytes() == (folder / "report.html").read_bytes()
    assert invoke("report", "out.json").exit_code == 0
    assert (folder / "out.html").read_bytes() == (folder / "report.html").read_bytes()


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '{"schema": "subgrove.report", "version": 1}', "\0\0"])
def test_invalid_report_is_rejected_and_nothing_is_written(folder: Path, content: str) -> None:
    Path("out.json").write_text(content)
    error_message(invoke("report", "out.json"))
    assert [path.name for path in folder.iterdir()] == ["out.json"]


def test_demo_needs_no_file(folder: Path) -> None:
    result = invoke("demo", "--json", "bike.json")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["bike.json", "subgrove-demo.html"]
    summary = sg.Report.load("bike.json").summary
    assert summary.data.n_train + summary.data.n_test == 731
    assert summary.model.verdict == "good"


def test_target_as_feature_is_rejected(houses: Path) -> None:
    error_message(invoke("subgroups", houses, "-t", "a", "-f", "a"), "--feature: 'a' is the target")


def test_depth_zero_is_not_reported_as_independence(houses: Path) -> None:
    result = invoke("subgroups", houses, "-t", "price", "-f", "a", "--max-depth", 0)
    assert "one subgroup (--max-depth 0)" in result.stdout
    assert "no dependence on other columns" not in result.stdout
