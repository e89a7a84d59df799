"""The map of imports is true: imports go down only, and never in a circle."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from tools.structure import ORDER, SOURCE, drawn_map, import_cycles, imports_of, module_name, parsed, python_files

NEEDS_NOTHING = ["_version"]
FILES = [path for path in python_files() if path != SOURCE / "__init__.py"]


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def rank(part: str) -> int | None:
    return next((index for index, parts in enumerate(ORDER) if part in parts), None)


def may_import(importer: str, imported: str) -> bool:
    if importer == imported or imported in NEEDS_NOTHING:
        return True
    above, below = rank(importer), rank(imported)
    return above is not None and below is not None and above < below


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_go_down_only(path: Path) -> None:
    importer = part_of(module_name(path))
    for module in imports_of(path):
        assert may_import(importer, part_of(module)), f"{path.name} imports {module}: {importer} -> {part_of(module)}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert import_cycles() == []


def test_every_part_has_its_place_in_the_order() -> None:
    known = {part for parts in ORDER for part in parts} | {*NEEDS_NOTHING, "__init__", "py"}
    present = {path.name.split(".")[0] for path in SOURCE.iterdir() if not path.name.startswith("__pycache__")}
    assert present <= known


def test_the_map_in_contributing_is_current() -> None:
    page = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert drawn_map() in page, "run `python -m tools.structure --write`"


def test_walk_sees_a_forbidden_import(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from subgrove.plots.tree import tree\n    return tree\n")
    assert imports_of(wrong) == {"subgrove.plots.tree"}
    assert not may_import("trees", "plots")
    assert may_import("plots", "trees")
    assert not may_import("_data", "trees")


def test_walk_sees_a_circle_through_type_checking_and_functions(tmp_path: Path) -> None:
    package = tmp_path / "subgrove"
    package.mkdir()
    (package / "one.py").write_text("if TYPE_CHECKING:\n    from subgrove import two\n")
    (package / "two.py").write_text("def f():\n    from subgrove.one import x\n    return x\n")
    (package / "three.py").write_text("from subgrove.two import f\n")
    assert import_cycles(package) == [["subgrove.one", "subgrove.two"]]


def test_no_container_library_is_imported_at_the_top() -> None:
    names = {"pandas", "polars", "pyarrow", "matplotlib", "sklearn"}
    assert all(importlib.util.find_spec(name) is not None for name in names)
    for path in FILES:
        top = [node for node in parsed(path).body if isinstance(node, ast.Import)]
        found = names & {alias.name for node in top for alias in node.names}
        assert not found, f"{path} imports {found} at the top"
