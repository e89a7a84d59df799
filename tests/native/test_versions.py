"""`show_versions` prints versions and the compiled parts in use."""

from __future__ import annotations

import platform
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import subgrove as sg
from subgrove._native import loader
from subgrove._native.loader import OPTIONAL, REQUIRED

ROOT = Path(__file__).parents[2]


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    sg.show_versions()
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def test_versions_are_those_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys)
    assert shown["python"] == platform.python_version()
    assert shown["subgrove"] == sg.__version__
    assert shown["numpy"] == np.__version__


def test_every_dependency_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split("[><=]", line)[0] for line in project["dependencies"]} == set(REQUIRED)
    extras = project["optional-dependencies"]
    users = [extras[name] for name in ("dask", "plot", "polars", "pyarrow", "ray", "skops", "torch", "onnx")]
    assert {re.split(r"[\[><=]", line)[0] for lines in users for line in lines} == set(OPTIONAL)


def test_missing_package_is_stated(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subgrove._native.loader.OPTIONAL", ("no-such-package",))
    assert printed(capsys)["no-such-package"] == "not installed"


def test_compiled_parts_in_use_are_stated(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "forest", None)
    monkeypatch.setattr(loader, "tree_fit", None)
    monkeypatch.setattr(loader, "lasso_path", loader)
    shown = printed(capsys)
    assert shown["forest"] == "not installed: scikit-learn's forest is used, with other random draws"
    assert shown["tree_fit"] == "not installed: NumPy gives the same numbers, slower"
    assert shown["lasso_path"] == "compiled"
