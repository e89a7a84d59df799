"""How the kernels are compiled: required or optional, for free-threaded Python, with the flags of each compiler."""

from __future__ import annotations

import runpy
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

setuptools = pytest.importorskip("setuptools")
build_ext = pytest.importorskip("setuptools.command.build_ext").build_ext
ROOT = Path(__file__).parents[2]


@pytest.fixture
def setup_arguments(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run setup.py in the repository, and return what it passes to `setup` and the names that it defines."""
    monkeypatch.chdir(ROOT)

    def run() -> tuple[dict[str, Any], dict[str, Any]]:
        passed: dict[str, Any] = {}
        monkeypatch.setattr(setuptools, "setup", lambda **arguments: passed.update(arguments))
        return passed, runpy.run_path(str(ROOT / "setup.py"))

    return run


@pytest.mark.parametrize(("value", "optional"), [(None, True), ("0", True), ("1", False)])
def test_kernels_are_required_on_request(
    value: str | None, optional: bool, setup_arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUBGROVE_REQUIRE_COMPILED", raising=False)
    if value is not None:
        monkeypatch.setenv("SUBGROVE_REQUIRE_COMPILED", value)
    passed, _ = setup_arguments()
    assert {extension.optional for extension in passed["ext_modules"]} == {optional}


@pytest.mark.parametrize("free_threaded", [False, True])
def test_free_threaded_python_gets_its_own_build(
    free_threaded: bool, setup_arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = sysconfig.get_config_var
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: int(free_threaded) if name == "Py_GIL_DISABLED" else known(name)
    )
    passed, _ = setup_arguments()
    for extension in passed["ext_modules"]:
        assert extension.py_limited_api is not free_threaded
        assert ("Py_LIMITED_API" in dict(extension.define_macros)) is not free_threaded
    assert ("bdist_wheel" in passed["options"]) is not free_threaded


@pytest.mark.parametrize("compiler", ["msvc", "unix"])
def test_each_compiler_gets_flags_it_knows(
    compiler: str, setup_arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, names = setup_arguments()
    monkeypatch.setattr(build_ext, "build_extension", lambda self, extension: None)
    command = names["BuildKernels"].__new__(names["BuildKernels"])
    command.__dict__["compiler"] = SimpleNamespace(compiler_type=compiler, _compile=None)
    extension = passed["ext_modules"][0]
    command.build_extension(extension)
    assert extension.extra_compile_args
    assert all(flag.startswith("/" if compiler == "msvc" else "-") for flag in extension.extra_compile_args)
    assert ("/std:c11" in extension.extra_compile_args) is (compiler == "msvc")


def test_debug_information_stays_on_request(setup_arguments: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CFLAGS", raising=False)
    assert setup_arguments()[1]["STRIP_FLAGS"] == ["-g0"]
    monkeypatch.setenv("CFLAGS", "-g -fsanitize=address")
    assert setup_arguments()[1]["STRIP_FLAGS"] == []
