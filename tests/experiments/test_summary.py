"""The reproduction page is what the stored tables say, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from experiments import beyond, summary
from experiments.__main__ import main as command
from experiments.__main__ import summaries

STORED = sorted({name for name in summaries() if summary.tables_of(name)})


def copied(name: str, folder: Path) -> Path:
    """A folder with the stored tables of one experiment."""
    for path in summary.RESULTS.glob(f"{name}_*.csv"):
        shutil.copy(path, folder)
    return folder


def test_the_page_is_what_the_stored_tables_give() -> None:
    assert summary.PAGE.read_text(encoding="utf-8") == summary.text(), "run `python -m experiments summary`"


def test_every_stored_experiment_has_a_section_and_the_others_are_named() -> None:
    page = summary.text()
    assert page.count("\n## ") == 2 + len(STORED)
    missing = sorted(set(summaries()) - set(STORED))
    said = "no results yet" in page
    assert said == bool(missing)
    line = next((line for line in page.split("\n") if "no results yet" in line), "")
    assert all(f"`{name}`" in line for name in missing)


def test_without_any_results_every_experiment_is_named_as_missing(tmp_path: Path) -> None:
    page = summary.text(tmp_path)
    assert page.count("\n## ") == 2
    assert all(f"`{name}`" in page.split("What was run")[1] for name in summaries())


def test_one_experiment_is_enough(tmp_path: Path) -> None:
    page = summary.text(copied("figures", tmp_path))
    assert "## Motivating figures" in page
    assert "## Application" not in page


def test_tables_are_those_of_the_experiment_only(tmp_path: Path) -> None:
    for name in ("bike_run", "bike_claims", "figures_claims", "bikes_claims"):
        (tmp_path / f"{name}.csv").write_text("a\n1\n")
    assert set(summary.tables_of("bike", tmp_path)) == {"run", "claims"}


def test_a_table_that_is_missing_is_named_with_what_to_do(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "figures_other.csv", index=False)
    with pytest.raises(KeyError, match=r"figures: .*python -m experiments figures table"):
        summary.text(tmp_path)


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text("old")
    (tmp_path / "figures_other.csv").write_text("a\n1\n")
    with pytest.raises(KeyError):
        summary.write(tmp_path, page, tmp_path)
    assert page.read_text() == "old"
    assert list(page.parent.iterdir()) == [page]


def test_writing_leaves_the_page_its_pictures_and_nothing_else(tmp_path: Path) -> None:
    results, drawn, page = tmp_path / "results", tmp_path / "drawn", tmp_path / "docs" / "page.md"
    results.mkdir()
    drawn.mkdir()
    copied("figures", results)
    Image.new("RGB", (40, 30), "white").save(drawn / "figures_fig1.png")
    Image.new("RGB", (40, 30), "white").save(drawn / "figures_further.png")
    Image.new("RGB", (40, 30), "white").save(drawn / "bike_depth.png")
    assert summary.write(results, page, drawn) == page
    found = sorted(path.relative_to(page.parent).as_posix() for path in page.parent.rglob("*") if path.is_file())
    folder = "images/reproduction"  # nothing of bike, which has no results here
    assert found == [f"{folder}/figures_fig1.png", f"{folder}/figures_further.png", "page.md"]
    text = page.read_text(encoding="utf-8")
    assert text.count(f"({folder}/figures_fig1.png)") == 1
    assert f"![figures further]({folder}/figures_further.png)" in text
    assert "figures_fig2.png" not in text


def test_pictures_that_are_there_stay_where_nothing_was_drawn_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    kept = tmp_path / "images" / "reproduction" / "figures_fig2.png"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"as it was")
    results = tmp_path / "results"
    results.mkdir()
    summary.write(copied("figures", results), page)
    assert kept.read_bytes() == b"as it was"
    assert "images/reproduction/figures_fig2.png" in page.read_text(encoding="utf-8")


def test_paragraphs_are_wrapped_and_tables_are_not() -> None:
    table = "| " + "cell " * 50 + "|"
    lines = summary.wrapped("word " * 50 + "\n\n" + table).split("\n")
    assert lines[-1] == table
    assert max(len(line) for line in lines[:-1]) <= 120


def test_experiments_come_in_the_order_of_the_paper() -> None:
    assert summary.ordered(["zoo", "bike", "figures", "depth"]) == ["figures", "depth", "bike", "zoo"]


def test_versions_and_repetitions_are_those_of_the_run_table(tmp_path: Path) -> None:
    copied("figures", tmp_path)
    table = pd.read_csv(tmp_path / "figures_run.csv").assign(units=7, fewest_in_a_cell=2, most_in_a_cell=3, numpy="9.9")
    table.to_csv(tmp_path / "figures_run.csv", index=False)
    line = next(line for line in summary.text(tmp_path).split("\n") if line.startswith("| figures | 7 |"))
    assert "| 2 to 3 |" in line
    assert "numpy 9.9" in line


def test_the_command_writes_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(summary, "write", lambda: Path("docs") / "reproduction.md")
    monkeypatch.setattr(beyond, "write", lambda: Path("docs") / "beyond_the_paper.md")
    assert command(["summary"]) == 0
    shown = capsys.readouterr().out
    assert "reproduction.md" in shown
    assert "beyond_the_paper.md" in shown
