"""`subgrove subgroups`, `dependence`, `fidelity`, `demo`, `report`: they print and write what the library computes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import subgrove as sg
from subgrove._cli import selfcheck
from subgrove._cli.oracles import ORACLES

from .conftest import rows
from .run import invoke, refused


def table(target: str) -> pd.DataFrame:
    frame = rows().drop(columns=target)
    return frame.assign(
        kind=frame["kind"].astype("category"),
        **({"sold": frame["sold"].astype("category")} if target == "price" else {}),
    )


def test_subgroups_prints_the_rules_of_the_library(houses: Path) -> None:
    result = invoke("subgroups", houses, "--feature", "a", "--target", "price", "--max-depth", 1)
    found = sg.find_subgroups(table("price"), features="a", max_depth=1)["a"]
    assert result.exit_code == 0, result.output
    assert found.text() in result.stdout
    for rule, size in zip(found.rules, found.sizes, strict=True):
        assert any(rule in line and str(size) in line.split() for line in result.stdout.splitlines())


def test_subgroups_as_json(houses: Path) -> None:
    result = invoke("subgroups", houses, "--feature", "a,b", "--target", "price", "--json", "-")
    found = sg.find_subgroups(table("price"), features=["a", "b"])
    assert [row["rule"] for row in json.loads(result.stdout)["table"]] == found.table["rule"].tolist()


def test_dependence_prints_and_writes_what_the_library_computes(houses: Path, folder: Path) -> None:
    result = invoke("dependence", houses, "--target", "price", "--feature", "a", "--json", "out.json")
    found = sg.dependence(table("price"), features=["a"], random_state=1)
    told = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert told["table"][0]["explained"] == found.table["explained"].iloc[0]
    assert f"{found.table['explained'].iloc[0]:.0%}" in result.stdout
    assert found.advice[0] in result.stdout


def test_fidelity_ranks_samplers(houses: Path) -> None:
    options = ("--target", "price", "--feature", "a", "-s", "subgroups", "-s", "imputation")
    result = invoke("fidelity", houses, *options, "--json", "-")
    overall = json.loads(result.stdout)["overall"]
    assert {row["sampler"] for row in overall} == {"unchanged", "subgroups", "imputation", "marginal"}
    assert overall[-1]["sampler"] == "marginal"


def test_a_sampler_that_is_none_is_refused(houses: Path) -> None:
    refused(invoke("fidelity", houses, "-s", "magic"), "magic")


def test_a_saved_report_becomes_the_same_page_again(houses: Path, folder: Path) -> None:
    invoke("explain", houses, "-t", "price", "-f", "a", "--repeats", 3, "-q", "--json", "out.json")
    assert invoke("report", "out.json", "--out", "again.html").exit_code == 0
    assert (folder / "again.html").read_bytes() == (folder / "report.html").read_bytes()
    assert invoke("report", "out.json").exit_code == 0
    assert (folder / "out.html").read_bytes() == (folder / "report.html").read_bytes()


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '{"schema": "subgrove.report", "version": 1}', "\0\0"])
def test_what_is_no_report_is_refused_and_nothing_is_written(folder: Path, content: str) -> None:
    Path("out.json").write_text(content)
    refused(invoke("report", "out.json"))
    assert [path.name for path in folder.iterdir()] == ["out.json"]


def test_the_demo_needs_no_file(folder: Path) -> None:
    result = invoke("demo", "--json", "bike.json")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["bike.json", "subgrove-demo.html"]
    summary = sg.Report.load("bike.json").summary
    assert summary.data.n_train + summary.data.n_test == 731
    assert summary.model.verdict == "good"


def test_selfcheck_passes_here_and_fails_where_a_check_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck, "ORACLES", ORACLES[:1])
    result = invoke("selfcheck")
    assert result.exit_code == 0
    assert "1 of 1 checks passed" in result.stdout

    monkeypatch.setattr(
        selfcheck, "_ask", lambda oracle, seed: selfcheck.Check("sum", "2 = 3", 2.0, 3.0, 0.0, False, 0.1)
    )
    failed = invoke("selfcheck", "--json", "-")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)[0]["passed"] is False


def test_the_target_is_no_feature_and_is_told_so(houses: Path) -> None:
    refused(invoke("subgroups", houses, "-t", "a", "-f", "a"), "--feature 'a' is the target")


def test_a_depth_of_nothing_says_nothing_of_dependence(houses: Path) -> None:
    result = invoke("subgroups", houses, "-t", "price", "-f", "a", "--max-depth", 0)
    assert "as --max-depth 0 asks for" in result.stdout
    assert "depends on no other" not in result.stdout
