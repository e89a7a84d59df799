"""The drawing of who may import whom is true: this test walks the imports."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path

import pytest

import subgrove

PACKAGE = Path(subgrove.__file__).parent

# From the user's side down to what could be a package of its own; a part may import parts after it.
ORDER = [
    ("_cli",),
    ("_report",),
    ("plots",),
    ("_importance", "_effects", "_fidelity", "_dependence"),
    ("simulate",),
    ("datasets",),
    ("_scoring",),
    ("_models",),
    ("_scale",),
    ("samplers",),
    ("_regress",),
    ("_subgroups",),
    ("trees",),
    ("_data",),
    ("_native",),
    ("_core",),
    ("losses",),
    ("exceptions",),
]
NEEDS_NOTHING = ["_version"]


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def rank(part: str) -> int | None:
    return next((index for index, parts in enumerate(ORDER) if part in parts), None)


def may_import(importer: str, imported: str) -> bool:
    if importer == imported or imported in NEEDS_NOTHING:
        return True
    above, below = rank(importer), rank(imported)
    return above is not None and below is not None and above < below


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(path: Path) -> set[str]:
    """Modules of this package that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a name comes from"
            found |= {node.module or ""}
            if node.module == "subgrove":
                found |= {f"subgrove.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("subgrove.")}


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    importer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module in imports_of(path):
        assert may_import(importer, part_of(module)), f"{path.name} imports {module}: {importer} -> {part_of(module)}"


def test_every_part_has_its_place_in_the_drawing() -> None:
    known = {part for parts in ORDER for part in parts} | {*NEEDS_NOTHING, "__init__", "py"}
    present = {path.name.split(".")[0] for path in PACKAGE.iterdir() if not path.name.startswith("__pycache__")}
    assert present <= known


def test_walk_sees_a_forbidden_import(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from subgrove.plots.tree import tree\n    return tree\n")
    assert imports_of(wrong) == {"subgrove.plots.tree"}
    assert not may_import("trees", "plots")
    assert may_import("plots", "trees")
    assert not may_import("_data", "trees")


def test_trees_import_no_container_library_at_the_top() -> None:
    names = {"pandas", "polars", "pyarrow", "matplotlib", "sklearn"}
    assert all(importlib.util.find_spec(name) is not None for name in names)
    for path in FILES:
        top = [node for node in parsed(path).body if isinstance(node, ast.Import)]
        found = names & {alias.name for node in top for alias in node.names}
        assert not found, f"{path} imports {found} at the top"
