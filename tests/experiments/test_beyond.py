"""The page on what goes past the paper is what the stored tables say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments import beyond, peers
from experiments.__main__ import main, stored_name, summaries
from experiments.store import Store
from experiments.units import Size


def test_the_page_is_what_the_stored_tables_give() -> None:
    assert beyond.PAGE.read_text(encoding="utf-8") == beyond.text(), "run `python -m experiments summary`"


def test_without_results_the_commands_are_named(tmp_path: Path) -> None:
    page = beyond.text(tmp_path)
    text = " ".join(page.split())
    assert (
        "`ground_truth --sampler auto`, `ground_truth --sampler auto --forest own`, `data_fidelity --sampler auto`, "
        "`inference`" in text
    )
    assert "`peers --sampler auto`" in text
    assert "no results yet" in text


def test_tables_become_sections_and_pictures_that_are_there_are_shown(tmp_path: Path) -> None:
    place = {"setting": "I", "scenario": "linear", "n": 300, "p": 10, "m": 20, "truth": 4.0}
    rows = [
        place | {"rep": rep, "method": name, "estimate": 4.0 + rep * size}
        for name, size in (("fippy_gaussian", 2.0), ("true", 1.0))
        for rep in (1, 2)
    ]
    for title, table in peers.tables(pd.DataFrame(rows)).items():
        table.to_csv(tmp_path / f"peers_{title}.csv", index=False)
    page = tmp_path / "docs" / "page.md"
    assert beyond.write(tmp_path, page) == page
    text = page.read_text(encoding="utf-8")
    assert "## Other packages on the same rows" in text
    assert "images/beyond/peers.png" not in text
    (tmp_path / "docs" / "images" / "beyond").mkdir(parents=True)
    (tmp_path / "docs" / "images" / "beyond" / "peers.png").write_bytes(b"")
    assert "images/beyond/peers.png" in beyond.text(tmp_path, tmp_path / "docs" / "images" / "beyond")


def test_past_the_paper_experiments_are_listed_apart() -> None:
    assert "peers" in summaries("BEYOND")
    assert "peers" not in summaries()


@pytest.mark.parametrize(
    ("name", "size", "stored"),
    [
        ("ground_truth", Size(), "ground_truth"),
        ("ground_truth", Size(samplers=("auto",)), "ground_truth_auto"),
        ("ground_truth", Size(samplers=("auto", "cart"), seed=7), "ground_truth_auto_cart_seed7"),
        ("ground_truth", Size(samplers=("auto",), forest="own"), "ground_truth_auto_own"),
        ("data_fidelity", Size(samplers=("auto",)), "data_fidelity_auto"),
        ("peers", Size(samplers=("auto",)), "peers"),
        ("peers", Size(seed=3), "peers_seed3"),
    ],
)
def test_the_options_are_in_the_name_that_results_are_stored_under(name: str, size: Size, stored: str) -> None:
    assert stored_name(name, size) == stored


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["depth", "--sampler", "marginal"], "--sampler is for ground_truth, data_fidelity, peers"),
        (["ground_truth", "--sampler", "telepathy"], "got telepathy"),
        (["ground_truth", "--seed", "3"], "--seed is for ground_truth with --sampler, and for peers"),
        (["data_fidelity", "--sampler", "auto", "--seed", "3"], "--seed is for ground_truth with --sampler"),
        (["depth", "--forest", "own"], "--forest is for ground_truth with --sampler"),
        (["peers", "--sampler", "auto", "--forest", "own"], "--forest is for ground_truth with --sampler"),
    ],
)
def test_options_that_an_experiment_has_no_use_for_are_rejected(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert text in capsys.readouterr().err


def test_the_command_runs_samplers_and_keeps_their_tables_apart(tmp_path: Path) -> None:
    options = ["ground_truth", "--sampler", "marginal", "--reps", "2", "--cells", "I-linear-300-10"]
    assert main([*options, "--out", str(tmp_path), "--results", str(tmp_path / "kept")]) == 0
    assert len(Store(tmp_path / "ground_truth_marginal").done()) == 2
    cells = pd.read_csv(tmp_path / "tables" / "ground_truth_marginal_cells.csv")
    assert set(cells["method"]) == {"marginal", "true"}
    assert not (tmp_path / "kept").exists()
    assert not (tmp_path / "ground_truth").exists()


def test_the_command_puts_stored_samplers_beside_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "missing_packages", list)
    monkeypatch.setattr(peers, "PEERS", {"fippy_gaussian": lambda one: one.rises(one.test[["x2"] * 20].to_numpy().T)})
    options = ["--sampler", "marginal", "--reps", "1", "--cells", "I-linear-300-10", "--out", str(tmp_path)]
    assert main(["ground_truth", "run", *options]) == 0
    assert main(["peers", *options]) == 0
    cells = pd.read_csv(tmp_path / "tables" / "peers_cells.csv")
    assert set(cells["method"]) == {"fippy_gaussian", "marginal", "true", "auto"}
    assert set(cells["reps"]) == {1}


def test_packages_that_are_missing_end_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "missing_packages", lambda: ["fippy", "knockpy"])
    assert main(["peers", "run", "--out", str(tmp_path)]) == 1
    assert "fippy, knockpy are not installed. Run `python -m pip install --group peers`" in capsys.readouterr().err
