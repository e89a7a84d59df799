"""What the metadata declare: every import, links that work on an index, classifiers."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tools.structure import python_files

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_INSTALLED = {"onnxruntime", "ray", "torch"}  # extras that environments of the tests may leave out
NOT_TESTED = {"onnxruntime", "ray", "torch"}  # at their lowest versions: docs/compatibility.md has the reasons


def imported() -> set[str]:
    """Top-level names that the package imports, at the top of a file or in a function."""
    names: set[str] = set()
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"subgrove", "subgrove_command"}


def test_every_import_is_declared() -> None:
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    declared = {re.split(r"[\[><=]", line)[0] for line in lines}
    distributions = packages_distributions()
    found = {name: distributions.get(name, {name} if name in NOT_INSTALLED else ()) for name in imported()}
    assert {name for name, owners in found.items() if not {owner.lower() for owner in owners} & declared} == set()


def test_links_of_the_readme_are_addresses_on_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    setuptools = pytest.importorskip("setuptools")
    monkeypatch.chdir(ROOT)
    passed: dict[str, str] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: passed.update(arguments))
    runpy.run_path(str(ROOT / "setup.py"))
    source = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", passed["long_description"])
    assert len(targets) == len(re.findall(r"\]\(([^)\s]+)\)", source))
    assert all(re.match(r"https?:|#", target) for target in targets)
    for target in targets:
        file = re.search(r"/(blob|raw)/v[^/]+/([^#]+)", target)
        assert file is None or (ROOT / file[2]).exists(), target


def test_extra_all_has_every_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    (line,) = extras["all"]
    assert set(re.split(r"[\[\],]", line)[1:-1]) == set(extras) - {"all"}


def test_lowest_versions_are_those_of_the_metadata() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if "==" in line)
    declared = [
        *PROJECT["dependencies"],
        *(line for lines in PROJECT["optional-dependencies"].values() for line in lines),
    ]
    floors = dict(re.sub(r"\[.*\]", "", line).split(">=") for line in declared if ">=" in line)
    assert tested == {name: floor for name, floor in floors.items() if name not in NOT_TESTED}
