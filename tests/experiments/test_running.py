"""Running units: what is done is skipped, what fails is reported, what is stopped can go on."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from experiments import running
from experiments.running import run_all
from experiments.store import Store
from experiments.units import Unit, seed_of

Run = Callable[[Unit, int], list[dict[str, Any]]]
UNITS = [Unit(f"c/r{number}", "c", {"number": number}) for number in range(5)]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Puts an experiment called `fake` in place."""

    def put(run: Run) -> None:
        module = ModuleType("experiments.fake")
        module.run = run  # type: ignore[attr-defined]  # a module made here has no attributes yet
        monkeypatch.setitem(sys.modules, "experiments.fake", module)

    return put


def numbers(unit: Unit, seed: int) -> list[dict[str, Any]]:
    return [{"number": unit.params["number"], "random_state": seed}]


def test_every_unit_is_stored_with_its_cell_and_run_with_its_own_seed(fake: Any, tmp_path: Path) -> None:
    fake(numbers)
    store = Store(tmp_path)
    assert run_all("fake", UNITS, store) == []
    read = store.read()
    assert read["cell"].tolist() == ["c"] * 5
    assert read["random_state"].tolist() == [seed_of("fake", unit.key) for unit in UNITS]


def test_what_is_done_is_not_computed_again(fake: Any, tmp_path: Path) -> None:
    started: list[str] = []

    def counted(unit: Unit, seed: int) -> list[dict[str, Any]]:
        started.append(unit.key)
        return numbers(unit, seed)

    fake(counted)
    store = Store(tmp_path)
    run_all("fake", UNITS[:3], store)
    run_all("fake", UNITS, store)
    assert started == [unit.key for unit in UNITS]


def test_a_failing_unit_is_reported_and_the_others_are_stored(fake: Any, tmp_path: Path) -> None:
    def moody(unit: Unit, seed: int) -> list[dict[str, Any]]:
        if unit.params["number"] == 2:
            raise ValueError("not this one")
        return numbers(unit, seed)

    fake(moody)
    store = Store(tmp_path)
    (failure,) = run_all("fake", UNITS, store)
    assert failure.key == "c/r2"
    assert "not this one" in failure.trace
    assert store.done() == {unit.key for unit in UNITS} - {"c/r2"}


def test_ctrl_c_leaves_whole_units_and_the_next_run_goes_on(fake: Any, tmp_path: Path) -> None:
    def stopped(unit: Unit, seed: int) -> list[dict[str, Any]]:
        if unit.params["number"] == 3:
            raise KeyboardInterrupt
        return numbers(unit, seed)

    fake(stopped)
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_all("fake", UNITS, store)
    assert store.done() == {"c/r0", "c/r1", "c/r2"}
    fake(numbers)
    run_all("fake", UNITS, store)
    assert store.read()["number"].tolist() == [0, 1, 2, 3, 4]


def test_without_a_terminal_progress_is_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 59.0, 61.0, 70.0, 122.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    text = io.StringIO()
    lines = running._Lines(Console(file=text), "fake", 100)
    for _ in range(5):
        lines.advance()
    printed = text.getvalue().splitlines()
    assert printed == [
        "fake: 3 of 100 units, about 32.9 min left",
        "fake: 5 of 100 units, about 38.6 min left",
    ]
