"""Limits that keep the package readable: sizes of files, functions, folders and signatures, and unique class names."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path

import pytest

import subgrove as sg
from tools.structure import SOURCE, classes, code_lines, functions, python_files

MAX_FILES, MAX_FILES_IN_A_FOLDER = 250, 25
MAX_CODE_LINES = 33_850  # 27,500 after the redesign; then came samplers, tests, weights, files and trees of models
MAX_LINES_OF_A_FILE, MAX_LINES_OF_A_FUNCTION = 400, 80
MAX_TOP_LEVEL_FUNCTIONS = 10
MAX_PARAMETERS = {"importance": 15, "effect": 12, "report": 12}


def test_the_package_has_at_most_so_many_files_and_code_lines() -> None:
    files = python_files()
    assert len(files) <= MAX_FILES
    assert sum(len(code_lines(path)) for path in files) <= MAX_CODE_LINES


def test_no_folder_has_too_many_files() -> None:
    count = Counter(path.parent.relative_to(SOURCE).as_posix() for path in python_files())
    assert {folder: n for folder, n in count.items() if n > MAX_FILES_IN_A_FOLDER} == {}


@pytest.mark.parametrize("path", python_files(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES_OF_A_FILE
    assert {name: n for name, n in functions(path) if n > MAX_LINES_OF_A_FUNCTION} == {}


def test_class_names_are_unique() -> None:
    assert {name: where for name, where in classes().items() if len(where) > 1} == {}


def test_few_functions_stand_at_the_top_level() -> None:
    names = [name for name in sg.__all__ if inspect.isfunction(getattr(sg, name))]
    assert len(names) <= MAX_TOP_LEVEL_FUNCTIONS, names


@pytest.mark.parametrize("name", MAX_PARAMETERS)
def test_signatures_are_short(name: str) -> None:
    assert len(inspect.signature(getattr(sg, name)).parameters) <= MAX_PARAMETERS[name]


def test_no_test_measures_wall_clock_time() -> None:
    """Others may be at work on the machine; `time.process_time` does not count them."""
    tests = sorted(Path(__file__).parent.rglob("test_*.py"))
    clock = "time.perf_" + "counter("
    assert [path.name for path in tests if clock in path.read_text(encoding="utf-8")] == []
    assert len(tests) > 100


def test_docstrings_comments_and_blank_lines_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""Docs\n\nof two."""\n\n# a comment\nx = (\n    1\n)\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert len(code_lines(path)) == 5
    assert list(functions(path)) == [("f", 2)]
