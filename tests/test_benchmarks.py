"""Benchmarks can be found and run again: every script is named in the documentation, and parts of them compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.everything import scripts
from benchmarks.machine import machine, version_of
from benchmarks.timing import interleaved, markdown, ratio

DOCS = Path(__file__).parents[1] / "docs"
PAGES = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", sorted(scripts()))
def test_documentation_names_the_command_of_every_benchmark(name: str) -> None:
    assert f"benchmarks/{name}.py" in PAGES or f"benchmarks.{name}" in PAGES


def test_machine_is_reported_with_versions() -> None:
    assert f"numpy {version_of('numpy')}" in machine("numpy", "no-such-package")
    assert "no-such-package not installed" in machine("no-such-package")


def test_times_are_taken_in_turns_and_compared_round_by_round() -> None:
    order: list[str] = []
    ticks = iter(range(100))
    calls = {name: (lambda name=name: order.append(name)) for name in "ab"}
    times = interleaved(calls, 3, lambda: float(next(ticks)))
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert times == {"a": [1.0, 1.0, 1.0], "b": [1.0, 1.0, 1.0]}
    assert ratio({"a": [2.0, 9.0, 4.0], "b": [1.0, 3.0, 2.0]}, "a", "b") == 2.0


def test_tables_are_markdown() -> None:
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
